"""Files of a table: small ones are merged, old ones that no version needs are removed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from jobs.sinks.delta import TableSize, Warehouse
from jobs.steps.maintenance.upkeep import Tended, Upkeep
from schemas.table import Table

# A table with fewer files is read as fast as a compacted one.
_FEWEST_FILES = 8
# Files of this size are left as they are, so that a day's rows are not written again every day.
_LARGE_FILE_BYTES = 32 << 20
# Delta refuses to keep its log for less than its own week of removed files.
_LEAST_LOG_DAYS = 8
_LEAST_VACUUM_HOURS = 168
_HOUR = timedelta(hours=1)


def tend_files(warehouse: Warehouse, upkeep: Upkeep, table: Table, made: Tended, vacuum: int) -> None:
    """Merge the table's small files, and remove files that nothing of the last `vacuum` hours needs; with `dry_run` only count them."""
    before = warehouse.size(table)
    made.files = made.files_after = before.files
    if upkeep.dry_run:
        # Rows are not of one size, and their bytes go only when no version of the last days needs them.
        made.about_row_bytes = before.bytes * made.rows // max(made.of_rows, 1)
        _look_at_files(warehouse, table, made, vacuum)
        return
    if warehouse.folder is not None:
        # Under the table's lock: elsewhere a change of a table's properties makes other runs' commits fail.
        warehouse.keep_log(table, max(_LEAST_LOG_DAYS, math.ceil(vacuum / 24) + 1))
    if before.files > _FEWEST_FILES:
        warehouse.compact(table, _LARGE_FILE_BYTES)
        made.files_after = warehouse.size(table).files
    folder = _folder(warehouse, table)
    disk = None if folder is None else _on_disk(folder)
    if folder is not None and not _anything_old(folder, vacuum):
        return
    warehouse.vacuum(table, vacuum)
    made.removed_files = made.removed_bytes = None
    if folder is not None and disk is not None:
        left = _on_disk(folder)
        made.removed_files, made.removed_bytes = disk.files - left.files, disk.bytes - left.bytes


def _look_at_files(warehouse: Warehouse, table: Table, made: Tended, vacuum: int) -> None:
    if made.files > _FEWEST_FILES:
        made.files_after = 1
    folder = _folder(warehouse, table)
    if folder is not None and not _anything_old(folder, vacuum):
        return
    paths = warehouse.vacuum(table, vacuum, dry_run=True)
    made.removed_files, made.removed_bytes = len(paths), None
    if folder is not None:
        made.removed_bytes = sum(bytes_of(Path(path.removeprefix("file:"))) for path in paths)


def _folder(warehouse: Warehouse, table: Table) -> Path | None:
    return None if warehouse.folder is None else warehouse.folder / table.layer.value / table.name


def _on_disk(folder: Path) -> TableSize:
    """Data files that lie in a table's folder, whether or not the table needs them."""
    found = [*_data_files(folder)]
    return TableSize(len(found), sum(each.st_size for each in found))


def _anything_old(folder: Path, hours: int) -> bool:
    """Whether any data file is so old that VACUUM could remove it."""
    before = (datetime.now(UTC) - timedelta(hours=hours)).timestamp()
    return any(each.st_mtime <= before for each in _data_files(folder))


def _data_files(folder: Path) -> Iterator[os.stat_result]:
    for path in folder.rglob("*.parquet"):
        if "_delta_log" in path.parts:
            continue
        # An audit removes files of its attempts meanwhile.
        with suppress(FileNotFoundError):
            yield path.stat()


def bytes_of(path: Path) -> int:
    """Its size; 0 if it is gone or can't be asked for."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def hours_to_keep(upkeep: Upkeep, begun: Sequence[datetime]) -> int:
    """How many hours back files stay that were written or let go then: as configured, and since before any run in
    progress began."""
    now = datetime.now(UTC)
    since = min([upkeep.now - timedelta(hours=upkeep.vacuum_hours), *[each - _HOUR for each in begun]])
    return max(0, math.ceil((now - since) / _HOUR))


@contextmanager
def delta_settings(spark: SparkSession, upkeep: Upkeep) -> Iterator[None]:
    """Settings of Delta while the block runs. A session that does not allow it keeps its own."""
    wanted = {"spark.databricks.delta.optimize.minFileSize": str(_LARGE_FILE_BYTES)}
    if upkeep.vacuum_hours < _LEAST_VACUUM_HOURS or upkeep.now > datetime.now(UTC):
        wanted["spark.databricks.delta.retentionDurationCheck.enabled"] = "false"
    before: dict[str, str | None] = {}
    for name, value in wanted.items():
        with suppress(PySparkException):
            before[name] = spark.conf.get(name, None)
            spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            with suppress(PySparkException):
                spark.conf.unset(name) if earlier is None else spark.conf.set(name, earlier)
