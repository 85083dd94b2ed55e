"""SEC checks: is the metadata as protected as intended (S§7.6, S§8.6)."""

from __future__ import annotations

from schemas.checks.check import EVERY_PHASE, IN_KRAFT, KRAFT_ONLY, WITH_KRAFT, Check, Phase, check

CHECKS: tuple[Check, ...] = (
    check(
        "SEC-01",
        "In a secured ZooKeeper only Kafka can read credentials",
        (),
        EVERY_PHASE,
        "Run the command beside each znode in zookeeper-shell.sh as Kafka's own user. To secure all znodes at once, "
        "run zookeeper-security-migration.sh --zookeeper.acl=secure. Find out who could read the credentials.",
        "ZkData.defaultAcls, SensitiveRootPaths; S§1.7",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "SEC-02",
        "The KRaft controllers created no credential that everybody can read",
        (),
        frozenset({Phase.DUAL_WRITE, Phase.FINALIZED, Phase.ROLLED_BACK}),
        "Run the command beside each znode in zookeeper-shell.sh as Kafka's own user. Kafka makes these znodes "
        "readable by everybody when it mirrors a new user or broker configuration.",
        "ZkConfigMigrationClient.tryWriteEntityConfig; S§1.7",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "SEC-03",
        "In a secured ZooKeeper only Kafka can write /controller and /migration",
        (),
        EVERY_PHASE,
        "Run the command beside each znode in zookeeper-shell.sh as Kafka's own user.",
        "ZkData.defaultAcls; S§7.6",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "SEC-04",
        "KRaft stores passwords decoded, not as ciphertext",
        ("dual_write", "finalize"),
        WITH_KRAFT,
        "Set password.encoder.secret on the controllers while the migration runs. Then set the configurations listed "
        "again: KRaft stores the ciphertext, and brokers take it for the password. If the migration is finalised, set "
        "them again at once.",
        "KAFKA-14801; PasswordEncoder; S§1.5",
        needs=KRAFT_ONLY,
    ),
    check(
        "SEC-05",
        "No secret is in the audit's tables, report or mail: they were searched for SCRAM salts and keys, password "
        "configurations, JAAS texts, encrypted passwords and digest hashes",
        (),
        EVERY_PHASE,
        "Delete this warehouse and its reports. Treat the secrets listed as compromised. Report the fault: the audit "
        "must replace secrets by fingerprints where it reads them.",
        "S§1.5, S§7.6",
        needs=frozenset(),
        severity="critical",
    ),
    check(
        "SEC-06",
        "Controllers and brokers have the same ZooKeeper identity",
        (),
        frozenset({Phase.ZOOKEEPER, Phase.WAITING, Phase.DUAL_WRITE, Phase.ROLLED_BACK}),
        "Give the controllers the brokers' ZooKeeper identity: the same SASL principal or certificate name. Then run "
        "the command shown. A znode that only its creator may write locks the other side out, during the load or "
        "after a rollback.",
        "ZkData.defaultAcls, MigrationClientAuthException; S§1.7",
        needs=frozenset(),
        severity="warning",
    ),
    check(
        "SEC-07",
        "No DENY ACL names an address range below the metadata.version that supports ranges",
        (),
        IN_KRAFT,
        "Raise metadata.version to 4.4-IV1 or later, or name single hosts. Below that level Kafka compares the host "
        "as text, and the entry denies nobody.",
        "KIP-1276; StandardAuthorizerData; S§8.6",
        needs=KRAFT_ONLY,
    ),
    check(
        "SEC-08",
        "Every SCRAM credential has at least the number of iterations that Kafka requires of a new one",
        (),
        WITH_KRAFT,
        "Set the users' credentials again with 4,096 iterations or more: `kafka-configs.sh --alter --entity-type "
        "users`.",
        "ScramMechanism.minIterations; RFC 5802; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "SEC-09",
        "No delegation token is kept after it expired",
        (),
        IN_KRAFT,
        "Give every controller the same delegation.token.secret.key. Then look in the active controller's log for the "
        "task that removes expired tokens.",
        "KIP-900; DelegationTokenControlManager.sweepExpiredDelegationTokens; S§8.6",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "SEC-10",
        "No ACL is in the log twice",
        (),
        WITH_KRAFT,
        "Do not delete the ACLs listed: the active controller throws when it removes the second one and stops, and so does the "
        "next that is asked. Add a DENY for the same principal to take the access away. A migration that is not "
        "finalised can be rolled back and repeated.",
        "AclControlManager.deleteAcls, AclControlManager.replay; S§8.6",
        needs=KRAFT_ONLY,
    ),
    check(
        "SEC-11",
        "Every ACL names its principal as type:name",
        ("dual_write",),
        WITH_KRAFT,
        "Delete the ACLs listed with an Admin client (`deleteAcls`, with the principal as it is: `kafka-acls.sh` refuses it), and "
        "create them again with the type, like User:alice. With one, every request that is checked against its resource "
        "fails, whoever asks, and in dual write no full sync can finish.",
        "KAFKA-18051; StandardAcl.kafkaPrincipal, AclEntry; S§8.6",
        needs=KRAFT_ONLY,
        severity="critical",
    ),
    check(
        "SEC-12",
        "No node has lost SCRAM credentials when it started",
        ("dual_write", "finalize", "upgrade"),
        WITH_KRAFT,
        "Give each user whose credential was removed one of the same mechanism again, with a random password. Then set the "
        "credentials listed again (`kafka-configs.sh --alter --entity-type users`), and restart no node before. Remove the others only "
        "once every node has a newer checkpoint. A node that reads a removal together with other credentials of the mechanism, "
        "as when it starts, can lose these: their users cannot log in there, its checkpoints lack them, and as active controller "
        "it deletes them from ZooKeeper. No failover brings them back.",
        "ScramDelta.apply; S§12.2",
        needs=KRAFT_ONLY,
    ),
)
