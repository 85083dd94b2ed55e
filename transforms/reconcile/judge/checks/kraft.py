"""UPG, QRM, LOG, ELR, CFG and DIR checks (S§8.4): a KRaft cluster's own health, and may it be upgraded."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from schemas.checks import KRAFT
from schemas.checks.codes import (
    CLEAR_REMOVED,
    DIRECTORY_LOST,
    LAST_KNOWN_FENCED,
    LOADED_AGAIN,
    POISON,
    REASSIGNING,
    UNCLEAN_LEADERLESS,
    UNDER_REPLICATED,
)
from schemas.kraft.metadata_versions import FEATURE_NAME, UNREGISTER_CONTROLLERS_FROM, is_known, level_name

# As modules: they themselves need this package's outcomes.
from transforms.features import matrix, requests, update
from transforms.features.levels import MINIMUM_4X, defaults, highest_of, latest_of, lowest_of, release_tuple
from transforms.kraft.quorum import replayed_from, seeking_a_leader
from transforms.kraft.release import before
from transforms.outcome import EVIDENCE_LIMIT, Outcome, found, listed_ids, not_applicable, passed, unknown
from transforms.properties import NodeSettings
from transforms.reconcile.judge.checks.outcome import CheckFunction, by_level, by_time, in_tables, sampled
from transforms.reconcile.judge.cluster import cluster_of
from transforms.reconcile.judge.directory_rules import MIGRATING
from transforms.reconcile.judge.facts import Facts, Voter, VoterSet
from transforms.reconcile.judge.kraft_queries import MIN_ISR

_HOUR, _DAY = 3_600_000, 86_400_000
# Kafka's defaults of SNAPSHOT_INTERVAL and SNAPSHOT_BYTES (`transforms.properties`); a checkpoint is missed at twice them.
_SNAPSHOT_AGE, _SNAPSHOT_BYTES = _HOUR, 20 * 1024 * 1024
# KafkaRaftClient.MAX_BATCH_SIZE_BYTES is 8 MiB.
_LARGE_BATCH = 7 * 1024 * 1024
# More leaders than a rolling restart of the quorum makes, with something to spare.
_MOST_EPOCHS = 10
_BACK_AGAIN = 5 * 60_000
_DIRECTORIES_FROM = 17


def _newest_level(facts: Facts) -> Outcome:
    """UPG-01: what the controller would answer to `kafka-features upgrade` to its own release's newest level, and its features'."""
    if facts.kafka_version is None:
        return unknown("the Kafka release is unknown: set kafka_version")
    release = release_tuple(facts.kafka_version)
    target = latest_of(release)
    if target is None:
        return unknown(f"this audit does not support the levels of Kafka {facts.kafka_version}")
    if facts.level is None:
        return unknown("no metadata.version is finalised")
    shown = f"{level_name(facts.level)} ({facts.level})"
    if not is_known(facts.level):
        return unknown(f"metadata.version is at {shown}, a level that this audit does not support")
    if facts.level >= target:
        return passed(f"metadata.version is at {shown}, the newest of Kafka {release[0]}.{release[1]}")
    answer = _asked(facts, release, target)
    if answer.verdict is update.FeatureVerdict.UNKNOWN:
        return unknown(answer.message)
    refused = [answer.message, *(text for text in answer.blocking if text not in answer.message)]
    if answer.verdict is update.FeatureVerdict.YES:
        refused = _features_refused(facts, release, target)
    if refused:
        return found(refused)
    return passed(f"metadata.version may be raised from {shown} to {level_name(target)} ({target})", *answer.notes)


def _asked(facts: Facts, release: tuple[int, int], target: int) -> update.FeatureAnswer:
    return update.dry_run([update.Update(FEATURE_NAME, target)], cluster_of(facts, release)).answers[0]


def _features_refused(facts: Facts, release: tuple[int, int], target: int) -> list[str]:
    """The answer to `--release-version` if a node does not support a feature that it raises: then nothing is raised.

    A broker of 4.x that registers with a controller of 3.8 or earlier, as the first node of a combined cluster does that is rolled, is
    registered without any feature of a minimum of 0 (`BrokerRegistrationRequest.Builder.build`). kraft.version is FEAT-10's.
    """
    if release < requests.FIRST_WITH_RELEASES:
        return []
    cluster = cluster_of(facts, release)
    lower = {name: level for name, level in defaults(release, target).items() if cluster.finalised.get(name, 0) < level}
    lower.pop(matrix.KRAFT_VERSION, None)
    wanted = [update.Update(FEATURE_NAME, target), *(update.Update(name, level) for name, level in lower.items())]
    answers = update.dry_run(wanted, cluster).answers
    blocking = dict.fromkeys(text for answer in answers for text in answer.blocking)
    return [answers[0].message, *(text for text in blocking if text not in answers[0].message)] if blocking else []


def _forgetting(facts: Facts, node: int) -> str:
    """The command that unregisters a controller, or what to do where there is none yet (KIP-1312)."""
    if facts.level is not None and facts.level >= UNREGISTER_CONTROLLERS_FROM:
        return f"kafka-cluster.sh unregister-controller --id {node} unregisters it once it is stopped"
    needed = level_name(UNREGISTER_CONTROLLERS_FROM)
    return (
        f"it can be unregistered from metadata.version {needed} ({UNREGISTER_CONTROLLERS_FROM}) on; until then start it "
        "once with the release that the others run"
    )


def _in_sync(facts: Facts) -> Outcome:
    """UPG-02. Partitions without a leader are ISR-16's."""
    if facts.partition_counts is None or facts.out_of_sync is None:
        return unknown("the partitions were not counted")
    behind, moving = facts.found(UNDER_REPLICATED), facts.found(REASSIGNING)
    if behind.total or not moving.total:
        return sampled(behind)
    # The replicas that it adds are not counted: they are to catch up, not to come back.
    return passed(f"a reassignment is in progress ({moving.total} in all)", *moving.examples[:3])


def _next_major(facts: Facts) -> Outcome:
    """UPG-03."""
    if facts.kafka_version is None:
        return unknown("the Kafka release is unknown: set kafka_version")
    if not before(facts.kafka_version, 4, 0):
        if latest_of(release_tuple(facts.kafka_version)) is None:
            return unknown(f"this audit does not support the release after Kafka {facts.kafka_version}")
        return not_applicable("the cluster runs Kafka 4 already")
    if facts.level is None:
        return unknown("no metadata.version is finalised")
    return found(
        []
        if facts.level >= MINIMUM_4X
        else [f"metadata.version is at {level_name(facts.level)}, Kafka 4 starts from {level_name(MINIMUM_4X)}"]
    )


def _ghosts(facts: Facts) -> Outcome:
    """QRM-01."""
    if not facts.voters:
        return unknown("the quorum's voters are unknown")
    if not facts.controllers and facts.rows_in_kraft("controllers") == 0:
        return not_applicable("controllers register from metadata.version 3.7-IV0 on")
    return found(_ghost_texts(facts))


def _ghost_texts(facts: Facts) -> Iterator[str]:
    brokers = {row["broker_id"] for row in facts.brokers_in_kraft}
    for row in sorted(facts.controllers, key=lambda row: int(row["controller_id"])):
        if row["controller_id"] not in facts.voters:
            highest = matrix.node_of(row).supports(FEATURE_NAME)[1]
            levels = f" and supports metadata.version up to {level_name(highest)} ({highest})" if highest else ""
            forgetting = _forgetting(facts, row["controller_id"])
            if row["controller_id"] in brokers:
                forgetting += "; it is a broker, too: with the role controller in its process.roles it registers again whenever it starts"
            yield f"controller {row['controller_id']} is registered but is not a voter{levels}; {forgetting}"


def _left_behind(facts: Facts) -> Outcome:
    """QRM-02, by the broker's last record, as BRK-01: one that is being restarted is fenced for some minutes."""
    held = {use.broker_id for use in facts.replicas if use.replicas}
    idle = [row for row in facts.brokers_in_kraft if row["fenced"] and row["broker_id"] not in held]
    known = {row["broker_id"]: minutes for row in idle if (minutes := _minutes(facts, row)) is not None}
    texts = {each: f"broker {each} is fenced and has no replicas, for {minutes} min" for each, minutes in known.items()}
    gone = [texts[each] for each, minutes in known.items() if minutes >= 60]
    if gone:
        return found(gone)
    untimed = [row["broker_id"] for row in idle if row["broker_id"] not in known]
    if untimed:
        return unknown(f"since when broker {listed_ids(untimed)} is fenced is unknown: its last record has no time")
    return passed(*texts.values())


def _minutes(facts: Facts, row: Mapping[str, object]) -> int | None:
    """Since the broker's newest record."""
    time, end = row.get("kraft_append_time"), facts.newest_append_time_ms
    return (end - time) // 60_000 if isinstance(time, int) and end is not None else None


def _directory_ids(facts: Facts) -> Outcome:
    """QRM-03, by any copy of a voter. One taken over from a static quorum may have no directory id yet (the zero id)."""
    if facts.quorum is None:
        return unknown("the log's control records were not read")
    copies: dict[int | None, list[str]] = defaultdict(list)
    for copy in facts.copies:
        if copy.directory_id is not None:
            copies[copy.controller_id].append(copy.directory_id)
    compared = [voter for voter in facts.quorum.voters if voter.voter_id in copies and voter.directory_id != MIGRATING]
    if not compared:
        return not_applicable("the voters have no directory ids, or no copy has its meta.properties")
    return found(
        f"voter {voter.voter_id} has directory id {voter.directory_id}, its meta.properties {', '.join(copies[voter.voter_id])}"
        for voter in compared
        if voter.directory_id not in copies[voter.voter_id]
    )


def _endpoints(facts: Facts) -> Outcome:
    """QRM-04, by listener name: a registration may have more listeners than the voters' record."""
    if facts.quorum is None:
        return unknown("the log's control records were not read")
    registered = {row["controller_id"]: row.get("endpoints") or () for row in facts.controllers}
    if not any(voter.voter_id in registered for voter in facts.quorum.voters):
        return not_applicable("the quorum's voters have no endpoints in the log, or no controller is registered")
    return found(text for voter in facts.quorum.voters for text in _moved(voter, registered.get(voter.voter_id, ())))


def _moved(voter: Voter, registered: object) -> Iterator[str]:
    now = {each["name"]: (each["host"], each["port"]) for each in registered}  # type: ignore[attr-defined]
    for name, host, port in voter.endpoints:
        if name in now and now[name] != (host, port):
            there = f"{now[name][0]}:{now[name][1]}"
            yield f"voter {voter.voter_id}: {name} is {host}:{port} in the voters' record, but {there} in its registration"


def _size(facts: Facts) -> Outcome:
    """QRM-05. An even quorum that has grown is on its way to an odd one: a remark, not a warning.

    A voter that comes back with another directory id has a new disk: its old entry has to be removed first (KIP-853), which its
    own controller does where it may join on its own (KIP-1186, `KafkaRaftClient.pollFollowerAsObserver`).
    """
    if facts.quorum is None or not facts.voters:
        return unknown("the quorum's voters are unknown")
    number, sets = len(facts.voters), facts.quorum.voter_sets
    texts = [*_joined_again(facts, sets)]
    if number % 2 == 0 and any(len(earlier.voters) > number for earlier in sets):
        texts.append(f"{number} voters, fewer than before: {listed_ids(facts.voters)}")
    if texts:
        return found(texts)
    kind = "kraft.version 1, in the log" if facts.quorum.kraft_version else "kraft.version 0, controller.quorum.voters"
    even = "" if number % 2 else f"; an even number tolerates no more failures than {number - 1}"
    return passed(f"{number} voters ({kind}): {listed_ids(facts.voters)}{even}")


def _joined_again(facts: Facts, sets: Sequence[VoterSet]) -> Iterator[str]:
    """Voters whose removal their own controllers have undone, and who still vote: one that is off again was removed for good.

    A controller joins on its own from 4.2 on, where AUTO_JOIN is set; it is not by default. Otherwise an operator added it.
    """
    if before(facts.kafka_version, 4, 2):
        return
    by_hand = {file.node_id for file in facts.properties.controllers if not file.settings.joins_alone}
    for (first, removed), later in zip(pairwise(sets), sets[2:], strict=False):
        back = (first.keys - removed.keys) & later.keys & sets[-1].keys
        gone = {node for node, _ in back} - by_hand
        if gone and _soon(removed.time_ms, later.time_ms):
            yield f"voter {listed_ids(gone)} was removed at offset {removed.offset} and added again at offset {later.offset}"


def _soon(earlier: int | None, later: int | None) -> bool:
    return earlier is not None and later is not None and later - earlier < _BACK_AGAIN


def _configured_voters(facts: Facts) -> Outcome:
    """QRM-06."""
    if facts.quorum is None:
        return unknown("the log's control records were not read")
    files = [*facts.properties.controllers, *facts.properties.brokers]
    if not files:
        return not_applicable("no property file of a node was given (properties.controllers, properties.brokers)")
    dynamic = facts.quorum.kraft_version > 0
    return found(
        f"{file.location}: controller.quorum.voters {'is set' if dynamic else 'is missing'}, kraft.version is "
        f"{facts.quorum.kraft_version}"
        for file in files
        if bool(file.settings.voters) == dynamic
    )


def _elections(facts: Facts) -> Outcome:
    """QRM-07: epochs in the log's last hour, including those without a winner."""
    end = facts.newest_append_time_ms
    if facts.leader is None or end is None:
        return unknown("the leader epochs were not read")
    recent = [
        epoch for epoch in facts.epochs if epoch.append_time_ms is not None and epoch.append_time_ms > end - _HOUR
    ]
    seeking = seeking_a_leader(facts.copies)
    if not recent and seeking is None:
        return passed(f"no election in the log's last hour, epoch {facts.leader.epoch}")
    numbers = [epoch.epoch for epoch in recent] or [facts.leader.epoch]
    newest = max(numbers) if seeking is None else seeking.leader_epoch or 0
    passes = max(newest - min(numbers) + 1, len(numbers))
    text = f"{len(recent)} elections and {passes} epochs in the log's last hour, up to epoch {newest}"
    if seeking is not None:
        text += f", in which {seeking.name} knew no leader"
    return found([text]) if passes > _MOST_EPOCHS else passed(text)


def _snapshots(facts: Facts) -> Outcome:
    """LOG-01: age and size from the oldest record that no checkpoint contains; and how the log grows.

    The age is without the time when there was no leader: a node that starts counts from its start (`SnapshotGenerator`).
    """
    log = facts.activity
    if log is None:
        return unknown("the log's records were not counted")
    age = log.last_time_ms - (log.checkpoint_time_ms or log.first_time_ms) - log.leaderless_ms
    behind = log.bytes if log.checkpoint is None else log.bytes_behind
    name = "no checkpoint" if log.checkpoint is None else f"the newest checkpoint ends at offset {log.checkpoint}"
    text = f"{name}: {age // 60_000} min and {behind / 1024 / 1024:.1f} MiB of the log are not in a checkpoint"
    most_age, most_bytes = _snapshot_limits(facts)
    if (most_age and age > 2 * most_age) or behind > 2 * most_bytes:
        return found([text])
    return passed(*([text] if log.by_type else []), *_growth(facts))


def _snapshot_limits(facts: Facts) -> tuple[int, int]:
    """Age (ms, 0: never by age) and bytes at which the first controller makes a checkpoint, by its file or Kafka's defaults.

    3.3 makes them by size alone (KIP-876).
    """
    settings = [file.settings for file in facts.properties.controllers]
    if not settings or set(facts.voters) - {file.node_id for file in facts.properties.controllers}:
        settings.append(NodeSettings())
    ages = [_SNAPSHOT_AGE if each.snapshot_ms is None else each.snapshot_ms for each in settings]
    least = 0 if before(facts.kafka_version, 3, 4) else min((age for age in ages if age > 0), default=0)
    return least, min(_SNAPSHOT_BYTES if each.snapshot_bytes is None else each.snapshot_bytes for each in settings)


def _growth(facts: Facts) -> Iterator[str]:
    """Growth a day and the most frequent record types, where there is more than a moment to count by."""
    log = facts.activity
    if log is None or not log.by_type or log.last_time_ms - log.first_time_ms < 60_000:
        return
    days = (log.last_time_ms - log.first_time_ms) / _DAY
    common = sorted(log.by_type.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    kinds = ", ".join(f"{count} {name}" for name, count in common)
    yield f"the log grows by {log.bytes / days / 1024 / 1024:.1f} MiB a day; most records: {kinds}"


_OFFSET = re.compile(r"\(offset (\d+)\)$")


def _replayable(facts: Facts) -> Outcome:
    """LOG-02, with which copies have the record: one log is the same in all of them up to where their epochs agree.

    Without the release nothing passes; what throws in every release is a fault nevertheless.
    """
    # Before 3.6 a second TopicRecord of a name silently replaced the first.
    twice = () if before(facts.kafka_version, 3, 6) else ("DUR-08", LOADED_AGAIN)
    # A ClearElr record after a topic's removal: 4.0.0 alone does not throw, but the release that it is upgraded to does.
    throws = before(facts.kafka_version, 4, 2)
    poison = facts.found(*POISON, "DUR-15", *twice, *((CLEAR_REMOVED,) if throws else ()))
    levels = [*_beyond_controllers(facts)]
    evidence = tuple(text + _held_by(facts, text) for text in (*levels, *poison.examples))
    return Outcome(len(levels) + poison.total, evidence[:EVIDENCE_LIMIT])


def _beyond_controllers(facts: Facts) -> Iterator[str]:
    """FeatureLevel records outside of what the controllers support (`FeatureControlManager.replay`).

    A registered controller reports its range, otherwise its release decides; with an unknown release the check is unknown. A
    node starts from its newest checkpoint: earlier records are not replayed.
    """
    first = replayed_from(facts.copies)
    for change in (*facts.levels, *facts.other_levels):
        if change.offset < first:
            continue
        supported = _supported(facts, change.feature)
        if supported is not None and not supported[0] <= change.level <= supported[1]:
            text = f"{change.feature} was finalised at level {change.level}, the controllers support {supported[0]} to "
            yield f"{text}{supported[1]} (offset {change.offset})"


def _supported(facts: Facts, feature: str) -> tuple[int, int] | None:
    """The levels that every voter supports; None if neither a registration nor the release shows them."""
    named = [matrix.node_of(row) for row in facts.controllers if row["controller_id"] in facts.voters]
    ranges = [node.supports(feature) for node in named if node.ranges]
    if ranges:
        return max(lowest for lowest, _ in ranges), min(highest for _, highest in ranges)
    if facts.kafka_version is None:
        return None
    release = release_tuple(facts.kafka_version)
    highest = highest_of(release, feature)
    return None if highest is None else (lowest_of(release) if feature == FEATURE_NAME else 0, highest)


def _held_by(facts: Facts, text: str) -> str:
    place = _OFFSET.search(text)
    if place is None or facts.plan is None:
        return ""
    offset = int(place[1])
    epoch = facts.plan.leading.epoch_at(offset)
    having = [copy.who for copy in facts.copies if copy.has_log and copy.epoch_at(offset) == epoch]
    if epoch is None or not having:
        return ""
    return f"; the same record is in the copies of {', '.join(having)}"


def _batches(facts: Facts) -> Outcome:
    """LOG-03."""
    known = [copy for copy in facts.copies if copy.largest_batch is not None]
    if not known:
        return not_applicable("no copy's batches were measured")
    return found(
        f"{copy.name} has a batch of {(copy.largest_batch or 0) / 1024 / 1024:.1f} MiB; the limit is 8 MiB"
        for copy in known
        if (copy.largest_batch or 0) > _LARGE_BATCH
    )


def _goes_on(facts: Facts) -> Outcome:
    """LOG-04, by what is read: a copy that does not reach the others' first record has nothing of what is between."""
    if facts.plan is None:
        return unknown("no log was planned")
    if facts.previous_end is None:
        return not_applicable("there is no earlier run of this cluster")
    start = facts.plan.start
    if start <= facts.previous_end + 1:
        return found([])
    return found([f"the log starts at offset {start}, but the previous run ended at offset {facts.previous_end}"])


def _elr_configs(facts: Facts) -> Outcome:
    """ELR-01."""
    if not facts.features.get(update.ELR):
        return not_applicable(f"{update.ELR} is not finalised")
    if facts.broker_configs is None:
        return unknown("the brokers' dynamic configurations were not read")
    mine = [config for config in facts.broker_configs if config.source == KRAFT and config.name == MIN_ISR]
    texts = [
        f"broker {config.broker} has its own min.insync.replicas {config.value}" for config in mine if config.broker
    ]
    if all(config.broker for config in mine):
        texts.insert(0, "min.insync.replicas is not set for the cluster")
    return found(texts)


def _removed_configs(facts: Facts) -> Outcome:
    """CFG-01: 4.0 to 4.2 refuse any later change of the topic, 4.3 and later skip the configuration."""
    if facts.kafka_version is not None and not before(facts.kafka_version, 4, 3):
        return not_applicable("from 4.3 on Kafka skips configurations that it does not support")
    return sampled(facts.found("CFG-01"))


def _early_directories(facts: Facts) -> Outcome:
    """DIR-01."""
    if facts.level is not None and facts.level >= _DIRECTORIES_FROM:
        return not_applicable("metadata.version supports directories")
    return sampled(facts.found("DIR-01"))


def _directories(facts: Facts) -> Outcome:
    """DIR-02."""
    if facts.level is not None and facts.level < _DIRECTORIES_FROM:
        return not_applicable("directories are supported from metadata.version 3.7-IV2 on")
    silent = [
        f"broker {row['broker_id']} lists no log directory"
        for row in facts.brokers_in_kraft
        if not (row.get("log_dirs") or row["is_migrating_zk_broker"] or row["fenced"])
    ]
    lost = facts.found(DIRECTORY_LOST)
    return Outcome(len(silent) + lost.total, (*silent, *lost.examples)[:EVIDENCE_LIMIT])


CHECKS: dict[str, CheckFunction] = {
    "UPG-01": _newest_level,
    "UPG-02": _in_sync,
    "UPG-03": _next_major,
    "QRM-01": _ghosts,
    "QRM-02": _left_behind,
    "QRM-03": _directory_ids,
    "QRM-04": _endpoints,
    "QRM-05": _size,
    "QRM-06": _configured_voters,
    "QRM-07": _elections,
    "LOG-01": _snapshots,
    "LOG-02": _replayable,
    "LOG-03": _batches,
    "LOG-04": _goes_on,
    "ELR-01": _elr_configs,
    "ELR-02": by_time(in_tables(LAST_KNOWN_FENCED)),
    "CFG-01": _removed_configs,
    "CFG-02": in_tables(UNCLEAN_LEADERLESS),
    "CFG-04": in_tables("CFG-04"),
    "DIR-01": by_level(_early_directories),
    "DIR-02": by_level(_directories),
}
