"""Classes of differences (S§5.6)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DivergenceClass:
    """One class: `defect` if a row in it is a fault; `remedy` is what to do about one."""

    name: str
    defect: bool
    meaning: str
    remedy: str


LAG = "lag"
IN_FLIGHT = "in_flight"
LOST_WRITE = "lost_write"
FOREIGN_WRITE = "foreign_write"
LOAD_LOSS = "load_loss"
LOAD_EXTRA = "load_extra"
EXPECTED_STALE = "expected_stale"
PENDING_DELETE = "pending_delete"
UNCOMMITTED_TAIL = "uncommitted_tail"
NOT_COMPARABLE = "not_comparable"
IN_SYNC = "in_sync"

CLASSES: dict[str, DivergenceClass] = {
    entry.name: entry
    for entry in (
        DivergenceClass(
            LOST_WRITE,
            True,
            "dual write moved past this change without writing it to ZooKeeper; a rollback would lose it",
            "Force a full sync: restart the active controller cleanly, so that another one takes over and makes ZooKeeper equal "
            "to KRaft. Kafka 3.4 has no full sync: upgrade the controllers first, the active one last. "
            "`kafka-metadata-quorum.sh --bootstrap-controller HOST:PORT describe --status` names it (Kafka 3.7 and later). "
            "If DUR-06 or SEC-11 fails, no full sync can finish: make the change again through the Admin API instead. Run the audit again "
            "before you finalise or roll back.",
        ),
        DivergenceClass(
            FOREIGN_WRITE,
            True,
            "something other than the KRaft controller wrote to ZooKeeper after the controller took over",
            "Find the writer (an old broker, a script, a person) and stop it. If KRaft's value is right, force a full sync (Kafka 3.5 and "
            "later): restart the active controller cleanly, so that another one overwrites the znode. Setting "
            "a value that KRaft already has writes nothing. If ZooKeeper's is right, set it through the Admin API.",
        ),
        DivergenceClass(
            LOAD_LOSS,
            True,
            "the row, or its value, was in ZooKeeper before the load and KRaft never had it",
            "Create each listed entry again through the Admin API, with ZooKeeper's value, before the leadership moves or the controllers "
            "are upgraded: the next full sync may delete it in ZooKeeper too, and nothing shows it any more.",
        ),
        DivergenceClass(
            LOAD_EXTRA,
            True,
            "the load created a row that ZooKeeper does not have",
            "Remove or rename each listed entry through the Admin API. Check the known defects of this Kafka version. A quota with an "
            "empty name, or of the type users, clients or ips, stays: Kafka does not delete it, and it applies to nobody.",
        ),
        DivergenceClass(
            UNCOMMITTED_TAIL,
            False,
            "the difference is only in records that are not proved committed",
            "Give the audit the other controllers' logs, or run it again later.",
        ),
        DivergenceClass(
            LAG, False, "the record is committed and not yet in ZooKeeper", "Wait, and check that the lag falls."
        ),
        DivergenceClass(IN_FLIGHT, False, "ZooKeeper already has a version newer than /migration's offset", "Nothing."),
        DivergenceClass(
            PENDING_DELETE, False, "the topic is queued for deletion in ZooKeeper", "Let the deletion finish."
        ),
        DivergenceClass(EXPECTED_STALE, False, "the migration is finalised; ZooKeeper is no longer used", "Nothing."),
        DivergenceClass(
            NOT_COMPARABLE,
            False,
            "an encrypted value that can't be decoded without the broker's password.encoder.secret",
            "In the configuration, set `secrets.password_encoder_secret_envs` to the name of the environment variable that "
            "holds the secret.",
        ),
        DivergenceClass(IN_SYNC, False, "the same in-sync replicas in another order, which means nothing", "Nothing."),
    )
}
# What to do about a partition whose state znode is missing, whatever the row's class.
MISSING_STATE = (
    "Do not move the leadership yet: without this state znode no full sync can finish, and nothing is mirrored after the next failover. "
    "First write the znode, with the leader, leader_epoch and isr that KRaft has, like that of another partition: "
    "`zookeeper-shell.sh HOST:PORT create PATH DATA`, where PATH is /brokers/topics/TOPIC/partitions/NUMBER/state, or set if it is there "
    "but cannot be parsed. If a znode above it is missing, create that first. Then run the audit again."
)
# Of a credential that ZooKeeper lacks: the controllers may lack it themselves (`ScramDelta.apply`, SEC-12).
LOST_CREDENTIAL = (
    "Force a full sync: restart the active controller cleanly. If the credential is still missing then, the controllers lack it "
    "themselves: a node that starts can lose it when another credential of the same mechanism was removed (SEC-12). Then give each user "
    "whose credential was removed one of that mechanism again, with a random password, and set this one again: `kafka-configs.sh "
    "--alter --entity-type users`. Run the audit again before you finalise or roll back."
)
# The same where the folder of ACLs or tokens is missing: configurations alone get theirs again (`ZkConfigMigrationClient`).
MISSING_FOLDER = (
    "Do not move the leadership yet: without this folder nothing below it can be written, no full sync can finish, and nothing is mirrored "
    "after the next failover. Nor restart brokers in ZooKeeper mode: they would read no ACLs. First make the folder again, and each one "
    "down to the row's own, like /kafka-acl/Topic, /kafka-acl-extended/prefixed/Group or /delegation_token/tokens: "
    "`zookeeper-shell.sh HOST:PORT create PATH`. Then restart the active controller cleanly, so that another one makes ZooKeeper equal to "
    "KRaft, and run the audit again."
)
DEFECTS: tuple[str, ...] = tuple(entry.name for entry in CLASSES.values() if entry.defect)
# The order rows are listed in: defects first.
ORDER: tuple[str, ...] = tuple(CLASSES)
