"""CAP checks: is what was captured fit to be judged (S§7.1)."""

from __future__ import annotations

from schemas.checks.check import EVERY_PHASE, KRAFT_ONLY, MIGRATED, ZOOKEEPER_ONLY, Check, Phase, check, optional
from schemas.gates import GATES, MIGRATION_GATES

CHECKS: tuple[Check, ...] = (
    check(
        "CAP-01",
        "Both sides are of one cluster: /cluster/id equals cluster.id of every log folder",
        MIGRATION_GATES,
        EVERY_PHASE,
        "Give the audit the ZooKeeper tree and the controllers' logs of the same cluster.",
        "MetaProperties; S§7.1",
    ),
    check(
        "CAP-02",
        "The metadata log is whole: checksums match, offsets follow each other, epochs never fall",
        GATES,
        EVERY_PHASE,
        "Copy the log folder again while the controller is stopped or idle; see the quarantine table for the place.",
        "DefaultRecordBatch; S§2.2",
        needs=KRAFT_ONLY,
    ),
    check(
        "CAP-03",
        "The log starts at offset 0 or at a complete checkpoint",
        GATES,
        EVERY_PHASE,
        "Copy the whole log folder of a controller that runs: the segments together with the .checkpoint files.",
        "KafkaMetadataLog.recoverSnapshots; S§2.1",
        needs=frozenset(),
    ),
    check(
        "CAP-04",
        "The log used reaches /migration's offset and has its epoch",
        ("dual_write", "finalize", "rollback"),
        MIGRATED,
        "Give the audit the logs of the controllers that are ahead: this copy is stale or of another quorum.",
        "S§2.9, S§7.1",
    ),
    check(
        "CAP-05",
        "The tree and the log were captured together",
        ("dual_write", "finalize", "rollback"),
        frozenset({Phase.WAITING, Phase.DUAL_WRITE}),
        "Copy the controllers' logs and read ZooKeeper at the same time, the logs last; then run the audit again. If the "
        "log ends as early once more, the controllers are not running.",
        "S§5.5, S§7.1",
        severity="warning",
    ),
    check(
        "CAP-06",
        "No metadata transaction is open at the end of the log",
        GATES,
        EVERY_PHASE,
        "The load is still running, or died: run the audit again; if it stays open, look at the active controller's log.",
        "KIP-868; S§2.7",
        needs=KRAFT_ONLY,
    ),
    check(
        "CAP-07",
        "Every znode could be read",
        MIGRATION_GATES,
        EVERY_PHASE,
        "Give the audit's ZooKeeper identity read access to the paths named.",
        "S§7.1",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "CAP-08",
        "The replayed state equals Kafka's own checkpoint at every checkpoint of the log",
        GATES,
        EVERY_PHASE,
        "Do not trust this run's comparison: the log copy or the audit itself is wrong. Copy the log folders again; if "
        "it stays, report it with the rows named.",
        "SnapshotGenerator; S§3.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "CAP-09",
        "Every znode can be parsed and every record obeys the rules of replay",
        GATES,
        EVERY_PHASE,
        "Look at the places named: Kafka fails on some of them and reads others as empty without a word, access control "
        "lists among them. The silver table findings has them all.",
        "ZkData decoders, *ControlManager.replay; S§11",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "CAP-10",
        "Everything that was collected could be looked at",
        (),
        EVERY_PHASE,
        "Give what is named, or report it: checks that rest on it are unknown, and their gates with them.",
        "Facts that an independent count contradicts; S§7.1",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "CAP-11",
        "All copies of the log are of one cluster",
        GATES,
        EVERY_PHASE,
        "Take the copies of the other cluster out of `kraft.folders` (or --kraft). Nothing of the log was read: which of them "
        "was meant cannot be told.",
        "MetaProperties, cluster.id; S§7.1",
        needs=frozenset(),
    ),
    optional(
        check(
            "CAP-20",
            "The tree of ZooKeeper's data folder is whole: no transaction is missing in it, and ZooKeeper's own digest holds",
            MIGRATION_GATES,
            EVERY_PHASE,
            "Give the whole data folder of one server: version-2 with every snapshot and log in it, and dataLogDir as "
            "log_folder if there is one. Copy the logs after the snapshots, best while the server is stopped.",
            "DigestCalculator, DataTree.compareDigest, FileTxnSnapLog.restore; S§1.8",
            needs=ZOOKEEPER_ONLY,
        )
    ),
)
