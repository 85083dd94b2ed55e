"""Client quotas of users, client ids, both together, and IP addresses."""

from pyspark.sql.types import ArrayType, DoubleType, StringType, StructField, StructType

from schemas.entities.entity import Entity
from schemas.table import column

QUOTA_ENTITY = ArrayType(StructType([StructField("type", StringType()), StructField("name", StringType())]))

CLIENT_QUOTAS = Entity(
    name="client_quotas",
    comment="Quotas: `/config/users`, `/config/clients`, `/config/ips` and ClientQuotaRecord.",
    columns=(
        column(
            "entity",
            QUOTA_ENTITY,
            "Entity parts sorted by type (client-id, ip, user); name null is the default entity.",
        ),
        column("quota", StringType(), "Quota key, e.g. producer_byte_rate."),
        column(
            "value",
            DoubleType(),
            "Limit: bytes per second for byte rates, percent for request_percentage, mutations or connections per second for the others.",
        ),
    ),
    key=("entity", "quota"),
    compared=("value",),
    # Both sides are Java doubles printed in full: one byte a second more is a difference, the last bit is not.
    tolerance={"value": 1e-12},
)
