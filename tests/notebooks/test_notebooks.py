"""The notebooks run as plain Python over a warehouse and show what its tables say."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.evidence.notebook import Notebook, NotebookError
from jobs.sinks.conditions import Equal
from jobs.sinks.delta import Warehouse, in_parallel
from jobs.sinks.folder_table import arrow_rows
from schemas.bronze import ZK_TRANSACTIONS
from schemas.entities.partitions import PARTITIONS
from schemas.gold import BROKER_PRESENCE, CHECKS, DIVERGENCES, FEATURE_MATRIX, GATES, ISR_HISTORY, LAG, RUNS
from schemas.report import Report
from schemas.table import Table
from tests.report.samples import HOSTILE, defective, healthy, not_ready
from transforms.report.json import to_json

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
TOPIC_ID = "Zf7bq2kFQ0K2oG8j5bqj1w"
OLD, NEW = {"cluster": "prod", "run_id": "r1"}, {"cluster": "prod", "run_id": "r2"}
OTHER, GONE = {"cluster": "other", "run_id": "r3"}, {"cluster": "prod", "run_id": "r0"}
_EARLIER = ((GONE, [8]), (OLD, [9]))
PARTITION = {"topic": "orders", "partition": 3}
FAILED = {"cluster": "prod", "run_id": "r4", "verdict": "failed", "started_at": datetime(2026, 11, 21, 9)}
FAILED |= {"finished_at": FAILED["started_at"], "failure": "there is no log"}
_PARTITIONS = [
    {**NEW, **PARTITION, "source": "zookeeper", "isr": [0, 1, 2], "zk_mzxid": 799, "zk_mtime": 1_000},
    {**NEW, **PARTITION, "source": "kraft", "isr": [0, 1], "kraft_offset": 1215},
    {**NEW, "topic": "aaa", "partition": 0, "source": "kraft"},
]


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Two runs of one cluster and a later one of another, in the tables the notebooks read."""
    warehouse = Warehouse(spark, str(tmp_path_factory.mktemp("warehouse")))
    tables = _tables()
    in_parallel([lambda t=table: _write(warehouse, t, tables[t]) for table in tables])  # type: ignore[misc]
    # Silver holds the state of several runs, and lets that of the oldest go: it is in an earlier version.
    _write(warehouse, PARTITIONS.table, _PARTITIONS)
    warehouse.delete(PARTITIONS.table, Equal("run_id", GONE["run_id"]))
    return warehouse


def _write(warehouse: Warehouse, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    for row in rows:
        assert set(row) <= set(table.column_names)
    warehouse.append(table, arrow_rows(table, rows))


def _run(run: dict[str, str], hour: int, version: int) -> dict[str, Any]:
    whole = defective()
    # As many as there are rows.
    report = to_json(replace(whole, divergences=replace(whole.divergences, total=2)))
    versions = {"table_versions": {PARTITIONS.table.full_name: version}}
    started = datetime(2026, 11, 21, hour)
    counts = {"defects": 2, "divergences": 3, "lag_records": 0}
    return {
        **run,
        **counts,
        **versions,
        "started_at": started,
        "finished_at": started,
        "verdict": "errors",
        "state": "MIGRATION",
        "report": report,
    }


def _divergence(class_: str, entity: str, key: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        **NEW,
        "class": class_,
        "entity": entity,
        "key": json.dumps(key),
        "status": "new",
        "severity": "error",
        **more,
    }


def _change(offset: int, run: Mapping[str, str] = NEW, **more: Any) -> dict[str, Any]:
    state = {"isr_before": [0, 1, 2], "isr": [0, 1, 2], "leader_before": 0, "leader": 0, "departed": [], "joined": []}
    of = {"topic": "orders", "topic_id": TOPIC_ID, "partition": 3, "epoch": 1, "append_time": 1_700_000_000_000 + offset}
    return {**run, **of, "offset": offset, **state, **more}


def _supports(run: Mapping[str, str], node_id: int, max_level: int, gap: str = "") -> dict[str, Any]:
    levels = {"min_level": 0, "max_level": max_level, "finalised_level": 2, "gap": gap}
    return {**run, "feature": "transaction.version", "node_kind": "broker", "node_id": node_id, **levels}


def _tables() -> dict[Table, list[dict[str, Any]]]:
    state = "/brokers/topics/orders/partitions/3/state"
    return {
        # A run that did not come to its end is not the newest to show.
        RUNS: [_run(GONE, 5, 0), _run(OLD, 6, 1), _run(NEW, 7, 2), _run(OTHER, 8, 2), FAILED],
        GATES: [
            {**NEW, "gate": "rollback", "verdict": "no_go", "blocking": ["DUR-05"]},
            {**NEW, "gate": "start", "verdict": "not_applicable", "blocking": []},
            {**OLD, "gate": "start", "verdict": "go", "blocking": []},
        ],
        CHECKS: [
            {**NEW, "check_id": "DUR-04", "verdict": "pass", "violations": 0},
            {**NEW, "check_id": "DUR-06", "verdict": "warn", "violations": 1},
            {**NEW, "check_id": "FIN-01", "verdict": "unknown", "violations": 0},
            {**NEW, "check_id": "DUR-05", "verdict": "fail", "violations": 2, "evidence": [HOSTILE]},
        ],
        DIVERGENCES: [
            _divergence("lag", "partitions", PARTITION, column="isr"),
            _divergence("lost_write", "topics", {"topic": HOSTILE}, zk_value=HOSTILE),
            _divergence("lost_write", "partitions", {"topic": "aaa", "partition": 0}, status="resolved"),
        ],
        BROKER_PRESENCE: [
            {**OLD, "broker_id": 0, "mode": "zookeeper", "blocks": ["finalize"]},
            {**OLD, "broker_id": 1, "mode": "zookeeper", "blocks": ["finalize"]},
            {**NEW, "broker_id": 0, "mode": "kraft", "blocks": []},
            {**NEW, "broker_id": 1, "mode": "zookeeper", "blocks": ["finalize"]},
        ],
        LAG: [{**OLD, "records": 11, "alive": True}, {**NEW, "records": 0, "alive": True}],
        PARTITIONS.table: [{**run, **PARTITION, "source": "kraft", "isr": isr} for run, isr in _EARLIER],
        ISR_HISTORY: [
            _change(12, isr_before=None, leader_before=None, joined=[0, 1, 2]),
            _change(1215, OLD, isr=[0, 1], departed=[2]),
            _change(1215, isr=[0, 1], departed=[2]),
            _change(1216, leader=1),
            _change(1217),
            _change(1300, {"cluster": "prod", "run_id": "killed"}, isr=[0], departed=[1, 2]),
            _change(1301, {"cluster": "prod", "run_id": "r4"}, isr=[0], departed=[1, 2]),
            _change(1302, OTHER, isr=[0], departed=[1, 2]),
        ],
        FEATURE_MATRIX: [
            _supports(NEW, 0, 2),
            _supports(NEW, 1, 0, "it lacks the level"),
            _supports(OLD, 7, 0, "it lacked the level"),
        ],
        ZK_TRANSACTIONS: [
            {**NEW, "zxid": 799, "time": 1_000, "type": "setData", "path": state},
            {**OLD, "zxid": 799, "time": 1_000, "type": "setData", "path": state},
            {**NEW, "zxid": 500, "time": 900, "type": "create", "path": "/brokers/topics/orders"},
            {**NEW, "zxid": 801, "time": 900, "type": "create", "path": "/brokers/topics/others"},
        ],
    }


def _execute(name: str, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, **parameters: str) -> Notebook:
    for parameter, value in {"warehouse": warehouse.root, "cluster": "prod", **parameters}.items():
        monkeypatch.setenv(f"KRAFT_AUDIT_{parameter.upper()}", value)
    notebook = runpy.run_path(str(NOTEBOOKS / name), init_globals={"spark": warehouse.spark})["notebook"]
    assert isinstance(notebook, Notebook)
    return notebook


def _shown(notebook: Notebook, title: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in notebook.shown[title].select(*columns).collect()]


def test_the_verdict(filled: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = _execute("02_verdict.py", filled, monkeypatch)
    assert _shown(notebook, "Gates", "gate", "verdict") == [("start", "not_applicable"), ("rollback", "no_go")]
    failing, warned, unknown = _shown(notebook, "Checks", "check_id", "remedy")
    assert (failing[0], warned[0], unknown[0]) == ("DUR-05", "DUR-06", "FIN-01")
    assert failing[1]
    by_class = _shown(notebook, "Differences by class", "class", "status", "count")
    assert by_class == [("lost_write", "new", 1), ("lost_write", "resolved", 1), ("lag", "new", 1)]
    assert [row[0] for row in _shown(notebook, "Differences", "class")] == ["lost_write", "lag"]
    assert _shown(notebook, "Brokers", "broker_id", "mode") == [(1, "zookeeper"), (0, "kraft")]
    printed = capsys.readouterr().out
    assert "ERRORS: ZooKeeper and KRaft disagree: 5 defects" in printed
    assert "\x1b" not in printed
    assert "\u202e" not in printed


def test_a_notebook_names_its_run_and_those_that_failed_since(
    filled: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On Databricks it runs after a run that failed, too, and must not show the result of the one before as that of now."""
    _execute("05_brokers_and_gates.py", filled, monkeypatch)
    said = capsys.readouterr().out
    assert "Run r2 of cluster prod, finished 2026-11-21 07:00 UTC" in said
    assert "since then 1 run failed, the last one at 2026-11-21 09:00 UTC: there is no log" in said
    _execute("05_brokers_and_gates.py", filled, monkeypatch, run_id="r1")
    assert "since then 1 run finished: this is not the newest" in capsys.readouterr().out


@pytest.mark.parametrize(("report", "said"), [(healthy(), "Nothing differs"), (not_ready(), "No difference is known")])
def test_where_nothing_was_compared_nothing_is_called_equal(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    report: Report,
    said: str,
) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    _write(warehouse, RUNS, [{**_run(NEW, 7, 0), "report": to_json(report)}])
    _execute("03_divergence.py", warehouse, monkeypatch)
    assert said in capsys.readouterr().out


def test_a_partition_and_the_lag(filled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = _execute("04_time_travel_and_lag.py", filled, monkeypatch)
    # Without a topic, the first partition that differs and is not resolved.
    assert _shown(notebook, "Both sides", "source", "topic", "isr") == [
        ("kraft", "orders", [0, 1]),
        ("zookeeper", "orders", [0, 1, 2]),
    ]
    assert _shown(notebook, "Lag over the runs", "records", "run_id") == [(11, "r1"), (0, "r2")]


def test_brokers_and_gates_over_the_runs(filled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = _execute("05_brokers_and_gates.py", filled, monkeypatch)
    # A broker is listed again only when something about it changed.
    assert _shown(notebook, "Brokers over the runs", "broker_id", "mode") == [
        (0, "zookeeper"),
        (0, "kraft"),
        (1, "zookeeper"),
    ]
    assert _shown(notebook, "Gates over the runs", "run_id", "gate", "verdict") == [
        ("r1", "start", "go"),
        ("r2", "rollback", "no_go"),
        ("r2", "start", "not_applicable"),
    ]


def test_the_fleet_shows_the_worst_first_and_a_run_that_failed(
    filled: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = _execute("01_fleet.py", filled, monkeypatch)
    assert _shown(notebook, "Fleet", "cluster", "verdict", "run_id") == [
        ("prod", "failed", "r4"),
        ("other", "errors", "r3"),
    ]
    assert notebook.plots.keys() == {"Verdicts", "Lag"}


def test_the_run_that_was_counted_last_is_the_newest_whatever_its_clock_said(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock was ahead in the first run, and was put back before the second one."""
    warehouse = Warehouse(spark, str(tmp_path))
    first = {**_run(OLD, 9, 0), "sequence": 1, "verdict": "clean"}
    second = {**_run(NEW, 5, 0), "sequence": 2}
    blocked = [
        {**OLD, "broker_id": 0, "mode": "zookeeper", "blocks": ["finalize"]},
        {**NEW, "broker_id": 0, "mode": "kraft", "blocks": []},
    ]
    _write(warehouse, RUNS, [first, second])
    _write(warehouse, BROKER_PRESENCE, blocked)
    _write(warehouse, GATES, [{**each, "gate": "start", "verdict": "go", "blocking": []} for each in (OLD, NEW)])
    notebook = _execute("01_fleet.py", warehouse, monkeypatch)
    assert _shown(notebook, "Fleet", "cluster", "verdict", "run_id") == [("prod", "errors", "r2")]
    notebook = _execute("05_brokers_and_gates.py", warehouse, monkeypatch)
    assert _shown(notebook, "Brokers over the runs", "mode", "run_id") == [("zookeeper", "r1"), ("kraft", "r2")]
    assert _shown(notebook, "Gates over the runs", "run_id") == [("r1",), ("r2",)]


def test_a_change_of_the_isr_is_told_once(filled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """What two runs have stored, what a run without an end has, and what changes neither ISR nor leader."""
    notebook = _execute("06_isr_and_features.py", filled, monkeypatch)
    assert _shown(notebook, "ISR changes", "offset", "departed", "joined", "leader_before", "leader") == [
        (1215, [2], [], 0, 0),
        (1216, [], [], 0, 1),
    ]
    assert _shown(notebook, "Partitions that move most", "topic", "departed", "leader_moves") == [("orders", 1, 1)]
    assert _shown(notebook, "Brokers that leave most", "broker_id", "count") == [(2, 1)]


def test_a_node_without_a_finalised_feature_is_a_gap(filled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """It supports level 0 alone, and the run's own matrix has it; it registers no such feature."""
    notebook = _execute("06_isr_and_features.py", filled, monkeypatch)
    assert _shown(notebook, "Features", "node_id", "max_level", "gap") == [(1, 0, "it lacks the level"), (0, 2, "")]


@pytest.mark.parametrize(("run", "isr"), [("r0", [8]), ("r1", [9])])
def test_an_earlier_run_is_seen_as_it_was(
    filled: Warehouse, monkeypatch: pytest.MonkeyPatch, run: str, isr: list[int]
) -> None:
    notebook = _execute("04_time_travel_and_lag.py", filled, monkeypatch, run_id=run, topic="orders", partition="3")
    assert _shown(notebook, "Both sides", "source", "isr") == [("kraft", isr)]


def test_a_named_partition_that_was_never_there_is_no_error(filled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = _execute("04_time_travel_and_lag.py", filled, monkeypatch, topic="none", partition="7")
    assert notebook.shown["Both sides"].count() == 0


class _Widgets:
    def __init__(self) -> None:
        self.values = {"topic": "from a widget"}

    def text(self, name: str, default: str) -> None:
        self.values.setdefault(name, default)

    def get(self, name: str) -> str:
        return self.values[name]


class _Databricks:
    widgets = _Widgets()


def test_databricks_widgets_and_displays_are_used(filled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRAFT_AUDIT_TOPIC", "from the environment")
    displayed: list[Any] = []
    scope = {"dbutils": _Databricks(), "display": displayed.append, "displayHTML": displayed.append}
    notebook = Notebook(scope)
    assert (notebook.parameter("topic"), notebook.parameter("other", "x")) == ("from a widget", "x")
    frame = filled.read(RUNS)
    notebook.show("runs", frame)
    notebook.html("<p>")
    assert displayed == [frame, "<p>"]


def test_the_newest_run_is_found(filled: Warehouse) -> None:
    notebook = Notebook({})
    assert notebook.run(filled)["run_id"] == "r3"
    assert notebook.run(filled, "prod")["run_id"] == "r2"
    assert notebook.run(filled, "prod", "r1")["run_id"] == "r1"
    with pytest.raises(NotebookError, match="does not hold cluster prod, run r3; check `warehouse` and `cluster`"):
        notebook.run(filled, "prod", "r3")


def test_a_warehouse_is_a_folder_or_a_catalog(spark: SparkSession) -> None:
    notebook = Notebook({"spark": spark})
    assert notebook.warehouse("main.kraft_audit").identifier(RUNS) == "`main`.`kraft_audit`.`gold_runs`"
    assert notebook.warehouse("/srv/audit").identifier(RUNS) == "delta.`/srv/audit/gold/runs`"
