"""KRaft's own health from the answers, as facts and as input of the rules of the second look."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from schemas.checks import KRAFT, ZOOKEEPER
from transforms.isr.violations import Present
from transforms.kraft.quorum import newest_checkpoint
from transforms.kraft.side import KRAFT_VERSION, KRAFT_VOTERS, LEADER_CHANGE, KraftSide
from transforms.reconcile.judge import kraft_queries
from transforms.reconcile.judge.facts import BrokerConfig, LogActivity, PartitionCounts, Quorum, Voter, VoterSet
from transforms.reconcile.judge.given import Answers

Rows = Sequence[Mapping[str, Any]]
# They change no metadata, so nothing is overlooked while they are not proved committed.
_NO_CHANGE = ("NO_OP_RECORD", LEADER_CHANGE)
# A greater one is no INT (`ConfigDef.parseType`).
_INT_MAX = 2**31 - 1


def quorum_of(side: KraftSide) -> Quorum:
    """Quorum by the log's control records."""
    version, sets = 0, []
    for record in side.milestones:
        if record["type"] == KRAFT_VERSION:
            version = json.loads(record["data"])["kRaftVersion"]
        elif record["type"] == KRAFT_VOTERS:
            of_checkpoint = record["checkpoint_offset"] is not None
            voters = tuple(_voter(voter) for voter in json.loads(record["data"])["voters"])
            sets.append(VoterSet(record["offset"], None if of_checkpoint else record["append_time"], voters))
    return Quorum(version, tuple(sets))


def _voter(voter: Mapping[str, Any]) -> Voter:
    endpoints = tuple((each["name"], each["host"], each["port"]) for each in voter["endpoints"])
    return Voter(voter["voterId"], voter["voterDirectoryId"], endpoints)


def activity_of(rows: Rows, side: KraftSide, earlier_ms: int | None = None) -> LogActivity:
    """Activity by the rows of `activity`; a log that this run read no record of has none.

    `earlier_ms` is the append time of the first record in no snapshot that an earlier run has read.
    """
    checkpoint = newest_checkpoint(side.copies)
    timed = [row for row in rows if row["first"] is not None]
    if not timed:
        end = side.plan.leading.last_append_time or 0
        return LogActivity(end, end, 0, {}, checkpoint, end if earlier_ms is None else earlier_ms)
    below = [row["below"] for row in rows if row["below"] is not None]
    # Answers of earlier releases have neither `unproved` nor `leaderless`.
    unproved = [row for row in rows if row["type"] not in _NO_CHANGE and row.get("unproved")]
    return LogActivity(
        first_time_ms=min(row["first"] for row in timed),
        last_time_ms=max(row["last"] for row in timed),
        bytes=sum(row["bytes"] for row in rows),
        by_type={row["type"]: row["records"] for row in rows},
        checkpoint=checkpoint,
        checkpoint_time_ms=max(below, default=None) if earlier_ms is None else earlier_ms,
        bytes_behind=sum(row["behind"] or 0 for row in rows),
        unproved=sum(row["unproved"] for row in unproved),
        unproved_since_ms=min(
            (row["unproved_first"] for row in unproved if row["unproved_first"] is not None), default=None
        ),
        leaderless_ms=sum(row.get("leaderless") or 0 for row in rows),
    )


def partition_counts(rows: Rows) -> dict[str, PartitionCounts]:
    """Counts by side, from the rows of `partition_health`; a side without partitions has none."""
    names = ("partitions", "leaderless", "short", "recovering", "moved")
    counted = {row["source"]: PartitionCounts(*(row[name] for name in names)) for row in rows}
    return {side: counted.get(side, PartitionCounts()) for side in (ZOOKEEPER, KRAFT)}


def out_of_sync_of(rows: Rows) -> dict[str, dict[int, int]]:
    """Replicas that their ISR lacks, by side and broker, from the rows of `out_of_sync`."""
    found: dict[str, dict[int, int]] = defaultdict(dict, {ZOOKEEPER: {}, KRAFT: {}})
    for row in rows:
        found[row["source"]][row["broker_id"]] = row["replicas"]
    return dict(found)


def configs_of(rows: Rows) -> tuple[BrokerConfig, ...]:
    """Brokers' dynamic configurations, from the rows of `broker_configs`."""
    return tuple(BrokerConfig(row["source"], row["broker"] or "", row["name"], row["value"]) for row in rows)


def health_of(
    brokers: Rows,
    answers: Answers,
    *,
    by_zookeeper: bool,
    compared: bool,
    level: int | None,
    bumps: bool,
    side: KraftSide | None,
    static_min_isr: Mapping[int, int],
) -> kraft_queries.Health:
    """The input of the second look's rules, from the answers of the first; `brokers` are silver rows of both sides, `bumps` is
    true where a shrinking ISR must raise the leader epoch all through the log, `static_min_isr` what brokers' files say.
    """
    registered = [row for row in brokers if row["source"] == KRAFT]
    in_zookeeper = [row["broker_id"] for row in brokers if row["source"] == ZOOKEEPER]
    deciding = ZOOKEEPER if by_zookeeper or side is None else KRAFT
    least = _values(answers, kraft_queries.MIN_ISR, deciding)
    counts = partition_counts(answers.of("partition_health"))
    return kraft_queries.Health(
        brokers=in_zookeeper,
        directories={r["broker_id"]: r["log_dirs"] for r in registered if r["log_dirs"]},
        cordoned={r["broker_id"]: r["cordoned_log_dirs"] for r in registered if r.get("cordoned_log_dirs")},
        racks={r["broker_id"]: r["rack"] for r in registered if r["rack"]},
        deciding=deciding,
        min_isr={broker: int(value) for broker, value in least.items() if value.isdecimal() and int(value) <= _INT_MAX},
        static_min_isr=max(static_min_isr.values(), default=None),
        leaderless=counts[KRAFT].leaderless > 0,
        compared=compared,
        zookeeper=by_zookeeper,
        level=level,
        present=Present(
            log_end_ms=None if side is None else side.plan.leading.last_append_time,
            at_work=tuple(r["broker_id"] for r in registered if not (r["fenced"] or r["in_controlled_shutdown"])),
            out_of_sync=tuple(sorted(out_of_sync_of(answers.of("out_of_sync"))[KRAFT])),
            restarts=restarts_of(answers.of("restarts")),
            bumps_on_shrink=bumps,
            dual_write=None if side is None else side.dual_write(),
        ),
    )


def allows_unclean(answers: Answers, leader: int | None) -> bool:
    """Whether the cluster allows unclean elections for topics without their own setting.

    Of brokers' own settings the active controller, `leader`, asks for its own (`ConfigurationControlManager.getTopicConfig`).
    """
    values = _values(answers, kraft_queries.UNCLEAN, KRAFT)
    return values.get(str(leader), values.get("", "")).lower() == "true"


def _values(answers: Answers, name: str, side: str) -> dict[str, str]:
    """A side's values of a configuration by broker, as `ConfigDef.parseType` trims them; '' is the cluster's own."""
    mine = [each for each in configs_of(answers.of("broker_configs")) if each.source == side and each.name == name]
    return {each.broker: (each.value or "").strip() for each in mine}


def restarts_of(rows: Rows) -> dict[int, int]:
    """Registrations of each broker in the log's last hour, from the rows of `restarts`."""
    return {row["broker_id"]: row["restarts"] for row in rows if row["broker_id"] is not None}
