"""A KRaft cluster's own health: quorum, log, ELR, configurations, directories, and its next upgrade (S§8.4)."""

from __future__ import annotations

from schemas.checks.check import IN_KRAFT, KRAFT_ONLY, WAITING, WITH_KRAFT, Check, check, optional
from schemas.gates import UPGRADE

CHECKS: tuple[Check, ...] = (
    check(
        "UPG-01",
        "Every registered node supports the newest metadata.version of the cluster's release",
        UPGRADE,
        IN_KRAFT,
        "Start the nodes named once with the release that the others run: their registration then says so. A broker that is "
        "gone for good is unregistered (kafka-cluster.sh unregister --id N); a controller that is gone, from metadata.version "
        "4.4-IV2 (33) on (kafka-cluster.sh unregister-controller --id N). A node that runs registers again by itself.",
        "KIP-584; FeatureControlManager.updateFeature; QuorumFeatures; S§9.3",
        needs=KRAFT_ONLY,
    ),
    check(
        "UPG-02",
        "Every replica is in sync, so that a broker may be restarted",
        UPGRADE,
        IN_KRAFT,
        "Bring the brokers named back and let them catch up before another is restarted.",
        "Rolling upgrade, Kafka's documentation; S§8.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "UPG-03",
        "metadata.version is high enough for the next major release",
        UPGRADE,
        IN_KRAFT,
        "Raise it first: kafka-features upgrade --release-version RELEASE. Kafka 4 starts from 3.3-IV3 on.",
        "MetadataVersion.MINIMUM_VERSION; S§9.3",
        needs=KRAFT_ONLY,
    ),
    check(
        "QRM-01",
        "Every registered controller is a voter",
        (),
        IN_KRAFT,
        "A controller that was removed stays registered and counts at every upgrade of metadata.version. From metadata.version "
        "4.4-IV2 (33) on stop it and unregister it (kafka-cluster.sh unregister-controller --id N, or remove it with "
        "kafka-metadata-quorum.sh remove-controller --unregister); one that runs registers again by itself. Below that level "
        "start it once with the new release before each upgrade.",
        "KIP-853; KIP-1312; PR 22191, PR 23196; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "QRM-02",
        "No broker without replicas stays registered after it went away",
        (),
        IN_KRAFT,
        "If the broker is gone for good, unregister it (kafka-cluster unregister --id N): it counts at every upgrade of "
        "metadata.version.",
        "KIP-631; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "QRM-03",
        "Every voter's directory id is that of its copy's meta.properties",
        UPGRADE,
        IN_KRAFT,
        "The disk of the controller named was formatted again: remove the voter with the old directory id and add it with the "
        "new one (kafka-metadata-quorum remove-controller, add-controller).",
        "KIP-853; S§8.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "QRM-04",
        "Every voter is reachable where its registration says it is",
        (),
        IN_KRAFT,
        "Restart the controller named on a release that updates its voter entry, or remove and add the voter: the others look "
        "for it where the voters' record says.",
        "KIP-853, UpdateRaftVoter; PR 22620; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "QRM-05",
        "The quorum has not shrunk to an even number of voters",
        (),
        IN_KRAFT,
        "Add a controller in the place of the one that was removed: an even quorum bears no more failures than one voter less.",
        "KIP-853; PR 20859; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    optional(
        check(
            "QRM-06",
            "kraft.version 1 and controller.quorum.voters are not used together",
            (),
            IN_KRAFT,
            "With kraft.version 1 set controller.quorum.bootstrap.servers and take controller.quorum.voters out of the files "
            "named; with kraft.version 0 every node needs controller.quorum.voters.",
            "KIP-853; PR 20071; S§8.4",
            needs=KRAFT_ONLY,
            severity="warning",
        )
    ),
    check(
        "QRM-07",
        "The quorum does not elect leader after leader",
        (),
        WITH_KRAFT,
        "Look at the controllers' disks, garbage collection and network: each election stops all changes for a while. See "
        "controller.quorum.fetch.timeout.ms and controller.quorum.election.timeout.ms.",
        "KIP-595; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "LOG-01",
        "The newest snapshot is close behind the log's end",
        (),
        IN_KRAFT,
        "Look for a metadata fault in the controllers' logs (metric MetadataErrorCount): a controller that met one writes no "
        "snapshots any more. See metadata.log.max.record.bytes.between.snapshots and metadata.log.max.snapshot.interval.ms.",
        "KIP-630; PR 12596; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "LOG-02",
        "Every record of the log can be replayed",
        ("start", "finalize", *UPGRADE),
        WAITING | WITH_KRAFT,
        "Do not restart a controller or a broker before this is understood: a node that starts replays the record named. Bytes "
        "that only one copy has wrong: replace that node's copy.",
        "*ControlManager.replay; S§3.1, S§8.4",
        needs=KRAFT_ONLY,
        severity="critical",
    ),
    check(
        "LOG-03",
        "No batch comes near the size that the quorum can replicate",
        (),
        IN_KRAFT,
        "Change fewer topics or configurations by one request.",
        "BatchAccumulator, KafkaRaftClient.MAX_BATCH_SIZE_BYTES; PR 12595; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "LOG-04",
        "The log goes on where the run before this one ended",
        (),
        WITH_KRAFT,
        "Audit more often than Kafka prunes its log (metadata.max.retention.bytes, metadata.max.retention.ms), or keep more of "
        "it: what happened in between is in no run's history.",
        "KIP-630; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ELR-01",
        "With eligible leader replicas min.insync.replicas is set for the cluster, and for no broker alone",
        (),
        IN_KRAFT,
        "Set min.insync.replicas for all brokers (kafka-configs --entity-type brokers --entity-default) and remove it from "
        "single ones.",
        "KIP-966; PR 17952; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ELR-02",
        "No last known leader leads a partition while it is not at work",
        (),
        IN_KRAFT,
        "Start the brokers named: their partitions have a leader that does not answer.",
        "KIP-966; PR 20200; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "CFG-01",
        "No resource has a configuration that Kafka 4.0 removed",
        UPGRADE,
        IN_KRAFT,
        "Delete the configurations named (kafka-configs --alter --delete-config) before an upgrade to 4.0, 4.1 or 4.2: these "
        "releases refuse any other change of the same resource. Kafka 4.3 and later skip the configuration.",
        "KIP-724; KIP-937; PR 21053; DefaultSupportedConfigChecker; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "CFG-02",
        "No partition is without a leader though unclean elections are allowed for it",
        (),
        IN_KRAFT,
        "KRaft heeds unclean.leader.election.enable from 3.9 on, every five minutes: wait that long, or elect by hand "
        "(kafka-leader-election --election-type unclean).",
        "PR 16866, PR 17051; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "DIR-01",
        "No directory is assigned below the metadata.version that knows directories",
        UPGRADE,
        WITH_KRAFT,
        "Raise metadata.version to 3.7-IV2 or later before a broker restarts: brokers do not start with such an assignment.",
        "KIP-858; PR 15751; S§8.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "DIR-02",
        "Every replica is in a directory of its broker",
        UPGRADE,
        WITH_KRAFT,
        "Replace the disks that were lost, or reassign the partitions named; a broker tells its directories when it is "
        "restarted.",
        "KIP-858; PR 15945; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
)
