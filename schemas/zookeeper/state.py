"""The stream of state rows that znodes are read into: one row per fact, before the silver tables are assembled."""

from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

# Rows of `entity`:
#   a silver entity's name     `row` is a JSON object with that entity's columns
#   partition_assignments      topic, topic_id, partition, replicas, adding_replicas, removing_replicas (typed)
#   partition_states           topic, partition, isr, leader, leader_epoch, ... partition_epoch (typed)
#   admin_operations           `row` {"kind", "subject", "detail"}: pending deletions, reassignments, notifications
#   findings                   `row` {"code", "subject", "detail"}: what could not be parsed (S§11)
ZNODE_STATE = StructType(
    [
        StructField("entity", StringType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("topic_id", StringType()),
        StructField("replicas", ArrayType(IntegerType())),
        StructField("adding_replicas", ArrayType(IntegerType())),
        StructField("removing_replicas", ArrayType(IntegerType())),
        StructField("isr", ArrayType(IntegerType())),
        StructField("leader", IntegerType()),
        StructField("leader_epoch", IntegerType()),
        StructField("leader_recovery_state", IntegerType()),
        StructField("partition_epoch", IntegerType()),
        StructField("controller_epoch", IntegerType()),
        StructField("row", StringType()),
        StructField("zk_path", StringType()),
        StructField("zk_czxid", LongType()),
        StructField("zk_mzxid", LongType()),
        StructField("zk_mtime", LongType()),
    ]
)
