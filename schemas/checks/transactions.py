"""TXN checks: what ZooKeeper's transaction logs tell of its writers (S§7.3). Only a data folder has the logs."""

from __future__ import annotations

from schemas.checks.check import DURING, Check, Phase, check

_SINCE_THE_CLAIM = frozenset({Phase.WAITING, Phase.DUAL_WRITE})

CHECKS: tuple[Check, ...] = (
    check(
        "TXN-01",
        "Nothing but the KRaft controller wrote ZooKeeper's metadata since it took over",
        ("dual_write", "finalize"),
        DURING,
        "Find who the session was (ZooKeeper's own log has its address) and stop the broker, script or person that writes "
        "ZooKeeper. What still differs is listed among the divergences; what was overwritten since may be written again.",
        "KIP-866, Dual Write; KAFKA-16539; S§5.1",
        severity="warning",
    ),
    check(
        "TXN-02",
        "ZooKeeper refused no change of the controller in office for a reason that Kafka does not expect",
        ("dual_write",),
        DURING,
        "BadVersion: something else wrote /migration or /controller_epoch under the controller; NoAuth: its identity may not "
        "write the znode; NotEmpty: a partition that only ZooKeeper has. Look at the controller's log for the time named, and "
        "force a full sync by moving the controller leadership.",
        "KafkaZkClient.retryMigrationRequestsUntilConnected; KAFKA-16171; S§5.1, S§12.2",
        severity="warning",
    ),
    check(
        "TXN-03",
        "Every claim of ZooKeeper was made by the KRaft leader of the epoch it names, and each names a higher one",
        ("start", "dual_write", "finalize", "rollback"),
        _SINCE_THE_CLAIM,
        "Two quorums, or a controller without the leadership, take ZooKeeper from each other. Find the processes with the node "
        "ids named, stop the one that is not of this quorum, and run the audit again.",
        "KafkaZkClient.tryRegisterKRaftControllerAsActiveController; S§4.5",
    ),
    check(
        "TXN-04",
        "/controller_epoch rises by one with each election and never falls",
        ("start", "dual_write", "finalize", "rollback"),
        _SINCE_THE_CLAIM,
        "Brokers in ZooKeeper mode refuse a controller with a lower epoch than they have seen. Do not write or delete "
        "/controller_epoch by hand; restart the brokers that are still in ZooKeeper mode, one by one, and run the audit again.",
        "KafkaController; KIP-866, Controller Claim; S§1.1, S§4.5",
    ),
)
