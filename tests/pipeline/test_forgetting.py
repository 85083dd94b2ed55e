"""Silver keeps the rows of the newest runs: those of older ones go, and of runs that never came to their end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.cli import main
from jobs.evidence.journal import begin
from jobs.run import earlier_runs, forgetting
from jobs.run.run import new_run_id, time_in_run_id
from jobs.sinks.delta import Warehouse
from jobs.sinks.folder_table import arrow_rows
from jobs.sinks.reader import Folder
from jobs.sinks.storage import WarehouseError
from schemas import silver
from schemas.entities.topics import TOPICS
from schemas.examined import EXAMINED
from schemas.gold import RUNS
from schemas.table import Table
from tests.captures import capture

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
KEEP = 2


def finished_runs(count: int) -> list[dict[str, Any]]:
    moments = [NOON + timedelta(hours=number) for number in range(count)]
    # As Spark's timestamps are collected: in the zone of this machine, and without saying so.
    collected = [at.astimezone().replace(tzinfo=None) for at in moments]
    return [
        {
            "run_id": new_run_id(at),
            "started_at": naive,
            "finished_at": naive,
            "goes_on": True,
            "cluster_id": "id",
            "log_end_offset": number,
            "newest_append_time": number,
            "finished": count,
            "phase": "dual_write",
        }
        for number, (at, naive) in enumerate(zip(moments, collected, strict=True))
    ]


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_a_collected_time_is_told_in_utc() -> None:
    (run,) = finished_runs(1)
    assert earlier_runs.iso(run["started_at"]) == "2026-11-20T12:00:00.000Z"
    assert run["run_id"].startswith(f"{time_in_run_id(run['started_at'])}-")


def test_rows_of_old_and_of_broken_runs_go_and_no_others(spark: SparkSession, warehouse: Warehouse) -> None:
    runs = finished_runs(4)
    killed, failing_now = new_run_id(NOON + timedelta(minutes=5)), new_run_id(NOON + timedelta(hours=9))
    shared = runs[0]["run_id"]
    rows = [
        *[("c", run["run_id"]) for run in runs],
        ("c", killed),
        ("c", failing_now),
        ("c", "mine-of-old"),
        # One run over two clusters: the other one has not had enough runs for its own to be old.
        ("young", shared),
    ]
    for table in (silver.FINDINGS, EXAMINED):
        told = {"kind": "answers"} if table is EXAMINED else {}
        warehouse.append(table, arrow_rows(table, [{"cluster": c, "run_id": r, **told} for c, r in rows]))
    # The newest run continues from what the second one has kept.
    needed = runs[1]["run_id"]
    kept_bytes = {"cluster": "c", "run_id": needed, "kind": "fold"}
    warehouse.append(EXAMINED, arrow_rows(EXAMINED, [kept_bytes]))
    forget(warehouse, {"c": runs, "young": finished_runs(1)}, needed)
    kept = {
        ("c", failing_now),
        ("c", "mine-of-old"),
        ("young", shared),
        *(("c", each["run_id"]) for each in runs[-KEEP:]),
    }
    assert left_in(warehouse, silver.FINDINGS) == kept
    assert left_in(warehouse, EXAMINED) == {*kept, ("c", needed)}
    # Of a run without its other rows none of the answers are left: it is looked up as it was (`jobs.evidence.past_run`).
    assert [row["kind"] for row in warehouse.read(EXAMINED).where(f"run_id = '{needed}'").collect()] == ["fold"]


@pytest.mark.parametrize("hold", [["until-finalised"], "the first one"])
def test_rows_that_are_held_are_not_forgotten(spark: SparkSession, warehouse: Warehouse, hold: list[str] | str) -> None:
    runs = finished_runs(4)
    first = str(runs[0]["run_id"])
    rows = [{"cluster": "c", "run_id": run["run_id"]} for run in runs]
    warehouse.append(silver.FINDINGS, arrow_rows(silver.FINDINGS, rows))
    forget(warehouse, {"c": runs}, first, hold=[first] if isinstance(hold, str) else "until-finalised")
    left = {("c", first), *(("c", run["run_id"]) for run in runs[-KEEP:])}
    assert left_in(warehouse, silver.FINDINGS) == (left if isinstance(hold, str) else {*left, ("c", runs[1]["run_id"])})


def test_rows_stay_that_a_state_is_made_of_which_stays(spark: SparkSession, warehouse: Warehouse) -> None:
    runs = finished_runs(6)
    ids = [str(run["run_id"]) for run in runs]
    warehouse.append(TOPICS.table, arrow_rows(TOPICS.table, [{"cluster": "c", "run_id": each} for each in ids]))
    warehouse.append(silver.FINDINGS, arrow_rows(silver.FINDINGS, [{"cluster": "c", "run_id": each} for each in ids]))
    # The run that forgets builds on the second one, the newest but one on the first; what the fourth built on nobody reads any more.
    chains = [(ids[3], [ids[2], ids[3]]), (ids[4], [ids[0], ids[4]]), (ids[5], None)]
    said = [{"cluster": "c", "run_id": run_id, "state_runs": chain} for run_id, chain in chains]
    warehouse.append(RUNS, arrow_rows(RUNS, said))
    forget(warehouse, {"c": runs}, ids[0], chains={"c": [ids[1], "under-way"]})
    assert left_in(warehouse, TOPICS.table) == {("c", ids[number]) for number in (0, 1, 4, 5)}
    assert left_in(warehouse, silver.FINDINGS) == {("c", ids[number]) for number in (4, 5)}


def test_rows_of_a_run_that_is_under_way_stay_and_those_it_continues_from(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    runs = finished_runs(6)
    slow = new_run_id(NOON + timedelta(minutes=70))
    ids = [*(str(run["run_id"]) for run in runs), slow]
    warehouse.append(silver.FINDINGS, arrow_rows(silver.FINDINGS, [{"cluster": "c", "run_id": each} for each in ids]))
    begun = begin(warehouse.root, catalog=False, clusters=["c"], run_id=slow, started_at=NOON + timedelta(minutes=70))
    assert begun is not None
    forget(warehouse, {"c": runs}, ids[-2])
    # It may have looked for the newest run after others had come to their end.
    assert left_in(warehouse, silver.FINDINGS) == {("c", each) for each in (*ids[1:6], slow)}
    begun.end()
    forget(warehouse, {"c": runs}, ids[-2])
    assert left_in(warehouse, silver.FINDINGS) == {("c", each) for each in (ids[4], ids[5])}


def test_rows_of_the_run_that_forgets_stay_also_if_the_clock_was_put_back_before_it(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    runs = finished_runs(4)
    mine, killed = (new_run_id(NOON - timedelta(hours=hours)) for hours in (12, 13))
    ids = [*(str(run["run_id"]) for run in runs), mine, killed]
    tables = (TOPICS.table, silver.FINDINGS, EXAMINED)
    for table in tables:
        rows = [{"cluster": "c", "run_id": each, "kind": "answers"} for each in ids]
        warehouse.append(table, arrow_rows(table, rows))
    forget(warehouse, {"c": runs}, ids[-3], run_id=mine)
    for table in tables:
        assert left_in(warehouse, table) == {("c", each) for each in (*ids[2:4], mine)}, table.full_name


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_old_rows_that_cannot_be_removed_take_no_report_away(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(*_: object) -> None:
        raise WarehouseError("the warehouse can't be written: No space left on device; free space and run again")

    conf = tmp_path / "conf.yml"
    kraft = capture("4.3.1-kraft", "1-healthy") / "kraft"
    conf.write_text(
        f"cluster: c\nwarehouse: {tmp_path}/tables\nkraft: {{folders: ['{kraft}']}}\n"
        f"report: {{folder: '{tmp_path}/reports'}}\nspark: {{profile: small}}\n"
    )
    monkeypatch.setattr(forgetting, "_forgets", lambda *_: True)
    monkeypatch.setattr(Warehouse, "delete", full)
    first = main(["run", "--conf", str(conf), "--json"])
    capsys.readouterr()
    assert main(["run", "--conf", str(conf), "--json"]) == first
    (told,) = json.loads(capsys.readouterr().out)["clusters"]
    assert told["exit_code"] == first
    assert "failure" not in told
    stored = Folder(str(tmp_path / "tables")).rows(RUNS, ["verdict"])["verdict"].to_list()
    assert len(stored) == 2
    assert "failed" not in stored
    assert "No space left on device" in caplog.text


def forget(
    warehouse: Warehouse,
    previous: dict[str, Any],
    needed: str,
    hold: list[str] | str = (),  # type: ignore[assignment]
    chains: dict[str, list[str]] | None = None,
    run_id: str = "this",
) -> None:
    """What a run after these `previous` ones forgets."""
    settings = SimpleNamespace(keep_state_of_runs=KEEP, maintain=None, hold=hold)
    clusters = {name: SimpleNamespace(settings=settings) for name in previous}
    run = SimpleNamespace(run_id=run_id, clusters=clusters, warehouse=warehouse, previous=previous, chains=chains or {})
    forgetting.forget_old_state(run, {needed})


def left_in(warehouse: Warehouse, table: Table) -> set[tuple[str, str]]:
    return {(row["cluster"], row["run_id"]) for row in warehouse.read(table).collect()}
