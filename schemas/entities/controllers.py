"""Registered KRaft controllers."""

from pyspark.sql.types import BooleanType, IntegerType, StringType

from schemas.entities.brokers import ENDPOINTS, FEATURE_RANGES
from schemas.entities.entity import Entity
from schemas.table import column

CONTROLLERS = Entity(
    name="controllers",
    comment="Controllers: RegisterControllerRecord (metadata.version 3.7-IV0 and later).",
    columns=(
        column("controller_id", IntegerType(), "node.id of the controller."),
        column("incarnation_id", StringType(), "Id of the controller's process, new at each start."),
        column("zk_migration_ready", BooleanType(), "True when the controller runs with the migration enabled."),
        column("endpoints", ENDPOINTS, "Listeners: name, host, port, security protocol."),
        column("features", FEATURE_RANGES, "Supported features with their lowest and highest level."),
    ),
    key=("controller_id",),
    mirrored=False,
)
