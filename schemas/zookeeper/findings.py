"""Possible faults of a znode (S§11): the code of a finding, its severity, and its meaning.

A code is the id of the check in S§7 if there is one.
"""

# `/feature` can't be read.
FEATURE_DATA = "FEATURE-DATA"
# Codes of what the load throws on, aborts on or silently leaves out, and of what no broker starts with (S§11, S§4.2, S§9.1):
# the start waits for their repair.
STOP_THE_LOAD: tuple[str, ...] = (
    "TOPIC-DATA",
    "TOPIC-ID",
    "PARTITION-KEY",
    "ASSIGNMENT",
    "RECOVERY-STATE",
    "BROKER-DATA",
    "CONTROLLER-DATA",
    "TOKEN-DATA",
    "PRODUCER-BLOCK",
    "ACL-DATA",
    FEATURE_DATA,
)
# Codes of quotas that are loaded and that KRaftMigrationZkWriter.handleSnapshot cannot write as they are: the full sync after the load
# writes all quotas, and never ends.
STOP_THE_FULL_SYNC = ("QUOTA-KEY", "QUOTA-VALUE")

# The beginning of a finding about a transaction log.
TORN_ENTRY = "a torn entry"
# The row in which a reader of data folders says what ZooKeeper's own digest proves of the tree, and how it begins to say
# that it proves nothing.
TREE_DIGEST = "tree digest"
TREE_UNPROVED = "not proved: "

FINDINGS: dict[str, tuple[str, str]] = {
    "CAP-07": ("error", "The znode could not be read: everything below it is unknown to the audit."),
    "CAP-20": (
        "error",
        "Transactions of ZooKeeper's data folder are missing or can't be read: the tree is not the server's.",
    ),
    "TREE-PROVED": ("info", "The tree of the data folder has ZooKeeper's own digest: nothing is missing in it."),
    "TREE-UNPROVED": ("info", "No digest of ZooKeeper's proves the tree of the data folder; nothing contradicts it."),
    "SOURCE-FALLBACK": (
        "warning",
        "ZooKeeper's newest snapshot is damaged, or younger than the logs; an older one and the logs were used.",
    ),
    "TORN-ENTRY": ("info", "The last entry of a transaction log is torn, as in the copy of a running server."),
    "START-03": ("error", "A topic has no topic id: the migration's load fails on it."),
    "START-04": ("error", "A partition's state can't be read: the load invents a state and later writes fail."),
    "START-13": ("error", "A configuration, quota or credential that Kafka can't parse: the load aborts."),
    "START-14": ("error", "An ACL that Kafka can't parse or mirror."),
    "START-18": ("error", "/controller_epoch is not an integer: no controller can claim ZooKeeper."),
    "MIGRATION-NULL": (
        "error",
        "/migration exists with null data: the controllers' migration driver fails on it (KAFKA-19480).",
    ),
    "MIGRATION-DATA": ("error", "/migration can't be parsed: the controllers' migration driver fails on it."),
    "CONTROLLER-DATA": ("error", "/controller can't be parsed."),
    "CLUSTER-ID": ("error", "/cluster/id can't be parsed."),
    "TOPIC-DATA": ("error", "A topic znode can't be parsed: Kafka reads it as a topic without partitions or fails."),
    "TOPIC-ID": ("error", "A topic id that is not a uuid, or a reserved one."),
    "TOPIC-NAME": ("warning", "A topic name that Kafka would not accept."),
    "PARTITION-KEY": ("error", "A partition of an assignment is not a number: Kafka fails on the topic."),
    "ASSIGNMENT": ("error", "An assignment with no, repeated or negative broker ids: KRaft's rules reject it."),
    "STATE-DELETING": ("info", "A partition with leader -2: its deletion is in progress."),
    "ISR-EMPTY": ("warning", "A partition whose ISR is empty."),
    "RECOVERY-STATE": ("error", "leader_recovery_state is neither 0 nor 1: Kafka fails on it."),
    "CONFIG-DATA": ("warning", "A configuration znode that is not JSON: Kafka reads it as no configuration."),
    "CONFIG-COST": ("warning", "An encrypted configuration that takes too long to decode: it is not compared."),
    "QUOTA-KEY": (
        "warning",
        "A quota key that Kafka does not support: it loads, and the full sync after the load never ends.",
    ),
    "QUOTA-VALUE": (
        "warning",
        "A quota value that its key does not allow: it loads, and the full sync after the load never ends.",
    ),
    "QUOTA-SPELLING": (
        "warning",
        "A whole quota with a fraction, as Kafka 3.4 mirrors it: brokers in ZooKeeper mode end on it as they start. The full sync of "
        "Kafka 3.5 or later spells it right.",
    ),
    "ACL-DATA": ("error", "An ACL znode that is not JSON: Kafka reads it as no ACL, access changes silently."),
    "ACL-TYPE": ("warning", "A resource type that Kafka does not support: its ACLs are not migrated."),
    "TOKEN-DATA": ("error", "A delegation token that Kafka can't parse."),
    "TOKEN-EMPTY": ("info", "A delegation token znode without data: Kafka skips it."),
    "PRODUCER-BLOCK": ("error", "/latest_producer_id_block can't be parsed."),
    "PRODUCER-WIDTH": ("warning", "The producer id block is not 1,000 ids wide."),
    FEATURE_DATA: (
        "error",
        "/feature is not what Kafka's decoder takes: a broker in ZooKeeper mode stops over it, and does not start again.",
    ),
    "BROKER-DATA": ("error", "A broker's registration can't be parsed."),
    "ADMIN-DATA": ("warning", "An admin request or notification that can't be parsed."),
    "DUPLICATE-KEY": ("warning", "A JSON key appears twice; the last one counts, as in Kafka."),
    "NOT-UTF8": ("warning", "A name or data that is not UTF-8, or a JSON escape that is half of a character."),
    "UNKNOWN-PATH": ("info", "A znode that Kafka does not use."),
}
