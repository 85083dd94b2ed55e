"""Reports of four clusters: healthy, lagging, with defects and hostile names, not ready to start."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from schemas.report import (
    BrokerPresence,
    CheckResult,
    Defect,
    DivergenceRow,
    Divergences,
    Gate,
    Lag,
    LogCopyLine,
    MigrationSummary,
    Report,
    RunPoint,
)

HOSTILE = (
    "</style></title><script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}{% raw %}"
    "\r\nBcc: x@evil\x1b[31m\u202egnp.exe\u200b\x00"
)
HUGE = "x" * 1_000_000
NOW = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)

COUNTS: dict[str, dict[str, int | None]] = {
    "topics": {"zookeeper": 8, "kraft": 8},
    "partitions": {"zookeeper": 83, "kraft": 83},
    "configs": {"zookeeper": 21, "kraft": 21},
    "client_quotas": {"zookeeper": 14, "kraft": 14},
    "acls": {"zookeeper": 19, "kraft": 19},
    "scram_credentials": {"zookeeper": 4, "kraft": 4},
    "delegation_tokens": {"zookeeper": 1, "kraft": 1},
    "producer_ids": {"zookeeper": 1, "kraft": 1},
}


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def runs(number: int, lag: list[int | None], defects: int = 0) -> list[RunPoint]:
    return [
        RunPoint(
            run_id=f"run-{index:03}",
            started_at=stamp(NOW - timedelta(hours=12 * (number - 1 - index))),
            verdict="errors" if defects and index == number - 1 else "clean",
            state="MIGRATION",
            lag_records=lag[index % len(lag)],
            lag_seconds=None,
            defects=defects if index == number - 1 else 0,
            divergences=(lag[index % len(lag)] or 0) + (defects if index == number - 1 else 0),
        )
        for index in range(number)
    ]


def copies(used: int = 3000) -> list[LogCopyLine]:
    return [
        LogCopyLine(
            controller,
            f"/var/lib/kafka/metadata-{controller}",
            0,
            307,
            1,
            "base of the audit" if controller == used else "agrees, confirms the committed end",
        )
        for controller in (3000, 3001, 3002)
    ]


def passes(*ids: str) -> list[CheckResult]:
    return [CheckResult(id, "pass", 0, gates=["dual_write"], title=TITLES.get(id, "Capture is sane")) for id in ids]


TITLES = {
    "START-01": "Every broker in ZooKeeper is registered for migration",
    "START-02": "Every replica's broker is registered for migration",
    "START-07": "No leftover /migration offset",
    "DUR-01": "/migration is present and advancing",
    "DUR-02": "/controller is held by the KRaft leader",
    "DUR-04": "ZooKeeper keeps up with KRaft",
    "DUR-05": "No write was lost, none is foreign",
    "FIN-01": "Every broker runs in KRaft mode",
    "FIN-02": "No broker is registered in ZooKeeper any more",
    "RB-01": "The migration is not finalised",
    "RB-02": "A rollback would lose nothing",
    "CAP-04": "The chosen log copy reaches /migration's offset",
}


def brokers(mode: str = "zookeeper") -> list[BrokerPresence]:
    return [
        BrokerPresence(broker, mode, ["finalize"], True, True, True, False, 83, broker == 0, "still in ZooKeeper mode")
        for broker in (0, 1, 2)
    ]


DEFECTS = [
    Defect("KAFKA-16222", False, False, "Quota and SCRAM names stay percent-encoded in KRaft"),
    Defect("latent A", True, False, "Removing a client-id, ip or user+client quota ends the writer's pass early"),
    Defect("KAFKA-17146", True, False, "Rollback text lacked the removal of /migration"),
]

WAITING = [
    CheckResult(
        "FIN-01",
        "fail",
        3,
        [
            "broker 0: isMigratingZkBroker=true",
            "broker 1: isMigratingZkBroker=true",
            "broker 2: isMigratingZkBroker=true",
        ],
        ["finalize"],
        "error",
        TITLES["FIN-01"],
        "Restart brokers 0, 1, 2 in KRaft mode one by one.",
        "KIP-866, KAFKA-20960",
    ),
    CheckResult(
        "FIN-02",
        "fail",
        3,
        ["/brokers/ids/0", "/brokers/ids/1", "/brokers/ids/2"],
        ["finalize"],
        "error",
        TITLES["FIN-02"],
        "Wait until the restarted brokers' ephemeral znodes are gone.",
        "KIP-866",
    ),
]


def healthy() -> Report:
    return Report(
        cluster="prod-eu",
        run_id="2026-11-21T060000Z-7f3a",
        started_at="2026-11-21T06:00:00Z",
        finished_at="2026-11-21T06:00:41Z",
        kafka_version="3.9",
        mode="barrier",
        exit_code=0,
        verdict="clean",
        migration=MigrationSummary(
            "MIGRATION",
            306,
            306,
            306,
            3000,
            1,
            3000,
            "All three copies agree up to offset 306, so all of it is committed; controller 3000's was used.",
            [{"offset": 4, "state": "PRE_MIGRATION"}, {"offset": 118, "state": "MIGRATION"}],
        ),
        lag=Lag(0, 0.0, True, "/migration is at the committed end and was written 0.4 s before the newest record."),
        gates={
            "start": Gate("not_applicable", [], "The copy has been made."),
            "dual_write": Gate("go", [], "Every committed change is in ZooKeeper."),
            "finalize": Gate("no_go", ["FIN-01", "FIN-02"], "Brokers 0, 1 and 2 still run in ZooKeeper mode."),
            "rollback": Gate("go", [], "ZooKeeper holds everything KRaft has."),
        },
        checks=[*passes("CAP-04", "DUR-01", "DUR-02", "DUR-04", "DUR-05", "RB-01", "RB-02"), *WAITING],
        counts=COUNTS,
        divergences=Divergences(),
        broker_presence=brokers(),
        defects=DEFECTS,
        log_copies=copies(),
        history=runs(1, [0]),
        kafka_version_evidence="configured",
        tool_version="0.1.0",
    )


def lagging() -> Report:
    rows = [
        DivergenceRow(
            "configs",
            {"resource_type": "TOPIC", "resource_name": "orders", "config": "retention.ms"},
            "value",
            "differs",
            "86400000",
            "172800000",
            "lag",
            "warn",
            "/config/topics/orders",
            812,
            1213,
            "new",
            "Record 1213 is 94 s old and ZooKeeper has not got it.",
            "Look at ZooKeeper's health and at the active controller's log.",
        ),
        DivergenceRow(
            "topics",
            {"topic": "behind-1"},
            None,
            "kraft_only",
            None,
            {"topic_id": "Zf7bq2kFQ0K2oG8j5bqj1w"},
            "lag",
            "warn",
            None,
            None,
            1208,
            "new",
        ),
        DivergenceRow(
            "partitions",
            {"topic": "orders", "partition": 3},
            "isr",
            "differs",
            [0, 1, 2],
            [0, 1],
            "lag",
            "warn",
            "/brokers/topics/orders/partitions/3/state",
            799,
            1215,
            "persisting",
        ),
        DivergenceRow(
            "partitions",
            {"topic": "orders", "partition": 3},
            "leader_epoch",
            "differs",
            4,
            5,
            "lag",
            "warn",
            "/brokers/topics/orders/partitions/3/state",
            799,
            1215,
            "persisting",
        ),
    ]
    base = healthy()
    late = CheckResult(
        "DUR-04",
        "warn",
        11,
        ["/migration at 1205, committed end 1216: 11 records", "oldest record waiting: 94 s"],
        ["dual_write", "rollback"],
        "warn",
        TITLES["DUR-04"],
        "Check that ZooKeeper has a leader and that the active controller reaches it; do not roll back until then.",
        "KIP-866, docs/semantics.md §7.3",
    )
    return replace(
        base,
        exit_code=10,
        verdict="warnings",
        migration=MigrationSummary(
            "MIGRATION",
            1205,
            1216,
            1218,
            3001,
            2,
            3001,
            "Controller 3000's copy ends at 1190, behind /migration, and was not used.",
        ),
        lag=Lag(11, 94.2, True, "11 records after offset 1205."),
        gates={
            **base.gates,
            "dual_write": Gate("go", [], "Alive, but behind."),
            "rollback": Gate("no_go", ["RB-08"], "ZooKeeper lacks the last 11 records."),
        },
        checks=[*passes("CAP-04", "DUR-01", "DUR-02", "DUR-05"), late, *WAITING],
        divergences=Divergences(
            4,
            {"lag": 4},
            {"configs": {"lag": 1}, "topics": {"lag": 1}, "partitions": {"lag": 2}},
            {"new": 2, "persisting": 2, "resolved": 1},
            rows,
        ),
        resolved=[
            DivergenceRow(
                "client_quotas",
                {"entity": {"user": "alice", "client-id": None}, "quota": "producer_byte_rate"},
                "value",
                "differs",
                1.0,
                2.0,
                "lag",
                "warn",
                status="resolved",
            )
        ],
        log_copies=[
            *copies(3001)[1:],
            LogCopyLine(
                3000,
                "/var/lib/kafka/metadata-3000",
                0,
                1191,
                1,
                "not used",
                "ends before /migration's offset 1205 (stopped controller)",
            ),
        ],
        history=runs(60, [0, 0, 3, 1, 0, 0, None, 2, 5, 11]),
        notes=["ZooKeeper's last transaction is 94 s older than the newest KRaft record."],
    )


def defective() -> Report:
    lost = "An offset after this change is already in /migration, but the znode was never changed."
    remedy = "Set or remove the same quota once more through Kafka (kafka-configs.sh), then run the audit again."
    quota = {"entity": {"client-id": "app-9"}, "quota": "producer_byte_rate"}
    rows = [
        DivergenceRow(
            "client_quotas",
            quota,
            None,
            "zk_only",
            11.0,
            None,
            "lost_write",
            "error",
            "/config/clients/app-9",
            812,
            318,
            "new",
            lost,
            remedy,
        ),
        DivergenceRow(
            "client_quotas",
            {"entity": {"ip": "10.0.0.9"}, "quota": "connection_creation_rate"},
            None,
            "zk_only",
            5.0,
            None,
            "lost_write",
            "error",
            "/config/ips/10.0.0.9",
            815,
            321,
            "persisting",
            lost,
            remedy,
        ),
        DivergenceRow(
            "scram_credentials",
            {"user": HOSTILE, "mechanism": "SCRAM-SHA-256"},
            "stored_key",
            "differs",
            "hmac:000000000000000000000000",
            "hmac:111111111111111111111111",
            "foreign_write",
            "critical",
            "/config/users/" + HOSTILE,
            999,
            17,
            "new",
            HOSTILE,
            HOSTILE,
        ),
        DivergenceRow(
            "configs",
            {"resource_type": "TOPIC", "resource_name": HUGE, "config": HOSTILE},
            HOSTILE,
            "differs",
            HUGE,
            HOSTILE,
            "foreign_write",
            "error",
            "/config/topics/" + HUGE,
            1000,
            20,
            "new",
            "",
            "",
        ),
        DivergenceRow(
            "acls",
            {
                "resource_type": "TOPIC",
                "resource_name": "wide",
                "pattern_type": "LITERAL",
                "principal": "User:carol",
                "host": "*",
                "operation": "READ",
                "permission": "ALLOW",
            },
            None,
            "kraft_only",
            None,
            {},
            "lost_write",
            "critical",
            "/kafka-acl/Topic/wide",
            901,
            777,
            "persisting",
            "ZooKeeper holds a strict subset of one entry.",
            "Re-create the ACL; upgrade to 3.6.2 or later.",
        ),
        *lagging().divergences.rows[:2],
    ]
    base = lagging()
    failed = [
        CheckResult(
            "DUR-05",
            "fail",
            5,
            ["client_quotas client-id=app-9 producer_byte_rate", HOSTILE, HUGE],
            ["dual_write", "rollback", "finalize"],
            "error",
            TITLES["DUR-05"],
            "Repair every row listed under Differences before you finalise or roll back.",
            "docs/semantics.md §5.6, KIP-866",
        ),
        CheckResult(
            "CAP-07",
            "unknown",
            0,
            [],
            [],
            "warn",
            "All znodes were readable",
            "Give the audit's ZooKeeper user read access.",
            "",
        ),
        CheckResult(
            HOSTILE,
            "warn",
            2,
            ["PR 15327, KAFKA-16222"],
            [HOSTILE],
            HOSTILE,
            HOSTILE,
            HOSTILE,
            HOSTILE + " KAFKA-16222 #15327",
        ),
    ]
    return replace(
        base,
        cluster="prod-us " + HOSTILE,
        exit_code=20,
        verdict="errors",
        migration=replace(base.migration, explanation=HOSTILE),
        lag=Lag(0, 0.0, True),
        gates={
            **base.gates,
            "dual_write": Gate("no_go", ["DUR-05"], "Writes were lost although lag reads 0."),
            "finalize": Gate("no_go", ["DUR-05", "FIN-01", "FIN-02"], "5 defects and 3 brokers in ZooKeeper mode."),
            "rollback": Gate("no_go", ["RB-02", HOSTILE], "Would lose 3 changes."),
        },
        checks=[*base.checks[:4], *failed, *WAITING],
        counts={**COUNTS, "client_quotas": {"zookeeper": 14, "kraft": 12}, HOSTILE: {"zookeeper": None, "kraft": 3}},
        divergences=Divergences(
            7,
            {"lag": 2, "lost_write": 3, "foreign_write": 2},
            {"client_quotas": {"lost_write": 2}},
            {"new": 4, "persisting": 3, "resolved": 0},
            rows,
        ),
        broker_presence=[
            *brokers(),
            BrokerPresence(3, "missing", ["start", "finalize"], False, False, None, None, 12, True, HOSTILE),
        ],
        defects=[
            *DEFECTS[1:],
            Defect("KAFKA-16411", True, True, "Default quota entities are stored as an empty name", HOSTILE),
            Defect(HOSTILE, True, True, HOSTILE, HUGE),
        ],
        log_copies=[*base.log_copies, LogCopyLine(None, HOSTILE, None, None, None, "refused", HOSTILE)],
        history=[*runs(9, [0, 2, 0]), replace(runs(1, [0], defects=5)[0], started_at=HOSTILE)],
        notes=[HOSTILE, HUGE],
        quarantined=2,
        kafka_version_evidence=HOSTILE,
    )


def uncompared() -> Report:
    """In dual write, with a copy of the log that ends before /migration's offset: no row could be compared."""
    base = healthy()
    why = "the two sides could not be compared"
    behind = CheckResult(
        "CAP-04",
        "fail",
        1,
        ["the log ends at offset 225, /migration is at 311"],
        ["dual_write", "finalize", "rollback"],
        "error",
        TITLES["CAP-04"],
        "Give the audit the logs of all controllers.",
    )
    unknown = [CheckResult(name, "unknown", 0, [why], title=TITLES[name]) for name in ("DUR-05", "RB-02")]
    return replace(
        base,
        exit_code=20,
        verdict="errors",
        migration=replace(base.migration, kraft_metadata_offset=311, committed_end_offset=225, newest_zxid=1168),
        gates={**base.gates, "dual_write": Gate("no_go", ["CAP-04"]), "rollback": Gate("no_go", ["CAP-04"])},
        checks=[behind, *passes("DUR-01", "DUR-02", "RB-01"), *unknown, *WAITING],
        history=[replace(point, not_compared=True) for point in runs(1, [0])],
    )


def not_ready() -> Report:
    base = healthy()
    blocked = CheckResult(
        "START-02",
        "fail",
        1,
        ["broker 3: on-all-0, on-all-1, on-all-2 (12 partitions)"],
        ["start"],
        "error",
        TITLES["START-02"],
        "Start broker 3 with zookeeper.metadata.migration.enable=true, or move its replicas.",
        "KIP-866",
    )
    unfinished = CheckResult(
        "START-12",
        "warn",
        1,
        ["/admin/reassign_partitions"],
        ["start"],
        "warn",
        "No reassignment or deletion is pending",
        "Let the reassignment finish first.",
        "KIP-866",
    )
    return replace(
        base,
        cluster="staging",
        exit_code=20,
        verdict="errors",
        mode="single",
        migration=MigrationSummary("PRE_MIGRATION", -1, 41, 41, 3000, 1, 3000),
        lag=Lag(None, None, None, "Lag exists only while the cluster is in dual write."),
        gates={
            "start": Gate("no_go", ["START-02"], "Broker 3 holds replicas but never registered."),
            "dual_write": Gate("not_applicable"),
            "finalize": Gate("not_applicable"),
            "rollback": Gate("not_applicable"),
        },
        checks=[*passes("CAP-04", "START-01", "START-07"), unfinished, blocked],
        counts={name: {**sides, "kraft": 0} for name, sides in COUNTS.items()},
        broker_presence=[
            *[BrokerPresence(b, "zookeeper", [], True, True, True, False, 83, False) for b in (0, 1, 2)],
            BrokerPresence(
                3, "missing", ["start"], False, False, None, None, 12, True, "replicas of on-all; decommissioned?"
            ),
        ],
        history=[replace(point, state="PRE_MIGRATION", lag_records=None) for point in runs(3, [0])],
    )


def finalised() -> Report:
    base = healthy()
    stale = DivergenceRow(
        "topics", {"topic": "after"}, None, "kraft_only", None, {}, "expected_stale", "info", kraft_offset=1301
    )
    return replace(
        base,
        migration=replace(
            base.migration, state="POST_MIGRATION", kraft_metadata_offset=1205, committed_end_offset=1310
        ),
        lag=Lag(None, None, None),
        gates={
            **base.gates,
            "dual_write": Gate("not_applicable"),
            "finalize": Gate("not_applicable", [], "Done at offset 1240."),
            "rollback": Gate("no_go", ["RB-01"], "The migration is finalised."),
        },
        checks=[
            *passes("CAP-04"),
            CheckResult(
                "RB-01", "fail", 1, ["offset 1240"], ["rollback"], "error", TITLES["RB-01"], "Plan without it."
            ),
        ],
        divergences=Divergences(1, {"expected_stale": 1}, {"topics": {"expected_stale": 1}}, {"new": 1}, [stale]),
    )


SAMPLES = {
    "healthy": healthy,
    "lagging": lagging,
    "defective": defective,
    "not_ready": not_ready,
    "finalised": finalised,
}
