"""A KRaft cluster in operation: what a restart interrupts, brokers, reassignments, racks, directories, share groups (S§8.6)."""

from __future__ import annotations

from schemas.checks.check import DURING, IN_KRAFT, KRAFT_ONLY, Check, check, optional
from schemas.gates import UPGRADE

CHECKS: tuple[Check, ...] = (
    check(
        "UPG-04",
        "A rolling restart neither takes partitions offline nor causes writes to be refused",
        UPGRADE,
        IN_KRAFT,
        "Add replicas to the partitions listed (`kafka-reassign-partitions.sh`), or set min.insync.replicas below the "
        "number of replicas. On a development cluster set thresholds.restart_may_interrupt: the check then only "
        "warns.",
        "Rolling upgrade, Kafka's documentation; ReplicationControlManager.getTopicEffectiveMinIsr; S§8.6",
        needs=KRAFT_ONLY,
    ),
    optional(
        check(
            "UPG-05",
            "The quorum keeps its majority while one controller restarts",
            UPGRADE,
            IN_KRAFT,
            "Start the controllers listed that are down, and wait until they have caught up and are registered before you restart any "
            "other controller. Run three controllers or more: a quorum of one or two voters stops while one of them "
            "restarts. On a development cluster set thresholds.restart_may_interrupt: the check then only warns. If a "
            "controller's log cannot be read, copy it again.",
            "KIP-595; KIP-919; S§8.6",
            needs=KRAFT_ONLY,
        )
    ),
    check(
        "BRK-01",
        "No broker with replicas has been fenced for an hour",
        (),
        IN_KRAFT,
        "Start the brokers listed. If a broker is gone for good, move its replicas to other brokers "
        "(`kafka-reassign-partitions.sh`) and unregister it (`kafka-cluster.sh unregister --id N`).",
        "KIP-631, Broker Registration and State Management; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "BRK-02",
        "Every log directory id belongs to one broker",
        UPGRADE,
        IN_KRAFT,
        "Stop the broker listed, remove directory.id from the meta.properties on its cloned disk, and start it: the "
        "disk then gets its own id. Until then the controllers refuse the broker's registration.",
        "KIP-858; ClusterControlManager.updateDirectories; S§8.6",
        needs=KRAFT_ONLY,
    ),
    check(
        "BRK-03",
        "All brokers name a rack, or none does",
        (),
        IN_KRAFT,
        "Set broker.rack on the brokers listed and restart them. Kafka spreads new partitions over racks only if "
        "every broker names one.",
        "KIP-36; StripedReplicaPlacer; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "BRK-04",
        "The replicas of every partition are in more than one rack",
        (),
        IN_KRAFT,
        "Move one replica of each partition listed to another rack (`kafka-reassign-partitions.sh`): the failure of "
        "one rack takes these partitions offline.",
        "KIP-36; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "RAS-01",
        "Every reassignment finishes",
        (),
        IN_KRAFT,
        "Look for a replica that does not catch up because of its disk, its network or a throttle. If you no longer "
        "need the reassignment, or if it never completes, cancel it: `kafka-reassign-partitions.sh --cancel`.",
        "KIP-455; PartitionReassignmentReplicas; S§3.3",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "RAS-02",
        "No replication throttle is left when its partitions are no longer being reassigned",
        (),
        IN_KRAFT,
        "Remove the throttles listed: `kafka-reassign-partitions.sh --verify`, or `kafka-configs.sh --alter "
        "--delete-config`. They slow down replicas that fall behind.",
        "KIP-73; KIP-455; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ELR-03",
        "No partition waits for an eligible leader replica",
        (),
        IN_KRAFT,
        "Start one of the brokers listed. Until then the partition has no leader. If eligible leader replicas are turned off, do so "
        "before you restart a controller: one that starts from a checkpoint no longer knows them.",
        "KIP-966; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ELR-04",
        "Eligible leader replicas are on if the release enables them by default",
        (),
        IN_KRAFT,
        "Turn on eligible leader replicas: `kafka-features.sh upgrade --feature eligible.leader.replicas.version=1`. They "
        "protect a partition from losing data when several brokers fail.",
        "KIP-966; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ELR-05",
        "Eligible and last known leaders are replicas of their partition",
        (),
        IN_KRAFT,
        "Bring the ISR up to min.insync.replicas: that empties both lists. Until then, do not reassign the partition "
        "to a broker listed here: the controller answers UNKNOWN_SERVER_ERROR.",
        "KIP-966; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "SHR-01",
        "Every partition of the share groups' state has a leader",
        (),
        IN_KRAFT,
        "Start the brokers of __share_group_state. Until then the share groups whose state is there cannot read.",
        "KIP-932; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "SHR-02",
        "Every dead letter topic that a group names can be written to",
        (),
        IN_KRAFT,
        "Create the topic listed with errors.deadletterqueue.group.enable=true. If it exists, set that, and start its "
        "brokers. Until then records that the group cannot process have nowhere to go. Its name must begin with "
        "errors.deadletterqueue.topic.name.prefix of the brokers, dlq. by default.",
        "KIP-1191; ShareGroupDLQStateManager.ProduceRequestHandler.validateDlqTopic; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "CFG-03",
        "No broker or topic that is gone has a configuration of its own",
        (),
        IN_KRAFT,
        "Delete the configurations of the brokers listed: `kafka-configs.sh --alter --entity-type brokers "
        "--entity-name N --delete-config`. A new broker with the same id would get them. For a topic listed that is gone, "
        "create one of that name and delete it again. For one that was created again, set each configuration listed and "
        "delete it again: nodes that start with the checkpoint have it, the others do not. It is listed until Kafka has "
        "removed the checkpoint.",
        "KIP-226; ConfigurationsDelta; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "CFG-05",
        "No quota or credential has an encoded or empty name, or the name of a folder for its type",
        (),
        DURING | IN_KRAFT,
        "Create the quotas and credentials listed again under the names that clients use, and those with an empty name as "
        "defaults (`--entity-default`); then delete those with an encoded name through the Admin API, unless a client or user "
        "really has that name. Kafka does not delete a quota with an empty name, or of the type users, clients or ips: it stays in this "
        "list. A load of Kafka 3.4 to 3.7.0 stored names as ZooKeeper encodes them, and defaults under an empty name. They apply to "
        "nobody.",
        "KAFKA-16222; KAFKA-16411; Sanitizer; ClientQuotaControlManager.validateEntity; S§4.2",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "DIR-03",
        "No replica is in a cordoned directory",
        (),
        IN_KRAFT,
        "Move the replicas listed to another directory or broker before you remove the disk, or uncordon the "
        "directory (cordoned.log.dirs).",
        "KIP-1066; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "DIR-04",
        "Every broker has reported the directory of each of its replicas",
        (),
        IN_KRAFT,
        "Restart the brokers listed: a broker reports its directories when it starts. Until then, if a disk is lost, "
        "none of these partitions fails over.",
        "KIP-858; ReplicationControlManager.handleDirectoriesOffline; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
)
