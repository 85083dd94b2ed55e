"""Run the whole pipeline as users do, on captures and on what is planted in them, and keep what it made."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import SparkSession

from jobs.pipeline import run_all
from jobs.run.run import Failure, open_run
from jobs.settings import validated
from jobs.sinks.delta import Warehouse
from jobs.sinks.reader import Folder, records
from schemas import gold
from schemas.report import Report
from schemas.table import Table

ENCODER_SECRET = "encoder-secret"
Content = dict[str, object]


@dataclass(frozen=True)
class Audit:
    """A finished audit of one cluster: its report and its tables."""

    report: Report
    warehouse: Warehouse

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
        """Rows of this run in a table that meet a condition of SQL, as plain dictionaries."""
        return list(records(self.frame(table).filter(pl.sql_expr(where)), table))

    def frame(self, table: Table) -> pl.DataFrame:
        """Rows of this run in a table."""
        tables, mine = Folder(self.warehouse.root), {"cluster": self.cluster}
        if table.chained:
            return tables.rows(table, where=mine, chain=self.chain)
        return tables.rows(table, where={**mine, "run_id": self.run_id})


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


def audit_all(contents: list[Mapping[str, object]]) -> dict[str, Audit | Failure]:
    """Audit several clusters in one run; the Spark session of the tests is reused."""
    settings = [validated(dict(content), "test") for content in contents]
    found: dict[str, Audit | Failure] = {}
    with open_run(settings) as run:
        for name, outcome in run_all(run).items():
            if outcome.report is not None:
                found[name] = Audit(outcome.report, run.warehouse)
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


# What the one run of all pipeline tests audits: a name, and what makes the cluster's files in a folder of its own.
Preparation = Callable[[Path], Content]
PREPARED: dict[str, Preparation] = {}


def in_fleet(name: str) -> Callable[[Preparation], Preparation]:
    """Have a cluster audited in the one run over all clusters of the tests; the fixture `fleet` gives its audit."""

    def register(prepare: Preparation) -> Preparation:
        PREPARED[name] = prepare
        return prepare

    return register
