"""Where Kafka keeps what in ZooKeeper (S§1.1, `kafka.zk.ZkData`)."""

# The subtrees an audit needs. `/consumers` (offsets of pre-0.9 consumers) can be huge and is not metadata; `/zookeeper`
# is the server's own.
# /migration comes first: a row read after it may be newer than its offset, which the log then explains; a row read
# before it could be older, and would look like a lost write. Who owns ZooKeeper is read right after it.
NEEDED_ROOTS: tuple[str, ...] = (
    "/migration",
    "/controller",
    "/controller_epoch",
    "/cluster",
    "/admin",
    "/brokers",
    "/config",
    "/delegation_token",
    "/feature",
    "/isr_change_notification",
    "/kafka-acl",
    "/kafka-acl-changes",
    "/kafka-acl-extended",
    "/kafka-acl-extended-changes",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
)
NEVER_READ: tuple[str, ...] = ("/consumers", "/zookeeper")

# Parents whose children are kinds of things: Kafka makes them at its start and removes none.
GROWING: tuple[str, ...] = (
    "/brokers",
    "/config",
    "/delegation_token",
    "/kafka-acl",
    "/kafka-acl-extended",
    "/kafka-acl-extended/prefixed",
)

# Every broker makes these when it starts (`KafkaZkClient.createTopLevelPaths`, Kafka 1.1 and later), and nothing removes them.
TOP_LEVEL: tuple[str, ...] = (
    "/brokers/ids",
    "/brokers/topics",
    "/config/changes",
    "/admin/delete_topics",
    "/isr_change_notification",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
)

CONFIG_ROOT = "/config/"
USERS_ROOT = "/config/users/"
CONFIG_CHANGES_ROOT = "/config/changes/"
# Numbers, and the credentials of users.
QUOTA_ROOTS: tuple[str, ...] = (USERS_ROOT, "/config/clients/", "/config/ips/")
TOKENS_ROOT = "/delegation_token/tokens/"

DEFAULT_ENTITY = "<default>"

# Parents and parts of a path that hold nothing of their own; Kafka makes them with null data.
CONTAINERS: frozenset[str] = frozenset(
    {
        "/",
        "/admin",
        "/admin/delete_topics",
        "/brokers",
        "/brokers/ids",
        "/brokers/seqid",
        "/brokers/topics",
        "/cluster",
        "/config",
        "/config/brokers",
        "/config/changes",
        "/config/clients",
        "/config/ips",
        "/config/topics",
        "/config/users",
        "/delegation_token",
        "/delegation_token/token_changes",
        "/delegation_token/tokens",
        "/isr_change_notification",
        "/kafka-acl",
        "/kafka-acl-changes",
        "/kafka-acl-extended",
        "/kafka-acl-extended/prefixed",
        "/kafka-acl-extended-changes",
        "/log_dir_event_notification",
    }
)
