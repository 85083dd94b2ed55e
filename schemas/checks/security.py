"""SEC checks: is ZooKeeper as protected as it was meant to be (S§7.6)."""

from __future__ import annotations

from schemas.checks.check import EVERY_PHASE, KRAFT_ONLY, Check, Phase, check

CHECKS: tuple[Check, ...] = (
    check(
        "SEC-01",
        "In a secured ZooKeeper nobody but Kafka reads credentials",
        (),
        EVERY_PHASE,
        "Run zookeeper-security-migration.sh --zookeeper.acl=secure, and look at who could read the znodes named.",
        "ZkData.defaultAcls, SensitiveRootPaths; S§1.7",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "SEC-02",
        "The KRaft controllers made no credential readable to everybody",
        (),
        frozenset({Phase.DUAL_WRITE, Phase.FINALIZED, Phase.ROLLED_BACK}),
        "Set the ACL of the znodes named to their creator alone; Kafka makes them world-readable when it mirrors a "
        "new user or broker configuration.",
        "ZkConfigMigrationClient.tryWriteEntityConfig; S§1.7",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "SEC-03",
        "In a secured ZooKeeper nobody but Kafka writes /controller and /migration",
        (),
        EVERY_PHASE,
        "Restrict the ACL of the znodes named to Kafka's identity.",
        "ZkData.defaultAcls; S§7.6",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "SEC-04",
        "Passwords reached KRaft decoded",
        ("dual_write", "finalize"),
        frozenset({Phase.DUAL_WRITE}),
        "Set password.encoder.secret on the controllers, then set the configurations named again: KRaft holds the "
        "ciphertext and brokers would take it for the password.",
        "KAFKA-14801; PasswordEncoder; S§1.5",
        needs=KRAFT_ONLY,
    ),
    check(
        "SEC-05",
        "No secret reached the audit's tables",
        (),
        EVERY_PHASE,
        "Delete this warehouse and its reports, take the secrets named for known, and report it: the audit must replace "
        "them by fingerprints where it reads them.",
        "S§7.6",
        needs=frozenset(),
        severity="critical",
    ),
)
