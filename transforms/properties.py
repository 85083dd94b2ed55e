"""Property files of Kafka nodes: only the settings that the checks need.

A property file contains secrets. Of those only the fact that `password.encoder.secret` is set is kept, never a value; of the other
settings those that `NodeSettings` names, all of which Kafka itself logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import javaproperties

ENCODER = "password.encoder.secret"
MIGRATION_FLAG = "zookeeper.metadata.migration.enable"
AUTHORIZER = "authorizer.class.name"
MIN_ISR = "min.insync.replicas"
SNAPSHOT_INTERVAL, SNAPSHOT_BYTES = (
    "metadata.log.max.snapshot.interval.ms",
    "metadata.log.max.record.bytes.between.snapshots",
)
AUTO_JOIN = "controller.quorum.auto.join.enable"
DEAD_LETTERS_CREATED = "errors.deadletterqueue.auto.create.topics.enable"
# The settings that decide a broker's formats; the last one is KIP-384's, which no release has.
FORMAT_SETTINGS = ("inter.broker.protocol.version", "log.message.format.version", "persistent.metadata.version")
# Keys that Kafka 4.0 dropped (its documentation: From ZooKeeper to KRaft, Configurations; Upgrading to 4.0): all of ZooKeeper's keys, and
# those below.
DROPPED_IN_4 = (
    "inter.broker.protocol.version",
    "log.message.format.version",
    "message.format.version",
    "log.message.timestamp.difference.max.ms",
    "log.message.downconversion.enable",
    "control.plane.listener.name",
    "password.encoder.secret",
    "password.encoder.old.secret",
    "password.encoder.keyfactory.algorithm",
    "password.encoder.cipher.algorithm",
    "password.encoder.key.length",
    "password.encoder.iterations",
    "broker.id.generation.enable",
    "reserved.broker.max.id",
    "controlled.shutdown.max.retries",
    "controlled.shutdown.retry.backoff.ms",
    "leader.imbalance.per.broker.percentage",
    "delegation.token.master.key",
    "offsets.commit.required.acks",
    "auto.include.jmx.reporter",
)
# Values that releases up to 3.9 take and later ones do not (`AbstractKafkaConfig.CONFIG_DEF`): the least of whole numbers, of 4.0 (that of
# metadata.log.segment.bytes of 4.1, of num.replica.fetchers of 4.2), and from 4.2 on (KIP-1161) lists with an empty member or, of the first
# ones, without any.
LEAST_IN_4 = {
    "log.segment.bytes": 1 << 20,
    "metadata.log.segment.bytes": 8 << 20,
    "num.replica.fetchers": 1,
    "remote.log.manager.copier.thread.pool.size": 1,
    "remote.log.manager.expiration.thread.pool.size": 1,
}
_NEVER_EMPTY = (
    "advertised.listeners",
    "controller.listener.names",
    "group.consumer.assignors",
    "group.coordinator.rebalance.protocols",
    "group.share.assignors",
    "listeners",
    "log.dir",
    "log.dirs",
)
LISTS_IN_4 = (
    *_NEVER_EMPTY,
    "early.start.listeners",
    "kafka.metrics.reporters",
    "metric.reporters",
    "sasl.enabled.mechanisms",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.oauthbearer.expected.audience",
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
)
# Of the listeners and of security.inter.broker.protocol (`KafkaConfig`).
DEFAULT_LISTENER = "PLAINTEXT"
_PORT = re.compile(r":[0-9]+$")


class MalformedPropertiesError(ValueError):
    """A text that is not a property file. The message quotes the escape that is wrong, and no value."""


@dataclass(frozen=True)
class Ensemble:
    """`zookeeper.connect`: the servers as they are named, in small letters and with their port, and the chroot."""

    servers: frozenset[str]
    chroot: str


@dataclass(frozen=True)
class NodeSettings:
    """A node's settings of roles, ZooKeeper, the quorum, listeners and protocol; empty where the file has none.

    `voters` and `bootstrap_servers` are those of the quorum, spelled as in the file, `listeners` and `advertised` names
    of listeners. `listeners` and `inter_broker_listener` are Kafka's defaults where the file has none. `security_map`
    is `listener.security.protocol.map`, None when the file has none. `formats` has the settings of FORMAT_SETTINGS that
    the file names, as it spells them; `dropped` are its keys that Kafka 4 has removed, and `refused` those whose value it does not
    take, with why, never their values. `min_isr` is min.insync.replicas, `snapshot_ms` SNAPSHOT_INTERVAL (0: never by age) and
    `snapshot_bytes` SNAPSHOT_BYTES, None when the file does not set it; `creates_dead_letter_topics` is DEAD_LETTERS_CREATED.
    `has_authorizer` tells that the file has AUTHORIZER, even an empty one, `joins_alone` is AUTO_JOIN.
    """

    process_roles: frozenset[str] = frozenset()
    zookeeper: Ensemble | None = None
    voters: frozenset[str] = frozenset()
    bootstrap_servers: frozenset[str] = frozenset()
    controller_listeners: tuple[str, ...] = ()
    listeners: frozenset[str] = frozenset({DEFAULT_LISTENER})
    advertised: frozenset[str] = frozenset()
    security_map: Mapping[str, str] | None = None
    inter_broker_listener: str = DEFAULT_LISTENER
    inter_broker_protocol: str | None = None
    log_dirs: int = 1
    formats: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    min_isr: int | None = None
    snapshot_ms: int | None = None
    snapshot_bytes: int | None = None
    creates_dead_letter_topics: bool = False
    has_authorizer: bool = False
    joins_alone: bool = False

    @property
    def voter_ids(self) -> frozenset[int]:
        """Ids in `controller.quorum.voters`."""
        ids = (_number(voter.partition("@")[0]) for voter in self.voters)
        return frozenset(number for number in ids if number is not None)


@dataclass(frozen=True)
class NodeProperties:
    """A broker's or controller's property file: its node and its settings."""

    location: str
    node_id: int | None
    has_encoder_secret: bool
    migration_enabled: bool
    settings: NodeSettings = field(default_factory=NodeSettings)


@dataclass(frozen=True)
class MetaProperties:
    """A broker's meta.properties; `version` is None when the file has none that is a number, `cluster_id` when it names none."""

    location: str
    broker_id: int | None
    version: int | None
    cluster_id: str | None = None


@dataclass(frozen=True)
class PropertyFiles:
    """The files a run was given; a kind that was not given is empty.

    `clear_text_accepted` is the operator's word that broker passwords may lie in the metadata log in clear text.
    """

    controllers: tuple[NodeProperties, ...] = ()
    brokers: tuple[NodeProperties, ...] = ()
    broker_meta: tuple[MetaProperties, ...] = ()
    clear_text_accepted: bool = False

    def static_min_isr(self) -> dict[int, int]:
        """What each broker's file makes min.insync.replicas where nothing dynamic sets it; Kafka's default is 1."""
        return {file.node_id: file.settings.min_isr or 1 for file in self.brokers if file.node_id is not None}

    def creates_dead_letter_topics(self) -> dict[int, bool]:
        """Whether each broker's file lets it create missing dead letter topics where nothing dynamic sets that (KIP-1191)."""
        return {
            file.node_id: file.settings.creates_dead_letter_topics for file in self.brokers if file.node_id is not None
        }


def node_properties(location: str, text: str) -> NodeProperties:
    """Keep of a node's property file what the checks need."""
    values = parse(text)
    return NodeProperties(
        location=location,
        node_id=_number(values.get("node.id", values.get("broker.id"))),
        has_encoder_secret=bool(values.get(ENCODER)),
        migration_enabled=values.get(MIGRATION_FLAG, "").strip().lower() == "true",
        settings=_settings(values),
    )


def ensemble(connect: str) -> Ensemble | None:
    """Read `zookeeper.connect`; None for an empty one. A server without a port has ZooKeeper's own, 2181."""
    servers, slash, chroot = connect.strip().partition("/")
    named = frozenset(server.lower() if _PORT.search(server) else f"{server.lower()}:2181" for server in _list(servers))
    path = (slash + chroot).strip().rstrip("/")
    return Ensemble(named, path) if named else None


def _settings(values: Mapping[str, str]) -> NodeSettings:
    given = values.get("listener.security.protocol.map")
    return NodeSettings(
        process_roles=frozenset(role.lower() for role in _list(values.get("process.roles"))),
        zookeeper=ensemble(values.get("zookeeper.connect", "")),
        voters=frozenset(_list(values.get("controller.quorum.voters"))),
        bootstrap_servers=frozenset(_list(values.get("controller.quorum.bootstrap.servers"))),
        controller_listeners=tuple(name.upper() for name in _list(values.get("controller.listener.names"))),
        listeners=_listener_names(values.get("listeners", f"{DEFAULT_LISTENER}://:9092")),
        advertised=_listener_names(values.get("advertised.listeners")),
        security_map=None if given is None else _security_map(given),
        inter_broker_listener=_inter_broker_listener(values),
        inter_broker_protocol=values.get("inter.broker.protocol.version", "").strip() or None,
        log_dirs=max(1, len(_list(values.get("log.dirs", values.get("log.dir"))))),
        formats={key: values[key].strip() for key in FORMAT_SETTINGS if key in values},
        dropped=tuple(sorted(key for key in values if key in DROPPED_IN_4 or key.startswith("zookeeper."))),
        refused=tuple(_refused(values)),
        min_isr=_number(values.get(MIN_ISR)),
        snapshot_ms=_number(values.get(SNAPSHOT_INTERVAL), bits=64),
        snapshot_bytes=_number(values.get(SNAPSHOT_BYTES), bits=64),
        creates_dead_letter_topics=values.get(DEAD_LETTERS_CREATED, "").strip().lower() == "true",
        has_authorizer=AUTHORIZER in values,
        joins_alone=values.get(AUTO_JOIN, "").strip().lower() == "true",
    )


def _refused(values: Mapping[str, str]) -> Iterator[str]:
    """Keys whose value Kafka 4 does not take, and why."""
    for key, least in LEAST_IN_4.items():
        number = _number(values.get(key))
        if number is not None and number < least:
            yield f"{key} is below {least}"
    for key in LISTS_IN_4:
        members = [member.strip() for member in values.get(key, "x").split(",")]
        if members == [""] and key in _NEVER_EMPTY:
            yield f"{key} is empty"
        elif len(members) > 1 and "" in members:
            yield f"{key} has an empty member"


def _list(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _listener_names(text: str | None) -> frozenset[str]:
    return frozenset(entry.partition("://")[0].upper() for entry in _list(text))


def _security_map(text: str) -> Mapping[str, str]:
    pairs = (entry.rpartition(":") for entry in _list(text))
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}


def _inter_broker_listener(values: Mapping[str, str]) -> str:
    """The listener that brokers and controllers reach brokers at: by its name, or that of its protocol."""
    named = values.get("inter.broker.listener.name", "").strip().upper()
    return named or values.get("security.inter.broker.protocol", "").strip().upper() or DEFAULT_LISTENER


def meta_properties(location: str, text: str) -> MetaProperties:
    """Read a meta.properties file, of version 0 (`broker.id`) or 1 (`node.id`)."""
    values = parse(text)
    return MetaProperties(
        location,
        _number(values.get("node.id", values.get("broker.id"))),
        _number(values.get("version")),
        values.get("cluster.id", "").strip() or None,
    )


def parse(text: str) -> dict[str, str]:
    """Key and value of every line, as `java.util.Properties.load` reads them; the last one of a key counts.

    Raises MalformedPropertiesError for a text that Java, and so Kafka, refuses.
    """
    try:
        return dict(javaproperties.loads(text))
    except javaproperties.InvalidUEscapeError as error:
        raise MalformedPropertiesError(f"{error.escape} is not a character: Kafka refuses the whole file") from None


def _number(text: str | None, *, bits: int = 32) -> int | None:
    """A whole number of Java's, of so many bits; None for anything else."""
    if text is None or not re.fullmatch(r"\s*[+-]?[0-9]{1,19}\s*", text):
        return None
    number = int(text)
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None
