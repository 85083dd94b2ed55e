"""Looking into finished runs: where the warehouse is, which run is meant, and its tables as they were then."""

from __future__ import annotations

import argparse
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from jobs.evidence.fleet_runs import fleet_runs
from jobs.evidence.kept_state import read
from jobs.evidence.removed import JUDGED, OF_LAYER, forgotten_text, last_vacuum, removed_parts, removed_text
from jobs.exit import AuditError, UsageError, files_are_gone
from jobs.settings import TABLES_FOLDER, ReportSettings, Settings, limits_of, load_settings
from jobs.sinks.conditions import PRESENT, Where, all_of
from jobs.sinks.reader import Folder, Reader, records
from jobs.sinks.storage import credentials_without_spark, read_without_spark
from schemas.examined import EXAMINED
from schemas.gold import RUNS
from schemas.report import Report
from schemas.table import Layer, Table
from transforms.chain.chain import Chain
from transforms.clusters import of_clusters
from transforms.examination.made import ANSWERS
from transforms.features.levels import Release, UnknownLevelError, known_release
from transforms.nearest import suggestion
from transforms.reconcile.judge.beside import Beside, read_beside
from transforms.reconcile.judge.thresholds import JudgeLimits
from transforms.report.fleet_model import FleetRun
from transforms.report.json import from_json
from transforms.report.printable import visible
from transforms.report.run_standing import RunStanding, standing_of

LOG = logging.getLogger("kraft-audit")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.runtime.workers import WorkerRows
    from jobs.sinks.delta import Warehouse


def add_warehouse_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Declare the options that name the warehouse of a reading command, and one of its clusters."""
    add_place_arguments(parser, required=required)
    parser.add_argument("--cluster", metavar="NAME", help="with --warehouse: which cluster (default: the only one)")


def add_place_arguments(
    parser: argparse.ArgumentParser, *, required: bool = True, conf: str = "configuration file (YAML)"
) -> None:
    """Declare the options that name a warehouse: a configuration (`conf` is its help), or a folder of tables."""
    where = parser.add_mutually_exclusive_group(required=required)
    where.add_argument("--conf", type=Path, help=conf)
    where.add_argument(
        "--warehouse", metavar="DIR", help="folder of the tables, or the one given to `kraft-audit check --out`"
    )


_LIMIT = 100


def add_limit_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the option for how many rows are shown; 0 is all of them."""
    parser.add_argument(
        "--limit", type=_limit, default=_LIMIT, metavar="N", help=f"show at most N rows, 0 for all ({_LIMIT})"
    )


def _limit(text: str) -> int:
    number = int(text)
    if number < 0:
        raise UsageError(f"--limit: {number} is below 0; give a number of rows, or 0 for all")
    return number


def add_release_argument(parser: argparse.ArgumentParser, option: str, meaning: str, *, required: bool = False) -> None:
    """Declare an option that takes a known Kafka release."""

    def release(text: str) -> Release:
        try:
            return known_release(text)
        except UnknownLevelError as error:
            raise UsageError(f"{option}: {visible(str(error), 160)}") from None

    parser.add_argument(option, type=release, required=required, metavar="RELEASE", help=meaning)


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    """Declare which run a command looks at."""
    parser.add_argument(
        "--run", dest="run_id", help="run to show, as `kraft-audit history` lists it (default: the newest)"
    )


def check_stale_after(hours: float | None) -> None:
    """Raise UsageError for an age (`--stale-after`) that no run, or every run, is below."""
    if hours is not None and not 0 < hours < math.inf:
        raise UsageError("--stale-after: give a number of hours above 0")


@dataclass(frozen=True)
class Finished:
    """Where to look for finished runs: a warehouse, and the requested cluster.

    `stale_after_hours` is when a run is old, as configured; `thresholds` are the configured limits, by which rows of a run are
    judged that has not left its own.
    """

    warehouse: Reader
    cluster: str
    stale_after_hours: float = ReportSettings().stale_after_hours
    thresholds: JudgeLimits = field(default_factory=JudgeLimits)


@contextmanager
def open_warehouse(arguments: argparse.Namespace, *, in_spark: bool = True) -> Iterator[Finished]:
    """Open the warehouse for reading, for the requested cluster; no run is begun.

    With `in_spark` the tables can be read in Spark (`PastRun.read`); otherwise Spark is started only if nothing else can read
    them. Raises UsageError if there is no warehouse, or the cluster must be named.
    """
    settings = _settings(arguments)
    with _opened(settings, in_spark=in_spark) as warehouse:
        cluster = settings.cluster if arguments.conf is not None else cluster_named(warehouse, arguments.cluster)
        old = settings.report.stale_after_hours
        try:
            yield Finished(warehouse, cluster, old, limits_of(settings))
        except Exception as error:
            vacuum = last_vacuum(warehouse) if files_are_gone(error) else None
            if vacuum is None:
                raise
            raise AuditError(forgotten_text(getattr(arguments, "run_id", None), vacuum)) from error


@contextmanager
def open_tables(conf: Path | None, warehouse: str | None) -> Iterator[tuple[Reader, Settings]]:
    """Open a warehouse for reading, by a configuration or by its folder; yields its tables and settings.

    Raises UsageError when there is no warehouse.
    """
    settings = load_settings(conf) if conf is not None else settings_of_folder(warehouse or "")
    with _opened(settings, in_spark=False) as tables:
        yield tables, settings


@contextmanager
def open_settings(settings: Settings) -> Iterator[Warehouse]:
    """Open the warehouse of a configuration in Spark; no run of it is begun."""
    with _opened(settings, in_spark=True) as tables:
        yield spark_tables(tables)


@contextmanager
def _opened(settings: Settings, *, in_spark: bool) -> Iterator[Reader]:
    """Tables are read without Spark if possible, unless it is requested; Spark can read all others."""
    if not in_spark and read_without_spark(settings.warehouse, settings.catalog):
        folder = Folder(settings.warehouse)
        problem = folder.problem()
        if problem is None:
            yield folder
            return
        LOG.warning(
            "%s: %s; Spark is started to read it. Without Spark it takes %s",
            settings.warehouse,
            problem,
            credentials_without_spark(settings.warehouse),
        )
    # Seconds that a look into a folder does not need.
    from jobs.evidence.inputs import profile_of_tables  # noqa: PLC0415
    from jobs.runtime.spark import spark_session  # noqa: PLC0415
    from jobs.sinks.delta import Warehouse  # noqa: PLC0415

    chosen, profile = settings.spark, profile_of_tables(settings)
    with spark_session(profile, cores=chosen.cores, driver_memory=chosen.driver_memory) as spark:
        yield Warehouse(spark, settings.warehouse, settings.catalog, settings.warehouse_single_driver)


def spark_tables(reader: Reader) -> Warehouse:
    """The same tables in Spark. Raises TypeError where they were opened to be read without it."""
    from jobs.sinks.delta import Warehouse  # noqa: PLC0415 - who reads without Spark does not come here

    if not isinstance(reader, Warehouse):
        raise TypeError("these tables were opened to be read without Spark")
    return reader


def _settings(arguments: argparse.Namespace) -> Settings:
    if arguments.conf is not None:
        if arguments.cluster is not None:
            raise UsageError("--cluster needs --warehouse: a configuration names its own cluster")
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


def cluster_named(warehouse: Reader, asked: str | None) -> str:
    """The cluster of that name, the only one if none is named. Raises UsageError with the names that there are."""
    known = warehouse.rows(RUNS, ["cluster"])["cluster"].unique().sort().to_list()
    if asked is not None:
        if asked not in known:
            raise UsageError(f"--cluster: no finished run of `{asked}`; {suggestion(asked, known)}")
        return asked
    if len(known) != 1:
        raise UsageError(f"--cluster: name one; this warehouse contains {', '.join(known) or 'no finished run'}")
    return str(known[0])


@dataclass(frozen=True)
class PastRun:
    """A finished run of a cluster: its report, and its rows of every table.

    Rows of a cluster's older runs are removed from silver. Such a run is read from the tables as of its end, as long as Delta still
    has those: `versions` are the tables' Delta versions then. `chain` are the runs whose rows make up its state; without parts they
    are the run's own. `walks` are the snapshot_ids of its trees, `standing` is the run's age and the result of later ones. `beside`
    are its inputs besides its sources; for a run of a release that did not store them, only the limits of the current configuration.
    """

    warehouse: Reader
    cluster: str
    run_id: str
    report: Report
    versions: Mapping[str, int]
    walks: Sequence[str]
    standing: RunStanding
    beside: Beside = field(default_factory=Beside)
    chain: Chain = field(default_factory=Chain)

    @property
    def spark(self) -> SparkSession:
        """The session of the warehouse."""
        return spark_tables(self.warehouse).spark

    def read(self, table: Table) -> DataFrame:
        """The run's rows of a table, in Spark; of a chained one its state's. Raises UsageError and WarehouseError as `rows`."""
        rows = spark_tables(self.warehouse).read(table, self._version(table))
        if table.chained:
            # Imported here: commands that read without Spark must not need it.
            from jobs.sinks.chained import state_rows  # noqa: PLC0415

            return state_rows(rows, {self.cluster: self._chain_of(table)})
        return rows.where(of_clusters([self.cluster]) & (rows["run_id"] == self.run_id))

    def in_workers(self, table: Table, where: Where) -> WorkerRows:
        """The run's rows of a table that is not chained, for what workers make of them; raises as `rows`."""
        version, mine = self._version(table), {"cluster": self.cluster, "run_id": self.run_id, **where}
        tables = spark_tables(self.warehouse)
        if version is None:
            return tables.in_workers(table, mine, [self.run_id])
        from jobs.runtime.workers import as_they_are  # noqa: PLC0415 - commands that read without Spark must not need it

        return as_they_are(tables.read(table, version).where(all_of(mine).column()))

    def rows(
        self, table: Table, columns: Sequence[str] = (), where: Where | None = None, most: int | None = None
    ) -> pl.DataFrame:
        """The run's rows of a table that meet the conditions, as `jobs.sinks.reader.Reader.rows`; of a chained one its state's.

        Raises UsageError when retention has removed them, WarehouseError when an old version is gone (Delta's VACUUM), AuditError when
        rows are gone that an earlier run has stored.
        """
        version = self._version(table)
        if table.chained:
            mine = {"cluster": self.cluster, **(where or {})}
            return self.warehouse.rows(table, columns, mine, version, most, self._chain_of(table))
        mine = {"cluster": self.cluster, "run_id": self.run_id, **(where or {})}
        return self.warehouse.rows(table, columns, mine, version, most)

    @property
    def state_runs(self) -> tuple[str, ...]:
        """The runs whose rows in chained tables make up the state, the base's first."""
        return self.chain.runs or (self.run_id,)

    def _chain_of(self, table: Table) -> tuple[str, ...]:
        """`state_runs`. Raises AuditError where rows that they have stored in the table are gone: some of the rows are
        not a state."""
        if self.state_runs != (self.run_id,) and table.full_name not in self._looked_at:
            of_runs = {"cluster": self.cluster, "run_id": [*self.state_runs]}
            counted = self.warehouse.counts(table, of_runs, self._version(table))
            there = {(run_id, table.full_name): rows for (_, run_id), rows in counted.items()}
            short = self.chain.only(table.full_name).rows_gone(there)
            if short is not None:
                raise AuditError(f"the state of run {self.run_id} is incomplete: {short}; look at a newer run")
            self._looked_at.add(table.full_name)
        return self.state_runs

    @cached_property
    def _looked_at(self) -> set[str]:
        return set()

    def _version(self, table: Table) -> int | None:
        """The version of the table that has the run's rows; None for the present one."""
        part = OF_LAYER[table.layer]
        if part in self._removed:
            raise UsageError(removed_text(self.run_id, part, self._removed[part]))
        return self.versions.get(table.full_name) if table.layer is Layer.SILVER and not self._in_silver else None

    @cached_property
    def _removed(self) -> Mapping[str, datetime]:
        return removed_parts(self.warehouse, self.cluster, self.run_id)

    @cached_property
    def _in_silver(self) -> bool:
        """Whether silver has the run's rows now: its answers are the first to go."""
        mine = {"cluster": self.cluster, "run_id": self.run_id, "kind": ANSWERS}
        return not self.warehouse.rows(EXAMINED, ["run_id"], mine, most=1).is_empty()


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
    mine = {"cluster": cluster, "run_id": wanted, "report": PRESENT}
    rows = finished.warehouse.rows(RUNS, ["report", "table_versions", "walks", "beside", "kept"], mine)
    found = next(records(rows, RUNS), None)
    if found is None:
        raise UsageError(f"cluster {cluster} has no report of run {visible(wanted, 80)}; see `kraft-audit history`")
    versions = dict(found["table_versions"] or {})
    walks = tuple(found["walks"] or (wanted,))
    report = from_json(found["report"])
    beside = Beside(finished.thresholds) if found["beside"] is None else read_beside(found["beside"])
    chain = Chain() if found["kept"] is None else read(wanted, found["kept"]).chain
    return PastRun(finished.warehouse, cluster, wanted, report, versions, walks, standing, beside, chain)


class NoRunError(UsageError):
    """The cluster has no finished run."""


def runs_of(warehouse: Reader, cluster: str) -> list[FleetRun]:
    """All runs of a cluster, oldest first, failed ones and those that died among them."""
    return sorted(fleet_runs(warehouse, most=None, cluster=cluster), key=lambda run: run.order)


def _last_failure(runs: Sequence[FleetRun]) -> str:
    return f" (the last one failed: {visible(runs[-1].failure, 300)})" if runs else ""
