"""The ledger of persistent formats (S§10.3): the first release that reads each, its evidence, and the effect of a downgrade below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from schemas.kraft.feature_levels import (
    GROUP_VERSION,
    KRAFT_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)
from schemas.kraft.kept_configs import FORGETS_CONFIGS
from schemas.kraft.metadata_versions import CIDR_HOSTS_FROM, FEATURE_NAME, UNREGISTER_CONTROLLERS_FROM
from schemas.kraft.new_configs import NEW_CONFIGS
from transforms.features.levels import Release, release_name


class Effect(StrEnum):
    """What an older release does with a format."""

    READS = "reads"
    """It reads it, or passes over it without harm."""
    LOSES = "loses"
    """It starts, and what the format says is lost or not heeded."""
    REFUSES = "refuses"
    """It can't start, or can't serve what is written so."""


@dataclass(frozen=True)
class Format:
    """One persistent format: the first release that reads it, and what earlier releases do with it.

    `evidence` is the place in the tables that shows it; the metadata does not show formats of topic data or files. Then
    `written_at` is the level of a feature from which nodes write it, if there is one.
    """

    id: str
    title: str
    reads_from: Release
    below: Effect
    effect: str
    evidence: str
    written_at: tuple[str, int] | None = None


# `ConfigResource.Type.forId` makes UNKNOWN of what it does not know.
_UNKNOWN_TYPE = (
    "older controllers do not know this type of resource: their next checkpoint has the configurations without it"
)


def _new_configs(kind: str, release: Release) -> Format:
    """Configurations of names that came with a release."""
    word, name = kind.lower(), release_name(release)
    effect = f"older releases ignore them, and refuse every later change of the {word}"
    if kind == "BROKER":
        effect = "older brokers ignore them"
    elif release > FORGETS_CONFIGS:
        forgets = release_name(FORGETS_CONFIGS)
        effect += f"; {forgets} forgets them, and refuses none"
    return Format(
        config_format(kind, release),
        f"{word} configurations that came with {name}",
        release,
        Effect.LOSES,
        effect,
        f"CONFIG_RECORD: resourceType {kind}, name",
    )


def config_format(kind: str, release: Release) -> str:
    """Id of the format of a resource type's configurations that came with a release."""
    return f"{kind.lower()}_configs_{release[0]}_{release[1]}"


_NEW_CONFIGS = tuple(_new_configs(kind, release) for kind, names in NEW_CONFIGS.items() for release in names)
FORMATS: tuple[Format, ...] = (
    Format(
        "broker_znode_v5",
        "broker znodes of version 5",
        (2, 7),
        Effect.READS,
        "older brokers read version 5 as well",
        "/brokers/ids/<id>: version",
    ),
    Format(
        "reassignment_keys",
        "reassignments in topic znodes",
        (2, 4),
        Effect.LOSES,
        "older controllers ignore adding and removing replicas and drop them: reassignments in progress are forgotten",
        "/brokers/topics/<topic>: adding_replicas, removing_replicas",
    ),
    Format(
        "topic_id",
        "topic ids",
        (2, 8),
        Effect.LOSES,
        "older controllers drop the id when they write an assignment: the topic gets another id later",
        "/brokers/topics/<topic>: topic_id",
    ),
    Format(
        "leader_recovery_state",
        "leader recovery states",
        (3, 2),
        Effect.LOSES,
        "older controllers ignore it: that a leader is recovering from an unclean election is forgotten",
        "/brokers/topics/<topic>/partitions/<n>/state: leader_recovery_state",
    ),
    Format(
        "prefixed_acls",
        "prefixed ACLs",
        (2, 0),
        Effect.LOSES,
        "older authorizers do not see them: access changes",
        "/kafka-acl-extended",
    ),
    Format(
        "token_v3",
        "delegation tokens of version 3",
        (3, 3),
        Effect.REFUSES,
        "older brokers refuse to read every token",
        "/delegation_token/tokens/<id>: version",
    ),
    Format(
        "controller_v2",
        "the controller's znode of version 2",
        (3, 4),
        Effect.READS,
        "older brokers ignore the field that it adds",
        "/controller: version",
    ),
    Format(
        "offset_commit_v3",
        "offset commits of version 3",
        (2, 1),
        Effect.REFUSES,
        "older group coordinators can't load them",
        "topic data in __consumer_offsets, inferred from the inter.broker.protocol.version only",
    ),
    Format(
        "group_metadata_v3",
        "group metadata of version 3",
        (2, 3),
        Effect.REFUSES,
        "older group coordinators can't load them",
        "topic data in __consumer_offsets, inferred from the inter.broker.protocol.version only",
    ),
    Format(
        "directory_ids",
        "log directory ids of partitions",
        (3, 7),
        Effect.LOSES,
        "which log directory holds a replica is forgotten",
        "PARTITION_RECORD and PARTITION_CHANGE_RECORD: directories",
    ),
    Format(
        "eligible_leader_replicas",
        "eligible leader replicas",
        (4, 0),
        Effect.LOSES,
        "who may lead a partition whose ISR is too small is forgotten",
        "PARTITION_CHANGE_RECORD: eligibleLeaderReplicas",
    ),
    Format(
        "clear_elr_after_removal",
        "ClearElr records after the removal of a topic made since the newest checkpoint",
        (4, 2),
        Effect.REFUSES,
        "older nodes, but those of 4.0.0, can't replay them: they do not start unless a newer checkpoint is there",
        "CLEAR_ELR_RECORD, REMOVE_TOPIC_RECORD",
    ),
    Format(
        "client_metrics_configs",
        "configurations of client metrics",
        (3, 7),
        Effect.LOSES,
        _UNKNOWN_TYPE,
        "CONFIG_RECORD: resourceType CLIENT_METRICS",
    ),
    Format(
        "group_configs",
        "configurations of groups",
        (4, 0),
        Effect.LOSES,
        _UNKNOWN_TYPE,
        "CONFIG_RECORD: resourceType GROUP",
    ),
    *_NEW_CONFIGS,
    Format(
        "two_phase_commit_acls",
        "ACLs for the operation TWO_PHASE_COMMIT",
        (4, 1),
        Effect.LOSES,
        "older controllers do not know this operation: their next checkpoint has the ACLs without it, and until they are removed no "
        "ACLs can be listed",
        "ACCESS_CONTROL_ENTRY_RECORD: operation",
    ),
    Format(
        "cordoned_directories",
        "cordoned log directories",
        (4, 3),
        Effect.LOSES,
        "older controllers put new replicas into them again",
        "REGISTER_BROKER_RECORD: cordonedLogDirs",
        (FEATURE_NAME, 30),
    ),
    Format(
        "cidr_acls",
        "ACLs with hosts in CIDR notation",
        (4, 4),
        Effect.LOSES,
        "older authorizers compare the host letter by letter: such an ALLOW or DENY has no effect",
        "ACCESS_CONTROL_ENTRY_RECORD: host",
        (FEATURE_NAME, CIDR_HOSTS_FROM),
    ),
    Format(
        "controller_unregistration",
        "records of unregistered controllers",
        (4, 4),
        Effect.REFUSES,
        "older nodes can't replay them: they do not start",
        "UNREGISTER_CONTROLLER_RECORD",
        (FEATURE_NAME, UNREGISTER_CONTROLLERS_FROM),
    ),
    Format(
        "transaction_state_v1",
        "transaction states of version 1",
        (3, 4),
        Effect.REFUSES,
        "older transaction coordinators, and those of 3.4.0, can't load them",
        "topic data in __transaction_state",
        (TRANSACTION_VERSION, 1),
    ),
    Format(
        "group_records",
        "records of types that __consumer_offsets did not have before",
        (3, 4),
        Effect.REFUSES,
        "older group coordinators, and those of 3.4.0, can't load a partition that has them, nor any of its groups",
        "topic data in __consumer_offsets",
        (GROUP_VERSION, 1),
    ),
    Format(
        "consumer_group_records",
        "records of groups of the consumer protocol",
        (4, 0),
        Effect.LOSES,
        "older group coordinators ignore them: those groups lose their members, and keep their offsets",
        "topic data in __consumer_offsets",
        (GROUP_VERSION, 1),
    ),
    Format(
        "share_group_records",
        "records of share groups",
        (4, 1),
        Effect.LOSES,
        "older group coordinators ignore them: those groups are lost",
        "topic data in __consumer_offsets",
        (SHARE_VERSION, 1),
    ),
    Format(
        "share_group_state",
        "states of share partitions",
        (4, 1),
        Effect.LOSES,
        "older brokers have no share coordinator: what was delivered and acknowledged is forgotten",
        "topic data in __share_group_state",
        (SHARE_VERSION, 1),
    ),
    Format(
        "streams_group_records",
        "records of groups of the streams protocol",
        (4, 2),
        Effect.LOSES,
        "older group coordinators ignore them: those groups lose their members, and keep their offsets",
        "topic data in __consumer_offsets",
        (STREAMS_VERSION, 1),
    ),
    Format(
        "quorum_state_v1",
        "quorum-state files of data version 1",
        (3, 9),
        Effect.REFUSES,
        "older controllers can't read them: they do not start",
        "quorum-state: data_version",
        (KRAFT_VERSION, 1),
    ),
    Format(
        "index_files",
        "offset, time and transaction indexes",
        (0, 11),
        Effect.READS,
        "they are rebuilt from the log",
        "*.index, *.timeindex, *.txnindex",
    ),
    Format(
        "producer_snapshot",
        "producer snapshots of version 1",
        (0, 11),
        Effect.READS,
        "they are rebuilt from the log",
        "*.snapshot",
    ),
    Format(
        "leader_epoch_checkpoint",
        "leader epoch checkpoints of version 0",
        (0, 11),
        Effect.READS,
        "older brokers have none",
        "leader-epoch-checkpoint",
    ),
    Format(
        "offset_checkpoints",
        "replication, recovery, log start and cleaner checkpoints of version 0",
        (0, 11),
        Effect.READS,
        "older brokers rewrite those that they support",
        "replication-offset-checkpoint, recovery-point-offset-checkpoint, log-start-offset-checkpoint, "
        "cleaner-offset-checkpoint",
    ),
    Format(
        "partition_metadata",
        "partition.metadata files",
        (2, 8),
        Effect.READS,
        "older brokers ignore them; if a topic gets another id later, its files must be deleted first",
        "partition.metadata",
    ),
    Format(
        "directory_id_file",
        "directory ids in meta.properties",
        (3, 7),
        Effect.READS,
        "older nodes ignore them, in version 0 as in version 1",
        "meta.properties: directory.id",
    ),
)
BY_ID: Mapping[str, Format] = {entry.id: entry for entry in FORMATS}
# Formats that no tree and no log shows: the protocol that a broker wrote by is all there is.
BY_PROTOCOL = ("offset_commit_v3", "group_metadata_v3")
# So many that those which are absent are not listed.
OF_NEW_CONFIGS = tuple(entry.id for entry in _NEW_CONFIGS)
OF_KRAFT = (
    "directory_ids",
    "eligible_leader_replicas",
    "client_metrics_configs",
    "group_configs",
    "two_phase_commit_acls",
    "clear_elr_after_removal",
    *OF_NEW_CONFIGS,
)
# Formats that only a finalised level shows, and files that every broker writes.
BY_FEATURE = tuple(entry.id for entry in FORMATS if entry.written_at is not None)
OF_FILES = (
    "index_files",
    "producer_snapshot",
    "leader_epoch_checkpoint",
    "offset_checkpoints",
    "partition_metadata",
    "directory_id_file",
)


@dataclass(frozen=True)
class Seen:
    """How many rows have a format, and where one of them is: a znode, or a record's offset."""

    total: int
    example: str = ""


@dataclass(frozen=True)
class FeatureZnode:
    """`/feature`: its schema version, whether it is enabled, and what it has finalised."""

    version: int
    enabled: bool
    features: Mapping[str, int] = field(default_factory=dict)
