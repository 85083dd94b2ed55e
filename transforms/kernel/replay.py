"""One pass over a shard of a cluster's log: state, history, findings, and the state that a later pass resumes.

Pure: it takes batches of decoded records in log order and returns Arrow tables, one after the other, so that at most
one batch of the history is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from schemas.kraft.records import PARTITION, TOPIC
from transforms.kernel.checkpoint import differences
from transforms.kernel.fold import Fold
from transforms.kernel.kept import from_bytes, to_bytes
from transforms.kernel.layout import Longs
from transforms.kernel.records import Batch
from transforms.kernel.shards import WHOLE, Shard
from transforms.kernel.versions import Versions
from transforms.kraft.decode.rows import RECORD_SCHEMA
from transforms.kraft.replay.extent import Extent

KEPT: pa.Schema = pa.schema([("kept", pa.large_binary())])


class TableKind(StrEnum):
    """What a table that comes out is."""

    # Changes of partitions: gold isr_history without the run's columns, in the order of the log.
    HISTORY = "history"
    # State below an offset: silver's rows of an entity (`Told.entity`), without the run's columns.
    STATE = "state"
    # Versions of compared rows from an offset on, and what was removed: `transforms.kernel.versions.VERSIONS`.
    VERSIONS = "versions"
    # What breaks a rule of replay, and rows that differ from Kafka's checkpoint: silver findings without the run's columns.
    FINDINGS = "findings"
    DIFFERENCES = "differences"
    # One row with the bytes that a later pass continues from.
    KEPT = "kept"


class MadeTable(NamedTuple):
    """A table that comes out: what it is, below which offset it is so (exclusive), of which entity, and its rows."""

    kind: TableKind
    offset: int
    entity: str
    rows: pa.Table | pa.RecordBatch


@dataclass(frozen=True)
class DecodedCheckpoint:
    """A checkpoint of Kafka's: its metadata.version, whether ELR is on, and its records, decoded (`decode_checkpoint`)."""

    level: int | None
    elr: bool
    records: Callable[[], Iterable[pa.RecordBatch]]


@dataclass(frozen=True)
class Plan:
    """The task of a replay.

    `extent` is the part of the log that takes effect; its base is one of the `checkpoints` (by offset, exclusive). All others
    between its start and its end are compared with the state there. The state is returned at each of `states_at` (None: at the end),
    and kept at `keep_at`, which are exclusive ends, too: before a transaction that is open there. Versions of compared rows are
    returned from `versions_from` on (inclusive), if given; with `every_row`, also of rows that no record changes. `committed` is the
    committed end (exclusive), up to which the history is returned if the extent goes further. `snapshot` is the first offset
    (inclusive) that some node replays when it starts.
    """

    cluster: str
    extent: Extent
    shard: Shard = WHOLE
    states_at: Sequence[int] | None = None
    keep_at: int | None = None
    versions_from: int | None = None
    every_row: bool = False
    committed: int | None = None
    checkpoints: Mapping[int, DecodedCheckpoint] = field(default_factory=dict)
    snapshot: int | None = None


def replay(plan: Plan, log: Iterable[pa.RecordBatch], kept: bytes | None = None) -> Iterator[MadeTable]:
    """Replay a shard: `log` are the decoded records (bronze's columns) of the log, without its checkpoints, in its order.

    `kept` are the bytes of an earlier pass over the same shard: below their offset, only they are read.
    Raises `transforms.kernel.kept.NotContinuedError` where they can't be continued, and ValueError for records that are not in order.
    """
    return _Pass(plan, kept).tables(log)


def warm_up() -> None:
    """Compile what is compiled, and leave the machine code in numba's cache on disk, so that no run has to."""
    rows = _some_log()
    end = rows.num_rows
    [kept] = [made.rows for made in replay(Plan("", Extent(end), keep_at=end), [rows]) if made.kind == TableKind.KEPT]
    checkpoints = {end + 1: DecodedCheckpoint(None, True, lambda: [rows])}
    for _ in replay(Plan("", Extent(end + 1), checkpoints=checkpoints), [], kept["kept"][0].as_py()):
        pass


def _some_log() -> pa.RecordBatch:
    """A topic and as many partitions as make everything grow once."""
    common = dict.fromkeys(RECORD_SCHEMA.names) | {"epoch": 0, "append_time": 0, "control": False}
    rows = [{**common, "offset": 0, "type": TOPIC.name, "data": '{"name": "", "topicId": ""}'}]
    made = {**common, "type": PARTITION.name, "topic_id": "", "replicas": [0], "directories": [""]}
    rows += [{**made, "offset": 1 + number, "partition_id": number} for number in range(1000)]
    return pa.RecordBatch.from_pylist(rows, RECORD_SCHEMA)


class _Pass:
    def __init__(self, plan: Plan, kept: bytes | None) -> None:
        self.plan = plan
        self.kept = kept
        extent = plan.extent
        if kept is None:
            self.fold, self.start = Fold(plan.cluster, plan.shard), max(extent.start, extent.base or 0)
        else:
            self.fold, self.start = from_bytes(kept, plan.cluster, plan.shard)
        self.last = self.start - 1
        self.committed = extent.end if plan.committed is None else plan.committed
        self.states_at = frozenset((extent.end,) if plan.states_at is None else plan.states_at)
        between = [offset for offset in plan.checkpoints if self.start < offset <= extent.end and offset != extent.base]
        marks = (plan.keep_at, self.versions_from, self.committed)
        asked = {*self.states_at, *between, *[offset for offset in marks if offset is not None]}
        self.stops = sorted(offset for offset in asked if self.start <= offset < extent.end)
        self.compared = frozenset(between)

    @property
    def versions_from(self) -> int | None:
        """The first offset with versions: not before the first one that is read."""
        asked = self.plan.versions_from
        return None if asked is None else max(asked, self.start)

    def tables(self, log: Iterable[pa.RecordBatch]) -> Iterator[MadeTable]:
        """All tables that come out."""
        base = self.plan.extent.base
        if self.kept is None and base is not None:
            _read_checkpoint(self.fold, self.plan.checkpoints[base], base)
        for rows in log:
            yield from self._read(rows)
        for stop in self.stops:
            yield from self._at(stop)
        yield from self._at(self.plan.extent.end, last=True)

    def _read(self, rows: pa.RecordBatch) -> Iterator[MadeTable]:
        batch = Batch(rows)
        applied = self._applied(batch)
        while len(applied):
            stop = self.stops[0] if self.stops else self.plan.extent.end
            here = int(np.searchsorted(batch.offsets[applied], stop))
            if here:
                yield from self._history(batch, applied[:here], stop)
            applied = applied[here:]
            if len(applied):
                yield from self._at(self.stops.pop(0))

    def _history(self, batch: Batch, rows: Longs, stop: int) -> Iterator[MadeTable]:
        """Apply some rows, all of them on one side of the committed end."""
        is_committed = stop <= self.committed
        wanted = is_committed or self.fold.versions is not None
        for changes in self.fold.read(batch, rows, self.start, stop if wanted else self.start):
            if is_committed:
                yield MadeTable(TableKind.HISTORY, stop, "isr_history", changes)

    def _applied(self, batch: Batch) -> Longs:
        """Rows of the good records that take effect (`transforms.kraft.replay.extent.Extent`)."""
        offsets = batch.offsets
        good = batch.good & (offsets >= self.start) & (offsets < self.plan.extent.end)
        for begin, last in self.plan.extent.discarded:
            good &= (offsets < begin) | (offsets > (offsets if last is None else last))
        rows = np.flatnonzero(good)
        steps = np.diff(offsets[rows], prepend=self.last)
        if (steps <= 0).any():
            place = int(np.argmax(steps <= 0))
            raise ValueError(
                f"offset {offsets[rows[place]]} of the log comes after offset {offsets[rows[place]] - steps[place]}"
            )
        if len(rows):
            self.last = int(offsets[rows[-1]])
        return rows

    def _at(self, offset: int, *, last: bool = False) -> Iterator[MadeTable]:
        """The tables that are due at an offset; `last` adds those of the end. Versions are recorded from their offset on."""
        plan = self.plan
        if offset in self.compared:
            checkpoint = plan.checkpoints[offset]
            theirs = _read_checkpoint(Fold(plan.cluster, plan.shard), checkpoint, offset)
            rows = differences(self.fold, theirs, offset, checkpoint.level, elr=checkpoint.elr)
            yield MadeTable(TableKind.DIFFERENCES, offset, "findings", rows)
        if offset == plan.keep_at:
            yield MadeTable(TableKind.KEPT, offset, "", pa.table([[to_bytes(self.fold, offset)]], KEPT))
        if offset in self.states_at:
            for entity, rows in self.fold.tables().items():
                yield MadeTable(TableKind.STATE, offset, entity, rows)
        if offset == self.versions_from and plan.versions_from is not None:
            self.fold.record(Versions(plan.versions_from, plan.every_row))
        if last:
            yield MadeTable(TableKind.FINDINGS, offset, "findings", self.fold.findings(plan.snapshot, self.committed))
            if plan.versions_from is not None:
                # In the newest of Polars' forms nothing is copied.
                rows = self.fold.row_versions().to_arrow(compat_level=pl.CompatLevel.newest())
                yield MadeTable(TableKind.VERSIONS, offset, "", rows)


def _read_checkpoint(fold: Fold, checkpoint: DecodedCheckpoint, offset: int) -> Fold:
    """Read a checkpoint's records, which stand just before its end: before all that is in the log."""
    for rows in checkpoint.records():
        batch = Batch(rows, np.full(rows.num_rows, offset - 1))
        for _ in fold.read(batch, np.flatnonzero(batch.good), offset, offset):
            raise AssertionError("records of a checkpoint are where a history begins, and no changes")
    return fold
