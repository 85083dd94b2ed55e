"""Run the whole pipeline on a capture, as `kraft-audit check` does, and keep what it made."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from jobs.audit.run import Run, open_run
from jobs.settings import validated
from jobs.steps import ingest_kraft, ingest_zookeeper, materialize, reconcile
from schemas.report import Report
from schemas.table import Table

ENCODER_SECRET = "encoder-secret"


@dataclass(frozen=True)
class Audit:
    """A finished run: its report and its tables."""

    run: Run
    report: Report

    def rows(self, table: Table, where: str = "true") -> list[dict[str, Any]]:
        """Rows of this run in a table, as plain dictionaries."""
        return [row.asDict(recursive=True) for row in self.frame(table).where(where).collect()]

    def frame(self, table: Table) -> DataFrame:
        """Rows of this run in a table."""
        return self.run.read(table)


def settings_content(folder: Path, warehouse: Path, *, data_folder: bool = False, **more: object) -> dict[str, object]:
    """The configuration of an audit of one capture's files."""
    content: dict[str, object] = {
        "cluster": "test",
        "warehouse": str(warehouse),
        "spark": {"profile": "small"},
        "report": {"folder": str(warehouse / "reports")},
        "zookeeper": {"folder": str(folder / "zookeeper")}
        if data_folder
        else {"dump": str(folder / "zookeeper.jsonl.gz")},
        **more,
    }
    if (folder / "kraft").is_dir():
        content.setdefault("kraft", {"folders": [str(folder / "kraft")]})
    return content


def audit(content: Mapping[str, object]) -> Audit:
    """Run the four steps that make the report; the Spark session of the tests is reused."""
    with open_run(validated(dict(content), "test")) as run:
        ingest_zookeeper.run_step(run)
        ingest_kraft.run_step(run)
        materialize.run_step(run)
        report = reconcile.run_step(run)
    # Java keeps a run's plans as long as Python has a name for them, if only in a cycle nobody reaches.
    gc.collect()
    return Audit(run, report)
