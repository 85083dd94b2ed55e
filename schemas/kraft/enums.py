"""Names of the codes inside metadata records (S§2.5). A code that is not here is unknown to Kafka too."""

CONFIG_RESOURCE_TYPES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}

# org.apache.kafka.common.acl and .resource; 0 UNKNOWN and 1 ANY (and 2 MATCH of patterns) never stand in a stored ACL.
ACL_RESOURCE_TYPES = {
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}
PATTERN_TYPES = {3: "LITERAL", 4: "PREFIXED"}
ACL_OPERATIONS = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
ACL_PERMISSIONS = {2: "DENY", 3: "ALLOW"}

# Bytes a ZkMigrationState record may hold; what they mean depends on the release (metadata_versions).
ZK_MIGRATION_STATE_BYTES = {0: "0", 1: "1", 2: "2", 3: "3", 4: "4"}
# BrokerRegistrationChange: -1 unfences, 0 changes nothing, 1 fences; shutdown can only be set.
FENCING_CHANGES = {-1: "UNFENCE", 0: "NONE", 1: "FENCE"}
CONTROLLED_SHUTDOWN_CHANGES = {0: "NONE", 1: "IN_CONTROLLED_SHUTDOWN"}
# LeaderRecoveryState; -1 is "unchanged" in a PartitionChange only.
LEADER_RECOVERY_STATES = {0: "RECOVERED", 1: "RECOVERING"}
LEADER_RECOVERY_CHANGES = {-1: "UNCHANGED", **LEADER_RECOVERY_STATES}

# A directory id with a meaning of its own (KIP-858, `DirectoryId`), as the dump spells it.
DIRECTORY_MIGRATING = "AAAAAAAAAAAAAAAAAAAAAA"

COMPRESSION_CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd", 5: "5", 6: "6", 7: "7"}


def code_name(names: dict[int, str], code: int) -> str:
    """Name a code; one that Kafka does not have becomes `unknown(n)`."""
    return names.get(code, f"unknown({code})")
