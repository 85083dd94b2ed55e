"""What Spark brings to a pass over a cluster, kept there in memory while it is little, else in a file of the worker's own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from tempfile import SpooledTemporaryFile
from threading import Lock
from types import TracebackType
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from jobs.runtime.workers import WorkerRows
from jobs.sinks.conditions import Where
from schemas.bronze import KRAFT_RECORDS, ZK_TRANSACTIONS, ZK_ZNODES
from schemas.examined import FEED
from schemas.silver import BARRIERS, ZOOKEEPER_WRITES
from schemas.table import Table
from transforms.clusters import CLUSTER
from transforms.units import UnitKind, batches_of, feed_row, packed, packed_records

# Of one task; more goes to the disk that Spark's workers use.
_IN_MEMORY_BYTES = 256 * 1024 * 1024
# One task per cluster, up to this number.
_TASKS = 32
_BARRIERS = ((BARRIERS, UnitKind.BARRIERS),)
_WRITTEN = ((ZK_TRANSACTIONS, UnitKind.TRANSACTIONS), *_BARRIERS, (ZOOKEEPER_WRITES, UnitKind.WRITES))
Pass = Callable[[str, "SpooledFeed"], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Source:
    """The tables of a run, present or past, that its clusters' passes are fed from.

    `rows` gives the run's rows of a table that meet conditions; `walks` are the snapshot_ids of each cluster's trees: the one that is
    compared, and a bracket's second. What is given are rows of `schemas.examined.FEED`.
    """

    spark: SparkSession
    rows: Callable[[Table, Where], WorkerRows]
    walks: Mapping[str, Sequence[str]]

    def clusters(self) -> DataFrame:
        """Marks that a cluster exists, even without other rows."""
        rows = pa.Table.from_batches([feed_row(name, UnitKind.BEGIN, 0, b"") for name in self.walks])
        # Of Arrow's rows, because plain ones pass through a Python worker of another kind, which takes a second to begin.
        return self.spark.createDataFrame(rows, FEED)

    def trees(self) -> list[DataFrame]:
        """Znodes of the walk that is judged, and of a bracket's second one."""
        feeds = []
        for number, kind in enumerate((UnitKind.ZNODES, UnitKind.SECOND_WALK)):
            walks = [mine[number] for mine in self.walks.values() if len(mine) > number]
            if walks:
                znodes = self.rows(ZK_ZNODES, {"snapshot_id": walks})
                feeds.append(znodes.then(packed(kind), FEED).rows)
        return feeds

    def written(self, clusters: Collection[str]) -> list[DataFrame]:
        """The content of these clusters' ZooKeeper transaction logs."""
        return self._of_tables(_WRITTEN, clusters)

    def barriers(self, clusters: Collection[str]) -> list[DataFrame]:
        """Of that, the barriers alone."""
        return self._of_tables(_BARRIERS, clusters)

    def _of_tables(self, tables: Sequence[tuple[Table, UnitKind]], clusters: Collection[str]) -> list[DataFrame]:
        if not clusters:
            return []
        mine = {CLUSTER: sorted(clusters)}
        return [self.rows(table, mine).then(packed(kind), FEED).rows for table, kind in tables]

    def logs(self, clusters: Collection[str]) -> list[DataFrame]:
        """The records of these clusters' logs."""
        return of_logs(self.rows(KRAFT_RECORDS, {CLUSTER: sorted(clusters)})) if clusters else []


def of_logs(records: WorkerRows) -> list[DataFrame]:
    """Rows of bronze kraft_records as rows of FEED."""
    return [records.then(packed_records, FEED).rows]


def gathered(feeds: Iterable[DataFrame], clusters: int) -> DataFrame:
    """The input of the passes over this number of `clusters`: all rows of a cluster in one task, in any order.

    Each pass puts them in order where it spools them: sorted by Spark they would be in Java's memory, all of a large cluster's at a time.
    """
    tasks = max(1, min(clusters, _TASKS))
    return reduce(DataFrame.unionAll, feeds).repartition(tasks, CLUSTER)


class Spool:
    """Payloads of one task's clusters: rows of `schemas.examined.FEED` in any order."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._file = SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115 - closed with the spool
        self._reading = Lock()
        self._pieces: dict[str, dict[int, list[_Piece]]] = {}
        position = 0
        for batch in batches:
            columns = (batch[name].to_pylist() for name in (CLUSTER, "kind", "place"))
            # A payload stays where Arrow has it until it is written.
            for (cluster, kind, place), payload in zip(zip(*columns, strict=True), batch["payload"], strict=True):
                written = self._file.write(payload.as_buffer())
                of_cluster = self._pieces.setdefault(cluster, {})
                of_cluster.setdefault(kind, []).append(_Piece(place, position, written))
                position += written

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    @property
    def clusters(self) -> list[str]:
        """The clusters that have rows, by name."""
        return sorted(self._pieces)

    def feed(self, cluster: str) -> SpooledFeed:
        """What a cluster's pass is fed."""
        return SpooledFeed(self, {kind: sorted(pieces) for kind, pieces in self._pieces[cluster].items()})

    def payload(self, piece: _Piece) -> bytes:
        """The bytes of a piece. Several threads of a pass may read at the same time."""
        with self._reading:
            self._file.seek(piece.position)
            return self._file.read(piece.size)


class _Piece(NamedTuple):
    """Where a payload comes among those of its kind, and where it is in the spool: pieces of one place keep the order they came in."""

    place: int
    position: int
    size: int


@dataclass(frozen=True)
class SpooledFeed:
    """The payloads of one cluster by kind, to be read again: what seems lost is looked for in the whole log a second time."""

    spool: Spool
    pieces: Mapping[int, Sequence[_Piece]]

    def batches(self, kind: int) -> Iterator[pa.RecordBatch]:
        """The rows of a kind, in order."""
        for piece in self.pieces.get(kind, ()):
            yield from batches_of(self.spool.payload(piece))

    def bytes_of(self, kind: int) -> bytes | None:
        """The bytes that an earlier run has kept; None without any."""
        return b"".join(map(self.spool.payload, self.pieces[kind])) if kind in self.pieces else None


def each_cluster(examine: Pass) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What runs a pass for each cluster of the rows of a task, by their names, for `DataFrame.mapInArrow`."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Spool(batches) as spool:
            for cluster in spool.clusters:
                yield from examine(cluster, spool.feed(cluster))

    return run
