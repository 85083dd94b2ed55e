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

CHECKS: tuple[Check, ...] = (
    check(
        "FEAT-01",
        "Every broker at work supports every finalised feature",
        UPGRADE,
        WITH_KRAFT,
        "Run the brokers named with a release that supports the level: they can't start again as they are.",
        "KIP-584; ClusterControlManager.registerBroker; S§9.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "FEAT-02",
        "Every registered controller supports every finalised feature",
        UPGRADE,
        WITH_KRAFT,
        "Run the controllers named with a release that supports the level: they can't replay the log as they are.",
        "KIP-919; QuorumFeatures; S§9.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "FEAT-03",
        "The finalised metadata.version is one that this audit knows",
        UPGRADE,
        WITH_KRAFT,
        "Use a newer version of this audit: what it says of a release that it does not know may be wrong.",
        "MetadataVersion; S§2.8",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "FEAT-04",
        "No feature of /feature is lost at the migration",
        (),
        frozenset({Phase.DUAL_WRITE, Phase.FINALIZED}),
        "Finalise the features named again with kafka-features after the migration, where their release still has them.",
        "KIP-584; KIP-866; S§9.4",
        needs=BOTH,
        severity="warning",
    ),
    check(
        "FEAT-05",
        "Every broker in ZooKeeper mode has the protocol of metadata.version",
        (),
        DURING,
        "Set inter.broker.protocol.version of the brokers named to metadata.version, or leave them for the next restart, "
        "which is in KRaft mode.",
        "KIP-866; S§9.2",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "FEAT-06",
        "Every feature is finalised once, at a level above 0",
        UPGRADE,
        WITH_KRAFT,
        "Report it: the log holds what FeatureControlManager never writes.",
        "FeatureControlManager.replay; S§9.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "FEAT-07",
        "A metadata.version is finalised",
        UPGRADE,
        WITH_KRAFT,
        "Raise it: kafka-features upgrade --release-version RELEASE. Without a level the cluster stays at the lowest one its "
        "release knows.",
        "FeatureControlManager; S§8.4",
        needs=KRAFT_ONLY,
    ),
    optional(
        check(
            "FEAT-08",
            "Every node's bootstrap.checkpoint is at a level that Kafka 4 reads",
            UPGRADE,
            IN_KRAFT,
            "Remove the bootstrap.checkpoint of the nodes named before they are started with Kafka 4: the cluster's own level "
            "counts, and 4.x does not read a level below 3.3-IV3.",
            "BootstrapDirectory; S§8.4",
            needs=KRAFT_ONLY,
            severity="warning",
        )
    ),
    check(
        "FEAT-09",
        "No feature is behind what its metadata.version brings",
        (),
        IN_KRAFT,
        "Raise them all, if nothing speaks against it: kafka-features upgrade --release-version RELEASE; raising metadata.version "
        "alone leaves them. What is kept down on purpose can be suppressed.",
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
            "Before kraft.version is raised to 1, run every controller with a release that supports it, and give the audit each "
            "controller's folder: the leader has to know every voter's directory id.",
            "KIP-853; LeaderState.maybeAppendUpgradedKRaftVersion; S§9.4",
            needs=KRAFT_ONLY,
            severity="warning",
        )
    ),
    check(
        "FEAT-11",
        "Every broker in ZooKeeper mode supports what /feature has finalised",
        ("start",),
        ZOOKEEPER_DECIDES,
        "Delete the features named (kafka-features disable) with the release that finalised them: a broker that does not support "
        "one stops, and does not start again. Releases from 3.0 on support none in ZooKeeper mode.",
        "KIP-584; FinalizedFeatureChangeListener, BrokerFeatures.incompatibleFeatures; S§9.4",
        needs=ZOOKEEPER_ONLY,
    ),
)
