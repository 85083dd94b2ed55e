"""FEAT checks: finalised features and who supports them (KIP-584; S§9)."""

from __future__ import annotations

from schemas.checks.check import (
    BOTH,
    DURING,
    IN_KRAFT,
    KRAFT_ONLY,
    START_PHASES,
    WITH_KRAFT,
    ZOOKEEPER_ONLY,
    Check,
    Phase,
    check,
    optional,
)
from schemas.gates import UPGRADE

# Phases in which a ZooKeeper controller finalises features, and brokers read them from /feature.
ZOOKEEPER_DECIDES = frozenset({*START_PHASES, Phase.ROLLED_BACK})
# In dual write a rollback would put them back there.
READ_FROM_ZOOKEEPER = ZOOKEEPER_DECIDES | DURING

CHECKS: tuple[Check, ...] = (
    check(
        "FEAT-01",
        "Every running broker supports every finalised feature",
        UPGRADE,
        WITH_KRAFT,
        "Upgrade the brokers listed to a release that supports the level. Do not restart them before that: they "
        "would not start again.",
        "KIP-584; ClusterControlManager.registerBroker; S§9.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "FEAT-02",
        "Every registered controller supports every finalised feature",
        UPGRADE,
        WITH_KRAFT,
        "Upgrade the controllers listed to a release that supports the level. They cannot replay the log as they are.",
        "KIP-919; QuorumFeatures; S§9.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "FEAT-03",
        "This audit supports the finalised metadata.version and every other finalised level",
        UPGRADE,
        WITH_KRAFT,
        "Install a newer version of this audit: what it reports about an unknown release may be wrong.",
        "MetadataVersion; Feature; S§2.8, S§9.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "FEAT-04",
        "The migration loses no feature of /feature",
        (),
        frozenset({Phase.DUAL_WRITE, Phase.FINALIZED}),
        "Finalise the features listed again with `kafka-features.sh` after the migration, if the release still has "
        "them.",
        "KIP-584; KIP-866; S§9.4",
        needs=BOTH,
        severity="warning",
    ),
    check(
        "FEAT-05",
        "Every broker in ZooKeeper mode has the protocol of metadata.version",
        (),
        DURING,
        "Set inter.broker.protocol.version on the brokers listed to metadata.version. Or leave them until their next "
        "restart, which is in KRaft mode.",
        "KIP-866; S§9.2",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "FEAT-06",
        "Every feature is finalised once, at a level above 0",
        UPGRADE,
        WITH_KRAFT,
        "Report it: FeatureControlManager never writes what this log contains.",
        "FeatureControlManager.replay; S§9.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "FEAT-07",
        "A metadata.version is finalised",
        UPGRADE,
        WITH_KRAFT,
        "Raise metadata.version: `kafka-features.sh upgrade --metadata X.Y-IVn`, from Kafka 4.0 on `kafka-features.sh upgrade "
        "--release-version RELEASE`. Without a level the cluster stays at the lowest one that its release supports.",
        "FeatureControlManager; S§8.4",
        needs=KRAFT_ONLY,
    ),
    optional(
        check(
            "FEAT-08",
            "Every node's bootstrap.checkpoint is at a level that Kafka 4.0.0 can read",
            UPGRADE,
            IN_KRAFT,
            "Upgrade to 4.0.1 or later, or remove the bootstrap.checkpoint of the nodes listed first. Kafka 4.0.0 does not start "
            "with a level below 3.3-IV3, although the cluster's own level counts.",
            "BootstrapDirectory; KAFKA-19192; S§8.4",
            needs=KRAFT_ONLY,
            severity="warning",
        )
    ),
    check(
        "FEAT-09",
        "No feature is behind the default of its metadata.version",
        (),
        IN_KRAFT,
        "Raise all features: `kafka-features.sh upgrade --release-version RELEASE`. Raising metadata.version alone "
        "does not raise them. Restart a node that is in the way first, on the release of the others: Kafka refuses as long as it is "
        "registered without the feature. Leave a feature as it is if you keep it down on purpose: this check closes no gate.",
        "KIP-1022; Feature.defaultLevel; S§9.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    optional(
        check(
            "FEAT-10",
            "A static quorum may become a dynamic one",
            (),
            IN_KRAFT,
            "Run every broker and controller with a release that supports kraft.version 1 (3.9) before you raise it, and "
            "unregister those that are gone. Give the audit each controller's folder: the leader must know every voter's "
            "directory id.",
            "KIP-853; FeatureControlManager.reasonNotSupported; LeaderState.maybeAppendUpgradedKRaftVersion; S§9.4",
            needs=KRAFT_ONLY,
            severity="warning",
        )
    ),
    check(
        "FEAT-11",
        "Every broker in ZooKeeper mode supports the features finalised in /feature",
        ("start", "rollback"),
        READ_FROM_ZOOKEEPER,
        "Delete the features listed with the release that finalised them: `kafka-features.sh disable --feature NAME`, below Kafka "
        "3.3 `kafka-features.sh --downgrade-all`. A broker that "
        "does not support one of them stops and does not start again. Releases from 3.0 on support none in ZooKeeper "
        "mode. Correct a /feature that cannot be read before you roll back: brokers put back into ZooKeeper mode would "
        "not start.",
        "KIP-584; FinalizedFeatureChangeListener, BrokerFeatures.incompatibleFeatures; S§9.4",
        needs=ZOOKEEPER_ONLY,
    ),
)
