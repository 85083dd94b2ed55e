"""The next block of producer ids."""

from pyspark.sql.types import IntegerType, LongType

from schemas.entities.entity import Entity
from schemas.table import column

PRODUCER_IDS = Entity(
    name="producer_ids",
    comment="Producer ids: `/latest_producer_id_block` and ProducerIdsRecord.",
    columns=(
        column(
            "next_producer_id",
            LongType(),
            "First id of the next block. ZooKeeper has two valid forms (docs/semantics.md §6): block_end+1 when a broker wrote it, "
            "block_start when a KRaft controller did (broker -1).",
        ),
        column("broker_id", IntegerType(), "Broker that took the block; -1 when a KRaft controller wrote the znode."),
        column("broker_epoch", LongType(), "That broker's epoch (KRaft only)."),
        column("block_start", LongType(), "First id of the block, inclusive (ZooKeeper only)."),
        column("block_end", LongType(), "Last id of the block, inclusive (ZooKeeper only)."),
    ),
    key=(),
    compared=("next_producer_id",),
    severity="critical",
)
