"""A cluster's metadata log, read once from its beginning to its end: replayed and examined in one pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from schemas.bronze import KRAFT_RECORDS, QUARANTINE
from schemas.checks import KRAFT
from transforms.ahead import ahead
from transforms.examination.memory import CHANGES, JUDGED_CHANGES, Memory
from transforms.examination.stories import Stories
from transforms.examination.task import ClusterTask, Recorded
from transforms.frames import columns_of, copied, from_arrow, shaped
from transforms.isr.audit import RECENT, recent_of
from transforms.isr.history import HOUR
from transforms.isr.recorded import judged_of, once
from transforms.isr.violations import is_needed
from transforms.kernel.versions import VERSIONS as ROW_VERSIONS
from transforms.kraft.coverage import Counted, shortfall
from transforms.kraft.replayed import (
    FINDINGS,
    NOTHING,
    Keeping,
    Records,
    Replayed,
    replaying,
    versions_of,
    versions_since,
)
from transforms.kraft.side import KraftSide
from transforms.reconcile.judge.kip_tables import ISR_HOURS
from transforms.reconcile.judge.log_look import LogLook
from transforms.units import Feed, UnitKind

_RECORDS: pl.Schema = columns_of(KRAFT_RECORDS.columns, "cluster", "run_id")
_QUARANTINED: pl.Schema = columns_of(QUARANTINE.columns, "cluster", "run_id")
# Faults of records that replay itself skips: each run must see them.
_FAULTS = ("CAP-02", "CAP-12", "DUR-07")


@dataclass(frozen=True)
class LogRead:
    """What a log came to. `tables`, `row_versions` and `findings` are those of `Replayed`; nothing without a log.

    `judged` and `recent` are the partitions' changes that rules look at and that are summed up, with those that an earlier run has
    read, where this one continued from its state. `damage` are rows of bronze quarantine. `recorded` is up to
    where all changes are in gold isr_history once this run has finished; its own ones begin at the offset `changes_since` (inclusive).
    """

    look: LogLook
    tables: Mapping[str, pl.DataFrame]
    row_versions: pl.DataFrame
    findings: pl.DataFrame
    judged: pl.DataFrame
    recent: pl.DataFrame
    damage: pl.DataFrame
    keeping: Keeping | None
    recorded: Recorded | None
    changes_since: int | None

    @property
    def keeping_said(self) -> dict[str, Any] | None:
        """`keeping` without its bytes, as JSON can spell it."""
        if self.keeping is None:
            return None
        said = {name: value for name, value in asdict(self.keeping).items() if name != "state"}
        return {**said, "milestones": [dict(each) for each in self.keeping.milestones]}

    def remembered(self, differences: pl.DataFrame, epochs: pl.DataFrame, stories: Stories) -> Memory:
        """What the next run is compared with."""
        return Memory(
            differences.filter(pl.col("status") != "resolved"),
            epochs,
            self.judged,
            self.recent,
            self.look.registrations,
            self.look.appended,
            stories.told,
            stories.versions,
        )


class Log:
    """Reads a cluster's log. `new_changes` reads it; afterwards `read` gives the results."""

    def __init__(self, task: ClusterTask, feed: Feed, memory: Memory, offsets: Collection[int]) -> None:
        """`offsets` are those whose append times are needed."""
        self.task, self.feed = task, feed
        self.side: KraftSide | None = task.given.side
        until = [task.recorded.until - 1] if task.recorded else []
        now = [self.side.committed.end_exclusive - 1] if self.side else []
        self._look = LogLook.of(
            task.given, task.planned, {*offsets, *until, *now}, memory.registrations, memory.appended
        )
        self._earlier = None if task.earlier is None else Counted(task.earlier)
        self._told_before = memory.stories
        # Handed over by `read`: of a large cluster each copy of them that stays is a tenth of a pass's memory.
        self._judged, self._recent = self._remembered(memory)
        self._replayed: Replayed | None = None
        self._damage: list[pl.DataFrame] = []
        self.stories = Stories()

    @property
    def _resumed(self) -> int | None:
        """The offset below which the feed has nothing of the log, but the state that was kept there."""
        if self.side is None or self.side.kept is None or self.task.whole_from is not None:
            return None
        return self.side.kept.offset

    def knows(self, keys: Collection[tuple[str, str]]) -> bool:
        """Whether `versions_of` these rows are known: from the whole log, or from the memory of earlier runs."""
        return self._resumed is None or self._told_before.reach(keys, self._resumed)

    def new_changes(self) -> Iterator[pa.RecordBatch]:
        """Read the log; gives the changes of partitions that no finished run has recorded."""
        for batch in self.feed.batches(UnitKind.DAMAGE):
            rows = from_arrow(batch, _RECORDS)
            self._look.add(rows)
            self._damage.append(_damage(rows))
        checkpoints = checkpoints_of(self.feed)
        for read in checkpoints.values():
            for batch in read():
                rows = from_arrow(batch, _RECORDS)
                self._look.add(rows)
                self._count_earlier(rows)
        if self.side is None:
            for _ in self._passed():
                pass
            return
        # One batch is looked at, the one before it replayed and the one before that stored at the same time: a fifth of a large cluster's
        # first run (tests/benchmarks/README.md, "Where the time of a large run goes").
        for changes in ahead(self._replaying(self.side, checkpoints)):
            yield from self._new(changes)

    def _replaying(self, side: KraftSide, checkpoints: Mapping[int, Records]) -> Iterator[pa.RecordBatch]:
        given = self.task.given
        self._replayed = yield from replaying(
            given.name,
            side,
            ahead(self._passed()),
            checkpoints,
            (given.compared or {}).get("kraft_metadata_offset"),
            self._kept_bytes() if side.kept is not None else None,
            self.task.keep_every,
        )

    def _passed(self) -> Iterator[pa.RecordBatch]:
        """The log's records, each looked at as it passes; records of earlier runs were looked at by those runs."""
        first = 0 if self.side is None or self.side.kept is None else self.side.kept.offset - 1
        for batch in self.feed.batches(UnitKind.LOG):
            mine = batch if self.task.whole_from is None else batch.filter(pc.greater_equal(batch["offset"], first))
            if mine.num_rows:
                self._look.add(from_arrow(mine, _RECORDS))
            if self._earlier is not None:
                self._count_earlier(from_arrow(batch.filter(pc.less_equal(batch["offset"], first)), _RECORDS))
            yield batch

    def _count_earlier(self, rows: pl.DataFrame) -> None:
        if self._earlier is not None:
            self._earlier.add(rows)

    @property
    def gone(self) -> str | None:
        """Once the log was read: which records that earlier runs have read are missing, in one line."""
        if self._earlier is None or self.task.earlier is None:
            return None
        return shortfall(self.task.earlier, self._earlier.rows())

    def _remembered(self, memory: Memory) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
        """Changes that an earlier run has read, where this one continues from its state."""
        if self.side is None or self.side.kept is None:
            return [], []
        end = self.task.given.log_end_ms
        read_then = pl.col("offset") < self.side.kept.offset
        recent = pl.lit(value=False) if end is None else pl.col("append_time") >= end - ISR_HOURS * HOUR
        judged = memory.judged.filter(read_then)
        return [judged.filter(is_needed(end))], [memory.recent.filter(read_then & recent)]

    def _new(self, changes: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        rows, end = from_arrow(changes, CHANGES), self.task.given.log_end_ms
        # Of years of changes few are looked at later. Without copies the whole history stays in memory with them: a third of a
        # large cluster's pass (tests/benchmarks/README.md, "What a pass holds").
        self._judged.append(copied(judged_of(rows, end)))
        self._recent.append(copied(recent_of(rows, end, ISR_HOURS)))
        until = self._recorded_until()
        new = changes if until == 0 else changes.filter(pc.greater_equal(changes["offset"], until))
        if new.num_rows:
            yield new

    def _recorded_until(self) -> int:
        """Where the changes begin that are in no table yet: all of them if the log is not the one that is remembered."""
        known = self.task.recorded
        if known is None or self.side is None:
            return 0
        time = self._look.append_times.get(known.until - 1)
        same = known.is_of(self.side.begun_ms, time, resumed=self.side.kept is not None)
        return known.until if same else 0

    def read(self) -> LogRead:
        """What the log came to, once it was read. To be asked for once: it takes what was gathered with it."""
        replayed, damage = self._replayed, pl.concat([pl.DataFrame(schema=_QUARANTINED), *self._damage])
        judged = once(_taken(JUDGED_CHANGES, self._judged))
        recent = once(_taken(RECENT, self._recent))
        if replayed is None or self.side is None:
            nothing = pl.DataFrame(schema=ROW_VERSIONS)
            found = pl.DataFrame(schema=FINDINGS)
            return LogRead(self._look, {}, nothing, found, judged, recent, damage, None, None, None)
        keeping = replayed.keeping
        if keeping is not None and self._look.violations.total(*_FAULTS):
            keeping = NOTHING
        return LogRead(
            self._look,
            replayed.tables,
            replayed.row_versions,
            replayed.findings,
            judged,
            recent,
            damage,
            keeping,
            self._now_recorded(self.side),
            self._recorded_until(),
        )

    def _now_recorded(self, side: KraftSide) -> Recorded:
        until, known = max(side.committed.end_exclusive, self._recorded_until()), self.task.recorded
        time = self._look.append_times.get(until - 1)
        if time is None and known is not None and until == known.until:
            time = known.append_time
        return Recorded(until, time, side.begun_ms or 0)

    def versions_of(self, keys: Collection[tuple[str, str]], until: int) -> pl.DataFrame:
        """All that happened to some rows up to an offset (inclusive), in all their lives (`replayed.versions_of`)."""
        if self.side is None:
            raise ValueError("there is no log to look for rows in")
        found = self._versions_of(self.side, keys, until)
        self.stories = Stories.of(keys, found, until)
        return found

    def _versions_of(self, side: KraftSide, keys: Collection[tuple[str, str]], until: int) -> pl.DataFrame:
        if self._resumed is not None:
            since = versions_since(side, self.feed.batches(UnitKind.LOG), self._kept_bytes(), keys, until)
            return self._told_before.continued(keys, since, self._resumed, until)
        base = side.base if self.task.whole_from is None else self.task.whole_from or None
        extent = side.whole(base)
        return versions_of(side, extent, self.feed.batches(UnitKind.LOG), checkpoints_of(self.feed), keys, until)

    def _kept_bytes(self) -> bytes:
        kept = self.feed.bytes_of(UnitKind.FOLD)
        if kept is None:
            raise AssertionError("a log that is resumed has its kept state in the feed")
        return kept


def checkpoints_of(feed: Feed) -> dict[int, Callable[[], Iterator[pa.RecordBatch]]]:
    """What gives the records of each checkpoint, by its offset (exclusive end)."""
    offsets = {
        offset
        for batch in feed.batches(UnitKind.CHECKPOINTS)
        for offset in pc.unique(batch["checkpoint_offset"]).to_pylist()
    }
    return {offset: partial(_checkpoint, feed, offset) for offset in sorted(offsets)}


def _checkpoint(feed: Feed, offset: int) -> Iterator[pa.RecordBatch]:
    for batch in feed.batches(UnitKind.CHECKPOINTS):
        mine = batch.filter(pc.equal(batch["checkpoint_offset"], offset))
        if mine.num_rows:
            yield mine


def _damage(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of bronze quarantine for bytes of the log that are not a record."""
    named = rows.select(
        pl.lit(KRAFT).alias("source"), "file", "position", "length", "offset", pl.col("problem").alias("reason")
    )
    return shaped(named, _QUARANTINED)


def _taken(columns: pl.Schema, gathered: list[pl.DataFrame]) -> pl.DataFrame:
    """The frames as one, no longer gathered."""
    whole = pl.concat([pl.DataFrame(schema=columns), *gathered])
    gathered.clear()
    return whole
