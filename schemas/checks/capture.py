"""CAP checks: can the capture be judged (S§7.1)."""

from __future__ import annotations

from schemas.checks.check import EVERY_PHASE, KRAFT_ONLY, MIGRATED, ZOOKEEPER_ONLY, Check, Phase, check, optional
from schemas.gates import GATES, MIGRATION_GATES

CHECKS: tuple[Check, ...] = (
    check(
        "CAP-01",
        "Both sides belong to one cluster: /cluster/id equals cluster.id in every log folder",
        MIGRATION_GATES,
        EVERY_PHASE,
        "Give the audit the ZooKeeper tree and the controllers' logs of the same cluster.",
        "MetaProperties; S§7.1",
    ),
    check(
        "CAP-02",
        "The metadata log is intact: checksums match, offsets are consecutive, epochs never fall",
        GATES,
        EVERY_PHASE,
        "Stop the controller, or wait until it is idle. Copy its log folder again. The quarantine table shows the "
        "damaged place.",
        "DefaultRecordBatch; S§2.2",
        needs=KRAFT_ONLY,
    ),
    check(
        "CAP-03",
        "The log starts at offset 0 or at a complete checkpoint",
        GATES,
        EVERY_PHASE,
        "Copy the whole log folder of a running controller: the .log segments together with the .checkpoint files.",
        "KafkaMetadataLog.recoverSnapshots; S§2.1",
        needs=frozenset(),
    ),
    check(
        "CAP-04",
        "The log reaches the offset in /migration and has its epoch there",
        ("dual_write", "finalize", "rollback"),
        MIGRATED,
        "Give the audit the logs of all controllers. This copy is stale, or it belongs to another quorum.",
        "S§2.9, S§7.1",
    ),
    check(
        "CAP-05",
        "ZooKeeper and the log were captured at the same time",
        ("dual_write", "finalize", "rollback"),
        frozenset({Phase.WAITING, Phase.DUAL_WRITE}),
        "Copy ZooKeeper and the controllers' logs together, the logs last. Run the audit again. If the log still ends "
        "too early, the controllers are not running.",
        "S§5.5, S§7.1",
        severity="warning",
    ),
    check(
        "CAP-06",
        "No metadata transaction is open at the end of the log",
        GATES,
        EVERY_PHASE,
        "Run the audit again: the load may still be running. If the transaction stays open, the load has died: read "
        "the active controller's log.",
        "KIP-868; S§2.7",
        needs=KRAFT_ONLY,
    ),
    check(
        "CAP-07",
        "Every znode could be read",
        MIGRATION_GATES,
        EVERY_PHASE,
        "Give the audit's ZooKeeper identity read access to the znodes listed.",
        "S§7.1",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "CAP-08",
        "The replayed state equals Kafka's own checkpoint at every checkpoint of the log",
        GATES,
        EVERY_PHASE,
        "Do not trust this run's comparison: the log copy or the audit itself is wrong. Copy the log folders again. "
        "If the check fails again, report it with the rows listed.",
        "SnapshotGenerator; S§3.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "CAP-09",
        "Every znode can be parsed, and every record obeys the rules of replay",
        GATES,
        EVERY_PHASE,
        "Examine the znodes and records listed. Kafka fails on some of them and silently reads others as empty, ACLs "
        "among them. The silver table findings has the full list.",
        "ZkData decoders, *ControlManager.replay; S§11",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "CAP-10",
        "Everything that was collected could be examined",
        (),
        EVERY_PHASE,
        "Provide the missing input, or report the problem. The checks that need this input are unknown, and so are "
        "their gates.",
        "Facts that an independent count contradicts; S§7.1",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "CAP-11",
        "All copies of the log belong to one cluster, and to one log",
        GATES,
        EVERY_PHASE,
        "Remove copies with another cluster.id from `kraft.folders` (or --kraft): the audit read no log, because it cannot know "
        "which cluster you meant. If a copy with the same cluster.id is of another log, its controller was formatted, and a majority "
        "began again. Stop the controllers and keep all their disks. The audit read the log of the highest epoch; the quorum that "
        "runs may have the other one, and may have lost what is in this one.",
        "MetaProperties, cluster.id; KIP-595; S§2.10, §7.1",
        needs=frozenset(),
    ),
    check(
        "CAP-12",
        "This audit knows every record of the log: its type, version, tagged fields and codes",
        GATES,
        EVERY_PHASE,
        "Update kraft-audit to a version that supports this Kafka release. Until then, what these records change is "
        "unknown. The quarantine table lists them.",
        "MetadataRecordSerde, ApiMessageType; S§2.3",
        needs=KRAFT_ONLY,
    ),
    optional(
        check(
            "CAP-20",
            "The tree in ZooKeeper's data folder is complete: no transaction is missing, and ZooKeeper's own digest "
            "matches",
            MIGRATION_GATES,
            EVERY_PHASE,
            "Give the whole data folder of one server: version-2 with every snapshot and log, and dataLogDir, if "
            "there is one, as log_folder. Copy the logs after the snapshots, preferably while the server is stopped.",
            "DigestCalculator, DataTree.compareDigest, FileTxnSnapLog.restore; S§1.8",
            needs=ZOOKEEPER_ONLY,
        )
    ),
)
