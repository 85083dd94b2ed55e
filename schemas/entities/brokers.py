"""Broker registrations; informative across the two sides, judged by the broker ledger."""

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from schemas.entities.entity import Entity
from schemas.table import column

ENDPOINTS = ArrayType(
    StructType(
        [
            StructField("name", StringType()),
            StructField("host", StringType()),
            StructField("port", IntegerType()),
            StructField("security_protocol", StringType()),
        ]
    )
)
FEATURE_RANGES = ArrayType(
    StructType(
        [
            StructField("name", StringType()),
            StructField("min_level", IntegerType()),
            StructField("max_level", IntegerType()),
        ]
    )
)

BROKERS = Entity(
    name="brokers",
    comment="Brokers: `/brokers/ids/<id>` and RegisterBrokerRecord with its changes.",
    columns=(
        column("broker_id", IntegerType(), "Broker id."),
        column("broker_epoch", LongType(), "Broker epoch: czxid of the znode, or the log offset of the registration."),
        column("incarnation_id", StringType(), "Id of the broker's process, new at each start (KRaft only)."),
        column(
            "is_migrating_zk_broker",
            BooleanType(),
            "True while the broker runs in ZooKeeper mode and is ready to migrate.",
        ),
        column("fenced", BooleanType(), "True while the controllers consider the broker unavailable (KRaft only)."),
        column(
            "in_controlled_shutdown",
            BooleanType(),
            "True once the broker has requested a controlled shutdown (KRaft only).",
        ),
        column("rack", StringType(), "Rack, as configured."),
        column("endpoints", ENDPOINTS, "Listeners: name, host, port, security protocol."),
        column("features", FEATURE_RANGES, "Supported features with their lowest and highest level."),
        column("log_dirs", ArrayType(StringType()), "Online log directory ids (KRaft only)."),
        column(
            "cordoned_log_dirs", ArrayType(StringType()), "Log directory ids that take no new replica (KRaft only)."
        ),
        column("znode_version", IntegerType(), "version of the broker znode (ZooKeeper only)."),
    ),
    key=("broker_id",),
    mirrored=False,
)
