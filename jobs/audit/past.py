"""Looking into finished runs: where the warehouse is, which run is meant, and its tables as they were then."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.audit.inputs import TABLES_FOLDER, profile_of_tables
from jobs.audit.removed import JUDGED, OF_LAYER, forgotten_text, last_vacuum, removed_parts, removed_text
from jobs.exit import AuditError, UsageError, files_are_gone
from jobs.runtime.spark import spark_session
from jobs.settings import ReportSettings, Settings, limits_of, load_settings
from jobs.sinks.delta import Warehouse
from jobs.steps.fleet import fleet_runs
from schemas.examined import EXAMINED
from schemas.gold import RUNS
from schemas.report import Report
from schemas.table import Layer, Table
from transforms.examination.made import ANSWERS
from transforms.nearest import suggestion
from transforms.reconcile.judge.given import Thresholds
from transforms.report.fleet_model import FleetRun
from transforms.report.json import from_json
from transforms.report.printable import visible
from transforms.report.run_standing import RunStanding, standing_of


def add_warehouse_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Declare how a command that only looks is told where: a configuration, or a folder of tables."""
    where = parser.add_mutually_exclusive_group(required=required)
    where.add_argument("--conf", type=Path, help="configuration file (YAML)")
    where.add_argument(
        "--warehouse", metavar="DIR", help="folder of the tables, or the one given to `kraft-audit check --out`"
    )
    parser.add_argument("--cluster", metavar="NAME", help="with --warehouse: which cluster (default: the only one)")


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    """Declare which run a command looks at."""
    parser.add_argument("--run", dest="run_id", help="run to look at, of `kraft-audit history` (default: the newest)")


@dataclass(frozen=True)
class Finished:
    """Where finished runs are looked for: a warehouse, and the cluster asked for.

    `stale_after_hours` is when a run is old, `thresholds` are the limits by which its rows are judged, both as configured.
    """

    warehouse: Warehouse
    cluster: str
    stale_after_hours: float = ReportSettings().stale_after_hours
    thresholds: Thresholds = field(default_factory=Thresholds)


@contextmanager
def open_warehouse(arguments: argparse.Namespace) -> Iterator[Finished]:
    """Open the warehouse for reading, on the cluster asked for; no run of it is begun.

    Raises UsageError when there is no warehouse, or the cluster has to be named.
    """
    settings = _settings(arguments)
    with open_settings(settings) as warehouse:
        cluster = settings.cluster if arguments.conf is not None else _cluster(warehouse, arguments.cluster)
        old = settings.report.stale_after_hours
        try:
            yield Finished(warehouse, cluster, old, limits_of(settings))
        except Exception as error:
            vacuum = last_vacuum(warehouse) if files_are_gone(error) else None
            if vacuum is None:
                raise
            raise AuditError(forgotten_text(getattr(arguments, "run_id", None), vacuum)) from error


@contextmanager
def open_tables(conf: Path | None, warehouse: str | None) -> Iterator[tuple[Warehouse, Settings]]:
    """Open a warehouse for reading, whatever clusters it holds, by a configuration or its folder; and the settings of it.

    Raises UsageError when there is no warehouse.
    """
    settings = load_settings(conf) if conf is not None else settings_of_folder(warehouse or "")
    with open_settings(settings) as opened:
        yield opened, settings


@contextmanager
def open_settings(settings: Settings) -> Iterator[Warehouse]:
    """Open the warehouse of a configuration; no run of it is begun."""
    chosen = settings.spark
    profile = profile_of_tables(settings)
    with spark_session(profile, cores=chosen.cores, driver_memory=chosen.driver_memory) as spark:
        yield Warehouse(spark, settings.warehouse, settings.catalog, settings.warehouse_single_driver)


def _settings(arguments: argparse.Namespace) -> Settings:
    if arguments.conf is not None:
        if arguments.cluster is not None:
            raise UsageError("--cluster goes with --warehouse; a configuration names its cluster itself")
        return load_settings(arguments.conf)
    return settings_of_folder(arguments.warehouse)


def settings_of_folder(given: str) -> Settings:
    """The settings of a folder of tables that was given without a configuration. Raises UsageError when there is no run in it."""
    root = _tables(given)
    # Without a source, which only a run needs: what it read is in the tables.
    return Settings.model_construct(cluster="", warehouse=root)


def _tables(given: str) -> str:
    if "://" in given:
        return given
    for folder in (Path(given), Path(given) / TABLES_FOLDER):
        if (folder / RUNS.layer.value / RUNS.name).is_dir():
            return str(folder)
    problem = "holds no finished run" if Path(given).is_dir() else "is not a folder"
    raise UsageError(f"--warehouse: {given} {problem}; give the folder that `kraft-audit run` or `check` wrote to")


def _cluster(warehouse: Warehouse, asked: str | None) -> str:
    known = sorted(row[0] for row in warehouse.read(RUNS).select("cluster").distinct().collect())
    if asked is not None:
        if asked not in known:
            raise UsageError(f"--cluster: no finished run of `{asked}`; {suggestion(asked, known)}")
        return asked
    if len(known) != 1:
        raise UsageError(f"--cluster: name one; this warehouse holds {', '.join(known) or 'no finished run'}")
    return str(known[0])


@dataclass(frozen=True)
class PastRun:
    """A finished run of a cluster: its report, and its rows of every table.

    Silver lets a cluster's older runs go after a while; one whose rows have gone is read as it was at the run's end, as long as
    that can be had: `versions` are the tables' Delta versions then. `walks` are the snapshot_ids of its trees, `standing` says how
    old the run is and what became of the ones since. `thresholds` are those of the configuration at hand: no table holds the run's.
    """

    warehouse: Warehouse
    cluster: str
    run_id: str
    report: Report
    versions: Mapping[str, int]
    walks: Sequence[str]
    standing: RunStanding
    thresholds: Thresholds = field(default_factory=Thresholds)

    @property
    def spark(self) -> SparkSession:
        """The session of the warehouse."""
        return self.warehouse.spark

    def read(self, table: Table) -> DataFrame:
        """The run's rows of a table. Raises UsageError when retention has removed them, WarehouseError when an old version is gone."""
        part = OF_LAYER[table.layer]
        if part in self._removed:
            raise UsageError(removed_text(self.run_id, part, self._removed[part]))
        version = self.versions.get(table.full_name) if table.layer is Layer.SILVER and not self._in_silver else None
        rows = self.warehouse.read(table, version)
        return rows.where((F.col("cluster") == self.cluster) & (F.col("run_id") == self.run_id))

    @cached_property
    def _removed(self) -> Mapping[str, datetime]:
        return removed_parts(self.warehouse, self.cluster, self.run_id)

    @cached_property
    def _in_silver(self) -> bool:
        """Whether silver has the run's rows now: its answers are the first to go."""
        mine = (F.col("cluster") == self.cluster) & (F.col("run_id") == self.run_id) & (F.col("kind") == ANSWERS)
        return not self.warehouse.read(EXAMINED).where(mine).isEmpty()


def past_run(finished: Finished, run_id: str | None = None) -> PastRun:
    """A finished run of the cluster, the newest when none is named. Raises UsageError when there is none."""
    cluster = finished.cluster
    runs = runs_of(finished.warehouse, cluster)
    newest = standing_of(runs, None, datetime.now(UTC))
    if newest is None:
        raise NoRunError(f"cluster {cluster} has no finished run yet; run `kraft-audit run` first{_last_failure(runs)}")
    standing = standing_of(runs, run_id, newest.now)
    if standing is None:
        name = visible(run_id or "", 80)
        removed = removed_parts(finished.warehouse, cluster, run_id or "")
        if JUDGED in removed:
            raise UsageError(removed_text(run_id or "", JUDGED, removed[JUDGED]))
        raise UsageError(f"cluster {cluster} has no finished run {name}; see `kraft-audit history`")
    wanted = standing.run.run_id
    mine = finished.warehouse.read(RUNS).where((F.col("cluster") == cluster) & F.col("report").isNotNull())
    found = mine.where(F.col("run_id") == wanted).select("report", "table_versions", "walks").first()
    if found is None:
        raise UsageError(f"cluster {cluster} has no report of run {visible(wanted, 80)}; see `kraft-audit history`")
    versions = dict(found["table_versions"] or {})
    walks = tuple(found["walks"] or (wanted,))
    report = from_json(found["report"])
    return PastRun(finished.warehouse, cluster, wanted, report, versions, walks, standing, finished.thresholds)


class NoRunError(UsageError):
    """The cluster has no run that came to its end."""


def runs_of(warehouse: Warehouse, cluster: str) -> list[FleetRun]:
    """All runs of a cluster, oldest first, failed ones and those that died among them."""
    return sorted(fleet_runs(warehouse, most=None, cluster=cluster), key=lambda run: run.order)


def _last_failure(runs: Sequence[FleetRun]) -> str:
    return f" (the last one failed: {visible(runs[-1].failure, 300)})" if runs else ""
