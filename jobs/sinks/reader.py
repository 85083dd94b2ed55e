"""Tables for reading commands: one interface for the same rows, read with Spark or, in a folder or on a storage of delta-rs, without.

`jobs.sinks.delta.Warehouse` reads with Spark, which a catalog needs. `Folder` reads the Delta tables of a folder directly, in
a tenth of the time that Spark takes to start.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

import polars as pl
from pyspark.sql.types import StructField, TimestampType

from jobs.exit import GONE
from jobs.sinks.conditions import Equal, Where
from jobs.sinks.storage import WarehouseError, folder_of
from schemas.gold import RUNS
from schemas.table import Table
from transforms.chain.chain import newest_rows
from transforms.clusters import CLUSTER
from transforms.frames import columns_of, shaped

if TYPE_CHECKING:
    from deltalake import DeltaTable

# The columns that order a cluster's runs, the newest first (`transforms.runs.newest_first`).
ORDER = ("sequence", "started_at", "finished_at", "run_id")
# delta-rs' messages for a protocol or a feature of Delta that it does not support.
_NEWER = ("unsupported", "not support", "invalid protocol")
_OF_S3 = re.compile(r"<Message>([^<]{1,300})</Message>")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_EPOCH = datetime.fromtimestamp(0, UTC)
# Columns that an earlier release wrote: any other one that is not declared is a later release's.
_RETIRED = {"gold.run_steps": {"few_rows"}}


class Reader(Protocol):
    """All tables of one installation, to be looked at."""

    @property
    def root(self) -> str:
        """The folder, the address or the catalog's schema of the tables."""

    @property
    def catalog(self) -> bool:
        """Whether the tables are in a catalog."""

    def rows(
        self,
        table: Table,
        columns: Sequence[str] = (),
        where: Where | None = None,
        version: int | None = None,
        most: int | None = None,
        chain: Sequence[str] = (),
    ) -> pl.DataFrame:
        """Rows of a table that meet the conditions, now or as of an earlier version, not more than `most`.

        All columns unless some are named. With a `chain` of runs, the base's first, they are rows of the state of the one cluster of the
        conditions that these runs make up, in a chained table (`transforms.chain`).

        Types are those of the declaration. No rows when the table does not exist yet, null for what an older release's lacks.
        Raises WarehouseError when it can't be read or its old version is gone.
        """

    def counts(self, table: Table, where: Where, version: int | None = None) -> dict[tuple[str, str], int]:
        """How many rows a table has that meet the conditions, by cluster and run. Raises WarehouseError as `rows`."""

    def newest_runs(
        self, columns: Sequence[str], most: int | None, where: Where | None = None, also: Collection[str] = ()
    ) -> pl.DataFrame:
        """Rows of gold `runs`: of each cluster the newest `most` (None: all), and the runs `also` named, however old they are."""


@dataclass(frozen=True)
class Folder:
    """The tables of a warehouse in the folder `root`, on this machine or at an address that delta-rs supports, read without Spark."""

    root: str
    catalog: bool = False

    def rows(
        self,
        table: Table,
        columns: Sequence[str] = (),
        where: Where | None = None,
        version: int | None = None,
        most: int | None = None,
        chain: Sequence[str] = (),
    ) -> pl.DataFrame:
        """As `Reader.rows`."""
        wanted = fields_of(table, columns)
        conditions = where or {}
        of_chain = ("run_id", "row_key", "gone") if chain else ()
        needed = columns_of(fields_of(table, [*(field.name for field in wanted), *conditions, *of_chain]))
        with _said_of(table, version):
            # A chain's rows are selected by cluster only: which row of a key is the newest is not known before they are read.
            chosen = {CLUSTER: conditions[CLUSTER]} if chain else conditions
            stored = self._stored(table, version, needed, chosen)
            if stored is None:
                return pl.DataFrame(schema=columns_of(wanted))
            there = stored.collect_schema()
            found = stored.select(
                (pl.col(name) if name in there else pl.lit(None)).cast(kind).alias(name)
                for name, kind in needed.items()
            )
            if chain:
                # Of a row that has gone there is no more than its cluster and key.
                found = newest_rows(found.filter(_condition(CLUSTER, conditions[CLUSTER])), chain)
            for name, value in conditions.items():
                found = found.filter(_condition(name, value))
            if most is not None:
                found = found.head(most)
            return shaped(found.select(field.name for field in wanted).collect(), columns_of(wanted))

    def counts(self, table: Table, where: Where, version: int | None = None) -> dict[tuple[str, str], int]:
        """As `Reader.counts`."""
        with _said_of(table, version):
            stored = self._stored(table, version, (CLUSTER, "run_id", *where), where)
            if stored is None:
                return {}
            for name, value in where.items():
                stored = stored.filter(_condition(name, value))
            counted = stored.group_by(CLUSTER, "run_id").len().collect()
        return {(cluster, run_id): rows for cluster, run_id, rows in counted.iter_rows()}

    def newest_runs(
        self, columns: Sequence[str], most: int | None, where: Where | None = None, also: Collection[str] = ()
    ) -> pl.DataFrame:
        """As `Reader.newest_runs`: it reads the few columns that identify those runs first, so that many runs cost little."""
        if most is None:
            return self.rows(RUNS, columns, where)
        keys = self.rows(RUNS, (CLUSTER, *ORDER), where)
        ordered = keys.sort(ORDER, descending=True, nulls_last=[True, False, False, False])
        named = pl.col("run_id").is_in(sorted(also))
        wanted = ordered.filter((pl.int_range(pl.len()).over(CLUSTER) < most) | named)
        some = {} if wanted.height == keys.height else {"run_id": wanted["run_id"].unique().sort().to_list()}
        found = self.rows(RUNS, list(dict.fromkeys([*columns, CLUSTER, "run_id"])), {**(where or {}), **some})
        # Runs over several clusters share an id.
        return found.join(wanted.select(CLUSTER, "run_id"), on=[CLUSTER, "run_id"], how="semi").select(columns)

    def _stored(self, table: Table, version: int | None, needed: Collection[str], where: Where) -> pl.LazyFrame | None:
        """The table's rows as they are stored, of a store those alone that meet the conditions; None when it does not exist yet.

        Raises WarehouseError where the table has columns of a later release.
        """
        import deltalake  # noqa: PLC0415 - who reads with Spark does without

        folder = folder_of(self.root)
        place = f"{self.root.rstrip('/') if folder is None else folder}/{table.layer.value}/{table.name}"
        try:
            opened = deltalake.DeltaTable(place, version=version)
        except deltalake.exceptions.TableNotFoundError:
            if folder is not None:
                refuse_unreadable(table, Path(place))
            # A first write that did not end leaves files and no commit: nothing of it counts.
            if version is None:
                return None
            raise
        refuse_later_columns(table, _names(opened))
        if folder is None:
            return _from_a_store(opened, needed, where)
        _refuse_damaged(table, Path(place), opened)
        return pl.scan_delta(opened)

    def problem(self) -> str | None:
        """Why the storage cannot be read from here; None if it can. A folder of this machine is not checked."""
        if folder_of(self.root) is not None:
            return None
        try:
            self.rows(RUNS, ["run_id"], most=1)
        except WarehouseError as error:
            return str(error)
        return None


def _from_a_store(opened: DeltaTable, needed: Collection[str], where: Where) -> pl.LazyFrame:
    """The needed columns of the rows that meet the conditions, as delta-rs reads them itself.

    Polars has no way to HDFS, and looks for credentials elsewhere. pyarrow reads ahead through Python's file objects: a process that
    ends meanwhile dies of it ("terminate called without an active exception").
    """
    import deltalake  # noqa: PLC0415 - who reads with Spark does without

    there = _names(opened)
    # A table of an older release may lack some or all of the requested columns.
    names = [name for name in there if name in needed] or there[:1]
    conditions = [Equal(name, value).sql() for name, value in where.items() if name in there]
    columns = ", ".join(f'"{name}"' for name in names)
    query = f"select {columns} from stored"  # noqa: S608 - names are declared, values quoted
    query += f" where {' and '.join(conditions)}" if conditions else ""
    found = deltalake.QueryBuilder().register("stored", opened).execute(query)
    return pl.DataFrame(found.read_all()).lazy()


@contextmanager
def _said_of(table: Table, version: int | None) -> Iterator[None]:
    """Why a table cannot be read, in the words of `jobs.sinks.delta`."""
    from deltalake.exceptions import DeltaError, TableNotFoundError  # noqa: PLC0415 - who reads with Spark does without

    try:
        yield
    except FileNotFoundError as error:
        raise WarehouseError(GONE) from error
    except TableNotFoundError as error:
        raise WarehouseError(f"table {table.full_name} can't be read: there is none") from error
    except DeltaError as error:
        if any(words in str(error).lower() for words in _NEWER):
            raise WarehouseError(newer_table(table)) from error
        if version is not None:
            raise WarehouseError(gone_version(table, version)) from error
        raise WarehouseError(f"table {table.full_name} can't be read: {first_line(error)}") from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise WarehouseError(f"table {table.full_name} can't be read: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """An error's text in one line. In a chain of causes, one per line, the last one is the actual cause."""
    message = _OF_S3.search(str(error))
    if message is not None:
        return message[1]
    last = str(error).strip().rpartition("↳")[2] if "↳" in str(error) else ""
    return _COLOURS.sub("", last).strip() or first_line(error)


def _refuse_damaged(table: Table, place: Path, opened: DeltaTable) -> None:
    """Raise WarehouseError for a file that is shorter than it was written: a power cut can leave one."""
    files = opened.get_add_actions()
    for name, size in zip(files["path"].to_pylist(), files["size_bytes"].to_pylist(), strict=True):
        file = place / unquote(name)
        # A missing file may be one that is not needed.
        there = file.stat().st_size if file.exists() else size
        if there != size:
            raise WarehouseError(
                f"table {table.full_name} can't be read: {file} is damaged, it has {there} of {size} bytes"
            )


def refuse_unreadable(table: Table, place: Path) -> None:
    """Raise WarehouseError if this user may not see whether a table is in the folder: delta-rs and Spark take it for one that is not."""
    try:
        os.listdir(place / "_delta_log")
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise WarehouseError(f"table {table.full_name} can't be read: {error.strerror}: {error.filename}") from error


def newer_table(table: Table) -> str:
    """The message for a table that a later release of Delta has created or upgraded."""
    return (
        f"table {table.full_name} can't be read: it has features of Delta that this release does not know; "
        "use a newer kraft-audit"
    )


def refuse_later_columns(table: Table, there: Collection[str]) -> None:
    """Raise WarehouseError if the table has columns that only a later release can have written.

    Their content would be ignored, and the rows would be taken for complete.
    """
    unknown = {*there} - {*table.column_names} - _RETIRED.get(table.full_name, set())
    if unknown:
        names = ", ".join(sorted(unknown)[:3])
        raise WarehouseError(
            f"table {table.full_name} can't be read: it has columns that this release does not know ({names}); "
            "use a newer kraft-audit"
        )


def refuse_later_release(folder: Path) -> None:
    """Raise WarehouseError if the tables of a local folder are a later release's, by the columns of gold `runs`.

    A table that is missing or cannot be opened is reported by its reader.
    """
    import deltalake  # noqa: PLC0415 - who reads with Spark does without

    try:
        runs = deltalake.DeltaTable(str(folder / RUNS.layer.value / RUNS.name))
    except (deltalake.exceptions.DeltaError, OSError):
        return
    refuse_later_columns(RUNS, _names(runs))


def gone_version(table: Table, version: int) -> str:
    """The message for an earlier version of a table that its log no longer has."""
    return (
        f"table {table.full_name} can't be read: its version {version} is gone; look at a newer run, or let "
        "`kraft-audit run --full` read everything again"
    )


def first_line(error: Exception) -> str:
    """The first line of an error's text, bounded."""
    said = str(error).strip()
    return said.splitlines()[0][:300] if said else type(error).__name__


def fields_of(table: Table, names: Collection[str]) -> list[StructField]:
    """The declared columns with these names, in the names' order; all of them when none is named. Raises KeyError."""
    by_name = {field.name: field for field in table.columns}
    return [by_name[name] for name in dict.fromkeys(names)] if names else [*table.columns]


def records(rows: pl.DataFrame, table: Table) -> Iterator[dict[str, Any]]:
    """Rows of a table as Python has them: a map is a dictionary, a time has the zone UTC."""
    times = [field.name for field in fields_of(table, rows.columns) if isinstance(field.dataType, TimestampType)]
    # As numbers, so that the machine's list of time zones is not needed.
    for row in rows.with_columns(pl.col(name).dt.timestamp("us") for name in times).iter_rows(named=True):
        for name in times:
            row[name] = None if row[name] is None else _EPOCH + timedelta(microseconds=row[name])
        yield row


def oldest_first(runs: pl.DataFrame) -> pl.DataFrame:
    """Rows of gold `runs` with the columns ORDER, the oldest first: as `transforms.runs.oldest_first`."""
    return runs.sort(ORDER, nulls_last=False)


def _condition(name: str, value: Any) -> pl.Expr:
    return pl.sql_expr(Equal(name, value).sql())


def _names(opened: DeltaTable) -> list[str]:
    """Names of the columns that a table has."""
    return [field.name for field in opened.schema().fields]
