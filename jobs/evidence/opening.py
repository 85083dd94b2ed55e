"""Opening a warehouse to look into finished runs, with Spark and without."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.evidence.removed import forgotten_text, last_vacuum
from jobs.exit import AuditError, UsageError, files_are_gone
from jobs.settings import TABLES_FOLDER, ReportSettings, Settings, limits_of, load_settings
from jobs.sinks.reader import Folder, Reader
from jobs.sinks.storage import credentials_without_spark, read_without_spark
from schemas.gold import RUNS
from transforms.nearest import suggestion
from transforms.reconcile.judge.thresholds import JudgeLimits

LOG = logging.getLogger("kraft-audit")

if TYPE_CHECKING:
    from jobs.sinks.delta import Warehouse


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
