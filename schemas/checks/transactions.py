"""TXN checks: ZooKeeper's writers, from its transaction logs (S§7.3). Only a data folder has the logs."""

from __future__ import annotations

from schemas.checks.check import DURING, Check, Phase, check

_SINCE_THE_CLAIM = frozenset({Phase.WAITING, Phase.DUAL_WRITE})

CHECKS: tuple[Check, ...] = (
    check(
        "TXN-01",
        "Only the KRaft controller has written ZooKeeper's metadata since it took over",
        ("dual_write", "finalize"),
        DURING,
        "Find the owner of the session: ZooKeeper's own log has its address. Stop the broker, script or person that "
        "writes ZooKeeper. The list of differences shows what still differs. Foreign values that "
        "have been overwritten since may be written again.",
        "KIP-866, Dual Write; KAFKA-16539; S§5.1",
        severity="warning",
    ),
    check(
        "TXN-02",
        "ZooKeeper refused no write of the current controller for an unexpected reason",
        ("dual_write",),
        DURING,
        "Read the controller's log at the time listed. BadVersion: something else wrote /migration or "
        "/controller_epoch. NoAuth: the controller's identity may not write the znode. NotEmpty: a partition exists "
        "only in ZooKeeper. Then force a full sync (Kafka 3.5 and later): restart the active controller cleanly.",
        "KafkaZkClient.retryMigrationRequestsUntilConnected; KAFKA-16171; S§5.1, S§12.2",
        severity="warning",
    ),
    check(
        "TXN-03",
        "Every claim on ZooKeeper came from the KRaft leader of its epoch, and each has a higher epoch than the one "
        "before",
        ("start", "dual_write", "finalize", "rollback"),
        _SINCE_THE_CLAIM,
        "Find the processes with the node ids listed and stop the one that does not belong to this quorum. Two "
        "quorums, or a controller that does not lead, are taking ZooKeeper from each other. Then run the audit again.",
        "KafkaZkClient.tryRegisterKRaftControllerAsActiveController; S§4.5",
    ),
    check(
        "TXN-04",
        "/controller_epoch rises by one with each election and never falls",
        ("start", "dual_write", "finalize", "rollback"),
        _SINCE_THE_CLAIM,
        "Do not write or delete /controller_epoch by hand. Restart the brokers that are still in ZooKeeper mode, one "
        "by one: they refuse a controller with a lower epoch than they have seen. Then run the audit again.",
        "KafkaController; KIP-866, Controller Claim; S§1.1, S§4.5",
    ),
    check(
        "TXN-05",
        "No ZooKeeper broker was the controller between the load and the present claim",
        ("dual_write", "finalize", "rollback"),
        frozenset({Phase.DUAL_WRITE}),
        "Stop the brokers at once: they delete the data of topics that KRaft does not have. The controllers took ZooKeeper back with "
        "the metadata of before the rollback, because they were started with their old logs and /migration was still there. Take what "
        "was changed in between from ZooKeeper's transaction logs and snapshots of that time, and make it again through the Admin API. "
        "The check fails until ZooKeeper has purged those logs.",
        "KRaftMigrationDriver (SyncKRaftMetadataEvent); KAFKA-17146; S§4.1, S§4.5",
    ),
)
