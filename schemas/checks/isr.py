"""ISR checks: in-sync replicas, leaders and their elections (KIP-497, KIP-966; S§8.3)."""

from __future__ import annotations

from schemas.checks.check import (
    BOTH,
    DURING,
    EVERY_PHASE,
    IN_KRAFT,
    KRAFT_ONLY,
    START_PHASES,
    WITH_KRAFT,
    ZOOKEEPER_ONLY,
    Check,
    Phase,
    check,
)
from schemas.gates import UPGRADE

CHECKS: tuple[Check, ...] = (
    check(
        "ISR-01",
        "Every ISR contains only replicas of its partition, each once",
        UPGRADE,
        EVERY_PHASE,
        "Restart each broker that is in an ISR listed without being a replica, or twice: when it stops, the KRaft controller removes "
        "it from the ISR. A reassignment to the same replicas does not. Until then the controller answers INVALID_REQUEST to "
        "every change that keeps it.",
        "KIP-497; ReplicationControlManager.validateAlterPartitionData; S§8.2, S§8.3",
        needs=frozenset(),
        severity="critical",
    ),
    check(
        "ISR-02",
        "Every leader is in its ISR",
        UPGRADE,
        EVERY_PHASE,
        "Reassign the partitions listed to the replicas that they already have (`kafka-reassign-partitions.sh --execute`): the "
        "KRaft controller then elects a leader from the ISR. In ZooKeeper mode restart the broker that leads them. An election "
        "of the preferred leader does nothing where it leads already.",
        "KIP-497; S§8.3",
        needs=frozenset(),
        severity="critical",
    ),
    check(
        "ISR-03",
        "Every leader is a replica of its partition",
        UPGRADE,
        EVERY_PHASE,
        "Reassign the partitions listed to the replicas that they already have (`kafka-reassign-partitions.sh --execute`): the "
        "controller then elects one of them. If ISR-01 fails too, do first what it says.",
        "KIP-497; S§8.3",
        needs=frozenset(),
        severity="critical",
    ),
    check(
        "ISR-04",
        "Every member of an ISR is registered, unfenced and not shutting down",
        (),
        WITH_KRAFT,
        "Run the audit again: the change may still be in progress. If the check fails again, restart the brokers "
        "listed: the controller answers INELIGIBLE_REPLICA to every change of these ISRs.",
        "KIP-841; ReplicationControlManager.ineligibleReplicasForIsr; S§8.2",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ISR-05",
        "Every member of an ISR is in /brokers/ids",
        (),
        START_PHASES,
        "Start the brokers listed, or wait until the controller has removed them from the ISR.",
        "ReplicaStateMachine; S§8.3",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
    check(
        "ISR-06",
        "Leader and partition epochs follow from the records",
        UPGRADE,
        WITH_KRAFT,
        "Do not trust this copy of the log (CAP-08 lists the rows). Copy the log folders again.",
        "PartitionRegistration.merge; S§3.2, S§8.3",
        needs=KRAFT_ONLY,
    ),
    check(
        "ISR-07",
        "A shrinking ISR raises the leader epoch where it must",
        (),
        WITH_KRAFT,
        "Report it with the offsets listed. Leaders of that release may keep using an ISR that the controller has "
        "changed.",
        "PartitionChangeBuilder; KAFKA-15021; S§3.3",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ISR-08",
        "No broker repeatedly leaves ISRs and comes back",
        (),
        WITH_KRAFT,
        "Check the disks, the garbage collection and the network of the brokers listed. Check num.replica.fetchers "
        "and replica.lag.time.max.ms. If a broker is down, start it.",
        "KIP-497; S§8.3",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ISR-09",
        "Every partition has at least min.insync.replicas in-sync replicas",
        (),
        EVERY_PHASE,
        "Start the missing replicas' brokers. Until then producers with acks=all are refused.",
        "KIP-966; ReplicationControlManager.getTopicEffectiveMinIsr; S§8.3",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "ISR-10",
        "ISRs have the same order in ZooKeeper and in KRaft",
        (),
        DURING,
        "Ignore this: the order of an ISR has no meaning.",
        "S§6, S§8.3",
        needs=BOTH,
        severity="warning",
    ),
    check(
        "ISR-11",
        "No leader is still recovering from an unclean election after a while",
        (),
        WITH_KRAFT,
        "Check the followers of the partitions listed. Until one has caught up, the leader is the only replica in sync.",
        "KIP-704; S§8.3",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ISR-12",
        "Every partition has recovered from any election that may have lost data",
        (),
        WITH_KRAFT,
        "Inform the owners of the partitions listed, with topic and time: acknowledged records may be gone. Keep the "
        "disks of the replicas that were left out until the owners have decided.",
        "KIP-966; KIP-704; S§8.3",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "ISR-13",
        "Nothing is left in /isr_change_notification",
        (),
        frozenset({Phase.ZOOKEEPER, Phase.WAITING, Phase.DUAL_WRITE, Phase.ROLLED_BACK}),
        "Check that a ZooKeeper controller is running: none has read these znodes. Raise "
        "inter.broker.protocol.version on the brokers: one below 2.7-IV2 wrote them.",
        "ZkIsrManager; S§8.1",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
    check(
        "ISR-14",
        "No partition was written by a controller above /controller_epoch",
        (),
        START_PHASES,
        "Delete /controller, again and again, until /controller_epoch exceeds the epochs listed (see RB-11). Until then "
        "no controller can elect leaders for those partitions. Do not set /controller_epoch by hand: the controller "
        "would stay, and none of its writes would succeed.",
        "KafkaController; S§8.3",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
    check(
        "ISR-15",
        "No epoch of a partition in ZooKeeper is below that of the previous run",
        (),
        frozenset(Phase) - {Phase.KRAFT},
        "Compare the captures of both runs before anything else. Someone restored ZooKeeper from an older copy, or "
        "this tree is an older copy.",
        "S§8.3",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
    check(
        "ISR-16",
        "Every partition has a leader",
        UPGRADE,
        IN_KRAFT,
        "Start the brokers that the partitions listed wait for; if one of them runs, bring back its directory (DIR-02). If "
        "none of them can come back, only an unclean election helps: `kafka-leader-election.sh --election-type unclean`. It "
        "elects the first replica that runs, and loses every record that this one lacks.",
        "KIP-966; ReplicationControlManager; S§8.3, S§8.4",
        needs=KRAFT_ONLY,
        severity="critical",
    ),
    check(
        "ISR-17",
        "No leader epoch in ZooKeeper is above KRaft's",
        (),
        DURING,
        "Find the controller in ZooKeeper mode that wrote after the load, and stop it.",
        "KIP-866; S§8.3",
        needs=BOTH,
        severity="warning",
    ),
)
