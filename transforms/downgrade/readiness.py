"""May this cluster go back to an older release: safe, loses, blocked or unknown, with the evidence of each (S§10.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from schemas.kraft.metadata_versions import FEATURE_NAME, HIGHEST_NAMED, MINIMUM_LEVEL_4X, NAMED_IN_4_0_0, level_name
from transforms.downgrade.evidence import TRACES
from transforms.downgrade.ledger import (
    BY_FEATURE,
    BY_ID,
    BY_PROTOCOL,
    OF_FILES,
    OF_KRAFT,
    OF_NEW_CONFIGS,
    Effect,
    FeatureZnode,
    Seen,
)
from transforms.downgrade.ordering import IBP, Configurations, version_of
from transforms.features.levels import (
    RELEASES,
    Release,
    highest_of,
    is_known_level,
    latest_of,
    level_text,
    lost_between,
    lowest_of,
    release_name,
    release_of,
)
from transforms.features.matrix import BROKER, KRAFT_VERSION, Node
from transforms.features.update import Cluster, FeatureVerdict, RequestKind, Update, dry_run, feature_losses

FIRST_KRAFT: Release = (3, 3)
FIRST_MIGRATION: Release = (3, 4)
LAST_ZOOKEEPER: Release = (3, 9)


class MetadataMode(StrEnum):
    """Where the cluster's metadata lives."""

    ZOOKEEPER = "zookeeper"
    DUAL_WRITE = "dual_write"
    KRAFT = "kraft"


class LineOutcome(StrEnum):
    """The verdict of one line about the way back, the worst first."""

    BLOCKED = "blocked"
    UNKNOWN = "unknown"
    LOSES = "loses"
    SAFE = "safe"


@dataclass(frozen=True)
class Line:
    """One reason, with its evidence: a znode, a record's offset, a node or a file."""

    outcome: LineOutcome
    what: str
    evidence: str


@dataclass(frozen=True)
class Readiness:
    """The verdict for one target, and all lines, the worst first. `floor` is the lowest release that reads everything."""

    target: Release
    verdict: LineOutcome
    lines: tuple[Line, ...]
    floor: Release | None


@dataclass(frozen=True)
class KnownCluster:
    """Known facts of the cluster; None is 'not collected', which can only make a verdict unknown.

    `seen` has the rows of each ledger format that the tables show (a format that was looked for and not found has a
    total of 0, one that was not looked for is absent). `protocols` are brokers' inter.broker.protocol.version as levels
    of metadata.version, which brokers in ZooKeeper mode tell when they migrate. `znode_versions` are those of
    `/brokers/ids`, 0 for a broker with replicas that is not there. `configurations` are brokers' property files.
    `migrated_at` is the offset of the record that finished the migration. `configured` and `directory_ids` are those of
    `transforms.features.update.Cluster`. `replayed` has, by feature, the highest level that some node replays when it starts
    from its newest checkpoint, and the offset of the feature's newest record; `bootstrap` the metadata.version of each known
    bootstrap.checkpoint, by node. `unread` counts the places of the log that are damaged, `unknown_records` is true if it
    has records that this audit does not know.
    """

    mode: MetadataMode
    release: Release | None = None
    seen: Mapping[str, Seen] = field(default_factory=dict)
    feature_znode: FeatureZnode | None = None
    znode_versions: Mapping[int, int] | None = None
    protocols: Mapping[int, int] = field(default_factory=dict)
    configurations: Configurations | None = None
    finalised: Mapping[str, int] | None = None
    nodes: tuple[Node, ...] = ()
    voters: frozenset[int] | None = None
    local: int | None = None
    migration_state: str | None = None
    migrated_at: int | None = None
    level_offset: int | None = None
    kraft_brokers: tuple[int, ...] = ()
    configured: frozenset[int] | None = None
    directory_ids: frozenset[int] = frozenset()
    replayed: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    bootstrap: Mapping[str, int] = field(default_factory=dict)
    unread: int = 0
    unknown_records: bool = False


_ORDER = tuple(LineOutcome)


def targets(state: KnownCluster) -> tuple[Release, ...]:
    """Possible target releases of a downgrade, the newest first; all of them if the cluster's release is unknown."""
    first = FIRST_KRAFT if state.mode is MetadataMode.KRAFT else RELEASES[0]
    last = LAST_ZOOKEEPER if state.mode is not MetadataMode.KRAFT else RELEASES[-1]
    below = (
        release
        for release in reversed(RELEASES)
        if first <= release <= last and (state.release is None or release < state.release)
    )
    return tuple(below)


def with_kraft(
    state: KnownCluster, cluster: Cluster, migrated_at: int | None, level_offset: int | None, *, migrating: bool
) -> KnownCluster:
    """A state with the facts of KRaft's controllers. `migrated_at` is the offset of the newest state of the migration.

    While `migrating` brokers may be in either mode, and those in KRaft mode block a downgrade.
    """
    brokers = [node for node in cluster.nodes if node.kind == BROKER]
    return replace(
        state,
        protocols={node.node_id: node.supports(FEATURE_NAME)[1] for node in brokers if node.migrating_zk},
        finalised=cluster.finalised,
        nodes=tuple(cluster.nodes),
        voters=cluster.voters,
        local=cluster.local,
        migration_state=cluster.migration_state,
        migrated_at=migrated_at,
        level_offset=level_offset,
        kraft_brokers=tuple(node.node_id for node in brokers if not node.migrating_zk) if migrating else (),
        configured=cluster.configured,
        directory_ids=cluster.directory_ids,
    )


def readiness(state: KnownCluster, target: Release) -> Readiness:
    """Judge the way from `state` to `target`: every reason is a line, and the worst of them is the verdict."""
    lines = sorted(_lines(state, target), key=lambda line: _ORDER.index(line.outcome))
    verdict = lines[0].outcome if lines else LineOutcome.UNKNOWN
    return Readiness(target, verdict, tuple(lines), floor_of(state))


def floor_of(state: KnownCluster) -> Release | None:
    """The lowest release that reads all formats and levels for which there is evidence; None if it is unknown."""
    found = [
        BY_ID[name].reads_from
        for name, seen in state.seen.items()
        if seen.total and BY_ID[name].below is not Effect.READS
    ]
    if state.mode is not MetadataMode.KRAFT:
        # In KRaft mode brokers do not read the setting (`KafkaConfig.interBrokerProtocolVersion`).
        found += [protocol[0] for protocol in _protocols(state).values()]
    else:
        replayed = ((name, level) for name, (level, _) in state.replayed.items())
        levels = [_first_with(name, level) for name, level in (*(state.finalised or {}).items(), *replayed)]
        levels += [_first_starting(level) for level in state.bootstrap.values()]
        known = [release for release in levels if release is not None]
        if len(known) < len(levels):
            return None
        found += [FIRST_KRAFT, *known]
    return max(found, default=None)


def _first_with(feature: str, level: int) -> Release | None:
    """The first release that replays a level of a feature; None if no supported release does."""
    return min((release for release in RELEASES if (highest_of(release, feature) or 0) >= level), default=None)


def _first_starting(level: int) -> Release | None:
    """The first release that starts with a bootstrap.checkpoint of a level."""
    able = (release for release in RELEASES if HIGHEST_NAMED.get(release_name(release), level) >= level)
    return min((release for release in able if release >= FIRST_KRAFT), default=None)


def render(judged: Readiness) -> list[str]:
    """Lines for a terminal: the verdict, then every reason with its evidence."""
    floor = (
        "" if judged.floor is None else f"; the lowest release that reads everything is {release_name(judged.floor)}"
    )
    return [
        f"Downgrade to {release_name(judged.target)}: {judged.verdict.value}{floor}",
        *(f"  {line.outcome.value:<8} {line.what}  [{line.evidence}]" for line in judged.lines),
    ]


def _lines(state: KnownCluster, target: Release) -> Iterator[Line]:
    if state.release is not None and target > state.release:
        what = f"{release_name(target)} is newer than the cluster's release {release_name(state.release)}: that is an upgrade"
        yield Line(LineOutcome.BLOCKED, what, "the nodes' registrations")
        return
    if state.mode is MetadataMode.KRAFT:
        yield from _kraft(state, target)
        return
    if target > LAST_ZOOKEEPER:
        yield Line(
            LineOutcome.BLOCKED, f"Kafka {release_name(target)} has no ZooKeeper mode", f"mode {state.mode.value}"
        )
    if state.mode is MetadataMode.DUAL_WRITE:
        yield from _dual_write(state, target)
    yield from _protocol(state, target)
    yield from _feature_znode(state, target)
    for name in TRACES:
        yield from _format(name, state, target)
    yield from _topic_data(state, target)
    yield from _files(target)


def _files(target: Release) -> Iterator[Line]:
    """Files that no table shows: what the older release does with them."""
    for name in OF_FILES:
        entry = BY_ID[name]
        if target < entry.reads_from:
            yield Line(_OF_EFFECT[entry.below], f"{entry.title}: {entry.effect}", entry.evidence)


_OF_EFFECT = {Effect.READS: LineOutcome.SAFE, Effect.LOSES: LineOutcome.LOSES, Effect.REFUSES: LineOutcome.BLOCKED}


def _by_feature(finalised: Mapping[str, int], target: Release) -> Iterator[Line]:
    """Formats that nodes write from a level of a feature on, in topics, files and records."""
    for name in BY_FEATURE:
        entry = BY_ID[name]
        feature, least = entry.written_at or ("", 0)
        level = finalised.get(feature, 0)
        if target < entry.reads_from and level >= least:
            stated = f"{level_name(level)} ({level})" if feature == FEATURE_NAME else str(level)
            yield Line(_OF_EFFECT[entry.below], f"{entry.title}: {entry.effect}", f"{feature} {stated}")


def _format(name: str, state: KnownCluster, target: Release) -> Iterator[Line]:
    entry, seen = BY_ID[name], state.seen.get(name)
    if target >= entry.reads_from:
        if seen is not None and seen.total:
            yield Line(
                LineOutcome.SAFE, f"{entry.title} ({seen.total}): {release_name(target)} reads them", seen.example
            )
        return
    if seen is None:
        if entry.below is not Effect.READS:
            yield Line(LineOutcome.UNKNOWN, f"{entry.title}: not looked for", f"give {entry.evidence}")
        return
    if not seen.total:
        yield Line(LineOutcome.SAFE, f"{entry.title}: none", entry.evidence)
        return
    yield Line(_OF_EFFECT[entry.below], f"{entry.title} ({seen.total}): {entry.effect}", seen.example)


def _protocols(state: KnownCluster) -> dict[str, tuple[Release, str]]:
    """The protocol that each broker surely uses: release and text, by source."""
    found: dict[str, tuple[Release, str]] = {}
    for broker, level in state.protocols.items():
        parsed = version_of(release_of(level))
        if parsed is not None:
            found[f"broker {broker}'s registration"] = (parsed, level_name(level))
    for broker, conf in (state.configurations or {}).items():
        stated = _in_file(conf, state.release)
        if stated is not None:
            found[f"broker {broker}'s property file"] = stated
    return found


def _in_file(conf: Mapping[str, str], release: Release | None) -> tuple[Release, str] | None:
    """The protocol of a property file; an unset one is the software's own, known from its release."""
    given = conf.get(IBP)
    if given is not None:
        parsed = version_of(given)
        return None if parsed is None else (parsed, given)
    return None if release is None else (release, f"{release_name(release)}, because it is not set")


def _least_protocol(state: KnownCluster) -> tuple[Release, str] | None:
    """The highest protocol that the tree proves some broker has or had at least, and what proves it."""
    proofs: list[tuple[Release, str]] = []
    znode = state.feature_znode
    if znode is not None and znode.version >= 2:
        proofs.append(((3, 3), "/feature has version 2"))
    elif znode is not None and znode.enabled:
        proofs.append(((2, 7), "/feature is enabled"))
    for name, release in (("leader_recovery_state", (3, 2)), ("topic_id", (2, 8)), ("broker_znode_v5", (2, 7))):
        seen = state.seen.get(name)
        if seen is not None and seen.total:
            proofs.append((release, seen.example))
    versions = state.znode_versions or {}
    newest = [broker for broker, version in versions.items() if version >= 5]
    if newest:
        proofs.append(((2, 7), f"/brokers/ids/{min(newest)} has version 5"))
    return max(proofs, default=None)


def _protocol(state: KnownCluster, target: Release) -> Iterator[Line]:
    """Brokers cannot go below the protocol that they use: an older release does not support it."""
    known = _protocols(state)
    for who, (release, text) in sorted(known.items()):
        if release > target:
            yield Line(LineOutcome.BLOCKED, f"{IBP} is {text}, which {release_name(target)} does not support", who)
    if any(release > target for release, _ in known.values()):
        return
    least = _least_protocol(state)
    if least is not None and least[0] > target:
        yield Line(
            LineOutcome.BLOCKED,
            f"{IBP} was {release_name(least[0])} or later, which {release_name(target)} does not support",
            least[1],
        )
    elif not _all_brokers_known(state):
        stated = "" if least is None else f"; it is {release_name(least[0])} or later ({least[1]})"
        yield Line(
            LineOutcome.UNKNOWN, f"{IBP} is unknown for some brokers{stated}", "give the brokers' property files"
        )
    else:
        yield Line(
            LineOutcome.SAFE, f"{IBP} is {release_name(target)} or below on every broker", ", ".join(sorted(known))
        )


def _all_brokers_known(state: KnownCluster) -> bool:
    files = (state.configurations or {}).items()
    stated = {*state.protocols, *(broker for broker, conf in files if _in_file(conf, state.release) is not None)}
    if state.znode_versions is None:
        return False
    known = {*state.znode_versions, *(state.configurations or {}), *state.protocols}
    return bool(stated) and known <= stated


def _feature_znode(state: KnownCluster, target: Release) -> Iterator[Line]:
    znode = state.feature_znode
    if znode is None or not znode.features:
        return
    names = ", ".join(sorted(znode.features))
    if target < (2, 7):
        yield Line(LineOutcome.LOSES, f"finalised features ({names}): no release before 2.7 supports them", "/feature")
    elif znode.version >= 2 and target < (3, 3):
        what = f"finalised features ({names}) without their minimum level: the controller can't start"
        yield Line(LineOutcome.BLOCKED, what, f"/feature has version {znode.version}")
    else:
        yield Line(LineOutcome.SAFE, f"finalised features ({names}): {release_name(target)} reads them", "/feature")


def _topic_data(state: KnownCluster, target: Release) -> Iterator[Line]:
    """Formats inside internal topics: brokers write them by their protocol, and nothing in the metadata shows them."""
    proofs = [(release, who) for who, (release, _) in _protocols(state).items()]
    least = _least_protocol(state)
    highest = max([*proofs, *([least] if least is not None else [])], default=None)
    for name in BY_PROTOCOL:
        entry = BY_ID[name]
        if target >= entry.reads_from:
            continue
        if highest is None or highest[0] < entry.reads_from:
            yield Line(
                LineOutcome.UNKNOWN, f"{entry.title}: they are not in the metadata", "give the brokers' property files"
            )
        else:
            yield Line(
                LineOutcome.BLOCKED,
                f"{entry.title}: {entry.effect}",
                f"protocol {release_name(highest[0])}: {highest[1]}",
            )


def _dual_write(state: KnownCluster, target: Release) -> Iterator[Line]:
    """During the migration, a downgrade needs brokers back in ZooKeeper mode and no controllers."""
    for broker in state.kraft_brokers:
        yield Line(
            LineOutcome.BLOCKED,
            f"broker {broker} runs in KRaft mode: roll the migration back first",
            f"REGISTER_BROKER_RECORD of broker {broker}",
        )
    where = (
        "ZK_MIGRATION_STATE_RECORD"
        if state.migrated_at is None
        else f"ZK_MIGRATION_STATE_RECORD, offset {state.migrated_at}"
    )
    if target < FIRST_MIGRATION:
        what = f"a migration is in progress, which {release_name(target)} does not support: roll it back first"
        yield Line(LineOutcome.BLOCKED, what, where)
        return
    level, highest = (state.finalised or {}).get(FEATURE_NAME), latest_of(target)
    if level is None or highest is None:
        yield Line(LineOutcome.UNKNOWN, "the metadata.version is unknown", "give the controllers' logs")
    elif level > highest:
        what = f"metadata.version is {level_name(level)}, and can't be changed while a migration is in progress"
        yield Line(LineOutcome.BLOCKED, what, _level_record(state))


def _level_record(state: KnownCluster) -> str:
    return (
        "FEATURE_LEVEL_RECORD" if state.level_offset is None else f"FEATURE_LEVEL_RECORD, offset {state.level_offset}"
    )


def _kraft(state: KnownCluster, target: Release) -> Iterator[Line]:
    if state.migrated_at is not None:
        back = "the migration is finished: there is no way back to ZooKeeper"
        if target < FIRST_KRAFT:
            yield Line(LineOutcome.BLOCKED, back, f"ZK_MIGRATION_STATE_RECORD, offset {state.migrated_at}")
    if target < FIRST_KRAFT:
        yield Line(LineOutcome.BLOCKED, f"Kafka {release_name(target)} does not run in KRaft mode", "the metadata log")
        return
    yield from _beyond_ledger(state, target)
    if state.finalised is None:
        yield Line(LineOutcome.UNKNOWN, "the finalised features are unknown", "give the controllers' logs")
        return
    yield from _level(state, state.finalised, target)
    yield from _features(state, state.finalised, target)
    yield from _replayed(state, state.finalised, target)
    yield from _bootstrap(state, target)
    for name in OF_KRAFT:
        if name not in OF_NEW_CONFIGS or state.seen.get(name) != Seen(0):
            yield from _format(name, state, target)
    yield from _by_feature(state.finalised, target)
    yield from _files(target)


def _beyond_ledger(state: KnownCluster, target: Release) -> Iterator[Line]:
    """Levels above the tables of this audit: their formats and readers are unknown."""
    if state.release is None:
        yield Line(LineOutcome.UNKNOWN, "the cluster's release is unknown", "give --kafka-version")
    for release in dict.fromkeys((state.release, target)):
        if release is not None and latest_of(release) is None:
            what = (
                f"Kafka {release_name(release)} is a release that this audit does not support: its formats are unknown"
            )
            yield Line(LineOutcome.UNKNOWN, what, "the audit's tables")
    if state.unread:
        what = f"{state.unread} places of the metadata log could not be read: their formats are unknown"
        yield Line(LineOutcome.UNKNOWN, what, "CAP-02")
    if state.unknown_records:
        what = "the metadata log has records that this audit does not know: their formats are unknown"
        yield Line(LineOutcome.UNKNOWN, what, "CAP-12")


def _asked(
    state: KnownCluster, finalised: Mapping[str, int], target: Release, update: Update
) -> tuple[FeatureVerdict, str]:
    """The controllers' answer to one update on the way."""
    release = state.release or target
    cluster = Cluster(
        release,
        finalised,
        state.nodes,
        state.voters,
        state.local,
        state.migration_state,
        configured=state.configured,
        directory_ids=state.directory_ids,
    )
    [answer] = dry_run([update], cluster).answers
    return answer.verdict, answer.message.removeprefix(
        "The update failed for all features since the following feature had an error: "
    )


def _level(state: KnownCluster, finalised: Mapping[str, int], target: Release) -> Iterator[Line]:
    level, highest, where = finalised.get(FEATURE_NAME), latest_of(target), _level_record(state)
    if level is None or highest is None:
        what = (
            "no metadata.version is finalised" if level is None else f"the levels of {release_name(target)} are unknown"
        )
        yield Line(LineOutcome.UNKNOWN, what, where)
        return
    if target >= (4, 0) and level < MINIMUM_LEVEL_4X:
        yield Line(
            LineOutcome.BLOCKED,
            f"metadata.version {level_name(level)} is below what {release_name(target)} starts at",
            where,
        )
        return
    if level <= highest:
        yield Line(LineOutcome.SAFE, f"metadata.version {level_name(level)}: {release_name(target)} supports it", where)
        return
    verdict, message = _asked(state, finalised, target, Update(FEATURE_NAME, highest, RequestKind.SAFE_DOWNGRADE))
    step = f"metadata.version {level_name(level)} must be lowered to {level_name(highest)} first"
    for lost in lost_between(highest, level) or ():
        yield Line(LineOutcome.LOSES, f"metadata of {lost}", where)
    if verdict is FeatureVerdict.NO:
        yield Line(LineOutcome.BLOCKED, f"{step}, and the controllers refuse: {message}", where)
    elif verdict is FeatureVerdict.UNKNOWN:
        yield Line(LineOutcome.UNKNOWN, f"{step}: {message}", where)
    else:
        yield Line(
            LineOutcome.SAFE, f"{step}, and each node then needs a newer checkpoint; nothing is lost by it", where
        )


def _features(state: KnownCluster, finalised: Mapping[str, int], target: Release) -> Iterator[Line]:
    """Levels of the other features, by what the target release replays (`FeatureControlManager.replay`)."""
    for name, level in sorted(finalised.items()):
        if name == FEATURE_NAME or not level:
            continue
        where, highest = f"finalised {name} {level}", highest_of(target, name)
        if not is_known_level(name, level):
            yield Line(LineOutcome.UNKNOWN, f"{name} {level} is a level that this audit does not support", where)
        elif highest is None:
            yield Line(LineOutcome.UNKNOWN, f"the levels of {name} in {release_name(target)} are unknown", where)
        elif level <= highest:
            yield Line(LineOutcome.SAFE, f"{name} {level}: {release_name(target)} supports it", where)
        else:
            yield from _above(state, finalised, target, Update(name, highest, RequestKind.SAFE_DOWNGRADE), where)


def _above(
    state: KnownCluster, finalised: Mapping[str, int], target: Release, step: Update, where: str
) -> Iterator[Line]:
    """A level that the target's controllers can't replay: they do not start; and what going back to theirs means."""
    name, level = step.feature, finalised[step.feature]
    if name == KRAFT_VERSION:
        what = f"{name} {level} can't be lowered: the quorum's voters are in the log, which {release_name(target)} can't read"
        yield Line(LineOutcome.BLOCKED, what, where)
        return
    what = f"controllers of {release_name(target)} do not start: {_throws(name, level, target)}"
    yield Line(LineOutcome.BLOCKED, what, where)
    verdict, message = _asked(state, finalised, target, step)
    if verdict is FeatureVerdict.NO:
        yield Line(LineOutcome.BLOCKED, f"{name} can't be lowered to {step.level}: {message}", where)
    elif verdict is FeatureVerdict.UNKNOWN:
        yield Line(
            LineOutcome.UNKNOWN, f"it is unknown whether {name} can be downgraded to {step.level}: {message}", where
        )
    else:
        lost = "; ".join(feature_losses(name, step.level, level)) or "its use is lost"
        yield Line(LineOutcome.LOSES, f"{name} must be lowered to {step.level} first: {lost}", where)


def _replayed(state: KnownCluster, finalised: Mapping[str, int], target: Release) -> Iterator[Line]:
    """Levels that were lowered, but not before the newest checkpoint of every node: it is what the target replays first.

    Kafka writes a checkpoint by size and age only, not when a level is lowered (`SnapshotGenerator`).
    """
    for name, (level, newest) in sorted(state.replayed.items()):
        highest = highest_of(target, name)
        if highest is None or level <= highest or finalised.get(name, 0) > highest:
            continue
        what = (
            f"{name} was lowered from {level_text(name, level)} after the newest checkpoint of some node, so that a controller of "
            f"{release_name(target)} does not start from it: {_throws(name, level, target)}; wait until each node has a newer one"
        )
        yield Line(LineOutcome.BLOCKED, what, f"FEATURE_LEVEL_RECORD, offset {newest}")


def _bootstrap_of_4_0_0(state: KnownCluster) -> Iterator[Line]:
    """A remark: the way to 4.0 is open, its first release alone does not start (KAFKA-19192)."""
    strange = {node: level for node, level in state.bootstrap.items() if level not in NAMED_IN_4_0_0}
    for level in sorted(set(strange.values())):
        nodes = ", ".join(sorted(node for node, mine in strange.items() if mine == level))
        what = (
            f"take 4.0.1 or later: node {nodes} does not start with 4.0.0, which does not know its bootstrap.checkpoint's level "
            f"{level_name(level)} ({level})"
        )
        yield Line(LineOutcome.SAFE, what, "bootstrap.checkpoint")


def _bootstrap(state: KnownCluster, target: Release) -> Iterator[Line]:
    """Every node up to 3.9 reads its bootstrap.checkpoint when it starts, though the log's own level counts."""
    if target == (4, 0):
        yield from _bootstrap_of_4_0_0(state)
    highest = HIGHEST_NAMED.get(release_name(target))
    if highest is None:
        return
    for level in sorted({level for level in state.bootstrap.values() if level > highest}):
        nodes = ", ".join(sorted(node for node, mine in state.bootstrap.items() if mine == level))
        what = (
            f"node {nodes} does not start with {release_name(target)}: bootstrap.checkpoint is at {level_name(level)} "
            f"({level}), which that release does not know; remove the file first, and that of any other node, too"
        )
        yield Line(LineOutcome.BLOCKED, what, "bootstrap.checkpoint")


def _throws(name: str, level: int, target: Release) -> str:
    """How controllers of `target` refuse a record of a level above theirs (`FeatureControlManager.replay`)."""
    lowest, highest = lowest_of(target) if name == FEATURE_NAME else 0, highest_of(target, name) or 0
    known = f"{lowest}-{highest}" if highest > lowest else f"{lowest}"
    return (
        f"Tried to apply FeatureLevelRecord FeatureLevelRecord(name='{name}', featureLevel={level}), but this controller only "
        f"supports versions {known}"
    )
