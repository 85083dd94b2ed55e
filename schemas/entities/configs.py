"""Dynamic configurations of topics and brokers."""

from pyspark.sql.types import BooleanType, StringType

from schemas.entities.entity import Entity
from schemas.table import column

CONFIGS = Entity(
    name="configs",
    comment="Configurations: `/config/topics`, `/config/brokers` and ConfigRecord.",
    columns=(
        column("resource_type", StringType(), "TOPIC, BROKER, BROKER_LOGGER or CLIENT_METRICS."),
        column("resource_name", StringType(), "Topic, broker id, or '' for the cluster-wide broker default."),
        column("config", StringType(), "Configuration key."),
        column("value", StringType(), "Value; a fingerprint when sensitive."),
        column("sensitive", BooleanType(), "True for passwords, and for keys that no release of Kafka declares."),
        column("comparable", BooleanType(), "False for ciphertext that could not be decoded."),
    ),
    key=("resource_type", "resource_name", "config"),
    compared=("value",),
    comparable_flag="comparable",
)
