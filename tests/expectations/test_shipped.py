"""The suites in conf/expectations against rows that are missing or unknown: what was not seen does not meet them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.expectations.suites import read_suite
from jobs.expectations.validate import RunRows, judge

SHIPPED = Path(__file__).parents[2] / "conf" / "expectations"
GATES = ("start", "dual_write", "finalize", "rollback", "upgrade")
LAG = {"phase": "dual_write", "records": 3, "seconds": 0.5}
PARTITION = {
    "source": "kraft",
    "topic": "orders",
    "partition": 0,
    "replicas": [1, 2, 3],
    "isr": [1],
    "leader": 1,
    "leader_epoch": 0,
    "partition_epoch": 0,
}
RETENTION = {"source": "kraft", "resource_type": "TOPIC", "resource_name": "orders", "config": "retention.ms"}


def gates(**verdicts: str | None) -> list[dict[str, Any]]:
    return [{"gate": gate, "verdict": verdicts.get(gate, "go")} for gate in GATES]


def unmet(spark: SparkSession, folder: Path, name: str, rows: Sequence[dict[str, Any]]) -> int:
    """How many expectations of a shipped suite these rows do not meet; the suite is switched on."""
    content = json.loads((SHIPPED / f"{name}.json").read_text())
    content["meta"].pop("enabled", None)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(content))
    suite = read_suite(path)
    assert suite is not None
    values = [
        tuple({"cluster": "c", "run_id": "r", **row}.get(column) for column in suite.table.column_names) for row in rows
    ]
    frame = spark.createDataFrame(values, suite.table.struct)
    results = judge({"c": (suite,)}, RunRows(lambda _table: frame, lambda _table: "t", {"c": "r"}))["c"]
    assert [each.problem for each in results if each.problem] == []
    return sum(1 for each in results if not each.success)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows", "failing"),
    [
        ("gold_lag", [LAG], 0),
        ("gold_lag", [LAG | {"records": 2_000, "seconds": 90.0}], 2),
        ("gold_lag", [LAG | {"records": None, "seconds": None}], 1),
        ("gold_lag", [LAG | {"seconds": None}], 1),
        # A run that did not note the phase.
        ("gold_lag", [{}], 1),
        ("gold_lag", [{"phase": ""}], 1),
        # Lag does not apply there.
        ("gold_lag", [{"phase": "finalized"}], 0),
        ("gold_lag", [], 1),
        ("gold_gates", gates(), 0),
        ("gold_gates", gates(dual_write="not_applicable", rollback="not_applicable"), 0),
        ("gold_gates", gates(dual_write=None), 1),
        ("gold_gates", gates()[2:], 1),
        ("gold_gates", [], 1),
        ("silver_partitions", [PARTITION], 0),
        ("silver_partitions", [PARTITION | {"leader": -1, "isr": []}], 0),
        ("silver_partitions", [PARTITION | dict.fromkeys(("isr", "leader", "leader_epoch", "partition_epoch"))], 1),
        ("policy_replication_factor", [PARTITION], 0),
        ("policy_replication_factor", [PARTITION | {"replicas": None}], 1),
        ("policy_retention", [RETENTION | {"value": "604800000"}], 0),
        ("policy_retention", [RETENTION | {"value": "-1"}], 1),
        ("policy_retention", [RETENTION | {"value": "a week"}], 1),
        ("policy_retention", [RETENTION | {"value": None}], 1),
    ],
)
def test_rows_that_are_missing_or_unknown_do_not_meet_a_shipped_suite(
    spark: SparkSession, tmp_path: Path, name: str, rows: list[dict[str, Any]], failing: int
) -> None:
    assert unmet(spark, tmp_path, name, rows) == failing
