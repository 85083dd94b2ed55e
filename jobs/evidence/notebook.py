"""What the notebooks need of the place they run in: Databricks' widgets and displays, or their plain-Python stand-ins.

A notebook hands over its `globals()`; on Databricks they hold `spark`, `dbutils`, `display` and `displayHTML`,
elsewhere none of them need be there.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from jobs.evidence.past_run import runs_of
from jobs.runtime.spark import spark_session
from jobs.settings import ReportSettings
from jobs.sinks.delta import Warehouse
from schemas.gold import RUNS
from transforms.report.printable import value_text
from transforms.report.run_standing import standing_of
from transforms.runs import newest_first

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENVIRONMENT_PREFIX = "KRAFT_AUDIT_"
SHOWN_ROWS = 50
# A notebook's session outlives its cells: it is started here and stopped when Python ends, before its modules are unloaded.
_SESSIONS = ExitStack()
atexit.register(_SESSIONS.close)


class NotebookError(Exception):
    """A notebook cannot continue; the text is one line: what is missing, what to do."""


@dataclass
class Notebook:
    """One notebook's surroundings. `shown` keeps every table it displayed, by its title, `plots` every picture."""

    scope: Mapping[str, Any]
    shown: dict[str, DataFrame] = field(default_factory=dict)
    plots: dict[str, Figure] = field(default_factory=dict)

    def parameter(self, name: str, default: str = "") -> str:
        """Read a parameter: a Databricks widget, else the variable `KRAFT_AUDIT_<NAME>`, else the default."""
        dbutils = self.scope.get("dbutils")
        if dbutils is None:
            return os.environ.get(ENVIRONMENT_PREFIX + name.upper(), default)
        dbutils.widgets.text(name, default)
        return str(dbutils.widgets.get(name))

    def warehouse(self, root: str) -> Warehouse:
        """Open the warehouse: a folder or address when `root` holds a slash, else Unity Catalog's `catalog.schema`."""
        return Warehouse(self._spark(), root, catalog="/" not in root)

    def run(self, warehouse: Warehouse, cluster: str = "", run_id: str = "") -> Mapping[str, Any]:
        """Find a finished run's row in the runs table: the one named, else the newest of the cluster, else the newest of all.

        Prints which one it is, how old, and what came since: a notebook is also run after a run that failed. Raises NotebookError when
        there is none; a run that failed has nothing to show.
        """
        runs = warehouse.read(RUNS).where(F.col("report").isNotNull())
        for column, wanted in (("cluster", cluster), ("run_id", run_id)):
            runs = runs.where(F.col(column) == F.lit(wanted)) if wanted else runs
        # Within a cluster runs are ordered by number; between clusters only by time.
        place = F.row_number().over(Window.partitionBy("cluster").orderBy(*newest_first()))
        of_each = runs.withColumn("place", place).where("place = 1").drop("place")
        newest = of_each.orderBy(F.col("started_at").desc(), F.col("run_id").desc()).first()
        if newest is None:
            wanted = f"cluster {value_text(cluster)}, run {value_text(run_id)}" if cluster or run_id else "any run"
            raise NotebookError(f"{warehouse.location(RUNS)} does not hold {wanted}; check `warehouse` and `cluster`")
        row = newest.asDict()
        standing = standing_of(runs_of(warehouse, row["cluster"]), row["run_id"], datetime.now(UTC))
        if standing is not None:
            print(*standing.lines(ReportSettings().stale_after_hours), sep="\n")
        return row

    def show(self, title: str, frame: DataFrame) -> None:
        """Display a table; outside Databricks its first rows are printed, nothing in them a terminal would obey."""
        self.shown[title] = frame
        if "display" in self.scope and "dbutils" in self.scope:
            self.scope["display"](frame)
            return
        rows = frame.limit(SHOWN_ROWS + 1).collect()
        print(f"\n{title}\n  {' | '.join(frame.columns)}")
        for row in rows[:SHOWN_ROWS]:
            print("  " + " | ".join(_cell(value) for value in row))
        if len(rows) > SHOWN_ROWS:
            print("  ...")

    def plot(self, title: str, figure: Figure) -> None:
        """Display a picture; outside Databricks print that there is one."""
        self.plots[title] = figure
        if "display" in self.scope and "dbutils" in self.scope:
            self.scope["display"](figure)
        else:
            print(f"\n{title} (a picture: shown in a notebook)")

    def html(self, markup: str) -> None:
        """Display HTML on Databricks; elsewhere print its length."""
        if "displayHTML" in self.scope:
            self.scope["displayHTML"](markup)
        else:
            print(f"\n(HTML, {len(markup):,} characters: shown in a notebook)")

    def _spark(self) -> SparkSession:
        given = self.scope.get("spark") or SparkSession.getActiveSession()
        return given or _SESSIONS.enter_context(spark_session("local", "kraft-audit notebook"))


def _cell(value: Any) -> str:
    return "" if value is None else value_text(value, 60)
