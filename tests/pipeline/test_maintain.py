"""`kraft-audit maintain` on tables with a few planted rows: what goes, what stays, what is said; killed, twice at once, beside a run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.cli import main
from jobs.evidence.journal import begin
from jobs.run.run import new_run_id
from jobs.settings import MaintainSettings, Settings, validated
from jobs.sinks.delta import Warehouse
from jobs.sinks.folder_table import arrow_rows
from jobs.sinks.lock import LOCKS, held
from jobs.steps.maintenance import alone as alone_module
from jobs.steps.maintenance import due as due_module
from jobs.steps.maintenance.alone import BusyError, alone
from jobs.steps.maintenance.due import due
from jobs.steps.maintenance.maintain import after_run, maintain, stored_rules
from jobs.steps.maintenance.upkeep import Tended, Upkeep
from schemas.bronze import KRAFT_RECORDS, ZK_ZNODES
from schemas.examined import EXAMINED
from schemas.gold import DIVERGENCES, MAILS, MAINTENANCE, RUN_STEPS, RUNS
from schemas.silver import FINDINGS
from schemas.table import Table
from tests.reliability.killing import Dead, Killer, killed_by
from tests.warehouses import BySpark
from transforms.retention import Retention

NOW = datetime.now(UTC)
MANY = 70
# What the newest run's configuration says: nothing but that, once nobody gives another.
RETENTION = json.dumps({"details_days": 30, "judged_days": 730, "orphans_days": 1, "hold": ["until-finalised"]})


def at(days: float) -> datetime:
    return NOW - timedelta(days=days)


def stored(warehouse: Warehouse, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    warehouse.append(table, arrow_rows(table, rows))


def kept_by(run_id: str) -> str:
    return json.dumps({"memory": {"run_id": run_id}, "fold": {"run_id": run_id}, "base_run": None})


class Runs:
    """A cluster's runs: one 3,000 days ago whose state is continued from, many of 1,000 to 930 days, one of 40 and one of 2 days."""

    def __init__(self, cluster: str = "c") -> None:
        self.cluster = cluster
        self.base, self.middle, self.young = (new_run_id(at(days)) for days in (3000, 40, 2))
        self.many = [new_run_id(at(1000 - number)) for number in range(MANY)]
        self.orphan, self.fresh = new_run_id(at(3)), new_run_id(at(0.5))

    @property
    def all(self) -> list[str]:
        return [self.base, *self.many, self.middle, self.young]

    def store(self, warehouse: Warehouse, **more: Any) -> None:
        days = [3000, *[1000 - number for number in range(MANY)], 40, 2]
        stored(
            warehouse,
            RUNS,
            [
                {
                    "cluster": self.cluster,
                    "run_id": run_id,
                    "started_at": at(ago),
                    "finished_at": at(ago),
                    "verdict": "clean",
                    "phase": "dual_write",
                    "sequence": number,
                    "cluster_id": "id",
                    "log_end_offset": number,
                    "goes_on": True,
                    "kept": kept_by(self.base),
                    "table_versions": {},
                    **more,
                }
                for number, (run_id, ago) in enumerate(zip(self.all, days, strict=True), 1)
            ],
        )
        ids = [self.base, self.many[0], self.middle, self.young, self.orphan, self.fresh, "somebodys"]
        mine = [{"cluster": self.cluster, "run_id": run_id} for run_id in ids]
        for table in (KRAFT_RECORDS, ZK_ZNODES, FINDINGS, DIVERGENCES):
            stored(warehouse, table, mine)
        stored(
            warehouse,
            EXAMINED,
            [{**row, "kind": kind, "payload": b"x"} for row in mine for kind in ("answers", "fold")],
        )


def left_in(warehouse: Warehouse, table: Table, where: str = "true") -> set[str]:
    return {row["run_id"] for row in warehouse.read(table).where(where).select("run_id").collect()}


def content(warehouse: Warehouse) -> dict[str, int]:
    """How many rows each table has of each run."""
    tables = (RUNS, KRAFT_RECORDS, ZK_ZNODES, FINDINGS, DIVERGENCES, EXAMINED)
    return {
        f"{table.full_name} {row['run_id']}": row["count"]
        for table in tables
        for row in warehouse.read(table).groupBy("run_id").count().collect()
    }


def digest_of(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def ways(rules: Retention | None = None, **more: Any) -> Upkeep:
    return Upkeep({"c": rules or Retention()}, NOW, **more)


@pytest.fixture(scope="module")
def runs() -> Runs:
    return Runs()


@pytest.fixture(scope="module")
def template(spark: SparkSession, runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template") / "warehouse"
    runs.store(Warehouse(spark, str(folder)), retention=RETENTION)
    return folder


@pytest.fixture
def filled(spark: SparkSession, template: Path, tmp_path: Path) -> Warehouse:
    folder = shutil.copytree(template, tmp_path / "warehouse")
    return Warehouse(spark, str(folder))


def by_table(found: Sequence[Tended]) -> dict[str, Tended]:
    return {each.table: each for each in found}


def test_what_is_old_goes_and_what_the_next_run_goes_on_from_stays(filled: Warehouse, runs: Runs) -> None:
    before = digest_of(Path(filled.root))
    looked = maintain(filled, ways(dry_run=True))
    assert digest_of(Path(filled.root)) == before, "a dry run changes nothing"
    done = maintain(filled, ways())
    assert all((each.about_row_bytes > 0) == (each.rows > 0) for each in looked)
    told = {each.table: each.rows for each in done if each.table != MAINTENANCE.full_name}
    assert told == {each.table: each.rows for each in looked}
    assert not any(each.problem for each in done)

    never = {runs.fresh, "somebodys"}
    details = {runs.young, *never}
    assert left_in(filled, ZK_ZNODES) == left_in(filled, FINDINGS) == details
    assert left_in(filled, EXAMINED, "kind = 'answers'") == details
    assert left_in(filled, EXAMINED, "kind = 'fold'") == left_in(filled, KRAFT_RECORDS) == {runs.base, *details}
    assert left_in(filled, DIVERGENCES) == {runs.middle, *details}
    # The newest sixty of them are what a report shows the course of.
    assert left_in(filled, RUNS) == {runs.base, *runs.many[-58:], runs.middle, runs.young}
    assert by_table(done)["gold.runs"].rows == MANY - 58

    marks = {(row["run_id"], row["what"]) for row in filled.read(MAINTENANCE).where("run_id IS NOT NULL").collect()}
    assert marks == {
        *((run_id, "details") for run_id in (runs.base, runs.many[0], runs.middle)),
        *((run_id, "judged") for run_id in (runs.base, runs.many[0])),
    }
    assert all(each.rows == 0 for each in maintain(filled, ways(files=False))), "nothing is left for a second one"


def test_runs_that_the_newest_message_of_each_channel_told_of_stay(filled: Warehouse, runs: Runs) -> None:
    def told(run_id: str, days: float, channel: str | None) -> dict[str, Any]:
        return {"cluster": "c", "run_id": run_id, "tried_at": at(days), "channel": channel}

    pager = [told(runs.base, 990, "PAGER"), told(runs.many[0], 980, "PAGER")]
    stored(filled, MAILS, [*pager, told(runs.young, 2, None)])
    maintain(filled, ways(files=False))
    assert left_in(filled, DIVERGENCES) >= {runs.many[0], runs.young}
    assert runs.base not in left_in(filled, DIVERGENCES)


def test_clusters_that_are_not_configured_keep_all(filled: Warehouse, runs: Runs) -> None:
    assert all(each.rows == 0 for each in maintain(filled, Upkeep({"another": Retention()}, NOW, dry_run=True)))


def test_what_is_held_stays(filled: Warehouse, runs: Runs) -> None:
    maintain(filled, ways(Retention(hold=(runs.many[0],)), files=False))
    assert runs.many[0] in left_in(filled, ZK_ZNODES) & left_in(filled, DIVERGENCES) & left_in(filled, RUNS)
    assert runs.middle not in left_in(filled, ZK_ZNODES)


def test_a_migration_is_held_until_it_is_finalised_and_what_was_never_a_run_goes(filled: Warehouse, runs: Runs) -> None:
    # Without a configuration the newest run's counts.
    rules = stored_rules(filled)
    assert rules == {"c": Retention(hold=("until-finalised",))}
    maintain(filled, Upkeep(rules, NOW, files=False))
    assert left_in(filled, RUNS) == set(runs.all)
    everything = {runs.base, runs.many[0], runs.middle, runs.young, runs.fresh, "somebodys"}
    assert left_in(filled, ZK_ZNODES) == left_in(filled, DIVERGENCES) == everything


def test_a_run_in_single_steps_is_not_taken_for_a_dead_one(filled: Warehouse, runs: Runs) -> None:
    stored(
        filled,
        RUN_STEPS,
        [
            {"cluster": "c", "run_id": run_id, "step": "ingest_kraft", "started_at": at(9), "finished_at": at(heard)}
            for run_id, heard in ((runs.orphan, 0.2), ("somebodys", 5))
        ],
    )
    maintain(filled, ways(files=False))
    assert left_in(filled, ZK_ZNODES) == {runs.young, runs.fresh, runs.orphan}


@pytest.mark.parametrize(
    ("commit", "when"),
    [("append gold.maintenance", "after"), ("delete silver.examined", "after"), ("delete gold.runs", "before")],
)
def test_a_maintenance_that_was_killed_is_done_by_the_next(
    filled: Warehouse, runs: Runs, commit: str, when: str
) -> None:
    before = content(filled)
    with killed_by(Killer(commit, when)), pytest.raises(Dead):
        maintain(filled, ways(files=False))
    between = content(filled)
    maintain(filled, ways(files=False))
    after = content(filled)
    for found in (before, between, after):
        # What the next run continues from is there all the time.
        assert {f"{name} {runs.base}" for name in ("gold.runs", "silver.examined", "bronze.kraft_records")} <= set(
            found
        )
    assert set(after) <= set(between) <= set(before)
    whole = {key.split()[1] for key in before if key.startswith("bronze.zk_znodes")} - {
        key.split()[1] for key in between if key.startswith("bronze.zk_znodes")
    }
    marked = {row["run_id"] for row in filled.read(MAINTENANCE).where("what = 'details'").collect()}
    assert whole - {runs.orphan} <= marked, "no run seems whole that is not"
    assert f"bronze.zk_znodes {runs.middle}" not in after
    assert f"gold.runs {runs.many[0]}" not in after


def test_two_maintenances_do_not_get_into_each_others_way(filled: Warehouse) -> None:
    lock = Path(filled.root) / LOCKS / "maintenance"
    before = content(filled)
    with held(lock, 0):
        with pytest.raises(BusyError, match=r"another maintenance of .* is running; nothing was done"):
            maintain(filled, ways())
        assert content(filled) == before
        maintain(filled, ways(dry_run=True))


def announced(warehouse: Warehouse) -> list[tuple[str, str]]:
    rows = warehouse.rows(MAINTENANCE, ["run_id", "what", "done_at"]).sort("done_at")
    return [(run_id, what) for run_id, what, _ in rows.iter_rows() if what in ("begun", "ended")]


@pytest.fixture
def elsewhere(spark: SparkSession, tmp_path: Path) -> Warehouse:
    """A warehouse where there are no locks."""
    return BySpark(spark, str(tmp_path / "warehouse"))


def test_where_there_are_no_locks_one_that_has_begun_keeps_others_away(elsewhere: Warehouse) -> None:
    other = {"run_id": "other", "done_at": datetime.now(UTC) - timedelta(hours=5), "what": "begun"}
    earlier = [{**other, "run_id": "earlier", "what": what} for what in ("begun", "ended")]
    stored(elsewhere, MAINTENANCE, [other, *earlier])
    said = r"another maintenance of .* has begun at .* UTC and has not ended; nothing was done"
    with pytest.raises(BusyError, match=said):
        maintain(elsewhere, ways())
    stored(elsewhere, MAINTENANCE, [{**other, "what": "ended"}])
    with alone(elsewhere, ways()):
        assert [what for _, what in announced(elsewhere)][-1] == "begun"
    mine = [what for run_id, what in announced(elsewhere) if run_id not in ("other", "earlier")]
    assert mine == ["begun", "ended", "begun", "ended"], "the one that was kept away has ended as well"


def test_one_that_was_killed_keeps_nobody_away_for_ever(elsewhere: Warehouse) -> None:
    killed = {"run_id": "killed", "done_at": datetime.now(UTC) - timedelta(hours=7), "what": "begun"}
    stored(elsewhere, MAINTENANCE, [killed])
    with alone(elsewhere, ways()):
        assert [run_id for run_id, _ in announced(elsewhere)][:1] == ["killed"]


def test_of_two_that_begin_at_once_the_second_leaves(elsewhere: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    real, refused, worked = alone_module._another_since, [], []

    def second_comes(tables: Warehouse, mine: str) -> datetime | None:
        """The first one has announced itself, and looks only after the second one has."""
        if not refused:
            refused.append(mine)
            with pytest.raises(BusyError):
                maintain(tables, ways())
        return real(tables, mine)

    monkeypatch.setattr(alone_module, "_another_since", second_comes)
    with alone(elsewhere, ways()):
        worked.append(True)
    assert worked == [True]


def test_small_files_are_put_together_and_old_ones_removed(filled: Warehouse, runs: Runs) -> None:
    for number in range(10):
        stored(filled, FINDINGS, [{"cluster": "c", "run_id": runs.young, "subject": str(number)}])
    subjects = sorted(row["subject"] or "" for row in filled.read(FINDINGS).where(f"run_id = '{runs.young}'").collect())
    # As it will be in a week: files that were let go until then are not needed any more.
    later = replace(ways(), now=datetime.now(UTC) + timedelta(days=7, minutes=5))
    done = by_table(maintain(filled, later))["silver.findings"]
    assert (done.files, done.files_after) == (11, 1)
    assert done.removed_files is not None
    assert done.removed_files >= 11
    assert done.removed_bytes is not None
    assert done.removed_bytes > 0
    found = filled.read(FINDINGS).where(f"run_id = '{runs.young}'").collect()
    assert sorted(row["subject"] or "" for row in found) == subjects
    properties = filled.spark.sql(f"SHOW TBLPROPERTIES {filled.identifier(FINDINGS)}").collect()
    assert ("delta.logRetentionDuration", "interval 8 days") in [tuple(row) for row in properties]


def test_files_of_a_run_under_way_stay(filled: Warehouse) -> None:
    begun_at = NOW - timedelta(hours=300)
    written = Path(filled.location(FINDINGS)) / "part-not-committed-yet.parquet"
    written.write_bytes(b"x")
    two_weeks_ago = time.time() - 290 * 3600
    os.utime(written, (two_weeks_ago, two_weeks_ago))
    only_files = Upkeep({}, NOW)
    run = begin(filled.root, catalog=False, clusters=["c"], run_id="long-one", started_at=begun_at)
    assert run is not None
    maintain(filled, only_files)
    assert written.exists()
    run.end()
    maintain(filled, only_files)
    assert not written.exists()


def settings(**more: object) -> Settings:
    return validated({"cluster": "c", "warehouse": "w", "kraft": {"folders": ["f"]}, **more}, "test")


def test_after_a_run_it_is_done_when_it_is_due(filled: Warehouse, runs: Runs) -> None:
    assert due(filled, {"c": settings()}, NOW) == ([], False), "not configured"
    daily = {"c": settings(maintain={"every_hours": 24})}
    assert due(filled, daily, NOW) == (["c"], True)
    (doubt,) = after_run(filled, daily, NOW)
    assert doubt.startswith("maintenance: no row is removed, because this machine's clock may be wrong: from ")
    stored(filled, MAINTENANCE, [{"cluster": None, "run_id": None, "done_at": at(2), "what": "files"}])
    assert after_run(filled, daily, NOW) == []
    assert due(filled, daily, NOW + timedelta(hours=23)) == ([], False)
    assert due(filled, daily, NOW + timedelta(hours=24)) == (["c"], True)
    often = {"c": settings(maintain={"after_runs": 2})}
    assert due(filled, often, NOW + timedelta(hours=1)) == ([], False)
    later = {"cluster": "c", "verdict": "clean", "started_at": NOW + timedelta(minutes=5)}
    stored(filled, RUNS, [{**later, "run_id": "one"}, {**later, "run_id": "two"}])
    assert due(filled, often, NOW + timedelta(hours=1)) == (["c"], True)
    # Another cluster's own runs make their own.
    other = {"d": settings(cluster="d", maintain={})}
    assert due(filled, other, NOW + timedelta(hours=1)) == (["d"], False)


def test_a_warehouse_that_nobody_maintains_says_so(filled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run adds a file to each table, so that the 400th takes a third more than the tenth (`tests.benchmarks.year`)."""
    nobody, once = {"c": settings()}, {"c": settings(maintain={})}
    there = filled.rows(RUNS, ["run_id"], {"cluster": "c"}).height
    monkeypatch.setattr(due_module, "MANY_RUNS", there + 1)
    assert after_run(filled, nobody, NOW) == []
    stored(filled, RUNS, [{"cluster": "c", "run_id": "another", "verdict": "clean", "started_at": NOW}])
    assert after_run(filled, nobody, NOW) == [
        f"maintenance: none for {there + 1} runs, and each run takes longer than the one before; give the configuration a section "
        "maintain:, or schedule kraft-audit maintain"
    ]
    maintain(filled, ways())
    assert after_run(filled, nobody, NOW) == [], "somebody has, from a schedule of its own"
    there = filled.rows(RUNS, ["run_id"], {"cluster": "c"}).height
    monkeypatch.setattr(due_module, "MANY_RUNS", there)
    later = {"cluster": "c", "verdict": "clean", "started_at": NOW + timedelta(minutes=1)}
    stored(filled, RUNS, [{**later, "run_id": f"later-{number}"} for number in range(there)])
    assert after_run(filled, nobody, NOW) != []
    assert after_run(filled, once, NOW) == [], "the configuration does, when it is due"


@pytest.fixture
def said(filled: Warehouse, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([*argv, "--warehouse", filled.root])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def test_the_command_says_what_would_go_and_what_went(said: Any, filled: Warehouse, runs: Runs) -> None:
    code, out, err = said("maintain", "--dry-run")
    assert (code, "this machine's clock may be wrong" in err) == (1, True)
    code, out, err = said("maintain")
    assert (code, out, err.count("\n")) == (1, "", 1)
    code, out, err = said("maintain", "--dry-run", "--clock-is-right")
    assert code == 0
    assert "tables checked" in out
    assert out.rstrip().endswith("nothing was changed")
    assert "rows' bytes" in out
    assert "about " in next(line for line in out.splitlines() if line.startswith("bronze.zk_znodes"))
    code, out, err = said("maintain", "--json", "--cluster", "c", "--clock-is-right")
    assert (code, err) == (0, "")
    objects = [json.loads(line) for line in out.splitlines()]
    assert {each["table"] for each in objects} >= {"gold.runs", "bronze.zk_znodes"}
    # They are held but for the rows of a run that died.
    assert next(each for each in objects if each["table"] == "bronze.zk_znodes")["rows"] == 1
    code, _, err = said("maintain", "--cluster", "nobody")
    assert code == 2
    assert err.count("\n") == 1


def test_a_retention_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="judged_days is below details_days"):
        MaintainSettings(details_days=30, judged_days=10)
