"""A run that continues from the state of the run before says what a run of the whole log says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.cli import main
from jobs.commands.changes import changes_of_row, changes_of_topic
from jobs.evidence.kept_state import kept_by
from jobs.evidence.opening import Finished
from jobs.evidence.past_log import migration_znodes, past_kraft
from jobs.evidence.past_run import past_run
from jobs.run.run import Failure
from jobs.sinks.reader import Folder
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from schemas.entities import ENTITIES
from schemas.gold import ISR_HISTORY
from schemas.silver import FINDINGS
from tests.captures import capture
from tests.pipeline.audits import Audit, Content, audits, executions, in_fleet, settings_content
from transforms.report.json import to_json

OF_THE_RUN = {"run_id", "started_at", "finished_at", "cluster", "history", "notes", "resolved"}
# They hold a run against the one before, or tell how fast the part of the log grew that a run has read.
OF_TWO_RUNS = {"ISR-15", "LOG-04", "LOG-01", *(f"RUN-0{number}" for number in range(1, 6))}


def keeping(folder: Path, warehouse: Path, cluster: str) -> Content:
    """The configuration of an audit that keeps its state and continues one, however short the log is."""
    kraft = {"folders": [str(folder / "kraft")], "keep_state_every": 1}
    return settings_content(folder, warehouse, cluster=cluster, kraft=kraft)


def said(found: Audit) -> dict[str, Any]:
    """What a report says of the cluster, without what it says of the run and of the runs before."""
    report = json.loads(to_json(found.report))
    for name in OF_THE_RUN:
        report.pop(name, None)
    report["checks"] = {check["id"]: check for check in report["checks"] if check["id"] not in OF_TWO_RUNS}
    for name in ("by_status", "defects_by_status"):
        report["divergences"].pop(name, None)
    for row in report["divergences"]["rows"]:
        row.pop("status")
    return report


def silver(each: Audit) -> set[str]:
    """The rows of an audit's silver tables."""
    tables, rows = Folder(each.warehouse.root), set()
    for table in (*(entity.table for entity in ENTITIES), FINDINGS):
        mine = {"cluster": each.cluster} if table.chained else {"cluster": each.cluster, "run_id": each.run_id}
        found = tables.rows(table, where=mine, chain=each.chain if table.chained else ())
        rows |= {f"{table.name} {_text(row)}" for row in found.drop("cluster", "run_id").iter_rows(named=True)}
    return rows


def _text(row: dict[str, Any]) -> str:
    return str(sorted(row.items()))


def base_runs(found: Audit) -> set[str | None]:
    return {row["base_run"] for row in found.rows(KRAFT_LOG_COPIES)}


# One migration, stage after stage: fresh dual write, changes, ZooKeeper down (nothing is mirrored), done.
STAGES = ("4-dual-write-fresh", "5-dual-write-changed", "8-zookeeper-behind", "12-finalized")
LOST = capture("3.9.1", "quota-removal")
UNCLEAN = capture("4.3.1-kraft", "8-unclean")


def damaged(folder: Path) -> Path:
    shutil.copytree(capture("3.9.1", "9-caught-up"), folder)
    for segment in folder.glob("kraft/*/__cluster_metadata-0/*.log"):
        content = bytearray(segment.read_bytes())
        content[len(content) // 2] ^= 1
        segment.write_bytes(content)
    return folder


# What each run after the run over all clusters of the tests audits, in the same tables: `series` is the migration, `other` a
# quorum that is formatted again, `lost` has lost writes that are healed at last, `unclean` elections that are not.
LATER: list[dict[str, Path]] = [
    {
        "series": capture("3.9.1", STAGES[1]),
        "other": capture("3.9.1", "retry-after-join"),
        "lost": LOST,
        "unclean": UNCLEAN,
    },
    {"series": capture("3.9.1", STAGES[2]), "lost": capture("3.9.1", "5")},
    {"series": capture("3.9.1", STAGES[3])},
]
# SQL executions of each: fewer clusters, fewer kept states that were not written together. Four of them ask which runs have
# finished, and whether the kept rows are those that were written. Measured: 47, 34 and 40.
MOST = (50, 40, 45)
FIRST: dict[str, Callable[[Path], Path]] = {
    "series": lambda _: capture("3.9.1", STAGES[0]),
    "other": lambda _: capture("3.9.1", "9-caught-up"),
    "damaged": lambda folder: damaged(folder / "copy"),
    "lost": lambda _: LOST,
    "unclean": lambda _: UNCLEAN,
}
for name, source in FIRST.items():
    in_fleet(name)(lambda folder, name=name, source=source: keeping(source(folder), folder, name))


@pytest.fixture(scope="module")
def whole(audit_of: Callable[[str, str], Audit]) -> dict[str, Audit]:
    """Audits of the same stages that read the whole log."""
    return {stage: audit_of("3.9.1", stage.split("-")[0]) for stage in STAGES[1:]}


@pytest.fixture(scope="module")
def counted(spark: SparkSession, fleet: Mapping[str, Audit | Failure]) -> list[tuple[dict[str, Audit], int]]:
    """The run over all clusters of the tests, as far as they are continued, and those after it with their SQL executions."""
    made = [({name: each for name in FIRST if isinstance(each := fleet[name], Audit)}, 0)]
    assert made[0][0].keys() == FIRST.keys()
    warehouse = Path(made[0][0]["series"].warehouse.root)
    for folders in LATER:
        before = executions(spark)
        found = audits([keeping(folder, warehouse, name) for name, folder in folders.items()])
        made.append((found, executions(spark) - before - 1))
        assert made[-1][0].keys() == folders.keys()
        spark.catalog.clearCache()
    return made


@pytest.fixture(scope="module")
def runs(counted: list[tuple[dict[str, Audit], int]]) -> list[dict[str, Audit]]:
    return [found for found, _ in counted]


def test_what_few_rows_were_kept_is_read_once(counted: list[tuple[dict[str, Audit], int]]) -> None:
    """Each query that reads a stored table looks up its files, in queries of Delta's own."""
    for (_, taken), most in zip(counted[1:], MOST, strict=True):
        assert taken <= most


@pytest.fixture(scope="module")
def series(runs: list[dict[str, Audit]]) -> dict[str, Audit]:
    return {stage: run["series"] for stage, run in zip(STAGES, runs, strict=True)}


@pytest.fixture(scope="module")
def rows(series: dict[str, Audit], whole: dict[str, Audit]) -> dict[str, tuple[set[str], set[str]]]:
    """Silver rows of each stage's continued audit, and of the one that read the whole log."""
    found = [silver(each) for each in (*(series[stage] for stage in whole), *whole.values())]
    return dict(zip(whole, zip(found[: len(whole)], found[len(whole) :], strict=True), strict=True))


@pytest.mark.parametrize("stage", STAGES[1:])
def test_it_says_the_same_as_a_run_of_the_whole_log(
    series: dict[str, Audit], whole: dict[str, Audit], rows: dict[str, tuple[set[str], set[str]]], stage: str
) -> None:
    before, found = series[STAGES[STAGES.index(stage) - 1]], series[stage]
    assert base_runs(found) == {before.run_id}
    assert said(found) == said(whole[stage])
    continued, of_the_whole = rows[stage]
    assert len(of_the_whole) > 200
    assert continued ^ of_the_whole == set()


def test_epochs_are_held_against_the_run_before(series: dict[str, Audit]) -> None:
    found = [next(check.verdict for check in series[stage].report.checks if check.id == "ISR-15") for stage in STAGES]
    assert found == ["not_applicable", *["pass"] * 3]


@pytest.mark.parametrize("stage", STAGES[1:])
def test_it_reads_only_what_is_new(series: dict[str, Audit], stage: str) -> None:
    before, now = series[STAGES[STAGES.index(stage) - 1]], series[stage]
    mirrored = max(row["log_end_offset"] for row in before.rows(KRAFT_LOG_COPIES))
    offsets = [row["offset"] for row in now.rows(KRAFT_RECORDS, "checkpoint_offset IS NULL")]
    assert 0 < min(offsets) < mirrored
    assert len(offsets) == max(offsets) - min(offsets) + 1


def test_the_whole_log_is_still_there_to_be_asked(series: dict[str, Audit]) -> None:
    """`explain` and `diff --as-of` ask for any offset, whichever run read it."""
    last = series[STAGES[-1]]
    past = past_run(Finished(last.warehouse, last.cluster), last.run_id)
    kraft = past_kraft(past, migration_znodes(past))
    assert kraft is not None
    records = kraft.records.where("checkpoint_offset IS NULL").select("offset")
    offsets = sorted(row["offset"] for row in records.collect())
    assert offsets == list(range(kraft.side.plan.leading.end))


def recorded(found: Audit) -> list[dict[str, Any]]:
    """All that gold isr_history has of a cluster, without who recorded it and what a kept state does not know."""
    rows = found.warehouse.read(ISR_HISTORY).where(F.col("cluster") == found.cluster).collect()
    unknown = {"run_id", "cluster", "leaderless_since"}
    return [{name: value for name, value in row.asDict().items() if name not in unknown} for row in rows]


def test_the_history_of_partitions_is_recorded_once_whatever_runs_read_it(
    series: dict[str, Audit], whole: dict[str, Audit]
) -> None:
    last = STAGES[-1]
    found, wanted = recorded(series[last]), recorded(whole[last])
    assert len(found) == len(wanted) > 0
    assert {_text(row) for row in found} == {_text(row) for row in wanted}


def test_what_a_row_was_is_told_over_all_runs(series: dict[str, Audit]) -> None:
    last = series[STAGES[-1]]
    runs_of_it = Finished(last.warehouse, last.cluster)
    [(log, changes)] = changes_of_row(runs_of_it, "configs", "TOPIC/orders/retention.ms")
    assert (log.first, len(log.parts), log.gaps) == (0, len(STAGES), [])
    assert [change.text for change in changes] == [
        "made, 86400000",
        "86400000 -> 172800000",
        "172800000 -> 259200000",
    ]
    assert [change.type for change in changes] == ["CONFIG_RECORD"] * 3
    [(_, partitions)] = changes_of_row(runs_of_it, "partitions", "orders/0")
    epochs = [row for row in recorded(last) if (row["topic"], row["partition"]) == ("orders", 0)]
    assert [change.offset for change in partitions] == sorted(row["offset"] for row in epochs)


def test_a_log_that_was_formatted_anew_is_told_as_another_one(runs: list[dict[str, Audit]]) -> None:
    other = runs[1]["other"]
    logs = [log for log, _ in changes_of_topic(Finished(other.warehouse, other.cluster), "orders")]
    assert [len(log.parts) for log in logs] == [1, 1]
    places = [(row["topic_id"], row["partition"], row["offset"], row["append_time"]) for row in recorded(other)]
    assert len(places) == len(set(places)) > 0


def test_another_log_is_read_from_its_start(runs: list[dict[str, Audit]]) -> None:
    """A quorum that was formatted again has the same cluster id and may have the same epochs and offsets."""
    assert base_runs(runs[1]["other"]) == {None}


def test_a_log_with_findings_keeps_nothing(runs: list[dict[str, Audit]]) -> None:
    damaged, whole = runs[0]["damaged"], runs[0]["lost"]
    assert kept_by(damaged.warehouse, damaged.cluster, damaged.run_id) is None
    assert kept_by(whole.warehouse, whole.cluster, whole.run_id) is not None


def test_what_was_lost_is_judged_by_what_earlier_runs_have_read(runs: list[dict[str, Audit]]) -> None:
    """The record that set the value lies below the kept state: without it nobody could say that KRaft ever had the value."""
    first, second = runs[0]["lost"], runs[1]["lost"]
    assert base_runs(second) == {first.run_id}
    assert first.report.divergences.by_class == {"lost_write": 2}
    assert said(second) == said(first)


def test_an_election_stays_open_until_it_is_healed(runs: list[dict[str, Audit]]) -> None:
    """Its record lies below the kept state: a run that read only what is new would say that nothing was lost."""
    first, second = runs[0]["unclean"], runs[1]["unclean"]
    assert base_runs(second) == {first.run_id}
    found = next(check for check in second.report.checks if check.id == "ISR-12")
    assert (found.verdict, found.violations) == ("warn", 4)
    assert said(second) == said(first)


def test_a_run_remembers_the_ones_before_it(runs: list[dict[str, Audit]], capsys: pytest.CaptureFixture[str]) -> None:
    first, second, healed = (run["lost"] for run in runs[:3])
    assert first.report.divergences.by_status == {"new": 2}
    assert second.report.divergences.by_status == {"persisting": 2}
    assert healed.report.divergences.total == 0
    assert len(healed.report.resolved) == 2
    assert [point.defects for point in healed.report.history] == [2, 2, 0]
    assert [point.by_class for point in healed.report.history] == [{"lost_write": 2}, {"lost_write": 2}, {}]
    # Each run reads the rows it wrote, whatever came after.
    place = ["--warehouse", first.warehouse.root, "--cluster", "lost"]
    capsys.readouterr()
    assert main(["diff", "--as-of", "327", "--format", "jsonl", *place, "--run", first.run_id]) == 0
    assert [json.loads(line)["class"] for line in capsys.readouterr().out.splitlines()] == ["lost_write"]
    assert main(["history", "--trend", *place]) == 0
    told = [line.split()[2:] for line in capsys.readouterr().out.splitlines()]
    assert told == [["lag_records", "divergences", "defects", "lost_write"], [*"0000"], [*"0222"], [*"0222"]]
