"""Where the migration stands: ZkMigrationStateRecord's history, `/migration`, `/controller`, `/controller_epoch`."""

from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType

from schemas.entities.entity import Entity
from schemas.table import column
from schemas.zookeeper.trees import TREE_COLUMN

MIGRATION = Entity(
    name="migration",
    comment="The migration's own state: KRaft rows are the history of ZkMigrationState, the ZooKeeper row its znodes.",
    columns=(
        column(
            "state_code",
            IntegerType(),
            "ZkMigrationState byte as written (its meaning depends on the release: docs/semantics.md §2.6).",
        ),
        column("migration_data", StringType(), "Data of `/migration`; null when the znode is absent or its data null."),
        column("migration_present", BooleanType(), "True when `/migration` exists."),
        column("kraft_controller_id", IntegerType(), "kraft_controller_id of `/migration`."),
        column("kraft_controller_epoch", IntegerType(), "kraft_controller_epoch of `/migration`."),
        column(
            "kraft_metadata_offset", LongType(), "kraft_metadata_offset of `/migration`, inclusive; -1 before the load."
        ),
        column("kraft_metadata_epoch", IntegerType(), "kraft_metadata_epoch of `/migration`."),
        column("migration_mzxid", LongType(), "mzxid of `/migration`."),
        column("migration_mtime", LongType(), "mtime of `/migration`, milliseconds since the epoch."),
        column("migration_version", IntegerType(), "dataVersion of `/migration`: one per write."),
        column("controller_id", IntegerType(), "brokerid of `/controller`; null when the znode is absent."),
        column(
            "controller_kraft_epoch",
            IntegerType(),
            "kraftControllerEpoch of `/controller`; -1 or null for a ZooKeeper broker.",
        ),
        column(
            "controller_persistent",
            BooleanType(),
            "True when `/controller` is not ephemeral: a KRaft controller claimed it.",
        ),
        column("controller_czxid", LongType(), "czxid of `/controller`: the claim."),
        column("controller_epoch", IntegerType(), "Value of `/controller_epoch`."),
        column("controller_epoch_mzxid", LongType(), "mzxid of `/controller_epoch`."),
        column("cluster_id", StringType(), "id of `/cluster/id`."),
        TREE_COLUMN,
    ),
    key=(),
    mirrored=False,
)
