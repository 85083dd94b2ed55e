"""UPG-04, UPG-05, BRK, RAS, SHR and the later ELR, CFG and DIR checks (S§8.6): a KRaft cluster in operation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from schemas.checks import KRAFT
from schemas.checks.codes import (
    CONFIG_ALONE,
    CONFIG_LEFT,
    CORDONED,
    DEAD_LETTER_MISSING,
    DEAD_LETTER_PREFIX,
    DEAD_LETTERS,
    DIRECTORY_UNKNOWN,
    ELR_NO_REPLICA,
    ELR_WAITING,
    ENCODED_NAME,
    ONE_RACK,
    REASSIGNING_LONG,
    RESTART_INTERNAL,
    RESTART_OFFLINE,
    RESTART_REFUSED,
    SHARE_STATE,
    THROTTLE_LEFT,
)
from transforms.features.update import CONTROLLERS_REGISTER_FROM, ELR
from transforms.kraft.quorum import LogCopy, seeking_a_leader
from transforms.kraft.release import before
from transforms.outcome import EVIDENCE_LIMIT, Outcome, found, listed_ids, not_applicable, passed, unknown
from transforms.reconcile.judge.checks.finish import far_behind, why_lag_is_unknown
from transforms.reconcile.judge.checks.isr import has_dynamic_min_isr, without_static_min_isr
from transforms.reconcile.judge.checks.outcome import CheckFunction, by_level, by_time, in_tables, sampled
from transforms.reconcile.judge.facts import Facts, Sample

_HOUR = 3_600_000
# Below it `eligible.leader.replicas.version` can't be finalised (`EligibleLeaderReplicasVersion.ELRV_1`).
_ELR_FROM = 23
SHARE_VERSION = "share.version"
# From 3.3-IV1 on an idle leader appends a NoOp every metadata.max.idle.interval.ms, 500 by default (S§2.9).
_NO_OPS = 5
# A new segment begins with a producer snapshot, too, and is empty for less than this: until the leader's next record.
_ROLLS_SECONDS = 5


def _restart(facts: Facts) -> Outcome:
    """UPG-04, internal topics first: every client of a kind needs them."""
    if facts.partition_counts is None:
        return unknown("the partitions were not counted")
    offline = [facts.found(RESTART_INTERNAL), facts.found(RESTART_OFFLINE)]
    refused = facts.found(RESTART_REFUSED)
    lost = sum(sample.total for sample in offline)
    counted = [f"{_partitions(lost)} would have no leader while a broker restarts"] if lost else []
    counted += (
        [f"{_partitions(refused.total)} would refuse producers with acks=all while a broker restarts"]
        if refused.total
        else []
    )
    examples = [example for sample in (*offline, refused) for example in sample.examples]
    evidence = (*counted, *examples)[:EVIDENCE_LIMIT]
    if not lost + refused.total:
        return passed(*_static_unknown(facts))
    return Outcome(lost + refused.total, evidence, tolerable=facts.interruption_accepted)


def _static_unknown(facts: Facts) -> Iterator[str]:
    absent = without_static_min_isr(facts)
    if absent and not has_dynamic_min_isr(facts):
        yield (
            f"what the property files of brokers {listed_ids(absent)} set for min.insync.replicas is unknown: "
            "give them (properties.brokers)"
        )


def _partitions(number: int) -> str:
    return f"{number} partition" if number == 1 else f"{number} partitions"


def _majority(facts: Facts) -> Outcome:
    """UPG-05, by what is proved committed: nothing may be restarted on a state that later changes made old."""
    outcome, unproved = _majority_as_proved(facts), unproved_changes(facts)
    if unproved is None or (outcome.violations and not outcome.tolerable):
        return outcome
    return unknown("; ".join([*([outcome.unknown] if outcome.unknown else []), unproved]))


def unproved_changes(facts: Facts) -> str | None:
    """Changes at the log's end that are not proved committed, and so not judged.

    None if all of them are as recent as the difference that copies of one time may have (`capture_skew_seconds`).
    """
    log = facts.activity
    since = None if log is None else log.unproved_since_ms
    if log is None or since is None or log.last_time_ms - since <= facts.capture_skew_limit * 1000:
        return None
    return (
        f"{log.unproved} changes in the log's last {(log.last_time_ms - since) // 60_000} min are not proved committed and not "
        "judged: give the logs of a majority of the voters, copied at one time"
    )


def _majority_as_proved(facts: Facts) -> Outcome:
    """One or two voters never keep a majority through a restart: a warning only where that is accepted."""
    if not facts.voters:
        return unknown("the quorum's voters are unknown")
    number = len(facts.voters)
    problems = [*_unregistered(facts), *_short_of_majority(facts)]
    if number < 3:
        stops = f"{number} voter{'s' if number > 1 else ''}: the quorum has no leader while one restarts"
        return found([*problems, stops], tolerable=facts.interruption_accepted and not problems)
    if problems:
        return found(problems)
    unmeasured = why_lag_is_unknown(facts) or unsettled(facts)
    return unknown(unmeasured) if unmeasured else found([])


def unsettled(facts: Facts) -> str:
    """Why the copies leave open whether a majority ran when they were made; empty if they do not."""
    seeking = seeking_a_leader(facts.copies)
    if seeking is not None and facts.leader is not None:
        return (
            f"{seeking.name} knew no leader in epoch {seeking.leader_epoch}, and the log ends in epoch {facts.leader.epoch}: a majority of "
            "the voters was missing, or they were stopped or elected a leader at that moment. Check that one leads now"
        )
    blind = [node for node, copy in _copies_of_voters(facts).items() if copy.leader_epoch is None]
    if blind:
        return f"whether controller {listed_ids(blind)} knew a leader is unknown: the file quorum-state beside its log was not copied"
    behind = _seconds_behind(facts)
    late = [node for node, seconds in behind.items() if seconds > facts.capture_skew_limit]
    if not late:
        return ""
    return (
        f"the log of controller {listed_ids(late)} ends {max(behind.values()):.0f} s before the longest one: it is down, or it was "
        "copied earlier"
    )


def _seconds_behind(facts: Facts) -> dict[int, float]:
    """How much older a voter's newest record is than the log's, by files: a leader appends one twice a second."""
    times = {node: copy.last_append_time for node, copy in _copies_of_voters(facts).items()}
    newest = None if facts.plan is None else facts.plan.leading.last_append_time
    if newest is None or (facts.level or 0) < _NO_OPS:
        return {}
    return {node: (newest - time) / 1000 for node, time in times.items() if time is not None}


def _copies_of_voters(facts: Facts) -> dict[int, LogCopy]:
    """The longest copy of each voter; none if a running leader was asked, or if all were stopped before they were copied."""
    fetched = any(copy.fetched_at is not None for copy in facts.copies)
    own = {copy.controller_id: copy for copy in sorted(facts.copies, key=lambda copy: copy.end) if copy.has_log}
    mine = {node: own[node] for node in facts.voters if node in own}
    return {} if fetched or all(copy.stopped_cleanly for copy in mine.values()) else mine


def _stopped(facts: Facts) -> dict[int, str]:
    """Voters that were stopped while the others ran on: a controller that ends writes a producer snapshot at its log's end.

    Of a running quorum the leader knows who does not fetch.
    """
    behind = _seconds_behind(facts)
    stopped = {
        node: f"controller {node} was stopped when its log was copied, at offset {copy.end - 1}, and the log goes on"
        for node, copy in _copies_of_voters(facts).items()
        if copy.stopped_cleanly and behind.get(node, 0) > _ROLLS_SECONDS
    }
    newest = max(facts.copies, key=lambda copy: copy.fetched_at or 0, default=None)
    silent = () if newest is None else newest.silent_voters
    return stopped | {node: f"controller {node} does not fetch from the leader" for node in silent}


def _unregistered(facts: Facts) -> Iterator[str]:
    unread = not facts.controllers and facts.counts.get("controllers", {}).get(KRAFT) != 0
    if (facts.level or 0) < CONTROLLERS_REGISTER_FROM or unread:
        return
    registered = {row["controller_id"] for row in facts.controllers}
    for node in sorted(set(facts.voters) - registered):
        yield f"controller {node} is a voter but is not registered"


def _short_of_majority(facts: Facts) -> Iterator[str]:
    far, majority = {**far_behind(facts), **_stopped(facts)}, len(facts.voters) // 2 + 1
    if len(facts.voters) - len(far) - 1 < majority:
        for evidence in far.values():
            yield f"{evidence}: do not restart any other controller"


def _fenced(facts: Facts) -> Outcome:
    """BRK-01, by the broker's last record."""
    end = facts.newest_append_time_ms
    if end is None:
        return unknown("the log's newest record has no time")
    held = {use.broker_id: use.replicas for use in facts.replicas}
    fenced = [row for row in facts.brokers_in_kraft if row["fenced"] and held.get(row["broker_id"])]
    untimed = [row["broker_id"] for row in fenced if row.get("kraft_append_time") is None]
    long = [
        f"broker {row['broker_id']} holds {held[row['broker_id']]} replicas and has been fenced for "
        f"{(end - row['kraft_append_time']) // 60_000} min"
        for row in fenced
        if row["broker_id"] not in untimed and end - row["kraft_append_time"] > _HOUR
    ]
    if untimed and not long:
        return unknown(f"since when broker {listed_ids(untimed)} is fenced is unknown: its last record has no time")
    return found(long)


def _one_owner(facts: Facts) -> Outcome:
    """BRK-02."""
    owners: dict[str, set[int]] = defaultdict(set)
    twice: set[tuple[int, str]] = set()
    for row in facts.brokers_in_kraft:
        directories = row.get("log_dirs") or []
        twice |= {(row["broker_id"], each) for each in directories if directories.count(each) > 1}
        for directory in directories:
            owners[directory].add(row["broker_id"])
    shared = [
        f"directory {name} belongs to brokers {listed_ids(ids)}" for name, ids in sorted(owners.items()) if len(ids) > 1
    ]
    return found([*shared, *(f"broker {node} lists directory {name} twice" for node, name in sorted(twice))])


def _racks(facts: Facts) -> Outcome:
    """BRK-03."""
    missing = [row["broker_id"] for row in facts.brokers_in_kraft if not row.get("rack")]
    if len(missing) == len(facts.brokers_in_kraft):
        return found([])
    return found(f"broker {node} has no rack" for node in sorted(missing))


def _elr_on(facts: Facts) -> Outcome:
    """ELR-04. New clusters have it from 4.1 on; an upgraded one has it when somebody turned it on."""
    if facts.kafka_version is None:
        return unknown("the Kafka release is unknown: set kafka_version")
    if before(facts.kafka_version, 4, 1):
        return not_applicable("eligible leader replicas are off by default before Kafka 4.1")
    if facts.level is None or facts.level < _ELR_FROM:
        return not_applicable("eligible leader replicas need metadata.version 4.0-IV1")
    return found([] if facts.features.get(ELR) else [f"{ELR} is not finalised"])


def _share_state(facts: Facts) -> Outcome:
    """SHR-01."""
    if not facts.features.get(SHARE_VERSION):
        return not_applicable("share groups are off: share.version is not finalised")
    return sampled(facts.found(SHARE_STATE))


def _dead_letters(facts: Facts) -> Outcome:
    """SHR-02. A property file may set another prefix than the default, and have topics created; the metadata does not show it."""
    found, unsure, missing = (
        facts.found(DEAD_LETTERS),
        facts.found(DEAD_LETTER_PREFIX),
        facts.found(DEAD_LETTER_MISSING),
    )
    created = facts.properties.creates_dead_letter_topics()
    if not all(created.values()):
        return sampled(found, missing)
    if found.total:
        return sampled(found)
    absent = {row["broker_id"] for row in facts.brokers_in_kraft} - created.keys()
    if missing.total and absent:
        return unknown(
            f"{missing.examples[0]} ({missing.total} in all): whether the property files of brokers {listed_ids(absent)} let them create "
            "it is unknown: create it, or give them (properties.brokers)"
        )
    if not unsure.total:
        return passed()
    return unknown(
        f"{unsure.examples[0]}, the default prefix ({unsure.total} in all): whether a property file sets another one is unknown; "
        "set errors.deadletterqueue.topic.name.prefix for the cluster"
    )


def _gone(facts: Facts) -> Outcome:
    """CFG-03, by the log alone: what ZooKeeper still has after finalising does not count.

    A controller may have configurations of its own, too (`QuorumController.ConfigResourceExistenceChecker`). What a removed topic
    left is in the checkpoints of single nodes (`ConfigurationsDelta`).
    """
    if facts.configured_in_kraft is None:
        return unknown("the brokers' configurations were not read")
    registered = {row["broker_id"] for row in facts.brokers_in_kraft if row.get("source", KRAFT) == KRAFT}
    nodes = registered | set(facts.voters) | {row["controller_id"] for row in facts.controllers}
    gone = tuple(f"broker {node} is not registered" for node in sorted(facts.configured_in_kraft - nodes))
    return sampled(Sample(len(gone), gone), facts.found(CONFIG_ALONE, CONFIG_LEFT))


CHECKS: dict[str, CheckFunction] = {
    "UPG-04": _restart,
    "UPG-05": _majority,
    "BRK-01": _fenced,
    "BRK-02": _one_owner,
    "BRK-03": _racks,
    "BRK-04": in_tables(ONE_RACK),
    "RAS-01": by_time(in_tables(REASSIGNING_LONG)),
    "RAS-02": in_tables(THROTTLE_LEFT),
    "ELR-03": in_tables(ELR_WAITING),
    "ELR-04": _elr_on,
    "ELR-05": in_tables(ELR_NO_REPLICA),
    "SHR-01": _share_state,
    "SHR-02": _dead_letters,
    "CFG-03": _gone,
    "CFG-05": in_tables(ENCODED_NAME),
    "DIR-03": by_level(in_tables(CORDONED)),
    "DIR-04": by_level(by_time(in_tables(DIRECTORY_UNKNOWN))),
}
