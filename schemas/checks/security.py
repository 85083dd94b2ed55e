"""SEC checks: is ZooKeeper as protected as it was meant to be (S§7.6)."""

from __future__ import annotations

from schemas.checks.check import EVERY_PHASE, IN_KRAFT, KRAFT_ONLY, WITH_KRAFT, Check, Phase, check

CHECKS: tuple[Check, ...] = (
    check(
        "SEC-01",
        "In a secured ZooKeeper nobody but Kafka reads credentials",
        (),
        EVERY_PHASE,
        "Run the command beside each znode in zookeeper-shell.sh as Kafka's own user, or zookeeper-security-migration.sh "
        "--zookeeper.acl=secure for all of them, and look at who could read them.",
        "ZkData.defaultAcls, SensitiveRootPaths; S§1.7",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "SEC-02",
        "The KRaft controllers made no credential readable to everybody",
        (),
        frozenset({Phase.DUAL_WRITE, Phase.FINALIZED, Phase.ROLLED_BACK}),
        "Run the command beside each znode in zookeeper-shell.sh as Kafka's own user; Kafka makes these znodes "
        "world-readable when it mirrors a new user or broker configuration.",
        "ZkConfigMigrationClient.tryWriteEntityConfig; S§1.7",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "SEC-03",
        "In a secured ZooKeeper nobody but Kafka writes /controller and /migration",
        (),
        EVERY_PHASE,
        "Run the command beside each znode in zookeeper-shell.sh as Kafka's own user.",
        "ZkData.defaultAcls; S§7.6",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "SEC-04",
        "Passwords reached KRaft decoded",
        ("dual_write", "finalize"),
        WITH_KRAFT,
        "Set password.encoder.secret on the controllers while the migration runs, then set the configurations named again: KRaft "
        "holds the ciphertext, and brokers take it for the password. After finalising set them again at once.",
        "KAFKA-14801; PasswordEncoder; S§1.5",
        needs=KRAFT_ONLY,
    ),
    check(
        "SEC-05",
        "No secret reached the audit's tables, report or mail: SCRAM salts and keys, password configurations, JAAS texts, "
        "encrypted passwords and digest hashes are looked for by their form",
        (),
        EVERY_PHASE,
        "Delete this warehouse and its reports, take the secrets named for known, and report it: the audit must replace "
        "them by fingerprints where it reads them.",
        "S§1.5, S§7.6",
        needs=frozenset(),
        severity="critical",
    ),
    check(
        "SEC-06",
        "Controllers and brokers are the same to ZooKeeper",
        (),
        frozenset({Phase.ZOOKEEPER, Phase.WAITING, Phase.DUAL_WRITE, Phase.ROLLED_BACK}),
        "Give the controllers the brokers' ZooKeeper identity (the same SASL principal, or certificate name), and run the "
        "command named: a znode that only its creator may write shuts the other side out, in the load or after a rollback.",
        "ZkData.defaultAcls, MigrationClientAuthException; S§1.7",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "SEC-07",
        "No DENY names a range of addresses below the metadata.version that knows ranges",
        (),
        IN_KRAFT,
        "Raise metadata.version to 4.4-IV1 or later, or name single hosts: below it Kafka compares the host as a text, and the "
        "entry denies nobody.",
        "KIP-1276; StandardAuthorizerData; S§8.6",
        needs=KRAFT_ONLY,
    ),
    check(
        "SEC-08",
        "Every SCRAM credential has as many iterations as Kafka asks of a new one",
        (),
        WITH_KRAFT,
        "Set the users' credentials again with 4,096 iterations or more (kafka-configs --entity-type users).",
        "ScramMechanism.minIterations; RFC 5802; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "SEC-09",
        "No delegation token is kept after it expired",
        (),
        IN_KRAFT,
        "Look in the active controller's log for the task that removes expired tokens; give every controller the same "
        "delegation.token.secret.key.",
        "KIP-900; DelegationTokenControlManager.sweepExpiredDelegationTokens; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
)
