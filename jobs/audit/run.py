"""What every step of a run shares: settings, run id, session, warehouse, fingerprints, progress."""

from __future__ import annotations

import argparse
import logging
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.exit import OK, UsageError, guarded
from jobs.runtime.spark import spark_session
from jobs.settings import Settings, load_settings, secret_from_environment
from jobs.sinks.delta import Warehouse
from jobs.sources.remote import is_remote, local_path
from jobs.sources.suppressions import read_suppressions
from schemas import bronze, gold, silver
from schemas.table import Table
from transforms.reconcile.compare.suppressions import Rule
from transforms.secrets import Fingerprinter

ALL_TABLES = (*bronze.TABLES, *silver.TABLES, *gold.TABLES)
LOG = logging.getLogger("kraft-audit")
_KEY_FILE = ".fingerprint-key"
_KEY_BYTES = 32


@dataclass
class Run:
    """One run of one cluster. `durations` collects seconds per step, `notes` what the report should say of it.

    `suppressions` are the configured entries, in force or not.
    """

    settings: Settings
    run_id: str
    started_at: datetime
    spark: SparkSession
    warehouse: Warehouse
    fingerprinter: Fingerprinter
    durations: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    suppressions: tuple[Rule, ...] = ()

    @property
    def cluster(self) -> str:
        """Name of the audited cluster."""
        return self.settings.cluster

    def stamped(self, rows: DataFrame) -> DataFrame:
        """Rows with the cluster and the run id."""
        return rows.withColumns({"cluster": F.lit(self.cluster), "run_id": F.lit(self.run_id)})

    def append(self, table: Table, rows: DataFrame, part: int = 1, series: str = "") -> None:
        """Add this run's rows to a table once, however often the step is repeated.

        Rows that come in parts are numbered; several series of parts for one table have names of their own.
        """
        application = "/".join(text for text in (self.cluster, self.run_id, table.name, series) if text)
        self.warehouse.append(table, self.stamped(rows), application, part)

    def replace(self, table: Table, rows: DataFrame) -> None:
        """Make this run's rows the cluster's rows of a table."""
        self.warehouse.replace_where(table, self.stamped(rows), {"cluster": self.cluster})

    def hold(self, rows: DataFrame) -> DataFrame:
        """Rows that several queries read: made once, and a leaf in their plans.

        On a small cluster a query takes longer to plan than to run, so the rows are kept in memory without their
        lineage; elsewhere they are cached and can be made again when an executor is lost.
        """
        return rows.localCheckpoint() if self.settings.spark.profile == "small" else rows.persist()

    def make(self, rows: DataFrame) -> DataFrame:
        """`hold`, and make the rows at once: queries that start together would each make them for itself."""
        held = self.hold(rows)
        if self.settings.spark.profile != "small":
            held.count()
        return held

    def hold_if_small(self, rows: DataFrame) -> DataFrame:
        """`hold` where the rows surely fit into memory; as they are where they may be millions."""
        return self.hold(rows) if self.settings.spark.profile == "small" else rows

    def table_versions(self) -> dict[str, int]:
        """Delta version of every table there is, for time travel to this run."""
        versions = {table.full_name: self.warehouse.version(table) for table in ALL_TABLES}
        return {name: version for name, version in versions.items() if version is not None}

    def read(self, table: Table) -> DataFrame:
        """This run's rows of a table."""
        rows = self.warehouse.read(table)
        return rows.where((F.col("cluster") == self.cluster) & (F.col("run_id") == self.run_id))


def new_run_id(now: datetime) -> str:
    """A run id that sorts by time and never repeats."""
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


@contextmanager
def open_run(settings: Settings, run_id: str | None = None) -> Iterator[Run]:
    """Start (or join) a Spark session and open the warehouse for one run."""
    started_at = datetime.now(UTC)
    suppressions = read_suppressions(settings.suppressions)
    fingerprinter = Fingerprinter(_fingerprint_key(settings))
    with spark_session(
        settings.spark.profile, cores=settings.spark.cores, driver_memory=settings.spark.driver_memory
    ) as spark:
        warehouse = Warehouse(spark, settings.warehouse, settings.catalog)
        named = run_id or new_run_id(started_at)
        yield Run(settings, named, started_at, spark, warehouse, fingerprinter, suppressions=suppressions)


def _fingerprint_key(settings: Settings) -> bytes:
    """The key from the environment, else one generated per warehouse, so that fingerprints compare from run to run."""
    name = settings.secrets.fingerprint_key_env
    if name is not None:
        return secret_from_environment(name, "`secrets.fingerprint_key_env`").encode()
    if settings.catalog or is_remote(settings.warehouse):
        raise UsageError(
            "`secrets.fingerprint_key_env` is needed when the warehouse is not a local folder: "
            "name an environment variable that holds a random key of 32 characters or more"
        )
    return _generated_key(Path(local_path(settings.warehouse)) / _KEY_FILE)


def _generated_key(path: Path) -> bytes:
    """The warehouse's key; made under another name and linked whole, so that a run killed midway leaves no half of one."""
    if path.exists():
        return _stored_key(path)
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        _publish(part, path)
    except FileExistsError:
        pass  # Another run's first: its key is the warehouse's.
    except OSError as error:
        raise UsageError(f"the warehouse {path.parent} can't be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return _stored_key(path)


def _publish(part: Path, path: Path) -> None:
    """Give the file its name. Raises FileExistsError when another run was first."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links: the name is taken by a rename, which is as whole.
        if path.exists():
            raise FileExistsError(path) from None
        part.rename(path)


def _stored_key(path: Path) -> bytes:
    try:
        key = path.read_bytes()
    except OSError as error:
        raise UsageError(f"the fingerprint key {path} can't be read: {error.strerror}") from error
    if len(key) != _KEY_BYTES:
        raise UsageError(f"the fingerprint key {path} is damaged; remove it to have a new one made")
    return key


def step_main(name: str, step: Callable[[Run], object], argv: list[str] | None) -> int:
    """`main` of a step: parse `--conf` and `--run-id`, run it, and map what happens to an exit code."""
    parser = argparse.ArgumentParser(prog=f"kraft-audit {name}", description=step.__doc__)
    parser.add_argument("--conf", type=Path, required=True, help="configuration file (YAML)")
    parser.add_argument("--run-id", required=True, help="run the step belongs to; the same for all steps of one run")
    arguments = parser.parse_args(argv)

    def body() -> int:
        with open_run(load_settings(arguments.conf), arguments.run_id) as run:
            outcome = step(run)
        return outcome if isinstance(outcome, int) else OK

    return guarded(body)
