"""Partitions: assignment and state in one row."""

from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType

from schemas.entities.entity import Entity
from schemas.table import column

_BROKERS = ArrayType(IntegerType())

PARTITIONS = Entity(
    name="partitions",
    comment="Partitions: the assignment of `/brokers/topics/<t>` with its state znode, and PartitionRecord with its changes.",
    columns=(
        column("topic", StringType(), "Topic name."),
        column("partition", IntegerType(), "Partition number."),
        column("topic_id", StringType(), "Topic id, shown here and compared on topics."),
        column("replicas", _BROKERS, "Assigned broker ids, in order."),
        column("adding_replicas", _BROKERS, "Replicas a reassignment adds; empty when there is none."),
        column("removing_replicas", _BROKERS, "Replicas a reassignment removes; empty when there is none."),
        column("isr", _BROKERS, "In-sync replicas, in order; null when ZooKeeper has no state znode."),
        column(
            "leader",
            IntegerType(),
            "Broker id of the leader; -1 for none, -2 while being deleted (ZooKeeper); null without a state znode.",
        ),
        column("leader_epoch", IntegerType(), "Leader epoch."),
        column("leader_recovery_state", IntegerType(), "0 recovered, 1 recovering from an unclean election."),
        column(
            "partition_epoch", IntegerType(), "Partition epoch; in ZooKeeper the state's dataVersion. Never compared."
        ),
        column("controller_epoch", IntegerType(), "controller_epoch of the state znode. Never compared."),
        column("directories", ArrayType(StringType()), "Log directory ids (KRaft only). Never compared."),
        column("eligible_leader_replicas", _BROKERS, "ELR (KRaft only). Never compared."),
        column("last_known_elr", _BROKERS, "Last known ELR (KRaft only). Never compared."),
        column("zk_assignment_mzxid", LongType(), "mzxid of the topic znode that holds the assignment."),
        column("zk_assignment_mtime", LongType(), "mtime of the topic znode, milliseconds since the epoch."),
    ),
    key=("topic", "partition"),
    compared=(
        "replicas",
        "adding_replicas",
        "removing_replicas",
        "isr",
        "leader",
        "leader_epoch",
        "leader_recovery_state",
    ),
    severity="critical",
    column_severity={
        "replicas": "error",
        "adding_replicas": "warning",
        "removing_replicas": "warning",
        "isr": "warning",
        "leader": "error",
        "leader_epoch": "error",
        "leader_recovery_state": "error",
    },
)
