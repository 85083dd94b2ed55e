"""Access control lists, one row per entry."""

from pyspark.sql.types import StringType

from schemas.entities.entity import Entity
from schemas.table import column

ACLS = Entity(
    name="acls",
    comment="ACLs: `/kafka-acl`, `/kafka-acl-extended` and AccessControlEntryRecord. Enum names, compared by content.",
    columns=(
        column("resource_type", StringType(), "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER."),
        column("resource_name", StringType(), "Resource name or prefix."),
        column("pattern_type", StringType(), "LITERAL or PREFIXED."),
        column("principal", StringType(), "Principal, type:name."),
        column("host", StringType(), "Host the entry is for, or * for all."),
        column("operation", StringType(), "READ, WRITE, DESCRIBE_CONFIGS and so on."),
        column("permission", StringType(), "ALLOW or DENY."),
        column("acl_id", StringType(), "KRaft's id of the entry (random per write). Never compared."),
    ),
    key=("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission"),
    severity="critical",
)
