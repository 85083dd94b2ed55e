"""Topics and their ids."""

from pyspark.sql.types import StringType

from schemas.entities.entity import Entity
from schemas.table import column

TOPICS = Entity(
    name="topics",
    comment="Topics: `/brokers/topics/<t>` and TopicRecord.",
    columns=(
        column("topic", StringType(), "Topic name."),
        column("topic_id", StringType(), "Topic id, URL-safe base64 of the uuid; null in ZooKeeper before IBP 2.8."),
    ),
    key=("topic",),
    compared=("topic_id",),
    column_severity={"topic_id": "critical"},
)
