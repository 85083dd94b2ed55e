"""A KRaft cluster in operation: what a restart interrupts, brokers, reassignments, racks, directories, share groups (S§8.6)."""

from __future__ import annotations

from schemas.checks.check import IN_KRAFT, KRAFT_ONLY, Check, check, optional
from schemas.gates import UPGRADE

CHECKS: tuple[Check, ...] = (
    check(
        "UPG-04",
        "A rolling restart takes no partition offline and refuses no write",
        UPGRADE,
        IN_KRAFT,
        "Add replicas to the partitions named (kafka-reassign-partitions), or set min.insync.replicas below the number of "
        "replicas. On a development cluster set thresholds.restart_may_interrupt: the check then only warns.",
        "Rolling upgrade, Kafka's documentation; ReplicationControlManager.getTopicEffectiveMinIsr; S§8.6",
        needs=KRAFT_ONLY,
    ),
    optional(
        check(
            "UPG-05",
            "The quorum keeps its majority while one controller restarts",
            UPGRADE,
            IN_KRAFT,
            "Wait until the controllers named have caught up and are registered before you restart any other one. A quorum of "
            "one or two voters stops while one of them restarts: run three.",
            "KIP-595; KIP-919; S§8.6",
            needs=KRAFT_ONLY,
        )
    ),
    check(
        "BRK-01",
        "No broker with replicas has been fenced for an hour",
        (),
        IN_KRAFT,
        "Start the brokers named, or move their replicas to other brokers (kafka-reassign-partitions) and unregister them.",
        "KIP-631, Broker Registration and State Management; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "BRK-02",
        "Every log directory id belongs to one broker",
        UPGRADE,
        IN_KRAFT,
        "Give the cloned disk an id of its own: stop the broker named, remove directory.id from the meta.properties of its copy "
        "and start it. The controllers refuse its registration until then.",
        "KIP-858; ClusterControlManager.updateDirectories; S§8.6",
        needs=KRAFT_ONLY,
    ),
    check(
        "BRK-03",
        "All brokers name a rack, or none does",
        (),
        IN_KRAFT,
        "Set broker.rack on the brokers named and restart them: new partitions are spread over racks only when every broker "
        "names one.",
        "KIP-36; StripedReplicaPlacer; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "BRK-04",
        "The replicas of every partition are in more than one rack",
        (),
        IN_KRAFT,
        "Move a replica of the partitions named to another rack (kafka-reassign-partitions): one rack's failure takes them offline.",
        "KIP-36; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "RAS-01",
        "Every reassignment comes to its end",
        (),
        IN_KRAFT,
        "Look for a replica that does not catch up (disk, network, throttle). Cancel the reassignment if it is not wanted any "
        "more: kafka-reassign-partitions --cancel.",
        "KIP-455; PartitionReassignmentReplicas; S§3.3",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "RAS-02",
        "No replication throttle is left when no partition is being reassigned",
        (),
        IN_KRAFT,
        "Remove the throttles named (kafka-reassign-partitions --verify, or kafka-configs --delete-config): they slow down "
        "replicas that fall behind.",
        "KIP-73; KIP-455; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ELR-03",
        "No partition waits for an eligible leader replica",
        (),
        IN_KRAFT,
        "Start one of the brokers named: until then nobody leads the partition.",
        "KIP-966; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ELR-04",
        "Eligible leader replicas are on where the release has them on by default",
        (),
        IN_KRAFT,
        "Turn them on: kafka-features upgrade --feature eligible.leader.replicas.version=1. They keep a partition from losing "
        "data after several brokers failed.",
        "KIP-966; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ELR-05",
        "Eligible and last known leaders are replicas of their partition",
        (),
        IN_KRAFT,
        "Bring the ISR up to min.insync.replicas: that empties both lists. Until then, do not reassign the partition to a broker "
        "named here: the controller answers UNKNOWN_SERVER_ERROR.",
        "KIP-966; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "SHR-01",
        "Every partition of the share groups' state has a leader",
        (),
        IN_KRAFT,
        "Bring the brokers of __share_group_state back: share groups whose state is there can't read.",
        "KIP-932; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "SHR-02",
        "Every dead letter topic that a group names can be written to",
        (),
        IN_KRAFT,
        "Create the topic named with errors.deadletterqueue.group.enable=true, set that for one that is there, or bring its brokers "
        "back: what the group can't process has nowhere to go.",
        "KIP-1191; ShareGroupDLQValidator; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "CFG-03",
        "No broker that is gone has a configuration of its own",
        (),
        IN_KRAFT,
        "Delete the configurations of the brokers named (kafka-configs --entity-type brokers --alter --delete-config): a new "
        "broker with the same id would get them.",
        "KIP-226; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "DIR-03",
        "No replica is in a cordoned directory",
        (),
        IN_KRAFT,
        "Move the replicas named to another directory or broker before you remove the disk, or uncordon it (cordoned.log.dirs).",
        "KIP-1066; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "DIR-04",
        "Every broker has said in which of its directories each replica is",
        (),
        IN_KRAFT,
        "Restart the brokers named: a broker tells its directories at start. Until then a lost disk fails none of these "
        "partitions over.",
        "KIP-858; ReplicationControlManager.handleDirectoriesOffline; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
)
