"""A finished run examined again from its evidence: equal as it was stored, and what was changed since is found and said."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from jobs.cli import main
from jobs.evidence import verified
from jobs.evidence.verified import longest_ago, store
from jobs.exit import CRASH, ERRORS, OK
from jobs.sinks.conditions import Equal
from jobs.sinks.delta import Warehouse
from jobs.sinks.folder_table import arrow_rows
from jobs.sinks.reader import Folder
from jobs.steps.maintenance.maintain import maintain
from jobs.steps.maintenance.upkeep import Upkeep
from schemas.bronze import KRAFT_RECORDS
from schemas.entities.topics import TOPICS
from schemas.examined import EXAMINED
from schemas.gold import CHECKS, GATES, ISR_HISTORY, RUNS, VERIFICATIONS
from schemas.table import Table
from tests.captures import capture
from tests.pipeline.audits import audit, settings_content
from transforms.retention import Retention

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]
# The first reads ZooKeeper's data folder, so that transaction logs are examined again, too.
STAGES = ("4-dual-write-fresh", "5-dual-write-changed", "8-zookeeper-behind")


def content(stage: str, warehouse: Path) -> dict[str, object]:
    folder = capture("3.9.1", stage)
    kraft = {"folders": [str(folder / "kraft")], "keep_state_every": 1}
    return settings_content(folder, warehouse, cluster="c", kraft=kraft, data_folder=stage == STAGES[0])


@pytest.fixture(scope="module")
def chained(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Three runs, each of which continues from the one before; their warehouse and ids."""
    warehouse = tmp_path_factory.mktemp("chained") / "w"
    return warehouse, [audit(content(stage, warehouse)).run_id for stage in STAGES]


def verify(warehouse: Path, *more: str) -> int:
    conf = warehouse.with_suffix(".yml")
    conf.write_text(json.dumps(content(STAGES[-1], warehouse)))
    return main(["verify", "--conf", str(conf), *more])


def test_runs_that_went_on_from_each_other_are_what_their_evidence_gives(
    chained: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse, runs = chained
    for run_id in runs:
        code = verify(warehouse, "--run", run_id)
        assert (code, capsys.readouterr().out) == (OK, f"c: run {run_id} matches its evidence\n")
    assert outcomes(warehouse) == [], "nothing is kept of a run that somebody asked for"


def outcomes(warehouse: Path) -> list[tuple[str, str, str | None]]:
    """What gold `verifications` has, oldest first."""
    rows = Folder(str(warehouse)).rows(VERIFICATIONS).sort("verified_at").select("run_id", "verdict", "problem")
    return list(rows.iter_rows())


def test_what_comes_out_is_kept_of_newest_runs_and_those_longest_ago_come_first(
    chained: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse, runs = copied(chained, tmp_path)
    assert verify(warehouse, "--clusters", "1") == OK
    assert outcomes(warehouse) == [(runs[-1], "equal", None)]
    assert longest_ago(Folder(str(warehouse)), ["c", "d", "e"], 2) == {"c"}, "others have no run to verify"
    capsys.readouterr()
    assert verify(warehouse, "--clusters", "0") == 2
    assert capsys.readouterr().err == "kraft-audit: --clusters: 0 is below 1; give a number of clusters\n"


def test_clusters_never_verified_have_their_turn_first_and_only_those_with_a_finished_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Warehouse(spark, str(tmp_path))
    now = datetime.now(UTC)
    runs = [("late", "clean"), ("early", "errors"), ("never", "warnings"), ("failed", "failed")]
    rows = [{"cluster": name, "run_id": "r", "started_at": now, "verdict": verdict} for name, verdict in runs]
    tables.append(RUNS, arrow_rows(RUNS, rows))
    for name in ("early", "late"):
        store(tables, name, "r", "equal")
    names = ["late", "early", "never", "failed", "absent"]
    reader = Folder(str(tmp_path))
    assert [longest_ago(reader, names, number) for number in (1, 2, 9)] == [
        {"never"},
        {"never", "early"},
        {"never", "early", "late"},
    ]


def test_a_clock_that_was_ahead_hides_no_verification_and_keeps_no_cluster_from_its_turn(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables, reader = Warehouse(spark, str(tmp_path)), Folder(str(tmp_path))
    now = datetime.now(UTC)

    def verified_at(name: str, days: int, run_days: int, verdict: str) -> None:
        run_id = f"{now + timedelta(days=run_days):%Y%m%dT%H%M%SZ}-abcdef"
        row = {"cluster": name, "run_id": run_id, "verified_at": now + timedelta(days=days), "verdict": verdict}
        row |= {} if verdict == "equal" else {"problem": verdict}
        tables.append(VERIFICATIONS, arrow_rows(VERIFICATIONS, [row]))
        run = {"cluster": name, "run_id": run_id, "started_at": now + timedelta(days=run_days), "verdict": "clean"}
        tables.append(RUNS, arrow_rows(RUNS, [run]))

    verified_at("ahead", -5, -6, "equal")
    verified_at("ahead", 3650, -3, "differs")
    assert verified.newest(reader)["ahead"].problem == "differs", "its run is a later one"
    verified_at("right", -9, -9, "equal")
    assert longest_ago(reader, ["ahead", "right"], 1) == {"ahead"}
    verified_at("ahead", -2, -3, "equal")
    assert verified.newest(reader)["ahead"].problem == ""
    # Neither its own time nor its run's is known.
    verified_at("lost", 3650, 3650, "differs")
    assert verified.newest(reader)["lost"].problem == "differs"
    verified_at("lost", -1, -1, "equal")
    assert verified.newest(reader)["lost"].problem == ""


def rewritten(folder: Path, change: Callable[[dict[str, object]], dict[str, object]]) -> int:
    """Change rows in the files of a table, as no writer of Delta's does; how many have changed."""
    changed = 0
    for path in folder.glob("*.parquet"):
        rows = pq.read_table(path)
        before = rows.to_pylist()
        after = [change(dict(row)) for row in before]
        if after != before:
            size = path.stat().st_size
            pq.write_table(pa.Table.from_pylist(after, rows.schema), path)
            changed += sum(left != right for left, right in zip(before, after, strict=True))
            for commit in (folder / "_delta_log").glob("*.json"):
                # Another file may be as long.
                mine = rf'("path":"{re.escape(path.name)}","partitionValues":{{}},"size":){size}'
                commit.write_text(re.sub(mine, rf"\g<1>{path.stat().st_size}", commit.read_text()))
    for sidecar in [
        *folder.glob(".*.crc"),
        *(folder / "_delta_log").glob("*.crc"),
        *(folder / "_delta_log").glob(".*.crc"),
    ]:
        sidecar.unlink(missing_ok=True)
    return changed


def copied(chained: tuple[Path, list[str]], folder: Path) -> tuple[Path, list[str]]:
    shutil.copytree(chained[0], folder / "w")
    return folder / "w", chained[1]


def files(warehouse: Path, table: Table) -> Path:
    return warehouse / table.layer.value / table.name


def test_rows_gates_checks_and_kept_bytes_that_were_changed_by_hand_are_shown(
    spark: SparkSession,
    chained: tuple[Path, list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dashboards and alerts read the tables of gates and checks, not the report. All at once, because each look takes seconds."""
    warehouse, runs = copied(chained, tmp_path)

    def another_topic(row: dict[str, object]) -> dict[str, object]:
        mine = row["run_id"] == runs[-1] and row["source"] == "kraft" and row["topic"] == "orders"
        return {**row, "topic": "0rders"} if mine else row

    def open_gate(row: dict[str, object]) -> dict[str, object]:
        mine = row["run_id"] == runs[-1] and row["gate"] == "finalize"
        return {**row, "verdict": "go", "blocking": []} if mine else row

    def another_bit(row: dict[str, object]) -> dict[str, object]:
        payload = row["payload"]
        mine = row["run_id"] == runs[-1] and row["kind"] == "fold" and isinstance(payload, bytes)
        return {**row, "payload": payload[:-1] + bytes([payload[-1] ^ 1])} if mine else row  # type: ignore[index]

    for table, change in ((TOPICS.table, another_topic), (GATES, open_gate), (EXAMINED, another_bit)):
        assert rewritten(files(warehouse, table), change) == 1
    Warehouse(spark, str(warehouse)).delete(CHECKS, Equal("run_id", runs[-1]) & Equal("check_id", "DUR-05"))
    assert verify(warehouse) == ERRORS
    problem = "does NOT match its evidence: 1 row of kept state, 2 rows of silver.topics, 1 row of gold.checks, 2 rows of gold.gates"
    assert outcomes(warehouse) == [(runs[-1], "differs", problem)]
    first, *shown = capsys.readouterr().out.splitlines()
    assert first == f"c: run {runs[-1]} {problem}"
    kept = "  kept state: its bytes in silver.examined have changed since they were written"
    assert shown[0] == kept
    assert [line.split(": {")[0] for line in shown[1:3]] == [
        "  silver.topics, stored only",
        "  silver.topics, found only",
    ]
    assert '"0rders"' in shown[1]
    judged = ["gold.checks, found only", "gold.gates, stored only", "gold.gates, found only"]
    assert sorted(line.split(": {")[0].strip() for line in shown[3:]) == sorted(judged)
    # Without a sample it is told as well, and what is no row of a table with its reason.
    assert verify(warehouse, "--sample", "0") == ERRORS
    assert capsys.readouterr().out.splitlines() == [f"c: run {runs[-1]} {problem}", kept]
    # Another release may judge the same evidence otherwise, and no table is wrong for that.
    monkeypatch.setattr("jobs.commands.verify.tool_version", lambda: "999.0")
    assert verify(warehouse) == CRASH
    [*_, (_, verdict, why)] = outcomes(warehouse)
    assert (verdict, "and this is 999.0" in why) == ("unknown", True)


def test_changes_of_partitions_that_are_gone_changed_or_twice_are_shown(
    spark: SparkSession, chained: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No check reads them again, so nothing else would find it."""
    warehouse, runs = copied(chained, tmp_path)
    rows = Folder(str(warehouse)).rows(ISR_HISTORY, ["run_id", "offset"])
    offsets = [sorted(offset for run_id, offset in rows.iter_rows() if run_id == each) for each in runs]
    assert min(map(len, offsets)) >= 3
    gone, changed, twice = offsets[1][0], offsets[1][1], offsets[1][2]

    def change(row: dict[str, object]) -> dict[str, object]:
        return {**row, "leader_epoch": 77} if (row["run_id"], row["offset"]) == (runs[1], changed) else row

    assert rewritten(files(warehouse, ISR_HISTORY), change) >= 1
    tables = Warehouse(spark, str(warehouse))
    again = tables.read(ISR_HISTORY).where(f"run_id = '{runs[1]}' and offset = {twice}").toArrow()
    tables.append(ISR_HISTORY, again)
    tables.delete(ISR_HISTORY, Equal("run_id", runs[1]) & Equal("offset", gone))
    assert verify(warehouse, "--run", runs[1]) == ERRORS
    first, *shown = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"c: run {runs[1]} does NOT match its evidence: \d+ rows of gold.isr_history", first)
    lines = [re.fullmatch(r'  gold\.isr_history, ([^:]+): .*"offset":(\d+),.*', line) for line in shown]
    said = {(found[1], int(found[2])) for found in lines if found is not None}
    assert said == {
        ("found only", gone),
        ("stored only", changed),
        ("found only", changed),
        ("stored 2 times, found 1", twice),
    }
    assert verify(warehouse) == OK, "the newest run's own are as they were"


def test_changes_that_maintenance_has_summed_up_are_not_missed(
    spark: SparkSession, chained: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse, runs = copied(chained, tmp_path)
    before = Folder(str(warehouse)).rows(ISR_HISTORY, ["run_id"]).height
    later = datetime.now(UTC) + timedelta(days=3650)
    maintain(
        Warehouse(spark, str(warehouse)), Upkeep({"c": Retention(isr_days=1, details_days=9999)}, later, files=False)
    )
    assert Folder(str(warehouse)).rows(ISR_HISTORY, ["run_id"]).height < before
    assert verify(warehouse) == OK
    assert capsys.readouterr().out == f"c: run {runs[-1]} matches its evidence\n"


def test_a_record_that_is_missing_is_told_and_a_run_without_evidence_can_t_be_verified(
    spark: SparkSession, chained: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse, runs = copied(chained, tmp_path)
    tables = Warehouse(spark, str(warehouse))
    of_first = Equal("run_id", runs[0]) & Equal("checkpoint_offset", None)
    tables.delete(KRAFT_RECORDS, of_first & Equal("offset", 100))
    assert verify(warehouse) == ERRORS
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"c: run {runs[-1]} does NOT match its evidence: 1 row of evidence"
    assert "records are there instead of" in second
    tables.delete(KRAFT_RECORDS, of_first)
    assert verify(warehouse) == CRASH
    assert [verdict for _, verdict, _ in outcomes(warehouse)] == ["differs", "unknown"]
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines()[-1] == (
        f"kraft-audit: c: run {runs[-1]} can't be examined again: bronze.kraft_records no longer has the rows of run {runs[0]}, "
        "which it needs"
    )


def beside(chained: tuple[Path, list[str]], folder: Path) -> tuple[Path, list[str]]:
    """A copy of the warehouse, and configurations of its cluster and of one that it has no run of."""
    warehouse, runs = copied(chained, folder)
    for name in ("c", "new"):
        (folder / f"{name}.yml").write_text(json.dumps({**content(STAGES[-1], warehouse), "cluster": name}))
    return warehouse, runs


@pytest.mark.parametrize("table", [KRAFT_RECORDS, TOPICS.table], ids=["bronze", "silver"])
def test_a_file_that_is_gone_is_told_with_the_cluster_and_stored_and_other_clusters_go_on(
    chained: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str], table: Table
) -> None:
    warehouse, runs = beside(chained, tmp_path)
    for path in files(warehouse, table).glob("*.parquet"):
        path.unlink()
    assert main(["verify", "--conf", str(tmp_path / "c.yml"), str(tmp_path / "new.yml")]) == CRASH
    first, second = [line for line in capsys.readouterr().err.splitlines() if line.startswith("kraft-audit: ")]
    assert first.startswith(f"kraft-audit: c: run {runs[-1]} can't be examined again: a file of the tables is gone")
    assert second.startswith("kraft-audit: cluster new has no finished run yet")
    [(run_id, verdict, problem)] = outcomes(warehouse)
    assert (run_id, verdict) == (runs[-1], "unknown")
    assert problem is not None
    assert problem.startswith("can't be examined again: a file of the tables is gone")


def test_a_run_whose_row_can_t_be_read_is_stored_as_unknown(
    chained: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse, runs = beside(chained, tmp_path)
    assert rewritten(files(warehouse, RUNS), lambda row: {**row, "kept": "no JSON"}) == len(runs)
    both = ["verify", "--clusters", "2", "--conf", str(tmp_path / "c.yml"), str(tmp_path / "new.yml")]
    assert main(both) == CRASH
    [said] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("kraft-audit: ")]
    assert said.startswith(f"kraft-audit: c: run {runs[-1]} can't be examined again: ")
    assert [row[:2] for row in outcomes(warehouse)] == [(runs[-1], "unknown")]


def test_what_an_older_run_continued_from_may_be_forgotten(
    spark: SparkSession, chained: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse, (first, second, newest) = copied(chained, tmp_path)
    kept_rows = Folder(str(warehouse)).rows(RUNS, ["run_id", "kept"])
    fold = next(json.loads(text)["fold"] for run_id, text in kept_rows.iter_rows() if run_id == first)

    def of_first(row: dict[str, object]) -> dict[str, object]:
        """As a run leaves it that found too little new to keep a state of its own."""
        if row["run_id"] == first:
            return row
        return {**row, "kept": json.dumps({**json.loads(str(row["kept"])), "fold": fold})}

    assert rewritten(files(warehouse, RUNS), of_first) == 2
    Warehouse(spark, str(warehouse)).delete(EXAMINED, Equal("run_id", first) & Equal("kind", "fold"))
    assert verify(warehouse, "--run", second) == OK
    assert capsys.readouterr().out.splitlines() == [
        f"c: run {second} matches its evidence",
        f"  the fold that run {first} kept was removed by retention",
    ]
    # The next run would continue from the newest one's.
    assert verify(warehouse, "--run", newest) == ERRORS
    assert "  kept state: 0 of its " in capsys.readouterr().out
