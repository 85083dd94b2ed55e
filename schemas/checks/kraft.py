"""A KRaft cluster's own health: quorum, log, ELR, configurations, directories, and its next upgrade (S§8.4)."""

from __future__ import annotations

from schemas.checks.check import IN_KRAFT, KRAFT_ONLY, WAITING, WITH_KRAFT, Check, check, optional
from schemas.gates import UPGRADE

CHECKS: tuple[Check, ...] = (
    check(
        "UPG-01",
        "Every registered node supports the newest metadata.version of the cluster's release, and the features that come with it",
        UPGRADE,
        IN_KRAFT,
        "Start each node listed once with the same release as the others, or restart it if it runs: this updates its "
        "registration. If the machine of a controller is gone, start one with the same `node.id` elsewhere. Unregister a broker "
        "that is gone for good: `kafka-cluster.sh unregister --id N`. Unregister a controller that is gone for good, from "
        "metadata.version 4.4-IV2 (33) on: `kafka-cluster.sh unregister-controller --id N`. Stop a node before you unregister it: "
        "a running controller registers again, and a running broker stays out until it is restarted.",
        "KIP-584; FeatureControlManager.updateFeature; QuorumFeatures; BrokerRegistrationRequest; S§9.3",
        needs=KRAFT_ONLY,
    ),
    check(
        "UPG-02",
        "Every replica is in sync, so that a broker may be restarted",
        UPGRADE,
        IN_KRAFT,
        "Start the brokers listed and wait until they have caught up; if one of them runs, see what its log says, and whether it lost a "
        "directory (DIR-02). Do not restart another broker before that.",
        "Rolling upgrade, Kafka's documentation; S§8.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "UPG-03",
        "metadata.version is high enough for the next major release",
        UPGRADE,
        IN_KRAFT,
        "Raise metadata.version first: `kafka-features.sh upgrade --metadata X.Y-IVn`, with the newest level of the cluster's "
        "release. Kafka 4 does not start below 3.3-IV3.",
        "MetadataVersion.MINIMUM_VERSION; S§9.3",
        needs=KRAFT_ONLY,
    ),
    check(
        "QRM-01",
        "Every registered controller is a voter",
        (),
        IN_KRAFT,
        "Below metadata.version 4.4-IV2 (33), start the controller once with the new release before each upgrade: a removed "
        "controller stays registered and counts at every upgrade of metadata.version. From 4.4-IV2 on, stop it and "
        "unregister it: `kafka-cluster.sh unregister-controller --id N`, or `kafka-metadata-quorum.sh remove-controller "
        "--unregister`. A running controller registers again; on a node that goes on as a broker, take the role controller out of "
        "process.roles first. If the controller is to vote, add it instead: `kafka-metadata-quorum.sh add-controller`.",
        "KIP-853; KIP-1312; PR 22191, PR 23196; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "QRM-02",
        "No broker without replicas stays registered after it went away",
        (),
        IN_KRAFT,
        "Unregister the broker if it is gone for good: `kafka-cluster.sh unregister --id N`. It counts at every "
        "upgrade of metadata.version.",
        "KIP-631; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "QRM-03",
        "Every voter's directory id is the one in its copy's meta.properties",
        UPGRADE,
        IN_KRAFT,
        "Remove the voter with the old directory id, then add it with the new one: `kafka-metadata-quorum.sh "
        "remove-controller`, then `add-controller`. The disk of this controller was formatted again.",
        "KIP-853; S§8.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "QRM-04",
        "Every voter is reachable at its registered address",
        (),
        IN_KRAFT,
        "Restart the controller listed on a release that updates its voter entry, or remove the voter and add it "
        "again. The other controllers use the address in the voters' record.",
        "KIP-853, UpdateRaftVoter; PR 22620; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "QRM-05",
        "The quorum has not shrunk to an even number of voters, and no voter that was removed has joined again",
        (),
        IN_KRAFT,
        "Add a controller in place of the removed one: an even quorum tolerates no more failures than a quorum with "
        "one voter less. A controller that was added again joins on its own if its file sets "
        "controller.quorum.auto.join.enable: to remove it for good, stop it first, and take that setting out of its file before it starts "
        "again. Ignore it if you added it yourself; with the controllers' property files (properties.controllers) the check tells these "
        "apart.",
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
            "Set controller.quorum.bootstrap.servers and remove controller.quorum.voters from the files listed if "
            "kraft.version is 1. If kraft.version is 0, set controller.quorum.voters on every node.",
            "KIP-853; PR 20071; S§8.4",
            needs=KRAFT_ONLY,
            severity="warning",
        )
    ),
    check(
        "QRM-07",
        "The quorum does not elect one leader after another",
        (),
        WITH_KRAFT,
        "Check the controllers' disks, garbage collection and network: each election stops all metadata changes for a "
        "while. Check controller.quorum.fetch.timeout.ms and controller.quorum.election.timeout.ms.",
        "KIP-595; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "LOG-01",
        "The newest checkpoint (metadata snapshot) is close behind the end of the log",
        (),
        IN_KRAFT,
        "Look for a metadata fault in the controllers' logs (metric MetadataErrorCount): after a fault a controller "
        "writes no more checkpoints. Check metadata.log.max.record.bytes.between.snapshots and "
        "metadata.log.max.snapshot.interval.ms.",
        "KIP-630; PR 12596; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "LOG-02",
        "Every record of the log can be replayed",
        ("start", "finalize", *UPGRADE),
        WAITING | WITH_KRAFT,
        "Do not restart a controller or a broker: a starting node replays the record listed and can fail on it. Find "
        "the cause first. If the bytes are wrong in one copy only, replace that node's copy.",
        "*ControlManager.replay; S§3.1, S§8.4",
        needs=KRAFT_ONLY,
        severity="critical",
    ),
    check(
        "LOG-03",
        "No batch is close to the largest size that the quorum can replicate",
        (),
        IN_KRAFT,
        "Change fewer topics or configurations in one request.",
        "BatchAccumulator, KafkaRaftClient.MAX_BATCH_SIZE_BYTES; PR 12595; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "LOG-04",
        "The log continues where the previous run ended",
        (),
        WITH_KRAFT,
        "Audit more often than Kafka prunes its log, or make Kafka keep more of it (metadata.max.retention.bytes, "
        "metadata.max.retention.ms). No run's history has what happened in between.",
        "KIP-630; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ELR-01",
        "With eligible leader replicas, min.insync.replicas is set for the cluster and not for single brokers",
        (),
        IN_KRAFT,
        "Set min.insync.replicas for all brokers: `kafka-configs.sh --alter --entity-type brokers --entity-default`. "
        "Then remove it from single brokers.",
        "KIP-966; PR 17952; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ELR-02",
        "No partition is led by a last known leader that is down",
        (),
        IN_KRAFT,
        "Start the brokers listed: the leader of their partitions does not answer.",
        "KIP-966; PR 20200; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "CFG-01",
        "No topic has a configuration that Kafka 4.0 removed",
        UPGRADE,
        IN_KRAFT,
        "Delete the configurations listed before an upgrade to 4.0, 4.1 or 4.2: `kafka-configs.sh --alter "
        "--delete-config`. These releases refuse any other change of the same topic. Kafka 4.3 and later skip the "
        "configuration.",
        "KIP-724; KIP-937; PR 21053; DefaultSupportedConfigChecker; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "CFG-02",
        "Every partition that allows unclean elections has a leader",
        (),
        IN_KRAFT,
        "Wait five minutes: from 3.9 on KRaft applies unclean.leader.election.enable every five minutes. Or elect a "
        "leader by hand: `kafka-leader-election.sh --election-type unclean`.",
        "PR 16866, PR 17051; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "CFG-04",
        "No topic has a segment size that Kafka 4.1 refuses",
        UPGRADE,
        IN_KRAFT,
        "Raise segment.bytes of the topics listed to 1048576 or more before an upgrade to 4.1 or later: `kafka-configs.sh "
        "--alter --add-config`. With a smaller one the brokers of these releases end while they start (“Error starting "
        "LogManager”).",
        "KIP-1030; PR 19371; LogManager.fetchTopicConfigOverrides; S§8.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "DIR-01",
        "No directory is assigned below the metadata.version that supports directories",
        UPGRADE,
        WITH_KRAFT,
        "Raise metadata.version to 3.7-IV2 or later before you restart a broker: brokers do not start with such an "
        "assignment.",
        "KIP-858; PR 15751; S§8.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "DIR-02",
        "Every replica is in a directory of its broker",
        UPGRADE,
        WITH_KRAFT,
        "Replace the lost disks, or reassign the partitions listed. Then restart the broker: it reports its "
        "directories when it starts.",
        "KIP-858; PR 15945; S§8.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
)
