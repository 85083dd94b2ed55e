"""The SQL that pages and reports offer, on tables in which the newest run failed and a clock went back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.sinks.delta import Warehouse
from schemas.gates import GATES as GATE_NAMES
from schemas.gold import CHECKS, GATES, RUNS
from schemas.table import Table
from tests.report.samples import healthy
from transforms.report.follow_up import TablePlace, of_checks

DOCS = Path(__file__).parents[2] / "docs"
NOW = datetime(2026, 11, 21, 7, 0, tzinfo=UTC)
# Run, its number, days by a clock that was put back after the first, verdict. The last one failed after it had stored its results.
RUNS_OF_PROD = [("r3", 1, 9, "clean"), ("r1", 2, 1, "errors"), ("r2", 3, 2, "failed")]


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Two clusters, whose runs have the same ids: those of a fleet share one."""
    warehouse = Warehouse(spark, str(tmp_path_factory.mktemp("warehouse")))
    runs, gates, checks = [], [], []
    for cluster in ("prod-eu", "other"):
        for run_id, sequence, days, verdict in RUNS_OF_PROD:
            run = {"cluster": cluster, "run_id": run_id}
            at = NOW + timedelta(days=days)
            runs.append({**run, "sequence": sequence, "started_at": at, "finished_at": at, "verdict": verdict})
            said = f"{cluster} {run_id}"
            gates += [{**run, "gate": gate, "verdict": "no_go", "blocking": [said]} for gate in GATE_NAMES]
            checks.append({**run, "check_id": "DUR-04", "verdict": "warn", "violations": sequence})
    _store(warehouse, {RUNS: runs, GATES: gates, CHECKS: checks})
    return warehouse


def _store(warehouse: Warehouse, tables: Mapping[Table, Sequence[Mapping[str, Any]]]) -> None:
    for table, rows in tables.items():
        values = [tuple(row.get(name) for name in table.column_names) for row in rows]
        warehouse.append(table, warehouse.spark.createDataFrame(values, table.struct))


def _asked(warehouse: Warehouse, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in warehouse.spark.sql(query).collect()]


def test_the_first_example_of_the_page_shows_every_gate_of_the_newest_finished_run(filled: Warehouse) -> None:
    first = re.findall(r"```sql\n(.*?)```", (DOCS / "tables.md").read_text(), re.DOTALL)[0]
    assert "/var/lib/kraft-audit" in first
    shown = _asked(filled, first.replace("/var/lib/kraft-audit", filled.root))
    assert sorted(shown) == sorted((gate, "no_go", ["prod-eu r1"]) for gate in GATE_NAMES)


def test_a_reports_query_for_open_checks_shows_finished_runs_in_their_order(filled: Warehouse) -> None:
    query = of_checks(replace(healthy(), cluster="prod-eu"), TablePlace(filled.root))
    shown = _asked(filled, query)
    assert [row[:4] for row in shown] == [("DUR-04", "warn", 1, "r3"), ("DUR-04", "warn", 2, "r1")]
