"""Run the whole pipeline as users do, on captures and on what is planted in them, and keep what it made."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.pipeline import run_all
from jobs.run.run import Failure, open_run
from jobs.settings import validated
from jobs.sinks.chained import state_rows
from jobs.sinks.delta import Warehouse
from jobs.sinks.reader import Folder
from schemas import bronze, gold, silver
from schemas.report import Report
from schemas.table import Table

ENCODER_SECRET = "encoder-secret"
Content = dict[str, object]


@dataclass(frozen=True)
class Audit:
    """A finished audit of one cluster: its report and its tables."""

    report: Report
    warehouse: Warehouse
    held: dict[str, DataFrame] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        return self.report.run_id

    @property
    def cluster(self) -> str:
        return self.report.cluster

    @cached_property
    def chain(self) -> list[str]:
        """The runs whose rows make up its state."""
        mine = {"cluster": self.cluster, "run_id": self.run_id}
        return list(Folder(self.warehouse.root).rows(gold.RUNS, ["state_runs"], mine)["state_runs"][0])

    def rows(self, table: Table, where: str = "true") -> list[dict[str, Any]]:
        """Rows of this run in a table, as plain dictionaries."""
        return [row.asDict(recursive=True) for row in self.frame(table).where(where).collect()]

    def frame(self, table: Table) -> DataFrame:
        """Rows of this run in a table."""
        rows = self.held.get(table.full_name)
        if rows is None:
            rows = self.warehouse.read(table)
        if table.chained:
            return state_rows(rows, {self.cluster: self.chain})
        return rows.where((F.col("cluster") == self.cluster) & (F.col("run_id") == self.run_id))


def settings_content(folder: Path, warehouse: Path, *, data_folder: bool = False, **more: object) -> Content:
    """The configuration of an audit of one capture's files."""
    content: Content = {
        "cluster": "test",
        "warehouse": str(warehouse),
        "spark": {"profile": "small"},
        "report": {"folder": str(warehouse / "reports")},
        **more,
    }
    if (folder / "zookeeper.jsonl.gz").exists():
        dump, tree = {"dump": str(folder / "zookeeper.jsonl.gz")}, {"folder": str(folder / "zookeeper")}
        content.setdefault("zookeeper", tree if data_folder else dump)
    if (folder / "kraft").is_dir():
        content.setdefault("kraft", {"folders": [str(folder / "kraft")]})
    return content


def audit(content: Mapping[str, object]) -> Audit:
    """Audit one cluster; raises what a user would be told when that fails."""
    (found,) = audits([content]).values()
    return found


def audits(contents: list[Mapping[str, object]]) -> dict[str, Audit]:
    """`audit_all` of clusters none of which may fail; raises what a user would be told when one does."""
    found: dict[str, Audit] = {}
    for name, outcome in audit_all(contents).items():
        if isinstance(outcome, Failure):
            raise AssertionError(f"{name}: {outcome.reason}")
        found[name] = outcome
    return found


def audit_all(contents: list[Mapping[str, object]], *, hold: bool = False) -> dict[str, Audit | Failure]:
    """Audit several clusters in one run; the Spark session of the tests is reused.

    With `hold` the tables are read once for all questions to come, when somebody asks.
    """
    settings = [validated(dict(content), "test") for content in contents]
    found: dict[str, Audit | Failure] = {}
    with open_run(settings) as run:
        held = _Held(run.warehouse) if hold else {}
        for name, outcome in run_all(run).items():
            if outcome.report is not None:
                found[name] = Audit(outcome.report, run.warehouse, held)
            elif outcome.failure is not None:
                found[name] = outcome.failure
    # Java keeps a run's plans as long as Python has a name for them, if only in a cycle nobody reaches.
    gc.collect()
    return found


def executions(spark: SparkSession) -> int:
    """The number of the newest SQL execution: Spark's own events count them in one sequence."""
    spark.range(1).collect()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    return int(store.executionsList().last().executionId())


class _Held(dict[str, DataFrame]):
    """Tables in memory, each from the first question on."""

    def __init__(self, warehouse: Warehouse) -> None:
        super().__init__()
        self.warehouse = warehouse

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = self.warehouse.read(_TABLES[name]).localCheckpoint()
        return self[name]


_TABLES = {table.full_name: table for table in (*bronze.TABLES, *silver.TABLES, *gold.TABLES)}

# What the one run of all pipeline tests audits: a name, and what makes the cluster's files in a folder of its own.
Preparation = Callable[[Path], Content]
PREPARED: dict[str, Preparation] = {}


def in_fleet(name: str) -> Callable[[Preparation], Preparation]:
    """Have a cluster audited in the one run over all clusters of the tests; the fixture `fleet` gives its audit."""

    def register(prepare: Preparation) -> Preparation:
        PREPARED[name] = prepare
        return prepare

    return register
