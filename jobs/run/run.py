"""What every step of a run shares: its clusters, session, warehouse, fingerprints, and the rows it has made so far.

A run is over a set of clusters, one or hundreds: a query reads or writes the rows of all of them. If one cluster fails,
the others continue without it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from jobs.disk import said
from jobs.evidence.inputs import profile_of_run
from jobs.exit import CRASH, USAGE, UsageError, for_people
from jobs.expectations import engine
from jobs.expectations.suites import read_suites
from jobs.expectations.validate import check_conditions
from jobs.runtime.spark import spark_session
from jobs.runtime.workers import WorkerRows, with_texts
from jobs.settings import Settings, check_files, secret_from_environment
from jobs.sinks.chained import state_rows
from jobs.sinks.conditions import Where
from jobs.sinks.delta import Rows, Warehouse
from jobs.sinks.reader import records
from jobs.sinks.storage import make_private
from jobs.sources.property_files import read_property_files
from jobs.sources.remote import is_remote, local_path
from jobs.sources.suppressions import read_suppressions
from schemas import silver
from schemas.table import Table
from transforms.clusters import CLUSTER, of_clusters
from transforms.examination.task import Recorded
from transforms.expectations.suite import Suite
from transforms.properties import PropertyFiles
from transforms.reconcile.compare.suppressions import SuppressionRule
from transforms.report.mail_policy import LastMail
from transforms.secrets import Fingerprinter

LOG = logging.getLogger("kraft-audit")
_KEY_FILE = ".fingerprint-key"
_KEY_BYTES = 32
# Tables are written during the judging: two at a time, so that the judging has processors as well.
_WRITERS = 2


@dataclass(frozen=True)
class Failure:
    """Why a cluster's audit did not finish, in one line, and its exit code."""

    reason: str
    exit_code: int


@dataclass
class ClusterRun:
    """One cluster of a run.

    `suppressions` are the configured entries, in force or not; `suites` the expectations; `notes` lines for the report;
    `walks` the snapshot_ids of ZooKeeper's tree in bronze: the one that is judged, and a bracket's second. `rows_read`
    are the numbers of rows in bronze tables that the steps before this one have read, by table. `walked_at_ms` is when
    the walk of a live tree began and `log_seen_at_ms` when the log's end was looked up, milliseconds since the epoch.
    """

    settings: Settings
    suppressions: tuple[SuppressionRule, ...] = ()
    suites: tuple[Suite, ...] = ()
    notes: list[str] = field(default_factory=list)
    walks: list[str] = field(default_factory=list)
    rows_read: dict[str, int] = field(default_factory=dict)
    walked_at_ms: int | None = None
    log_seen_at_ms: int | None = None
    failure: Failure | None = None

    @property
    def name(self) -> str:
        """Name of the cluster in every table and report."""
        return self.settings.cluster

    @cached_property
    def property_files(self) -> PropertyFiles:
        """The nodes' files that the configuration names, read once for all steps. Raises UsageError for one that can't be read."""
        return read_property_files(self.settings.properties)


def _uncounted(_source: str, _number: int, _noun: str) -> None:
    """Nobody watches the run."""


@dataclass
class Run:
    """One run over `clusters`, by name. Names of clusters are the keys of all mappings but `durations` and `scanned`'s rows.

    - `durations`: seconds by step.
    - `in_steps`: each step is a process of its own, so a repeated step must not write its rows again.
    - `attempt`: different each time that a step is begun (`jobs.run.steps`).
    - `steps_done`: the steps that other processes have done for this run.
    - `logs`: the log folders as `jobs.steps.ingest_kraft` scanned them; `scanned`: their rows of kraft_log_copies.
    - `kept`: what each cluster's run before this one has left for it (`jobs.run.kept`), without the state of the log where this
      run reads the log from its start.
    - `recorded_changes`: which changes of partitions earlier runs have recorded.
    - `newest_mails`: the newest mail about each cluster that has mail configured, valid once `mails_looked_up` is true;
      `newest_messages`: the newest message by channel and cluster (`jobs.steps.messages`), valid once `messages_looked_up` is true.
    - `previous`: each cluster's runs before this one, once they were looked up (`jobs.run.earlier_runs.previous_runs`);
      `sequences`: this run's number among its cluster's runs, where the cluster has earlier ones.
    - `recorded`: the clusters with a row in gold `runs`.
    - `chains`: the runs whose rows make up each cluster's state, once they are stored (`transforms.chain`).
    - `counted(source, number, noun)`: is called with what was read so far.
    """

    clusters: dict[str, ClusterRun]
    run_id: str
    started_at: datetime
    spark: SparkSession
    warehouse: Warehouse
    fingerprinter: Fingerprinter
    durations: dict[str, float] = field(default_factory=dict)
    in_steps: bool = False
    attempt: str = ""
    scanned: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    logs: dict[str, Any] = field(default_factory=dict)
    steps_done: set[str] = field(default_factory=set)
    kept: dict[str, Any] = field(default_factory=dict)
    recorded_changes: dict[str, Recorded] = field(default_factory=dict)
    newest_mails: dict[str, LastMail] = field(default_factory=dict)
    newest_messages: dict[tuple[str, str], LastMail] = field(default_factory=dict)
    previous: dict[str, list[Any]] | None = None
    sequences: dict[str, int] = field(default_factory=dict)
    recorded: set[str] = field(default_factory=set)
    chains: dict[str, Sequence[str]] = field(default_factory=dict)
    mails_looked_up: bool = False
    messages_looked_up: bool = False
    counted: Callable[[str, int, str], None] = _uncounted
    _writes: list[Future[None]] = field(default_factory=list)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_WRITERS))

    @property
    def going(self) -> list[str]:
        """Names of the clusters that have not failed, in order."""
        return sorted(name for name, cluster in self.clusters.items() if cluster.failure is None)

    def settings_of(self) -> dict[str, Settings]:
        """Settings of the clusters that have not failed, by name."""
        return {name: self.clusters[name].settings for name in self.going}

    def fail(self, cluster: str, error: Exception) -> None:
        """Leave a cluster out of the rest of the run. The reason is the error's text if it was written for a person."""
        reason = for_people(error) or f"{type(error).__name__} inside the audit; audit this cluster alone to see where"
        code = USAGE if isinstance(error, UsageError) else CRASH
        self.clusters[cluster].failure = Failure(reason, code)
        LOG.debug("cluster %s failed", cluster, exc_info=error)

    def keep(self, table: Table, rows: WorkerRows | pa.Table, series: str = "") -> None:
        """Store `rows` as this run's, beside the rest of the run until `finish_writes`; the workers' lack the column run_id.

        A table that a run adds rows to more than once needs a `series` for each time (`append`).
        """
        mine = (
            rows if isinstance(rows, pa.Table) else rows.then(with_texts({"run_id": self.run_id}), _with_run_id(rows))
        )
        self._writes.append(self._pool.submit(self.append, table, mine, series=series))

    def rows(self, table: Table) -> DataFrame:
        """This run's rows of a table as they are stored, of the clusters that have not failed; of a chained one its states' rows."""
        if table.chained:
            return state_rows(self.warehouse.read(table), {name: self.chains[name] for name in self.going})
        rows = self.warehouse.read(table, runs=[self.run_id])
        return rows.where(of_clusters(self.going) & (F.col("run_id") == self.run_id))

    def in_workers(self, table: Table, where: Where) -> WorkerRows:
        """Of the rows that `rows` has of a table that is not chained, those that meet the conditions, for what workers make of them."""
        mine = {CLUSTER: self.going, "run_id": self.run_id, **where}
        return self.warehouse.in_workers(table, mine, [self.run_id])

    def looked_up(self, table: Table, columns: Sequence[str], where: Where | None = None) -> Iterator[dict[str, Any]]:
        """Few of the rows that `rows` has, without Spark where that can be: columns of those that meet the conditions."""
        mine = {CLUSTER: self.going, "run_id": self.run_id, **(where or {})}
        return records(self.warehouse.rows(table, columns, mine), table)

    def append(self, table: Table, rows: Rows, part: int = 1, series: str = "") -> None:
        """Add rows (all columns of the table), in a step of its own once for each attempt.

        Rows that come in parts are numbered; several series of parts for one table have names of their own.
        """
        if not self.in_steps:
            self.warehouse.append(table, rows)
            return
        names = hashlib.sha256("\n".join(sorted(self.clusters)).encode()).hexdigest()[:16]
        application = "/".join(text for text in (names, self.run_id, self.attempt, table.name, series) if text)
        self.warehouse.append(table, rows, application, part)

    def finish_writes(self) -> None:
        """Wait for all tables; raises what the first failed write raised."""
        pending, self._writes = self._writes, []
        errors = [future.exception() for future in pending]
        for error in errors:
            if error is not None:
                raise error

    def drop_writes(self) -> None:
        """Drop writes that have not begun, and wait for those in progress: rows of an unfinished run are ignored."""
        pending, self._writes = self._writes, []
        for future in pending:
            if not future.cancel():
                future.exception()

    def table_versions(self) -> dict[str, int]:
        """Delta versions, for time travel to this run, of the tables whose rows do not stay forever."""
        versions = {table.full_name: self.warehouse.version(table) for table in silver.TABLES}
        return {name: version for name, version in versions.items() if version is not None}

    def close(self) -> None:
        """Stop the writers; writes that have not begun are dropped."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _with_run_id(rows: WorkerRows) -> StructType:
    return StructType([StructField("run_id", StringType()), *rows.struct.fields])


def note_risk(run: Run, cluster: str, risk: str) -> None:
    """Add a risk of the configuration, if any, to the report and the log."""
    if risk:
        run.clusters[cluster].notes.append(risk)
        LOG.warning("%s: %s", cluster, risk)


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return int(datetime.now(UTC).timestamp() * 1000)


def new_run_id(now: datetime) -> str:
    """A run id that sorts by time and never repeats."""
    return f"{time_in_run_id(now)}-{secrets.token_hex(3)}"


def time_in_run_id(moment: datetime) -> str:
    """How ids of runs that start in this second begin; a time without a zone is in that of this machine."""
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


@contextmanager
def open_run(
    settings: Settings | Sequence[Settings],
    run_id: str | None = None,
    started_at: datetime | None = None,
    *,
    keep_failures: bool = False,
) -> Iterator[Run]:
    """Start (or join) a Spark session and open the warehouse for one run over one or several clusters.

    A cluster whose files are missing has failed from the start. Raises UsageError if the files of all clusters are
    missing (with `keep_failures` the run is opened instead, so that the failures can be stored and reported), if two
    settings name the same cluster, or if they do not share warehouse and Spark settings.
    """
    several = [settings] if isinstance(settings, Settings) else list(settings)
    started_at = started_at or datetime.now(UTC)
    first = shared(several)
    clusters = {each.cluster: _cluster_run(each) for each in several}
    failures = [cluster.failure for cluster in clusters.values() if cluster.failure is not None]
    if len(failures) == len(clusters) and not keep_failures:
        raise UsageError(failures[0].reason)
    fingerprinter = Fingerprinter(_fingerprint_key(first))
    profile = profile_of_run(several)
    with spark_session(profile, cores=first.spark.cores, driver_memory=first.spark.driver_memory) as spark:
        warehouse = Warehouse(spark, first.warehouse, first.catalog, first.warehouse_single_driver)
        warehouse.prepare()
        _check_suites(clusters, warehouse, keep_failures=keep_failures)
        run = Run(clusters, run_id or new_run_id(started_at), started_at, spark, warehouse, fingerprinter)
        try:
            yield run
        finally:
            run.close()


def _check_suites(clusters: Mapping[str, ClusterRun], warehouse: Warehouse, *, keep_failures: bool) -> None:
    """A suite that can't be judged fails its cluster; raises UsageError instead, unless `keep_failures`."""
    for cluster in clusters.values():
        try:
            check_conditions(cluster.suites, warehouse.empty)
        except UsageError as error:
            if not keep_failures:
                raise
            cluster.failure = Failure(str(error), USAGE)


def _cluster_run(settings: Settings) -> ClusterRun:
    try:
        check_files(settings)
        suites = read_suites(settings.expectations)
        engine.check(suites)
        return ClusterRun(settings, read_suppressions(settings.suppressions), suites)
    except UsageError as error:
        return ClusterRun(settings, failure=Failure(str(error), USAGE))


_SHARED = ("warehouse", "catalog", "warehouse_single_driver", "spark", "secrets")


def shared(several: Sequence[Settings]) -> Settings:
    """One cluster's settings, for what all clusters of a run share. Raises UsageError naming what differs."""
    first = several[0]
    names = [each.cluster for each in several]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"cluster {twice} is configured twice; every cluster of a run needs its own name")
    for other in several[1:]:
        for key in _SHARED:
            if getattr(other, key) != getattr(first, key):
                raise UsageError(
                    f"clusters {first.cluster} and {other.cluster} differ in `{key}`: all clusters of one run share it"
                )
    return first


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
    """Make the key, or read the one that is there. It appears whole: another first run never reads half of it."""
    if path.exists():
        return _stored_key(path)
    part = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        make_private(path.parent)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        # Another run may have been first: then its key is the warehouse's.
        with suppress(FileExistsError):
            _publish(part, path)
    except OSError as error:
        raise UsageError(f"the warehouse {path.parent} can't be written: {said(error)}") from error
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
