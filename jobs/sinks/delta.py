"""The warehouse: Delta tables below a folder or in a catalog schema; a repeated or interrupted run does no harm.

Each write is one Delta commit, the first one creates the table with its comments. Of Spark only DataFrame and SQL calls
are used, so it works through Spark Connect too. In a local folder Spark's writer is not needed for rows that the driver already
has (`jobs.sinks.folder_table`) and for those that workers make (`jobs.sinks.worker_rows`). Clusters of one warehouse never disturb
each other: rows are added, which Delta lets any number of runs do at once, and tables in which a cluster's rows are replaced are
partitioned by cluster.

In a local folder only one process writes to a table at a time (`jobs.sinks.lock`); elsewhere the storage or the catalog
keeps commits apart (`jobs.sinks.storage`). A table exists from its first commit on. A first write that was killed or
ran out of disk leaves an unfinished table: its files are ignored, and the next write creates the table in its place.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import polars as pl
import pyarrow as pa
from deltalake import Transaction
from deltalake.exceptions import DeltaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, DataFrameWriterV2, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.disk import said
from jobs.exit import AuditError
from jobs.runtime.spark import java_of
from jobs.runtime.workers import WorkerRows, as_they_are
from jobs.sinks import stored_rows, worker_rows
from jobs.sinks.chained import state_rows
from jobs.sinks.conditions import Condition, Where, all_of
from jobs.sinks.delta_errors import (
    GONE_VERSION,
    MISSING,
    ConcurrentWriteError,
    is_conflict,
    is_one_of,
    readable,
    refuse_newer,
    typed_errors,
)
from jobs.sinks.folder_table import FolderTable, arrow_schema, properties
from jobs.sinks.lock import only_writer
from jobs.sinks.parquet import DataFile, NewFiles
from jobs.sinks.reader import (
    Folder,
    fields_of,
    first_line,
    gone_version,
    refuse_later_columns,
    refuse_later_release,
    refuse_unreadable,
)
from jobs.sinks.shape import check_fit, in_shape, quoted, with_columns
from jobs.sinks.storage import (
    WarehouseError,
    folder_of,
    is_uri,
    make_private,
    refuse_unsafe,
    remote_problem,
    storage_problem,
    unreadable_file,
)
from schemas.gold import RUNS
from schemas.table import Table
from transforms.clusters import CLUSTER
from transforms.frames import columns_of, from_arrow
from transforms.runs import newest_first

LOG = logging.getLogger("kraft-audit")

_MADE_ANEW = "unfinished table %s: an earlier first write did not finish; it is repeated"
DEFAULT_WRITERS = 4
# Rows of a cluster that are fewer share a file with those of others.
OWN_FILE_BYTES = 1024 * 1024
CREATE_ATTEMPTS = 20
DELETE_ATTEMPTS = 5
CREATE_PAUSE_SECONDS = 0.25
LOG_RETENTION = "delta.logRetentionDuration"
_OUR_DAYS = re.compile(r"interval ([0-9]{1,9}) days")
T = TypeVar("T")
# Rows to add: Spark's, the driver's, those that Spark's workers make, or those of files that they have written (`Warehouse.new_files`).
Rows: TypeAlias = DataFrame | pa.Table | WorkerRows | Sequence[DataFile]


@dataclass(frozen=True)
class TableSize:
    """Data files of a table as it is now, and their bytes."""

    files: int
    bytes: int


@dataclass(frozen=True)
class Warehouse:
    """All tables of one installation: below the folder `root` (or a URI Spark can write), or in `catalog.schema`.

    `single_driver`: the user guarantees that at most one run writes at a time, on a storage that needs it.
    """

    spark: SparkSession
    root: str
    catalog: bool = False
    single_driver: bool = False

    def identifier(self, table: Table) -> str:
        """Name of the table in SQL: ``delta.`root/layer/name` `` or `` `catalog`.`schema`.`layer_name` ``."""
        if self.catalog:
            return ".".join(quoted(part) for part in [*self.root.split("."), f"{table.layer.value}_{table.name}"])
        return f"delta.{quoted(self.location(table))}"

    def location(self, table: Table) -> str:
        """Folder of the table below `root`, absolute for local folders; in a catalog, its dotted name."""
        if self.catalog:
            return f"{self.root}.{table.layer.value}_{table.name}"
        return f"{absolute_root(self.root).rstrip('/')}/{table.layer.value}/{table.name}"

    def append(self, table: Table, rows: Rows, txn_app_id: str | None = None, txn_version: int = 1) -> None:
        """Add rows. A second call with the same `txn_app_id` and the same or a lower `txn_version` writes nothing.

        Without an id each call adds the rows, at half the cost, because Delta need not look up the id. To a table in a local folder
        rows that the driver already has (Arrow) are written without Spark, and rows that workers make by them. Raises
        `SchemaMismatchError`, `ConcurrentWriteError`.
        """
        options = {} if txn_app_id is None else {"txnAppId": txn_app_id, "txnVersion": str(txn_version)}
        with self._writing(table):
            # In a local folder a look shows whether the table exists; elsewhere the write shows it, which needs no query.
            missing = self._in_local_folder and self.version(table) is None
            if not isinstance(rows, DataFrame):
                transaction = None if txn_app_id is None else Transaction(txn_app_id, txn_version)
                if self._added(table, rows, transaction, missing=missing):
                    return
                rows = self._as_frame(table, rows)
            self._write(table, rows, options, lambda writer: writer.append(), missing=missing)

    def _added(
        self,
        table: Table,
        rows: pa.Table | WorkerRows | Sequence[DataFile],
        transaction: Transaction | None,
        *,
        missing: bool,
    ) -> bool:
        """Add rows without Spark's writer; False, and nothing done, where only that can."""
        if self.folder is None:
            return False
        if isinstance(rows, pa.Table | WorkerRows):
            check_fit(table, from_arrow_schema(rows.schema) if isinstance(rows, pa.Table) else rows.struct)
        folder = self.folder / table.layer.value / table.name
        # Files that workers have written already say nothing of an earlier first write.
        unfinished = missing and not isinstance(rows, Sequence) and any(path.is_file() for path in folder.rglob("*"))
        there = FolderTable.at(folder, table)
        if there is None or (isinstance(rows, WorkerRows) and table.partition_columns):
            return False
        if not there.has(transaction):
            if isinstance(rows, pa.Table):
                there.add_rows(rows, transaction)
            elif isinstance(rows, WorkerRows):
                worker_rows.add(there, rows, transaction)
            else:
                worker_rows.name_files(there, rows, transaction)
        if unfinished:
            LOG.warning(_MADE_ANEW, table.full_name)
        return True

    def _as_frame(self, table: Table, rows: pa.Table | WorkerRows | Sequence[DataFile]) -> DataFrame:
        if isinstance(rows, pa.Table):
            return self.spark.createDataFrame(rows, table.struct)
        if isinstance(rows, WorkerRows):
            return rows.rows
        files = [f"{self.location(table)}/{file.name}" for file in rows]
        return self.spark.read.schema(table.struct).parquet(*files)

    def new_files(self, tables: Sequence[Table]) -> NewFiles:
        """Where workers may write files of these tables for `append` to add; elsewhere than in a local folder nowhere."""
        if self.folder is None:
            return NewFiles()
        plain = [table for table in tables if not table.partition_columns]
        return NewFiles(
            str(self.folder),
            worker_rows.new_prefix(),
            {table.full_name: arrow_schema(table) for table in plain},
            {table.full_name: table.skipping_columns for table in plain},
            OWN_FILE_BYTES,
        )

    def replace_where(self, table: Table, rows: DataFrame, predicate: Mapping[str, str | Sequence[str]]) -> None:
        """Replace, in one commit, the rows whose columns equal the values of `predicate`, or one of several.

        Every new row must match it. Runs that replace rows of different clusters at the same time don't disturb each other
        where the table is declared so (`Table.replaced`).

        Raises `SchemaMismatchError`, `ConcurrentWriteError`, and `ValueError` for an empty predicate or a column the
        table lacks.
        """
        condition = _equals(table, predicate)
        with self._writing(table):
            # Spark resolves the condition before it finds the table missing, so the table must be there first.
            missing = self.version(table) is None
            self._write(table, rows, {}, lambda writer: writer.overwrite(condition), missing=missing)

    def delete(self, table: Table, condition: Condition) -> None:
        """Remove rows in one commit. Raises `ConcurrentWriteError` when others write to the table all the time."""
        for attempt in range(1, DELETE_ATTEMPTS + 1):
            try:
                with self._tending(table) as there:
                    if there is not None:
                        there.remove_rows(condition)
                    else:
                        # Tables of an earlier release lack columns that even no rows have.
                        writer = self._writer(table, self.empty(table), {"mergeSchema": "true"})
                        writer.overwrite(condition.column())
                return
            except ConcurrentWriteError:
                # Delta cannot know whether rows that were added meanwhile are to be removed; they may be another cluster's.
                if attempt == DELETE_ATTEMPTS:
                    raise

    def size(self, table: Table) -> TableSize:
        """Files and bytes of the table as it is now; zeros when there is none."""
        there = self._opened(table)
        if there is not None:
            return TableSize(*there.size)
        try:
            found = (
                self.spark.sql(f"DESCRIBE DETAIL {self.identifier(table)}").select("numFiles", "sizeInBytes").first()
            )
        except AnalysisException as error:
            if not is_one_of(error, MISSING):
                raise
            found = None
        return TableSize(0, 0) if found is None else TableSize(found["numFiles"] or 0, found["sizeInBytes"] or 0)

    def compact(self, table: Table, large: int) -> None:
        """Merge small files of the table: smaller than `large` bytes, or than Spark's session says. Raises `ConcurrentWriteError`."""
        with self._tending(table) as there:
            if there is not None:
                there.merge_files(large)
            else:
                self.spark.sql(f"OPTIMIZE {self.identifier(table)}")

    def vacuum(self, table: Table, hours: int, *, dry_run: bool = False) -> list[str]:
        """Remove files that no version of the last `hours` needs; with `dry_run` remove nothing and return their names."""
        with nullcontext(self._opened(table)) if dry_run else self._tending(table) as there:
            if there is not None:
                return there.remove_files(hours, dry_run=dry_run)
            with typed_errors(table):
                statement = f"VACUUM {self.identifier(table)} RETAIN {hours} HOURS"
                found = self.spark.sql(f"{statement} DRY RUN" if dry_run else statement)
                return [row["path"] for row in found.collect()] if dry_run else []

    def keep_log(self, table: Table, days: int) -> None:
        """Let Delta remove files of its own log after `days`; a time that a user has set, or a longer one, stays."""
        wanted = f"interval {days} days"
        with self._tending(table) as there:
            if there is not None:
                if _is_longer(days, there.properties.get(LOG_RETENTION)):
                    there.set_property(LOG_RETENTION, wanted)
                return
            shown = self.spark.sql(f"SHOW TBLPROPERTIES {self.identifier(table)}").where(F.col("key") == LOG_RETENTION)
            found = shown.select("value").first()
            if _is_longer(days, None if found is None else found["value"]):
                said = f"'{LOG_RETENTION}' = '{wanted}'"
                self.spark.sql(f"ALTER TABLE {self.identifier(table)} SET TBLPROPERTIES ({said})")

    def create(self, table: Table) -> None:
        """Create the table, empty, if it is missing."""
        with self._writing(table):
            if self.version(table) is None:
                self._create_or(table, self.empty(table), {}, lambda: None)

    def prepare(self) -> None:
        """Look, before there is work to lose, whether this storage may be written; make a folder for its owner only.

        Raises UsageError (`refuse_unsafe_storage`), WarehouseError, also where a later release has made the tables.
        """
        self.refuse_unsafe_storage()
        folder = self.folder
        if folder is None:
            if is_uri(self.root) and not self.catalog:
                # Names what is missing there: the jars, credentials, the bucket.
                self.version(RUNS)
            return
        refuse_later_release(folder)
        try:
            make_private(folder)
        except OSError as error:
            raise WarehouseError(f"the warehouse {self.root} can't be written: {said(error)}") from None

    def refuse_unsafe_storage(self) -> None:
        """Raise UsageError when two runs at a time could overwrite each other's commits on this storage."""
        refuse_unsafe(self.root, self.catalog, self.single_driver, lambda key: self.spark.conf.get(key, None))

    def read(self, table: Table, version: int | None = None, runs: Collection[str] | None = None) -> DataFrame:
        """Rows of a table, now or as of an earlier version; no rows when the table does not exist yet.

        With `runs`, rows of other runs may be missing. Raises WarehouseError when the table can't be read.
        """
        files = self._files(table, runs) if version is None else None
        if files is not None:
            return self.spark.read.schema(table.struct).parquet(*files) if files else self.empty(table)
        reader = self.spark.read if version is None else self.spark.read.option("versionAsOf", version)
        try:
            rows = (
                reader.table(self.identifier(table))
                if self.catalog
                else reader.format("delta").load(self.location(table))
            )
            refuse_later_columns(table, rows.columns)
            # Columns added by a newer release are null in tables that an older one made.
            return with_columns(rows, table)
        except AnalysisException as error:
            if is_one_of(error, MISSING):
                if self.folder is not None:
                    refuse_unreadable(table, Path(self.location(table)))
                if version is None:
                    return self.empty(table)
                raise WarehouseError(f"table {table.full_name} can't be read: there is none") from error
            if is_one_of(error, GONE_VERSION) and version is not None:
                raise WarehouseError(gone_version(table, version)) from error
            raise WarehouseError(f"table {table.full_name} can't be read: {first_line(error)}") from error
        except Exception as error:
            # Spark has no type of its own for it.
            refuse_newer(table, error)
            self._refuse_unreached(error)
            raise

    def in_workers(self, table: Table, where: Where, runs: Collection[str] | None = None) -> WorkerRows:
        """Rows of a table that meet the conditions, for what workers make of them; `runs` as in `read`.

        Of a local folder the workers read the files themselves. Raises WarehouseError as `read`.
        """
        files = self._files(table, runs)
        if files:
            return stored_rows.stored_rows(self.spark, table, files, arrow_schema(table), where)
        rows = self.read(table, runs=runs)
        return as_they_are(rows.where(_met(where)) if where else rows)

    def _files(self, table: Table, runs: Collection[str] | None) -> list[str] | None:
        """The files of a table in a local folder that can hold rows of these runs, or of any.

        They are read as they lie there: Delta takes several queries to find them. None where only Delta can read the table, or has
        to say what is wrong with it.
        """
        there = None if self.folder is None else FolderTable.at(self.folder / table.layer.value / table.name, table)
        files = None if there is None else there.files_of(runs)
        return None if files is None or not all(map(os.path.exists, files)) else files

    def rows(
        self,
        table: Table,
        columns: Sequence[str] = (),
        where: Where | None = None,
        version: int | None = None,
        most: int | None = None,
        chain: Sequence[str] = (),
    ) -> pl.DataFrame:
        """As `jobs.sinks.reader.Reader.rows`."""
        found = self._without_spark(lambda folder: folder.rows(table, columns, where, version, most, chain))
        if found is not None:
            return found
        conditions = where or {}
        stored = self.read(table, version)
        stored = state_rows(stored, {conditions[CLUSTER]: chain}) if chain else stored
        mine = stored.where(_met(conditions))
        return _collected(mine if most is None else mine.limit(most), table, columns)

    def counts(self, table: Table, where: Where, version: int | None = None) -> dict[tuple[str, str], int]:
        """As `jobs.sinks.reader.Reader.counts`."""
        found = self._without_spark(lambda folder: folder.counts(table, where, version))
        if found is not None:
            return found
        rows = self.read(table, version).where(_met(where)).groupBy(CLUSTER, "run_id").count()
        with readable():
            return {(row[CLUSTER], row["run_id"]): row["count"] for row in rows.collect()}

    def newest_runs(
        self, columns: Sequence[str], most: int | None, where: Where | None = None, also: Collection[str] = ()
    ) -> pl.DataFrame:
        """As `jobs.sinks.reader.Reader.newest_runs`; by Spark in one query."""
        found = self._without_spark(lambda folder: folder.newest_runs(columns, most, where, also))
        if found is not None:
            return found
        runs = self.read(RUNS)
        if most is None:
            return _collected(runs.where(_met(where or {})), RUNS, columns)
        place = F.row_number().over(Window.partitionBy(CLUSTER).orderBy(*newest_first()))
        chosen = runs.where(_met(where or {})).withColumn("place", place)
        wanted = chosen.where((F.col("place") <= most) | F.col("run_id").isin(sorted(also)))
        return _collected(wanted, RUNS, columns)

    def _without_spark(self, ask: Callable[[Folder], T]) -> T | None:
        """The answer of a local folder's tables, which takes Spark a hundred times as long to plan; None where only Spark has it."""
        if self.folder is None:
            return None
        try:
            return ask(Folder(self.root))
        except WarehouseError:
            # Spark may be able to read what cannot be read without it; if not, it says why.
            return None

    def empty(self, table: Table) -> DataFrame:
        """No rows, with the table's columns."""
        return self.spark.createDataFrame([], table.struct)

    def version(self, table: Table) -> int | None:
        """Number of the newest commit, as time travel counts; None when the table does not exist."""
        folder = self.folder
        if folder is not None:
            return _newest_commit(folder / table.layer.value / table.name / "_delta_log")
        try:
            newest = self.spark.sql(f"DESCRIBE HISTORY {self.identifier(table)} LIMIT 1").select("version").first()
        except AnalysisException as error:
            if is_one_of(error, MISSING):
                return None
            raise
        except Exception as error:
            self._refuse_unreached(error)
            raise
        return None if newest is None else int(newest["version"])

    def _opened(self, table: Table) -> FolderTable | None:
        """A table of a local folder that is there and can be tended without Spark, which takes a hundred times as long."""
        return None if self.folder is None else FolderTable.tended(self.folder / table.layer.value / table.name, table)

    @contextmanager
    def _tending(self, table: Table) -> Iterator[FolderTable | None]:
        """As `_opened`, and the only writer of the table while the block runs. Raises `ConcurrentWriteError`."""
        with self._writing(table), typed_errors(table):
            try:
                yield self._opened(table)
            except DeltaError as error:
                if unreadable_file(error) or storage_problem(error, self.root, self.folder):
                    raise
                raise WarehouseError(f"table {table.full_name} can't be changed: {first_line(error)}") from error

    @property
    def folder(self) -> Path | None:
        """The folder of the tables, where this machine sees to it that one writes at a time; None elsewhere."""
        return folder_of(self.root, self.catalog)

    @property
    def _in_local_folder(self) -> bool:
        return self.folder is not None

    @contextmanager
    def _writing(self, table: Table) -> Iterator[None]:
        """Be the only writer of the table, and translate errors of the disk into messages for users."""
        self.refuse_unsafe_storage()
        folder = self.folder
        alone: AbstractContextManager[None] = (
            nullcontext() if folder is None else only_writer(folder, table.full_name, java_of(self.spark))
        )
        with alone, readable():
            try:
                yield
            except AuditError:
                raise
            except Exception as error:
                refuse_newer(table, error)
                problem = storage_problem(error, self.root, folder)
                self._refuse_unreached(error)
                if problem is None:
                    raise
                raise WarehouseError(problem) from error

    def _refuse_unreached(self, error: Exception) -> None:
        """Raise WarehouseError for an error of the remote storage: it does not exist, Spark does not support it, or it refuses."""
        problem = remote_problem(error, "" if self.catalog else self.root)
        if problem is not None:
            raise WarehouseError(problem) from error

    def _write(
        self,
        table: Table,
        rows: DataFrame,
        options: Mapping[str, str],
        write: Callable[[DataFrameWriterV2], None],
        *,
        missing: bool,
    ) -> None:
        """Write rows; create the table from them when it is `missing`, or turns out to be."""
        shaped = in_shape(table, rows)
        writer = self._writer(table, shaped, {"mergeSchema": "true", **options})
        if not missing:
            with typed_errors(table):
                try:
                    write(writer)
                    return
                except AnalysisException as error:
                    if not is_one_of(error, MISSING):
                        raise
        self._create_or(table, shaped, options, lambda: write(writer))

    def _writer(self, table: Table, rows: DataFrame, options: Mapping[str, str]) -> DataFrameWriterV2:
        return rows.writeTo(self.identifier(table)).options(**options)

    def _create_or(self, table: Table, rows: DataFrame, options: Mapping[str, str], write: Callable[[], None]) -> None:
        """Create the table from the rows, or write them when another run's first write just created it.

        The other run's table may take a moment to be seen here, so both are tried again for a while.
        """
        for attempt in range(1, CREATE_ATTEMPTS + 1):
            try:
                self._create(table, rows, options)
                return
            except ConcurrentWriteError:
                # Under the lock of a folder there is no other run; elsewhere it may be another run in progress.
                waited = self._in_local_folder or attempt == CREATE_ATTEMPTS
                if waited and self.version(table) is None:
                    self._create_over(table)
            try:
                with typed_errors(table):
                    write()
                return
            except AnalysisException as error:
                # A condition on the columns of a table that can't be seen yet is an unresolved column.
                if not is_one_of(error, (*MISSING, "UNRESOLVED_COLUMN")) or attempt == CREATE_ATTEMPTS:
                    raise
            time.sleep(CREATE_PAUSE_SECONDS)

    def _create_over(self, table: Table) -> None:
        """Create the empty table in the place of an unfinished one. Its files belong to no commit: VACUUM removes them.

        This is harmless if another run is making its first write: one of the two creates the table, and both continue.
        """
        if self.catalog:
            raise WarehouseError(
                f"unfinished table {table.full_name}: the folder of {self.location(table)} contains files of a first "
                "write that did not finish; remove that folder and run again"
            )
        # SQL and the writer's second version refuse a folder that is not empty.
        writer = self.empty(table).write.format("delta").mode("append")
        for name, value in properties(table).items():
            writer = writer.option(name, value)
        if table.partition_columns:
            writer = writer.partitionBy(*table.partition_columns)
        try:
            writer.save(self.location(table))
        except PySparkException as error:
            if is_conflict(error):
                # Another run has just made it.
                return
            raise
        LOG.warning(_MADE_ANEW, table.full_name)
        if self._in_local_folder:
            # This is a separate commit, which would conflict with another run's rows where no lock separates the runs.
            comment = table.comment.replace("\\", "\\\\").replace("'", "\\'")
            self.spark.sql(f"COMMENT ON TABLE {self.identifier(table)} IS '{comment}'")

    def _create(self, table: Table, rows: DataFrame, options: Mapping[str, str]) -> None:
        writer = self._writer(table, rows, options).using("delta").tableProperty("comment", table.comment)
        for name, value in properties(table).items():
            writer = writer.tableProperty(name, value)
        if table.partition_columns:
            writer = writer.partitionedBy(*[F.col(name) for name in table.partition_columns])
        with typed_errors(table):
            writer.create()


def absolute_root(root: str, catalog: bool = False) -> str:
    """A warehouse's folder from the file system's root on; a URI and a catalog's name as they are."""
    return root if catalog or is_uri(root) else str(Path(root).absolute())


def in_parallel(calls: Sequence[Callable[[], T]], at_once: int = DEFAULT_WRITERS) -> list[T]:
    """Run writes of different tables, or other independent queries, at the same time; their results, in order.

    Waits for all, then raises the first error, if any. A small query is mostly planning and waiting for files, so
    four at once take little longer than one.
    """
    with ThreadPoolExecutor(max_workers=max(1, min(at_once, len(calls) or 1))) as pool:
        running = [pool.submit(call) for call in calls]
    return [outcome.result() for outcome in running]


def _equals(table: Table, predicate: Mapping[str, str | Sequence[str]]) -> Column:
    unknown = [name for name in predicate if name not in table.column_names]
    if unknown or not predicate:
        raise ValueError(
            f"rows of {table.full_name} can't be chosen by {unknown or 'nothing'}; columns: {table.column_names}"
        )
    return all_of(predicate).column()


def _is_longer(days: int, stored: str | None) -> bool:
    """Whether so many days are longer than what is stored; a time of another form is a user's."""
    ours = None if stored is None else _OUR_DAYS.fullmatch(stored)
    return stored is None or (ours is not None and int(ours[1]) < days)


def _newest_commit(log: Path) -> int | None:
    commits = [int(path.stem) for path in log.glob("*.json") if path.stem.isdigit()] if log.is_dir() else []
    return max(commits, default=None)


def _collected(rows: DataFrame, table: Table, columns: Sequence[str]) -> pl.DataFrame:
    wanted = fields_of(table, columns)
    found = rows.select(*[field.name for field in wanted])
    return from_arrow(found.toArrow(), columns_of(wanted))


def _met(where: Where) -> Column:
    return all_of(where).column() if where else F.lit(True)
