"""What the history of partitions adds up to: churn, flapping, time without a leader or enough replicas, skew; the worst first.

Everything is one row a partition or broker and hour, and bounded (`transforms.isr.hourly` sums up).
"""

from __future__ import annotations

from typing import Any

import polars as pl

from transforms.frames import shaped
from transforms.isr.history import HOUR, LOSSY
from transforms.isr.hourly import COUNTS, KEY, LINES, READ, SO, TIMES, hourly_sums, worst_first
from transforms.isr.partition import NO_LEADER

PARTITION, BROKER, LEADERSHIP = "partition", "broker", "leadership"
MIN_ISR = "min.insync.replicas"
LINE = (
    "subject",
    "topic",
    "partition",
    "broker_id",
    "hour",
    *COUNTS,
    "flaps",
    *TIMES,
    "leads",
    "preferred",
)
# The columns of a change that are kept until all are summed up: whether a partition is under min.insync.replicas is known at the log's end
# alone, and follows from the sizes of its ISR (`isr`) and of its replicas.
_SIZES = ("isr", "replicas")
_RECENT: dict[str, pl.DataType] = {
    **dict.fromkeys(("topic_id", "topic"), pl.String()),
    **dict.fromkeys(("partition", "leader"), pl.Int32()),
    **dict.fromkeys(("offset", "append_time", "before_time", "leaderless_since"), pl.Int64()),
    **dict.fromkeys(("made", "elected", "lossy"), pl.Boolean()),
    **dict.fromkeys(("short", "short_before", "leaderless", "leaderless_before"), pl.Boolean()),
    **dict.fromkeys(("departed", "joined"), pl.List(pl.Int32())),
    **dict.fromkeys(("isr", "isr_before", "replicas", "replicas_before"), pl.Int32()),
}
RECENT = pl.Schema(_RECENT)


def recent_of(changes: pl.DataFrame, end: int | None, hours: int) -> pl.DataFrame:
    """Of rows of gold isr_history those of the last `hours` before the log's end (append time of its newest record, ms) that may
    count: columns RECENT.

    What changed nothing that is counted is left out: the load alone makes every partition. But the first change of a partition tells
    since when its state lasts, even if it changed nothing; another run has another first change.
    """
    if end is None:
        return pl.DataFrame(schema=RECENT)
    sizes = {f"{name}{suffix}": _size(f"{name}{suffix}") for name in _SIZES for suffix in ("", "_before")}
    marked = changes.filter(pl.col("append_time") >= end - hours * HOUR).with_columns(
        made=pl.col("leader_before").is_null(),
        elected=pl.col("election").is_not_null(),
        lossy=pl.col("election").is_in([kind.value for kind in LOSSY]).fill_null(False),
        **{f"short{suffix}": _short(suffix) for suffix in ("", "_before")},
        **{f"leaderless{suffix}": _leaderless(suffix) for suffix in ("", "_before")},
        **sizes,
    )
    moved = (pl.col("departed").list.len() > 0) | (pl.col("joined").list.len() > 0)
    turned = [pl.col(name).ne_missing(pl.col(f"{name}_before")) for name in ("short", "leaderless", *_SIZES)]
    # Whether it was under min.insync.replicas is not known yet, but its ISR was smaller than its replicas then.
    lasting = [pl.col("short_before"), pl.col("leaderless_before"), pl.col("isr_before") < pl.col("replicas_before")]
    return shaped(marked.filter(pl.any_horizontal(moved, "elected", *turned, *lasting)), RECENT)


def _size(ids: str) -> pl.Expr:
    return pl.col(ids).list.len().cast(pl.Int32)


def isr_audit(
    recent: pl.DataFrame,
    partitions: pl.DataFrame,
    configs: pl.DataFrame,
    end: int,
    most: int,
    *,
    capped_min_isr: bool,
) -> list[dict[str, Any]]:
    """The worst partitions and brokers of the last hours before the log's end.

    `recent` are `recent_of` changes, each of which counts once even if it is there twice; `partitions` and
    `configs` silver rows of KRaft; `end` the append time of the log's newest record (ms). At most `most` rows of each
    subject. Keys: LINE, `place` (1 is the worst of its subject) and `total` (how many rows there are of it). Of `hour`
    (its start, ms) null, a partition's row is what is so at the log's end and for how long; a broker's leadership has no
    hour.

    min.insync.replicas is the topic's or the cluster's dynamic default as it is now; where only property files set it,
    nothing is under it. `capped_min_isr`: no partition needs more than its replicas (`Partition.effectiveMinIsr`, from Kafka 3.7 on).
    A time is counted in the hour in which it ended; what began before the first of these hours counts from the
    partition's last record before them.
    """
    least = _least(configs)
    sums = hourly_sums(_telling(recent, least, capped_min_isr), most)
    at_end = worst_first(_at_end(partitions, least, sums.since, end, capped_min_isr))
    return [
        *_placed(PARTITION, pl.concat([sums.partitions, at_end]), sums.total + at_end.height, most),
        *_placed(BROKER, sums.brokers, None, most),
        *_placed(LEADERSHIP, _leadership(partitions), None, most),
    ]


def _placed(subject: str, lines: pl.DataFrame, total: int | None, most: int) -> list[dict[str, Any]]:
    """The worst lines of a subject; `total` where there are more than these."""
    ordered = worst_first(lines)
    every = ordered.height if total is None else total
    rows = ordered.head(most).with_columns(subject=pl.lit(subject)).select(*LINE).to_dicts()
    return [{**row, "place": place, "total": every} for place, row in enumerate(rows, 1)]


def _least(configs: pl.DataFrame) -> pl.DataFrame:
    """min.insync.replicas by topic; the cluster's default has an empty topic."""
    kind, name = pl.col("resource_type"), pl.col("resource_name")
    dynamic = (kind == "TOPIC") | ((kind == "BROKER") & (name == ""))
    named = configs.filter((pl.col("config") == MIN_ISR) & dynamic)
    number = pl.col("value").str.strip_chars().cast(pl.Int32, strict=False)
    return named.select(name.alias("topic"), number.alias("least")).drop_nulls("least")


def _with_least(rows: pl.DataFrame, least: pl.DataFrame) -> pl.DataFrame:
    default = least.filter(pl.col("topic") == "")["least"].max()
    joined = rows.join(least, on="topic", how="left")
    return joined.with_columns(pl.col("least").fill_null(pl.lit(default, pl.Int32)))


def _short(suffix: str) -> pl.Expr:
    """Whether a replica that is not just being added is out of the ISR."""
    staying = pl.col(f"replicas{suffix}").list.set_difference(f"adding_replicas{suffix}")
    return (staying.list.set_difference(f"isr{suffix}").list.len() > 0).fill_null(False)


def _under(isr: pl.Expr, replicas: pl.Expr, capped: bool) -> pl.Expr:
    least = pl.col("least")
    # Without a minimum nothing is below it: `min` ignores nulls.
    needed = pl.when(least.is_not_null()).then(pl.min_horizontal(least, replicas)) if capped else least
    return (isr < needed).fill_null(False)


def _leaderless(suffix: str) -> pl.Expr:
    return (pl.col(f"leader{suffix}") == NO_LEADER).fill_null(False)


def _telling(recent: pl.DataFrame, least: pl.DataFrame, capped: bool) -> pl.DataFrame:
    """The changes that count, as `transforms.isr.hourly` reads them: with the state before and after each."""
    under = {
        f"under{suffix}": _under(pl.col(f"isr{suffix}"), pl.col(f"replicas{suffix}"), capped)
        for suffix in ("", "_before")
    }
    marked = _with_least(recent, least).with_columns(**under)
    moved = (pl.col("departed").list.len() > 0) | (pl.col("joined").list.len() > 0)
    turned = [pl.col(name) != pl.col(f"{name}_before") for name in SO]
    lasting = [f"{name}_before" for name in SO]
    return marked.filter(pl.any_horizontal(moved, "elected", *turned, *lasting)).select(*READ)


def _at_end(partitions: pl.DataFrame, least: pl.DataFrame, since: pl.DataFrame, end: int, capped: bool) -> pl.DataFrame:
    """Partitions that have no leader, too small an ISR, or replicas out of it at the end of the log, and for how long."""
    so = {"short": _short(""), "under": _under(_size("isr"), _size("replicas"), capped), "leaderless": _leaderless("")}
    now = _with_least(partitions, least).select(*KEY, "topic", "kraft_append_time", **so)
    bad = now.filter(pl.any_horizontal(*SO)).join(since, on=list(KEY), how="left")
    times = {
        name: pl.when(so).then((end - pl.coalesce(f"{so}_since", "kraft_append_time")).clip(lower_bound=0))
        for name, so in TIMES.items()
    }
    return shaped(bad.select(*KEY, "topic", **times), LINES)


def _leadership(partitions: pl.DataFrame) -> pl.DataFrame:
    """Brokers that lead another number of partitions than they are the preferred leader of."""
    counts = {"leads": pl.col("leader"), "preferred": pl.col("replicas").list.first()}
    each = [
        partitions.select(broker_id=broker, **{other: pl.lit(int(other == name)) for other in counts})
        for name, broker in counts.items()
    ]
    brokers = pl.concat(each).filter(pl.col("broker_id") >= 0).group_by("broker_id")
    counted = brokers.agg(*[pl.col(name).sum().cast(pl.Int64) for name in counts])
    return shaped(counted.filter(pl.col("leads") != pl.col("preferred")), LINES)
