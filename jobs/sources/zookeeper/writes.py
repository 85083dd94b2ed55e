"""ZooKeeper's transaction logs as Arrow batches: every operation, the barriers, the writes by kind.

Made for one Spark worker each (`mapInArrow`): the logs pass through the worker, never through the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from jobs.sources.zookeeper.folder import DataFolder
from schemas.bronze import RUN_COLUMNS, ZK_TRANSACTIONS
from schemas.zookeeper.writes import BARRIER_COLUMNS, WRITE_COLUMNS
from transforms.kraft.quorum import LogCopy
from transforms.kraft.release import FIRST_MIGRATING_LEVEL
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.storage.chroot import needed_part
from transforms.zookeeper.storage.limits import groups
from transforms.zookeeper.storage.transactions import ZkTransaction
from transforms.zookeeper.storage.writes import Barrier, ClassifiedTransaction, WriteCensus, transaction_batch

BATCH_ROWS = 10_000
# While KRaft owns ZooKeeper these are the writes somebody should look at.
SUSPICIOUS: frozenset[str] = frozenset({"foreign", "envelope_failed", "fenced", "rollback", "claim"})
OPERATION, BARRIER, WRITE = "operation", "barrier", "write"
# One of the three is there in each row; all of them, without a zxid, where the logs could not be read (`unread_logs`).
TRANSACTION_LOG = StructType(
    [
        StructField(OPERATION, StructType(list(ZK_TRANSACTIONS.columns[len(RUN_COLUMNS) :]))),
        StructField(BARRIER, StructType(list(BARRIER_COLUMNS))),
        StructField(WRITE, StructType(list(WRITE_COLUMNS))),
    ]
)
_TRANSACTION_LOG: pa.Schema = to_arrow_schema(TRANSACTION_LOG)


@dataclass(frozen=True)
class FolderWrites:
    """What a data folder's logs show about the migration."""

    census: WriteCensus
    writes: list[ClassifiedTransaction]


def read_writes(folder: DataFolder, redactor: Redactor) -> Iterator[pa.RecordBatch]:
    """Yield the logs as rows of TRANSACTION_LOG: every operation, then the barriers and the writes that matter, oldest first.

    Where transactions are missing or can't be read, a row of the writes says so.
    """
    transactions = (part for part in map(needed_part, folder.transactions()) if part is not None)
    for part in groups(transactions, BATCH_ROWS, _bytes):
        yield _rows(OPERATION, transaction_batch(part, redactor))
    judged = judge(folder, elections=True)
    yield _rows(BARRIER, judged.census.barrier_batch())
    yield _rows(WRITE, judged.census.write_batch(judged.writes))


def unread_logs(why: str) -> pa.RecordBatch:
    """A row for each table in the place of what could not be read: it has no zxid, and its type says why."""
    row = {OPERATION: {"type": why}, BARRIER: {}, WRITE: {"type": why}}
    return pa.RecordBatch.from_pylist([row], schema=_TRANSACTION_LOG)


def _bytes(transaction: ZkTransaction) -> int:
    return sum(len(operation.path) + len(operation.data or b"") + 100 for operation in transaction.operations)


def judge(folder: DataFolder, kinds: frozenset[str] = SUSPICIOUS, *, elections: bool = False) -> FolderWrites:
    """Find the barriers, and the writes of some kinds; with `elections` all that set `/controller_epoch`, too."""
    census = WriteCensus()
    writes = [
        write
        for write in census.read(folder.history())
        if write.kind in kinds or (elections and write.controller_epoch is not None)
    ]
    return FolderWrites(census, writes)


def last_barrier(folder: DataFolder, leading: LogCopy) -> int | None:
    """zxid of the newest barrier that the metadata log `leading` reaches, while a KRaft controller owns ZooKeeper.

    There both sides are exact (S§5.5), and the two copies need not have been taken at the same moment. None when there
    is none: the tree is then taken at the end of the logs. A barrier before a hole in them is none: newer ones may be in it. Nor is the
    load's, once 3.4 has mirrored changes after it: that release never writes another one (S§4.4).
    """
    judged = judge(folder, frozenset({"claim", "rollback"}))
    census = judged.census
    changes = [write.kind for write in judged.writes if write.zxid >= census.unbroken_from]
    # A claim that is in a hole is not there: what follows shows it.
    if not (changes[-1] == "claim" if changes else census.holes and census.kraft_owns):
        return None
    known = [barrier for barrier in census.barriers if barrier.zxid >= census.unbroken_from]
    reached = [barrier for barrier in known if barrier.kraft_metadata_offset < leading.end]
    newest = max(reached, key=lambda barrier: barrier.zxid, default=None)
    of_3_4 = leading.bootstrap_level in (None, FIRST_MIGRATING_LEVEL)
    if newest and of_3_4 and newest.zxid == census.loaded_zxid and census.mirrored_zxid > newest.zxid:
        return None
    return newest.zxid if newest and _same_epoch(newest, leading) and folder.is_exact_at(newest.zxid) else None


def _same_epoch(barrier: Barrier, leading: LogCopy) -> bool:
    return leading.epoch_at(barrier.kraft_metadata_offset) == barrier.kraft_metadata_epoch


def _rows(kind: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    structs = pa.StructArray.from_arrays(batch.columns, fields=list(_TRANSACTION_LOG.field(kind).type))
    arrays = [structs if field.name == kind else pa.nulls(batch.num_rows, field.type) for field in _TRANSACTION_LOG]
    return pa.RecordBatch.from_arrays(arrays, schema=_TRANSACTION_LOG)
