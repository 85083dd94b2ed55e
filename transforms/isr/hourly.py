"""Hourly sums of changes of partitions: churn, elections, flapping, times; the worst first.

Nothing works row by row: a day of a large cluster has millions of changes, and the result has some hundred lines. Changes are
sorted by their keys alone and summed up some whole partitions at a time, so that little memory is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from transforms.frames import shaped
from transforms.isr.history import HOUR

KEY = ("topic_id", "partition")
# A record in one log: topic ids outlive a rollback and a second migration, whose log counts its offsets from 0 again.
RECORD = (*KEY, "offset", "append_time")
_KEY = ("id", "partition")
_RECORD = (*_KEY, "offset", "append_time")
# What a partition can be, for a time: short of a replica in its ISR, under min.insync.replicas, leaderless.
SO = ("short", "under", "leaderless")
COUNTS = ("shrinks", "expansions", "elections", "lossy_elections")
TIMES = {"leaderless_ms": "leaderless", "under_min_ms": "under", "out_of_sync_ms": "short"}
# What is read of a change: `made` by this record, what was `elected` and whether that was `lossy`, and what is so after and
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
# A line: a partition, or a broker, in one hour (its start, ms); without an hour, what is so at the log's end.
LINES = pl.Schema(
    {
        "topic_id": pl.String,
        "topic": pl.String,
        "partition": pl.Int32,
        "broker_id": pl.Int32,
        "hour": pl.Int64,
        **dict.fromkeys((*COUNTS, "flaps", *TIMES, "leads", "preferred"), pl.Int64),
    }
)
# The time (ms) since which a partition has been in the state after its last change.
SINCE = pl.Schema(
    {"topic_id": pl.String, "partition": pl.Int32, **dict.fromkeys([f"{name}_since" for name in SO], pl.Int64)}
)
# What makes one line worse than another, in this order; and the order of those that are alike.
_WORST = ("lossy_elections", "leaderless_ms", "under_min_ms", "flaps", "moves", "out_of_sync_ms", "skew")
_PLACE = ("topic", "partition", "broker_id", "hour")
# Changes that are summed up at a time.
_STRIDE = 250_000
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sums:
    """Lines of partitions, the worst, and how many there were; those of all brokers; and SINCE."""

    partitions: pl.DataFrame
    total: int
    brokers: pl.DataFrame
    since: pl.DataFrame


def hourly_sums(changes: pl.DataFrame, most: int) -> Sums:
    """Sum up changes with the columns READ, in any order: lines of at most `most` partitions, and of all brokers.

    A change may be there twice: two runs at the same time record it both.
    """
    # A number stands for a topic's id and its name while the changes are put in order: texts are slow to move.
    topics = changes.group_by("topic_id").agg(pl.col("topic").max()).with_row_index("id")
    numbered = changes.drop("topic").join(topics.drop("topic"), on="topic_id", how="left").drop("topic_id")
    worst, total = pl.DataFrame(schema=LINES), 0
    brokers, since = [pl.DataFrame(schema=LINES)], [pl.DataFrame(schema=SINCE)]
    for part in _whole_partitions(numbered.rechunk()):
        rows = _placed(part)
        moves = _moves(rows)
        lines = _telling(_named(_by_partition(rows, moves), topics, LINES))
        total += lines.height
        worst = worst_first(pl.concat([worst, lines])).head(most)
        brokers.append(_by_broker(moves))
        since.append(_named(_going_on(rows), topics, SINCE))
    return Sums(worst, total, _added(pl.concat(brokers)), pl.concat(since))


def _named(rows: pl.DataFrame, topics: pl.DataFrame, columns: pl.Schema) -> pl.DataFrame:
    """Rows with the id and the name of their topic, which stand at its number."""
    return shaped(pl.concat([rows, topics.drop("id")[rows["id"]]], how="horizontal"), columns)


def worst_first(lines: pl.DataFrame) -> pl.DataFrame:
    """The lines with any value, the worst first; nulls count as 0."""
    scores = [_score(name) for name in _WORST]
    down = [*[True for _ in scores], *[False for _ in _PLACE]]
    return _telling(lines).sort([*scores, *_PLACE], descending=down, maintain_order=True)


def _score(name: str) -> pl.Expr:
    if name == "moves":
        return _score("shrinks") + _score("expansions")
    if name == "skew":
        return (_score("leads") - _score("preferred")).abs()
    return pl.col(name).fill_null(0)


def _telling(lines: pl.DataFrame) -> pl.DataFrame:
    return lines.filter(pl.any_horizontal(*[_score(name) > 0 for name in (*_WORST, "elections")]))


def _whole_partitions(changes: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The changes, each once, in the order of _RECORD, some at a time, no partition in two of them."""
    keys = changes.select(*_RECORD).with_row_index("row").sort(*_RECORD, maintain_order=True)
    rows, other = keys["row"], keys.select(_is_other(*_KEY)).to_series()
    rows_once = keys.select(_is_other(*_RECORD)).to_series()
    begins = other.arg_true().to_numpy()
    start = 0
    while start < keys.height:
        following = begins[np.searchsorted(begins, start + _STRIDE) :]
        end = int(following[0]) if len(following) else keys.height
        yield changes[rows[start:end].filter(rows_once[start:end])]
        start = end


def _is_other(*columns: str) -> pl.Expr:
    """Rows that differ from the one before them."""
    return pl.any_horizontal(*[pl.col(name).ne_missing(pl.col(name).shift()) for name in columns]) | (
        pl.int_range(pl.len()) == 0
    )


def _placed(rows: pl.DataFrame) -> pl.DataFrame:
    """Changes with their place (`row`), that of their partition's first one (`first`), and their hour."""
    time = pl.col("append_time")
    placed = rows.with_columns(
        _is_other(*_KEY).alias("begins"),
        # The remainder has the sign of the time.
        hour=time - pl.when(time < 0).then(-(-time % HOUR)).otherwise(time % HOUR),
    ).with_row_index("row")
    return placed.with_columns(first=pl.when("begins").then("row").forward_fill())


def _by_partition(rows: pl.DataFrame, moves: pl.DataFrame) -> pl.DataFrame:
    """A line for each partition and hour, of changes of partitions that were there before."""
    counts = {
        "shrinks": pl.col("departed").list.len() > 0,
        "expansions": pl.col("joined").list.len() > 0,
        "elections": pl.col("elected"),
        "lossy_elections": pl.col("lossy"),
    }
    counted = rows.select(
        *_KEY,
        "first",
        "hour",
        "made",
        **{name: each.cast(pl.Int64) for name, each in counts.items()},
        **{name: _ended(so) for name, so in TIMES.items()},
    )
    sums = [pl.col(name).sum() for name in (*COUNTS, *TIMES)]
    named = [pl.col(name).first() for name in _KEY]
    lines = counted.filter(~pl.col("made")).group_by("first", "hour").agg(*named, *sums)
    flaps = moves.group_by("first", "hour").agg(pl.col("flaps").max())
    summed = lines.join(flaps, on=["first", "hour"], how="left")
    return summed.with_columns(pl.col("flaps").fill_null(0))


def _begun(so: str) -> pl.Expr:
    return pl.col(so) & ~pl.col(f"{so}_before")


def _since(so: str) -> pl.Expr:
    """Since when (ms) a state lasts that a partition has after each change, or had before it.

    One that it had before the first available change began earlier: the history's columns tell since when at least.
    """
    unseen = pl.coalesce("leaderless_since" if so == "leaderless" else "before_time", "append_time")
    found = pl.col(f"{so}_before") & (pl.col("begins") | ~pl.col(so).shift())
    return pl.when(_begun(so)).then("append_time").when(found).then(unseen).forward_fill()


def _ended(so: str) -> pl.Expr:
    """How long (ms) the state that each change ended had lasted."""
    lasted = (pl.col("append_time") - _since(so)).clip(lower_bound=0)
    return pl.when(pl.col(f"{so}_before") & ~pl.col(so)).then(lasted).otherwise(pl.lit(0, pl.Int64))


def _going_on(rows: pl.DataFrame) -> pl.DataFrame:
    """A line for each partition that lacks a replica in its ISR, is under min.insync.replicas or is leaderless after
    its last change: since when."""
    since = {f"{so}_since": pl.when(so).then(_since(so)) for so in SO}
    last = rows.select(*_KEY, "begins", **since).filter(pl.col("begins").shift(-1, fill_value=True))
    return last.drop("begins").filter(pl.any_horizontal(*[pl.col(name).is_not_null() for name in since]))


_DEPARTED, _JOINED, _ELECTED = range(3)


def _moves(rows: pl.DataFrame) -> pl.DataFrame:
    """What happened to one broker each: what kind it was, and how often it left or joined this ISR in the hour up to then."""
    there = rows.filter(~pl.col("made"))
    happened = {
        _DEPARTED: there.with_columns(broker_id="departed"),
        _JOINED: there.with_columns(broker_id="joined"),
        _ELECTED: there.filter("elected").with_columns(broker_id=pl.concat_list(_chosen())),
    }
    each = [
        found.select("first", "hour", "append_time", "lossy", "broker_id", kind=kind).explode("broker_id")
        for kind, found in happened.items()
    ]
    # An empty list comes out as a null.
    moved = pl.concat(each).drop_nulls("broker_id")
    first, broker, time, kind = (
        moved[name].to_numpy().astype(np.int64) for name in ("first", "broker_id", "append_time", "kind")
    )
    return moved.with_columns(flaps=pl.Series(_within_the_hour(first, broker, time, kind != _ELECTED)))


def _chosen() -> pl.Expr:
    """The broker that an election chose: a cancelled reassignment makes one the ISR that need not be there to lead."""
    return pl.when(pl.col("leader") < 0).then(pl.col("joined").list.first()).otherwise("leader")


def _by_broker(moves: pl.DataFrame) -> pl.DataFrame:
    """A line for each broker and hour: ISRs that it left or joined, and partitions that it was elected for."""
    elected = pl.col("kind") == _ELECTED
    lines = moves.group_by("broker_id", "hour").agg(
        shrinks=(pl.col("kind") == _DEPARTED).sum(),
        expansions=(pl.col("kind") == _JOINED).sum(),
        elections=elected.sum(),
        lossy_elections=(elected & pl.col("lossy")).sum(),
        flaps=pl.col("flaps").max(),
    )
    return shaped(lines, LINES)


def _added(lines: pl.DataFrame) -> pl.DataFrame:
    """The lines of brokers, one for each hour."""
    sums = [pl.col(name).sum() for name in COUNTS]
    return shaped(lines.group_by("broker_id", "hour").agg(*sums, pl.col("flaps").max()), LINES)


def _within_the_hour(partition: Numbers, broker: Numbers, time: Numbers, counted: Flags) -> Numbers:
    """How many `counted` moves of the same broker and partition there were in the hour up to each move, it included."""
    order = np.lexsort((time, broker, partition))
    partition, broker, time = partition[order], broker[order], time[order]
    other = (partition[1:] != partition[:-1]) | (broker[1:] != broker[:-1])
    group = np.cumsum(np.append(False, other)) if len(order) else np.zeros(0, np.int64)
    # Times by their rank: a number that holds group and time has room for both, even with a wrong clock.
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
