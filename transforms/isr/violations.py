"""Violations in the history of the partitions (ISR-07, ISR-08, ISR-11, ISR-12, ELR-02, S§8.3; DUR-13): bounded rules.

Each rule compares a partition's past with its present state: a healed fault is reported, but no longer a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from schemas.checks.codes import (
    CHURN,
    CHURN_PAST,
    FLAPPING,
    HEALED_ELECTION,
    LAST_KNOWN_FENCED,
    LOSSY_ELECTION,
    QUIET_SHRINK,
)
from transforms.frames import listed
from transforms.isr.history import HOUR, LOSSY, ChangeKind
from transforms.isr.partition import RECOVERED

# Departures and returns of one broker and partition in an hour, beyond those that its restarts account for.
FLAPPING_FROM = 6
_KEY = ("topic_id", "partition")
_WORDS = {
    ChangeKind.UNCLEAN_ELECTION: "unclean election",
    ChangeKind.LAST_KNOWN_LEADER_ELECTION: "election of the last known leader",
}


@dataclass(frozen=True)
class Present:
    """The present state of a cluster: its log's newest append time (ms), running brokers, those that some ISR lacks, the
    registrations of each in the log's last hour, whether a shrinking ISR must raise the leader epoch, and the offsets of the
    records of MIGRATION and of POST_MIGRATION (None: not yet), where there is one of MIGRATION.
    """

    log_end_ms: int | None = None
    at_work: tuple[int, ...] = ()
    out_of_sync: tuple[int, ...] = ()
    restarts: Mapping[int, int] = field(default_factory=dict)
    bumps_on_shrink: bool = False
    dual_write: tuple[int, int | None] | None = None


# What the rules below read of a history.
JUDGED = (
    *_KEY,
    "topic",
    "offset",
    "append_time",
    "kinds",
    "election",
    "departed",
    "joined",
    "leader",
    "leader_epoch",
    "leader_epoch_before",
    "leader_recovery_state",
    "isr",
    "isr_before",
    "eligible_leader_replicas_before",
)
_NOW = ("replicas", "isr", "leader", "leader_epoch", "leader_recovery_state")


def is_needed(log_end_ms: int | None) -> pl.Expr:
    """True for changes that `history_violations` needs; `log_end_ms` is the newest append time of the log (ms)."""
    return _recent(log_end_ms) | _lossy() | _recovered() | _epoch_stayed()


def _recent(log_end_ms: int | None) -> pl.Expr:
    """In the log's last hour."""
    return pl.lit(False) if log_end_ms is None else pl.col("append_time") > log_end_ms - HOUR


def _epoch_stayed() -> pl.Expr:
    """A replica left the ISR, and the leader epoch did not change."""
    stayed = pl.col("leader_epoch") == pl.col("leader_epoch_before")
    return (pl.col("departed").list.len() > 0) & stayed.fill_null(False)


def _lossy() -> pl.Expr:
    return pl.col("election").is_in([kind.value for kind in LOSSY]).fill_null(False)


def _recovered() -> pl.Expr:
    """The leader reported a grown ISR after an election that may have lost data."""
    return pl.col("kinds").list.contains(ChangeKind.RECOVERED.value).fill_null(False)


def history_violations(history: pl.DataFrame, partitions: pl.DataFrame, present: Present) -> pl.DataFrame:
    """Violations of rules, and remarks about the past: columns `code` and `text`.

    `history` are rows of gold isr_history (only the columns JUDGED are used), `partitions` KRaft's silver rows: but for DUR-13,
    only partitions that are still there count.
    """
    moves = (pl.col("departed").list.len() > 0) | (pl.col("joined").list.len() > 0)
    marks = {
        "moved": ~pl.col("kinds").list.contains(ChangeKind.CREATED.value) & moves & _recent(present.log_end_ms),
        "lossy": _lossy(),
        "recovered": _recovered(),
        "quiet": _epoch_stayed() & present.bumps_on_shrink,
    }
    telling = history.select(*JUDGED).with_columns(**marks).filter(pl.any_horizontal(*marks))
    now = partitions.select(*_KEY, pl.col("topic").alias("name"), *[pl.col(name).alias(f"now_{name}") for name in _NOW])
    rows = telling.join(now, on=list(_KEY)).with_columns(pl.format("{}/{}", "name", "partition").alias("shown"))
    members = _members(rows.filter("moved"))
    lossy = _with_healed(rows)
    found = [_elections(lossy, present), _fenced(lossy, present), _quiet_shrinks(rows)]
    found += [_flapping(members, present), _churn(members, present)]
    if present.dual_write is not None:
        found.append(_quiet_in_dual_write(history.filter(_during(*present.dual_write))))
    return pl.concat(found)


def _violations_of(rows: pl.DataFrame, code: str | pl.Expr, text: pl.Expr) -> pl.DataFrame:
    return rows.select((pl.lit(code) if isinstance(code, str) else code).alias("code"), text.alias("text"))


def _with_healed(rows: pl.DataFrame) -> pl.DataFrame:
    """The elections that may have lost data, and whether each has `healed`: its partition was RECOVERED since, or is so now.

    Where it set no RECOVERING, as that of a cancelled reassignment, the ISR now has a member that it did not choose.
    """
    unmarked = pl.col("leader_recovery_state") == RECOVERED
    other = pl.col("now_isr").list.set_difference("isr").list.len() > 0
    now = pl.when(unmarked).then(other).otherwise(pl.col("now_leader_recovery_state") == RECOVERED)
    last = rows.filter("recovered").group_by(*_KEY).agg(recovered_at=pl.col("offset").max())
    since = (pl.col("recovered_at") > pl.col("offset")).fill_null(False)
    elections = rows.filter("lossy").join(last, on=list(_KEY), how="left")
    return elections.with_columns(healed=since | now)


def _election_text() -> pl.Expr:
    unclean = pl.col("election") == ChangeKind.UNCLEAN_ELECTION.value
    kind = pl.when(unclean).then(pl.lit(_WORDS[ChangeKind.UNCLEAN_ELECTION]))
    return pl.format(
        "{}: {} of broker {} at offset {}; before it ISR {}, ELR {}",
        "shown",
        kind.otherwise(pl.lit(_WORDS[ChangeKind.LAST_KNOWN_LEADER_ELECTION])),
        # A cancelled reassignment chooses a broker that need not be there to lead.
        pl.when(pl.col("leader") < 0).then(pl.col("isr").list.first()).otherwise("leader"),
        "offset",
        listed("isr_before"),
        listed("eligible_leader_replicas_before"),
    )


def _elections(lossy: pl.DataFrame, present: Present) -> pl.DataFrame:
    """An election that may have lost data, open or healed (ISR-12).

    It is open until the leader has reported a grown ISR to the controller (RECOVERED). The leader of a one-replica partition
    never does: there it is open while it still leads, until its broker is in sync in all its partitions again.
    """
    alone = pl.col("now_replicas").list.len() == 1
    behind = pl.col("leader").is_in(list(present.out_of_sync))
    still_leads = pl.col("now_leader_epoch") == pl.col("leader_epoch")
    is_open = pl.when(alone).then(behind & still_leads).otherwise(~pl.col("healed"))
    code = pl.when(is_open).then(pl.lit(LOSSY_ELECTION)).otherwise(pl.lit(HEALED_ELECTION))
    return _violations_of(lossy, code, _election_text())


def _fenced(lossy: pl.DataFrame, present: Present) -> pl.DataFrame:
    """A last known leader that was elected, still leads and is not running (ELR-02)."""
    leads = (pl.col("now_leader") == pl.col("leader")) & ~pl.col("healed")
    idle = ~pl.col("leader").is_in(list(present.at_work))
    last_known = pl.col("election") == ChangeKind.LAST_KNOWN_LEADER_ELECTION.value
    return _violations_of(lossy.filter(last_known & leads & idle), LAST_KNOWN_FENCED, _election_text())


def _quiet_shrinks(rows: pl.DataFrame) -> pl.DataFrame:
    text = pl.format(
        "{}: {} left the ISR at offset {}, the leader epoch stayed {}",
        "shown",
        listed("departed"),
        "offset",
        "leader_epoch",
    )
    return _violations_of(rows.filter("quiet"), QUIET_SHRINK, text)


def _during(begin: int, end: int | None) -> pl.Expr:
    """Between two offsets, both exclusive; the second is None while the migration has not ended."""
    begun = pl.col("offset") > begin
    return begun if end is None else begun & (pl.col("offset") < end)


def _quiet_in_dual_write(history: pl.DataFrame) -> pl.DataFrame:
    """Changes in dual write by which a replica left the ISR and the leader epoch stayed (S§3.3; DUR-13).

    A migration's controller names the leader in every such change, which raises the epoch; only an ISR that grows leaves it.
    """
    changed = ~pl.col("kinds").list.contains(ChangeKind.REPLACED.value)
    text = pl.format(
        "{} partition {}: {} left the ISR, the leader epoch stayed (offset {})",
        "topic_id",
        "partition",
        pl.col("departed").cast(pl.List(pl.String)).list.join(", "),
        "offset",
    )
    return _violations_of(history.filter(_epoch_stayed() & changed), "DUR-13", text)


def _members(moved: pl.DataFrame) -> pl.DataFrame:
    """Departures and moves (either way) of each broker and partition: shown, broker_id, moves, departures."""
    each = moved.select("shown", "departed", pl.col("departed").list.set_union("joined").alias("broker_id")).explode(
        "broker_id"
    )
    left = pl.col("departed").list.contains(pl.col("broker_id"))
    return each.group_by("shown", "broker_id").agg(pl.len().alias("moves"), left.sum().alias("departures"))


def _restarts(present: Present) -> pl.Expr:
    """How often a row's broker was started in the log's last hour."""
    if not present.restarts:
        return pl.lit(0, pl.Int64)
    return pl.col("broker_id").replace_strict(dict(present.restarts), default=0, return_dtype=pl.Int64)


def _times(number: pl.Expr) -> pl.Expr:
    many = pl.format("{} times", number)
    return pl.when(number == 1).then(pl.lit("once")).when(number == 2).then(pl.lit("twice")).otherwise(many)


def _flapping(members: pl.DataFrame, present: Present) -> pl.DataFrame:
    """A restart leaves an ISR once and comes back once; more than that is a broker that cannot keep up."""
    beyond = pl.col("moves").cast(pl.Int64) - 2 * _restarts(present)
    text = pl.format(
        "{}: broker {} left or joined the ISR {} times in the log's last hour, and was started {}",
        "shown",
        "broker_id",
        "moves",
        _times(_restarts(present)),
    )
    return _violations_of(members.filter(beyond >= FLAPPING_FROM), FLAPPING, text)


def _churn(members: pl.DataFrame, present: Present) -> pl.DataFrame:
    """Brokers that left ISRs in the log's last hour: again and again and still out, or not so."""
    left = members.filter(pl.col("departures") > 0).group_by("broker_id")
    brokers = left.agg(pl.len().alias("partitions"), pl.col("departures").max().alias("times"))
    out = pl.col("broker_id").is_in(list(present.out_of_sync))
    again = out & (pl.col("times") > 1)
    repeatedly = pl.format(", {} times at most", "times")
    text = pl.format(
        "broker {} left the ISR of {} partition{}{} in the log's last hour, was started {}, and is {} in sync",
        "broker_id",
        "partitions",
        pl.when(pl.col("partitions") == 1).then(pl.lit("")).otherwise(pl.lit("s")),
        pl.when(pl.col("times") > 1).then(repeatedly).otherwise(pl.lit("")),
        _times(_restarts(present)),
        pl.when(out).then(pl.lit("not")).otherwise(pl.lit("back")),
    )
    return _violations_of(brokers, pl.when(again).then(pl.lit(CHURN)).otherwise(pl.lit(CHURN_PAST)), text)
