"""Names in ACL znodes (`ResourceZNode`, `AclEntry`, S§1.4): PascalCase in ZooKeeper, enum names in KRaft."""

RESOURCE_TYPES: dict[str, str] = {
    "Topic": "TOPIC",
    "Group": "GROUP",
    "Cluster": "CLUSTER",
    "TransactionalId": "TRANSACTIONAL_ID",
    "DelegationToken": "DELEGATION_TOKEN",
    "User": "USER",
}
OPERATIONS: dict[str, str] = {
    "All": "ALL",
    "Read": "READ",
    "Write": "WRITE",
    "Create": "CREATE",
    "Delete": "DELETE",
    "Alter": "ALTER",
    "Describe": "DESCRIBE",
    "ClusterAction": "CLUSTER_ACTION",
    "DescribeConfigs": "DESCRIBE_CONFIGS",
    "AlterConfigs": "ALTER_CONFIGS",
    "IdempotentWrite": "IDEMPOTENT_WRITE",
    "CreateTokens": "CREATE_TOKENS",
    "DescribeTokens": "DESCRIBE_TOKENS",
}
PERMISSIONS: dict[str, str] = {"Allow": "ALLOW", "Deny": "DENY"}
