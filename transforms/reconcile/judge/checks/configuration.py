"""CONF checks: do the nodes' property files let them migrate (KIP-866, KafkaConfig.validateValues)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from schemas.kraft.enums import SECURITY_PROTOCOLS
from schemas.kraft.metadata_versions import BY_NAME, LATEST_PRODUCTION, level_name
from transforms.outcome import Outcome, found, listed_ids, not_applicable, unknown
from transforms.properties import AUTHORIZER, NodeProperties, NodeSettings
from transforms.reconcile.compare.exposure import has
from transforms.reconcile.judge.checks.brokers import (
    CONTROLLER_REGISTRATION_LEVEL,
    ready_brokers,
    voters_of_unknown_flag,
    zookeeper_brokers,
)
from transforms.reconcile.judge.checks.outcome import CheckFunction
from transforms.reconcile.judge.facts import Facts

AUTHORIZER_REFUSED = "KAFKA-15098"
_FLAG = "zookeeper.metadata.migration.enable is not true"
# 3.4-IV0 is the lowest level that can migrate; several log directories need 3.7-IV2.
_MIGRATION_LEVEL, _DIRECTORIES_LEVEL = 8, 17
_PROTOCOLS = frozenset(SECURITY_PROTOCOLS.values())


def _controllers(facts: Facts) -> Outcome:
    """CONF-01."""
    files = facts.properties.controllers
    problems = [f"{_who('controller', file)}: {text}" for file in files for text in _of_controller(file)]
    if (absent := _without_file(facts, "controller")) and not problems:
        return unknown(f"give {absent}")
    return found(problems)


def _without_file(facts: Facts, kind: str) -> str | None:
    """The property files of controllers or brokers that were not given, as evidence; None where none is missing."""
    controllers = kind == "controller"
    files = facts.properties.controllers if controllers else facts.properties.brokers
    known = set(facts.voters) if controllers else zookeeper_brokers(facts)
    absent = known - {file.node_id for file in files}
    if absent and files:
        return f"the property file of {kind} {listed_ids(absent)} (properties.{kind}s)"
    return None if files else f"the {kind}s' property files (properties.{kind}s)"


def _of_controller(file: NodeProperties) -> Iterator[str]:
    settings = file.settings
    if settings.process_roles == {"broker", "controller"}:
        yield "process.roles is broker,controller: a combined node cannot migrate"
    elif settings.process_roles != {"controller"}:
        yield f"process.roles is {', '.join(sorted(settings.process_roles)) or 'not set'}, not controller"
    if file.node_id is None:
        yield "node.id is not set"
    if not file.migration_enabled:
        yield _FLAG
    if settings.zookeeper is None:
        yield "zookeeper.connect is not set"
    yield from _quorum(settings)
    if settings.voters and file.node_id is not None and file.node_id not in settings.voter_ids:
        yield f"node {file.node_id} is not in its own controller.quorum.voters"
    names = settings.controller_listeners
    yield from (f"controller listener {name} is not in listeners" for name in names if name not in settings.listeners)
    mapped = settings.security_map
    if mapped is not None:
        yield from (f"listener.security.protocol.map has no {name}" for name in names if name not in mapped)


def _quorum(settings: NodeSettings) -> Iterator[str]:
    if not settings.voters and not settings.bootstrap_servers:
        yield "neither controller.quorum.voters nor controller.quorum.bootstrap.servers is set"
    if not settings.controller_listeners:
        yield "controller.listener.names is not set"


def _brokers(facts: Facts) -> Outcome:
    """CONF-02."""
    files = facts.properties.brokers
    wanted = sorted({file.settings.inter_broker_listener for file in facts.properties.controllers})
    problems = [f"{_who('broker', file)}: {text}" for file in files for text in _of_broker(file, wanted)]
    problems += [f"{_who('broker', file)}: {text}" for file in files for text in _authorizer(file, facts.kafka_version)]
    if (absent := _without_file(facts, "broker")) and not problems:
        return unknown(f"give {absent}")
    return found(problems)


def _of_broker(file: NodeProperties, wanted: Sequence[str]) -> Iterator[str]:
    settings = file.settings
    if settings.process_roles:
        yield "process.roles is set: before the load every broker stays in ZooKeeper mode"
        return
    if not file.migration_enabled:
        yield _FLAG
    if settings.zookeeper is None:
        yield "zookeeper.connect is not set"
    yield from _quorum(settings)
    known = settings.security_map or {}
    for name in settings.controller_listeners[:1]:
        if name not in known and name not in _PROTOCOLS:
            yield f"listener.security.protocol.map has no controller listener {name}"
    reachable = settings.advertised or settings.listeners
    for name in wanted:
        if name not in reachable:
            yield f"it has no listener {name}, at which the controllers reach brokers (inter.broker.listener.name)"
    yield from _protocol(settings)


def _authorizer(file: NodeProperties, version: str | None) -> Iterator[str]:
    """A broker with the flag and this setting ends as it starts, in 3.4 and 3.5.0; the KRaft controllers take it."""
    if file.migration_enabled and file.settings.has_authorizer and has(AUTHORIZER_REFUSED, version):
        yield f"{AUTHORIZER} is set: Kafka {version} starts no broker with it once the migration is enabled ({AUTHORIZER_REFUSED})"


def _protocol(settings: NodeSettings) -> Iterator[str]:
    named = settings.inter_broker_protocol
    level = None if named is None else protocol_level(named)
    if level is not None and level < _MIGRATION_LEVEL:
        yield f"inter.broker.protocol.version is {named}; 3.4 is the lowest that can migrate"
    elif level is not None and level < _DIRECTORIES_LEVEL and settings.log_dirs > 1:
        yield f"{settings.log_dirs} log directories need inter.broker.protocol.version 3.7-IV2; it is {named}"


def protocol_level(text: str) -> int | None:
    """Level of an `inter.broker.protocol.version` (`MetadataVersion.fromVersionString`); 0 below 3.0, None if unknown.

    A release stands for the newest level it can run.
    """
    if text in BY_NAME:
        return BY_NAME[text].level
    release = ".".join(text.split(".")[:2])
    if release in LATEST_PRODUCTION:
        return LATEST_PRODUCTION[release]
    major = release.partition(".")[0]
    return 0 if major in ("0", "1", "2") else _early(release)


def _early(release: str) -> int | None:
    levels = [level.level for name, level in BY_NAME.items() if name.partition("-")[0] == release]
    return max(levels, default=None)


def _agreement(facts: Facts) -> Outcome:
    """CONF-03. Two lists of servers without a common one may be two names of one ensemble: a warning.

    What a missing file says is unknown: those at hand agree with each other at most.
    """
    files = [("controller", file) for file in facts.properties.controllers]
    files += [("broker", file) for file in facts.properties.brokers]
    wrong = [*_chroots(files), *_voters(files, facts), *_protocols(facts)]
    doubtful = [*_servers(files), *_unset_protocols(facts)]
    absent = [text for kind in ("controller", "broker") if (text := _without_file(facts, kind))]
    if absent and not (wrong or doubtful):
        return unknown(f"give {' and '.join(absent)}")
    return found([*wrong, *doubtful], tolerable=not wrong)


_Files = Sequence[tuple[str, NodeProperties]]


def _chroots(files: _Files) -> Iterator[str]:
    named = [(kind, file, file.settings.zookeeper) for kind, file in files if file.settings.zookeeper is not None]
    for (_, first, one), (kind, file, other) in pairwise(named):
        if one is not None and other is not None and one.chroot != other.chroot:
            yield (
                f"{_who(kind, file)} has the chroot {other.chroot or '/'} in zookeeper.connect, "
                f"{first.location} {one.chroot or '/'}"
            )


def _servers(files: _Files) -> Iterator[str]:
    named = [(kind, file, file.settings.zookeeper) for kind, file in files if file.settings.zookeeper is not None]
    for (_, first, one), (kind, file, other) in pairwise(named):
        if one is not None and other is not None and not one.servers & other.servers:
            yield f"{_who(kind, file)} names other ZooKeeper servers than {first.location}"


def _voters(files: _Files, facts: Facts) -> Iterator[str]:
    named = [(kind, file) for kind, file in files if file.settings.voters]
    for (_, first), (kind, file) in pairwise(named):
        if first.settings.voter_ids != file.settings.voter_ids:
            yield f"{_who(kind, file)} has other ids in controller.quorum.voters than {first.location}"
    voters = set(facts.voters)
    for kind, file in named:
        if voters and file.settings.voter_ids != voters:
            yield (
                f"{_who(kind, file)}: controller.quorum.voters names {listed_ids(file.settings.voter_ids)}, the quorum "
                f"is {listed_ids(voters)}"
            )


def _protocols(facts: Facts) -> Iterator[str]:
    protocols = [(file, file.settings.inter_broker_protocol) for file in facts.properties.brokers]
    levels = [(file, text, protocol_level(text)) for file, text in protocols if text is not None]
    for (first, _, one), (file, text, other) in pairwise(levels):
        if one != other:
            yield f"{_who('broker', file)} has inter.broker.protocol.version {text}, unlike {first.location}"
    for file, text, level in levels:
        if facts.level is not None and level is not None and level != facts.level:
            yield (
                f"{_who('broker', file)} has inter.broker.protocol.version {text}, the cluster's metadata.version is "
                f"{level_name(facts.level)}"
            )


def _unset_protocols(facts: Facts) -> Iterator[str]:
    for file in facts.properties.brokers:
        if file.settings.inter_broker_protocol is None and not file.settings.process_roles:
            yield (
                f"{_who('broker', file)}: inter.broker.protocol.version is not set, and changes with the software's "
                "next release"
            )


def _flags_during(facts: Facts) -> Outcome:
    """CONF-04. With every broker in KRaft mode it is the operator finalising, and a warning."""
    files = facts.properties.controllers
    if not files:
        if (facts.level or 0) >= CONTROLLER_REGISTRATION_LEVEL:
            return not_applicable(
                "no property file was given; the controllers' registrations are checked instead (FIN-07)"
            )
        return unknown("give the controllers' property files (properties.controllers)")
    problems = []
    for file in files:
        missing = [] if file.migration_enabled else [_FLAG]
        missing += ["zookeeper.connect is not set"] if file.settings.zookeeper is None else []
        problems += [f"{_who('controller', file)}: {text}" for text in missing]
    unseen = voters_of_unknown_flag(facts)
    if unseen and not problems:
        return unknown(f"give the property file of controller {listed_ids(unseen)} (properties.controllers)")
    return found(problems, tolerable=not ready_brokers(facts) | zookeeper_brokers(facts))


def _flags_after(facts: Facts) -> Outcome:
    """CONF-05. By the registrations, and by the files where a controller's release does not register."""
    registered = {c["controller_id"] for c in facts.controllers if c["zk_migration_ready"]}
    problems = [f"controller {node} is registered with the migration enabled" for node in sorted(registered)]
    for file in facts.properties.controllers:
        if file.migration_enabled and file.node_id not in registered:
            problems.append(f"{_who('controller', file)}: zookeeper.metadata.migration.enable is still true")
    unseen = voters_of_unknown_flag(facts)
    if unseen and not problems:
        return unknown(f"give the property file of controller {listed_ids(unseen)} (properties.controllers)")
    seen = facts.controllers or facts.properties.controllers
    return found(problems) if seen else unknown("give the controllers' property files (properties.controllers)")


def _who(kind: str, file: NodeProperties) -> str:
    name = "" if file.node_id is None else f" {file.node_id}"
    return f"{kind}{name} ({file.location})"


def _not_of_4(facts: Facts) -> Outcome:
    """CONF-06. A broker's or controller's file that has a key that Kafka 4 removed, or a value that it does not take."""
    files = [*facts.properties.controllers, *facts.properties.brokers]
    if not files:
        return not_applicable("no property file of a node was given (properties.controllers, properties.brokers)")
    told = {file.location: [*file.settings.dropped, *file.settings.refused] for file in files}
    return found(f"{location}: {', '.join(keys)}" for location, keys in told.items() if keys)


CHECKS: dict[str, CheckFunction] = {
    "CONF-01": _controllers,
    "CONF-02": _brokers,
    "CONF-03": _agreement,
    "CONF-04": _flags_during,
    "CONF-06": _not_of_4,
    "CONF-05": _flags_after,
}
