"""metadata.version levels and the meaning of the ZkMigrationState byte, by Kafka release (S§2.6)."""

from __future__ import annotations

from dataclasses import dataclass

FEATURE_NAME = "metadata.version"
# What a log without a FeatureLevel record for metadata.version runs at.
DEFAULT_LEVEL = 1
# MetadataVersion.MINIMUM_VERSION of 4.x: anything lower cannot be upgraded to 4.x at all.
MINIMUM_LEVEL_4X = 7


@dataclass(frozen=True)
class MetadataVersion:
    """One level: `changed` says whether it changed the metadata format, so that a downgrade past it loses metadata.

    `testing` marks a level that the newest release has but does not run in production: its meaning is open, so everything
    except its name counts as unknown.
    """

    level: int
    name: str
    changed: bool
    gates: str = ""
    testing: bool = False


METADATA_VERSIONS: tuple[MetadataVersion, ...] = (
    MetadataVersion(1, "3.0-IV1", True, "the first KRaft format"),
    MetadataVersion(2, "3.1-IV0", False),
    MetadataVersion(3, "3.2-IV0", True, "leader recovery state"),
    MetadataVersion(4, "3.3-IV0", False, "FeatureLevelRecord exists"),
    MetadataVersion(5, "3.3-IV1", True, "NoOp records"),
    MetadataVersion(6, "3.3-IV2", True, "BrokerRegistrationChange instead of FenceBroker and UnfenceBroker"),
    MetadataVersion(7, "3.3-IV3", True, "InControlledShutdown"),
    MetadataVersion(8, "3.4-IV0", True, "migration from ZooKeeper; RegisterBroker v2"),
    MetadataVersion(9, "3.5-IV0", False),
    MetadataVersion(10, "3.5-IV1", False),
    MetadataVersion(11, "3.5-IV2", True, "SCRAM credentials in KRaft"),
    MetadataVersion(12, "3.6-IV0", False, "no leader epoch bump when the ISR shrinks"),
    MetadataVersion(13, "3.6-IV1", True, "metadata transactions"),
    MetadataVersion(14, "3.6-IV2", True, "delegation tokens in KRaft"),
    MetadataVersion(15, "3.7-IV0", True, "controller registration"),
    MetadataVersion(16, "3.7-IV1", False),
    MetadataVersion(17, "3.7-IV2", True, "directory assignment: RegisterBroker v3, Partition v1"),
    MetadataVersion(18, "3.7-IV3", False),
    MetadataVersion(19, "3.7-IV4", False),
    MetadataVersion(20, "3.8-IV0", False),
    MetadataVersion(21, "3.9-IV0", False, "the last level that a cluster with ZooKeeper can run"),
    MetadataVersion(22, "4.0-IV0", False),
    MetadataVersion(23, "4.0-IV1", True, "eligible leader replicas: Partition v2"),
    MetadataVersion(24, "4.0-IV2", False),
    MetadataVersion(25, "4.0-IV3", False),
    MetadataVersion(26, "4.1-IV0", False),
    MetadataVersion(27, "4.1-IV1", False),
    MetadataVersion(28, "4.2-IV0", False),
    MetadataVersion(29, "4.2-IV1", False),
    MetadataVersion(30, "4.3-IV0", True, "cordoned log directories: RegisterBroker v4"),
    MetadataVersion(31, "4.4-IV0", False, "share.version 2 by default"),
    MetadataVersion(32, "4.4-IV1", True, "hosts of ACLs in CIDR notation"),
    MetadataVersion(33, "4.4-IV2", True, "controllers can be unregistered"),
    MetadataVersion(34, "4.5-IV0", False, testing=True),
)
BY_LEVEL: dict[int, MetadataVersion] = {version.level: version for version in METADATA_VERSIONS}
BY_NAME: dict[str, MetadataVersion] = {version.name: version for version in METADATA_VERSIONS}

# Highest level a release can run (`MetadataVersion.latestProduction`; `latest` before that existed).
LATEST_PRODUCTION: dict[str, int] = {
    "3.3": 7,
    "3.4": 8,
    "3.5": 11,
    "3.6": 14,
    "3.7": 19,
    "3.8": 20,
    "3.9": 21,
    "4.0": 25,
    "4.1": 27,
    "4.2": 29,
    "4.3": 30,
    "4.4": 33,
}
# The highest level that a release has a name for, in production or not. A node of these releases does not start with a bootstrap.checkpoint
# above it (`BootstrapMetadata.recordToMetadataVersion`). Of later ones only 4.0.0 looks at it (KAFKA-19192).
HIGHEST_NAMED: dict[str, int] = {"3.3": 7, "3.4": 8, "3.5": 11, "3.6": 14, "3.7": 20, "3.8": 21, "3.9": 23}
NAMED_IN_4_0_0 = range(7, 27)
# From here on an ACL's host may be a network in CIDR notation (KIP-1276), and a controller can be unregistered (KIP-1312).
CIDR_HOSTS_FROM = 32
UNREGISTER_CONTROLLERS_FROM = 33

# Levels from which a kind of metadata survives a snapshot; below them the snapshot writer drops it (S§3.4).
SNAPSHOT_KEEPS_FROM: dict[str, int] = {
    "in_controlled_shutdown": 7,
    "scram_credentials": 11,
    "delegation_tokens": 14,
    "controllers": 15,
    "directories": 17,
}

# The byte of a ZkMigrationState record. 3.4 swapped PRE_MIGRATION and MIGRATION; 4.x ignores the record altogether.
ZK_MIGRATION_STATES_3_4: dict[int, str] = {0: "NONE", 1: "PRE_MIGRATION", 2: "MIGRATION", 3: "POST_MIGRATION"}
ZK_MIGRATION_STATES: dict[int, str] = {0: "NONE", 1: "MIGRATION", 2: "PRE_MIGRATION", 3: "POST_MIGRATION", 4: "ZK"}


def level_name(level: int) -> str:
    """Name a level, e.g. 21 as `3.9-IV0`; one that this release of the audit does not support becomes `unknown(n)`."""
    return BY_LEVEL[level].name if level in BY_LEVEL else f"unknown({level})"


def is_known(level: int) -> bool:
    """True for a level whose meaning is known: one of the table that some release runs in production."""
    return level in BY_LEVEL and not BY_LEVEL[level].testing


def zk_migration_states(kafka_version: str | None) -> dict[int, str]:
    """The byte's meanings for a release such as `3.9.1`; unknown releases count as 3.5 or later. 4.x has none."""
    if kafka_version is not None and kafka_version.startswith("3.4"):
        return ZK_MIGRATION_STATES_3_4
    if kafka_version is not None and kafka_version.split(".")[0].isdigit() and int(kafka_version.split(".")[0]) >= 4:
        return {}
    return ZK_MIGRATION_STATES
