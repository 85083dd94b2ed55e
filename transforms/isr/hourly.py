"""What sorted changes of partitions add up to by the hour, on Arrow batches: churn, elections, flapping, times; the worst first.

Nothing is looked at row by row: a day of a large cluster has millions of changes, and what is told of them are some hundred
lines. A partition that goes on in the next batch is put before it, so that each is summed up whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from transforms.clusters import CLUSTER
from transforms.isr.columns import begins, flags, latest
from transforms.isr.history import HOUR
from transforms.isr.id_lists import Flags, Numbers

PARTITION, BROKER = "partition", "broker"
KEY = ("topic_id", "partition", CLUSTER)
# A record in one log: topic ids outlive a rollback and a second migration, whose log counts its offsets from 0 again.
RECORD = (*KEY, "offset", "append_time")
# What a partition can be, for a time: short of a replica in its ISR, under min.insync.replicas, leaderless.
SO = ("short", "under", "leaderless")
COUNTS = ("shrinks", "expansions", "elections", "lossy_elections")
TIMES = {"leaderless_ms": "leaderless", "under_min_ms": "under", "out_of_sync_ms": "short"}
# Columns of the batches: `made` by this record, what was `elected` and whether that was `lossy`, and what is so after and
# before it. `before_time` and `leaderless_since` are those of the history.
READ = (
    *KEY,
    "topic",
    "offset",
    "append_time",
    "made",
    "elected",
    "lossy",
    "leader",
    "departed",
    "joined",
    *SO,
    *[f"{name}_before" for name in SO],
    "before_time",
    "leaderless_since",
)
# What comes out: lines of partitions and of brokers by hour; without an hour, since when (ms) a partition is what it is at
# its last change, and how many lines of a cluster's partitions were left out.
_NUMBERS = (*COUNTS, "flaps", *TIMES, *[f"{name}_since" for name in SO], "left_out")
SUMS = StructType(
    [
        *[StructField(name, StringType()) for name in (CLUSTER, "subject", "topic_id", "topic")],
        *[StructField(name, IntegerType()) for name in ("partition", "broker_id")],
        *[StructField(name, LongType()) for name in ("hour", *_NUMBERS)],
    ]
)
_SCHEMA: pa.Schema = to_arrow_schema(SUMS)
# What makes one line of a partition worse than another, in this order.
WORST = ("lossy_elections", "leaderless_ms", "under_min_ms", "flaps", "moves", "out_of_sync_ms")
_PLACE = ("topic", "partition", "hour")


def hourly_sums(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Lines of SUMS: at most `most` of each cluster's partitions, the worst, and all those of brokers.

    `batches` have the columns READ, in the order of RECORD; a partition's changes may lie in several of them, and a
    change may be there twice: two runs at the same time record it both. A broker's line counts what these batches hold,
    so that lines of one broker and hour from several workers add up.
    """
    worst, brokers = _Worst(most), _no_lines()
    for rows in _whole_partitions(batches):
        changes = _Changes.of(rows.filter(pa.array(begins(rows, RECORD))))
        worst.add(changes.by_partition())
        brokers = _added(brokers, changes.by_broker())
        yield from _lines(changes.going_on())
    yield from _lines(worst.lines)
    yield from _lines(worst.left_out())
    yield from _lines(brokers)


def _lines(table: pa.Table) -> Iterator[pa.RecordBatch]:
    for batch in table.to_batches():
        absent = {field.name: pa.nulls(batch.num_rows, field.type) for field in _SCHEMA}
        columns = absent | {name: batch[name] for name in batch.schema.names}
        yield pa.RecordBatch.from_arrays([columns[field.name].cast(field.type) for field in _SCHEMA], schema=_SCHEMA)


def _no_lines() -> pa.Table:
    return _SCHEMA.empty_table()


def _whole_partitions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the batches, no partition in two of them."""
    waiting: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = batch if waiting is None else pa.concat_batches([waiting, batch])
        last = int(np.flatnonzero(begins(rows, KEY))[-1])
        if last:
            yield rows.slice(0, last)
        waiting = rows.slice(last)
    if waiting is not None:
        yield waiting


@dataclass(frozen=True)
class _Changes:
    """Changes of whole partitions: which partition each is of, where that begins, its hour, and what was since when."""

    rows: pa.RecordBatch
    partition: Numbers
    first: Numbers
    time: Numbers
    hour: Numbers
    made: Flags

    @staticmethod
    def of(rows: pa.RecordBatch) -> _Changes:
        other = begins(rows, KEY)
        first = latest(other)
        time = rows["append_time"].to_numpy().astype(np.int64)
        # The remainder has the sign of the time, as Spark's has.
        return _Changes(rows, np.cumsum(other) - 1, first, time, time - np.fmod(time, HOUR), flags(rows["made"]))

    def by_partition(self) -> pa.Table:
        """A line for each partition and hour, of changes of partitions that were there before."""
        columns = {
            "number": self.partition,
            "hour": self.hour,
            "row": np.arange(len(self.hour)),
            "shrinks": _sizes(self.rows["departed"]) > 0,
            "expansions": _sizes(self.rows["joined"]) > 0,
            "elections": flags(self.rows["elected"]),
            "lossy_elections": flags(self.rows["lossy"]),
            "flaps": self._flaps(),
            **{name: self._ended(so) for name, so in TIMES.items()},
        }
        changed = pa.table({name: each[~self.made].astype(np.int64) for name, each in columns.items()})
        sums = [(name, "sum") for name in (*COUNTS, *TIMES)]
        lines = _grouped(changed, ["number", "hour"], [("row", "min"), ("flaps", "max"), *sums])
        named = self.rows.select([*KEY, "topic"]).take(lines["row"].combine_chunks())
        for name in named.schema.names:
            lines = lines.append_column(name, named[name])
        return lines.append_column("subject", pa.repeat(PARTITION, len(lines)))

    def by_broker(self) -> pa.Table:
        """A line for each move of a broker: an ISR that it left or joined, or a partition that it was elected for."""
        moves = self._moves
        columns = {
            "broker_id": moves.broker,
            "hour": self.hour[moves.row],
            "shrinks": moves.kind == _DEPARTED,
            "expansions": moves.kind == _JOINED,
            "elections": moves.kind == _ELECTED,
            "lossy_elections": (moves.kind == _ELECTED) & flags(self.rows["lossy"])[moves.row],
            "flaps": moves.flaps,
        }
        table = pa.table({name: each.astype(np.int64) for name, each in columns.items()})
        table = table.append_column(CLUSTER, self.rows[CLUSTER].take(pa.array(moves.row)))
        return table.append_column("subject", pa.repeat(BROKER, len(table)))

    def going_on(self) -> pa.Table:
        """A line for each partition that is short, under or leaderless after its last change: since when."""
        last = np.flatnonzero(np.append(self.first[1:] == np.arange(1, len(self.first)), True))
        since = {}
        for name in SO:
            begun = latest(self._begun(name))[last]
            there = flags(self.rows[name])[last] & (begun >= self.first[last])
            since[f"{name}_since"] = pa.array(self.time[np.maximum(begun, 0)], mask=~there)
        keys = self.rows.select(list(KEY)).take(pa.array(last))
        table = pa.table({**{name: keys[name] for name in KEY}, **since, "subject": pa.repeat(PARTITION, len(last))})
        return table.filter(pc.is_valid(pc.coalesce(*[table[name] for name in since])))

    def _begun(self, name: str) -> Flags:
        return flags(self.rows[name]) & ~flags(self.rows[f"{name}_before"])

    def _ended(self, name: str) -> Numbers:
        """How long (ms) something was so that each change ended; before the first change at hand, by what the history says."""
        earlier = latest(self._begun(name))
        earlier = np.append(-1, earlier[:-1])
        unseen = self.rows["leaderless_since" if name == "leaderless" else "before_time"]
        unseen_since = pc.coalesce(unseen, self.rows["append_time"]).to_numpy().astype(np.int64)
        since = np.where(earlier >= self.first, self.time[np.maximum(earlier, 0)], unseen_since)
        ended = flags(self.rows[f"{name}_before"]) & ~flags(self.rows[name])
        return np.where(ended, np.maximum(0, self.time - since), 0)

    @cached_property
    def _moves(self) -> _Moves:
        return _Moves.of(self)

    def _flaps(self) -> Numbers:
        """The most flaps of a broker that each change moves."""
        moves, most = self._moves, np.zeros(len(self.hour), np.int64)
        np.maximum.at(most, moves.row, moves.flaps)
        return most


_DEPARTED, _JOINED, _ELECTED = range(3)


@dataclass(frozen=True)
class _Moves:
    """What happened to one broker each: by which row, what kind it was, and how often the broker left or joined this ISR in
    the hour up to then.
    """

    row: Numbers
    broker: Numbers
    kind: Numbers
    flaps: Numbers

    @staticmethod
    def of(changes: _Changes) -> _Moves:
        rows = changes.rows
        elected = np.flatnonzero(flags(rows["elected"]))
        moved = [_each(rows["departed"]), _each(rows["joined"]), (elected, rows["leader"].to_numpy()[elected])]
        row = np.concatenate([which for which, _ in moved]).astype(np.int64)
        broker = np.concatenate([ids for _, ids in moved]).astype(np.int64)
        kind = np.repeat([_DEPARTED, _JOINED, _ELECTED], [len(which) for which, _ in moved])
        there = ~changes.made[row]
        row, broker, kind = row[there], broker[there], kind[there]
        flaps = _within_the_hour(changes.partition[row], broker, changes.time[row], kind != _ELECTED)
        return _Moves(row, broker, kind, flaps)


def _each(lists: pa.ListArray) -> tuple[Numbers, Numbers]:
    """The row and the id of every id in a column of lists."""
    ids = lists.flatten().to_numpy()
    return np.repeat(np.arange(len(lists)), _sizes(lists)), ids


def _within_the_hour(partition: Numbers, broker: Numbers, time: Numbers, counted: Flags) -> Numbers:
    """How many `counted` moves of the same broker and partition there were in the hour up to each move, it included."""
    order = np.lexsort((time, broker, partition))
    partition, broker, time = partition[order], broker[order], time[order]
    other = (partition[1:] != partition[:-1]) | (broker[1:] != broker[:-1])
    group = np.cumsum(np.append(False, other)) if len(order) else np.zeros(0, np.int64)
    # Times by their rank: a number that holds group and time has room for both, whatever the clock said.
    times = np.unique(time)
    stride = len(times) + 1
    ranks, earliest = np.searchsorted(times, time), np.searchsorted(times, time - HOUR)
    place = group * stride + ranks
    before = np.append(0, np.cumsum(counted[order]))
    found = np.zeros(len(order), np.int64)
    found[order] = (
        before[np.searchsorted(place, place, "right")] - before[np.searchsorted(place, group * stride + earliest)]
    )
    return found


class _Worst:
    """The worst lines of the partitions of each cluster so far, and how many more there were."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.lines = _no_lines()
        self._seen: dict[str, int] = {}

    def add(self, lines: pa.Table) -> None:
        """Take in lines; those that tell nothing are none."""
        moves = pc.add(lines["shrinks"], lines["expansions"])
        telling = np.logical_or.reduce([lines[name].to_numpy() > 0 for name in (*COUNTS, "flaps", *TIMES)])
        found = lines.append_column("moves", moves).filter(pa.array(telling))
        for each in found[CLUSTER].value_counts().to_pylist():
            self._seen[each["values"]] = self._seen.get(each["values"], 0) + each["counts"]
        every = pa.concat_tables([self.lines, found], promote_options="permissive")
        worst_first = [(CLUSTER, "ascending"), *[(name, "descending") for name in WORST]]
        ordered = every.sort_by([*worst_first, *[(name, "ascending") for name in _PLACE]])
        self.lines = ordered.filter(pa.array(_place(ordered) < self._most))

    def left_out(self) -> pa.Table:
        """How many lines of each cluster are not among those that were kept."""
        kept = {each["values"]: each["counts"] for each in self.lines[CLUSTER].value_counts().to_pylist()}
        left = [
            {CLUSTER: name, "left_out": seen - kept[name]} for name, seen in self._seen.items() if seen > kept[name]
        ]
        table = pa.Table.from_pylist(left, pa.schema([_SCHEMA.field(name) for name in (CLUSTER, "left_out")]))
        return table.append_column("subject", pa.repeat(PARTITION, len(table)))


def _place(lines: pa.Table) -> Numbers:
    """The place of each line among those of its cluster, which stand together."""
    column = pa.record_batch({CLUSTER: lines[CLUSTER].combine_chunks()})
    return np.arange(len(lines)) - latest(begins(column, [CLUSTER]))


def _added(lines: pa.Table, more: pa.Table) -> pa.Table:
    """The lines of brokers by hour, with further ones."""
    every = pa.concat_tables([lines, more], promote_options="permissive")
    return _grouped(
        every, [CLUSTER, "subject", "broker_id", "hour"], [("flaps", "max"), *[(each, "sum") for each in COUNTS]]
    )


def _grouped(table: pa.Table, keys: list[str], sums: list[tuple[str, str]]) -> pa.Table:
    grouped = table.group_by(keys).aggregate(sums)
    return grouped.rename_columns([*keys, *[name for name, _ in sums]])


def _sizes(lists: pa.ListArray) -> npt.NDArray[np.int64]:
    sizes: npt.NDArray[np.int64] = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    return sizes
