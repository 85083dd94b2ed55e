"""Rows of tables on their way to the one pass over a cluster and back: as Arrow streams, which Java carries without a look.

Bronze's rows come in any order, of all clusters of a run. What is packed here is cut so that, put in the order of
(kind, place), each cluster's pass reads its metadata log from the beginning to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from schemas.examined import FEED
from transforms.clusters import CLUSTER

FEED_SCHEMA: pa.Schema = to_arrow_schema(FEED)
Batches = Iterable[pa.RecordBatch]


class UnitKind(IntEnum):
    """The input of a pass over a cluster, in its order: the log comes last, one batch at a time."""

    # Marks that the cluster exists: one without any readable input is examined, too.
    BEGIN = 0
    # The data that an earlier run kept: the state of the log, its memory, and the rows that its chain has stored.
    FOLD = 1
    MEMORY = 2
    INDEX = 3
    ZNODES = 4
    SECOND_WALK = 5
    TRANSACTIONS = 6
    BARRIERS = 7
    WRITES = 8
    # Records of Kafka's checkpoints, then bytes of the log that are not a record, then its records.
    CHECKPOINTS = 9
    DAMAGE = 10
    LOG = 11


def stream(rows: pa.RecordBatch | pa.Table) -> bytes:
    """Rows as the bytes of one Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write(rows)
    return bytes(sink.getvalue())


def batches_of(payload: bytes | pa.Buffer) -> Iterator[pa.RecordBatch]:
    """The batches of a stream."""
    with pa.ipc.open_stream(payload) as reader:
        yield from reader


def packed(kind: int, *, with_runs: bool = False) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """What packs the rows of a table (with `cluster`), for `DataFrame.mapInArrow(packed(kind), FEED)`.

    A pass that is fed something else than a run's has numbers of its own instead of `UnitKind`; `with_runs`, for rows of several
    runs, keeps their `run_id`.
    """

    def pack(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for cluster, rows in by_cluster(batch, with_runs=with_runs):
                yield feed_row(cluster, kind, 0, stream(rows))

    return pack


def packed_records(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Pack rows of bronze kraft_records by their offsets: in the log, and in the file of a checkpoint."""
    for batch in batches:
        for cluster, rows in by_cluster(batch):
            for kind, place, piece in _pieces(rows):
                yield feed_row(cluster, kind, place, stream(piece))


def _pieces(rows: pa.RecordBatch) -> Iterator[tuple[UnitKind, int, pa.RecordBatch]]:
    damaged = pc.is_valid(rows["problem"])
    of_checkpoint = pc.and_(pc.invert(damaged), pc.is_valid(rows["checkpoint_offset"]))
    damage, checkpoints = rows.filter(damaged), rows.filter(of_checkpoint)
    log = rows.filter(pc.invert(pc.or_(damaged, of_checkpoint)))
    if damage.num_rows:
        yield UnitKind.DAMAGE, 0, damage
    # In a checkpoint offsets count its records from 0; records of one batch share their place in the file.
    for piece in _runs(checkpoints, "checkpoint_offset"):
        yield UnitKind.CHECKPOINTS, piece["offset"][0].as_py(), piece
    for piece in _runs(log):
        yield UnitKind.LOG, piece["offset"][0].as_py(), piece


def _runs(rows: pa.RecordBatch, *same: str) -> Iterator[pa.RecordBatch]:
    """Cut where an offset is not the one that follows, or another column's value (`same`) is another: another part begins there."""
    if not rows.num_rows:
        return
    cuts = np.diff(rows["offset"].to_numpy()) != 1
    for column in same:
        cuts |= np.diff(rows[column].to_numpy()) != 0
    ends = [*(np.flatnonzero(cuts) + 1).tolist(), rows.num_rows]
    begin = 0
    for end in ends:
        yield rows.slice(begin, end - begin)
        begin = end


def by_cluster(batch: pa.RecordBatch, *, with_runs: bool = False) -> Iterator[tuple[str, pa.RecordBatch]]:
    """A batch cut by its clusters, without the column of the cluster, and without that of the run unless `with_runs`."""
    dropped = (CLUSTER,) if with_runs else (CLUSTER, "run_id")
    rest = batch.drop_columns([name for name in dropped if name in batch.schema.names])
    names = pc.unique(batch[CLUSTER]).to_pylist()
    for name in names:
        yield name, rest if len(names) == 1 else rest.filter(pc.equal(batch[CLUSTER], name))


def feed_row(cluster: str, kind: int, place: int, payload: bytes | pa.Buffer) -> pa.RecordBatch:
    """One row of FEED."""
    if isinstance(payload, pa.Buffer):
        payload = payload.to_pybytes()
    return pa.RecordBatch.from_pylist(
        [dict(zip(FEED_SCHEMA.names, (cluster, kind, place, payload), strict=True))], FEED_SCHEMA
    )


class Feed(Protocol):
    """The input of one cluster's pass: the rows of each kind, as often as they are requested."""

    def batches(self, kind: UnitKind) -> Iterator[pa.RecordBatch]:
        """The rows of a kind, in order."""

    def bytes_of(self, kind: UnitKind) -> bytes | None:
        """The bytes that an earlier run has kept; None without any."""
