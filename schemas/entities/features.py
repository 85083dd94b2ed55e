"""Finalised feature levels; ZooKeeper's and KRaft's are different systems and never compared."""

from pyspark.sql.types import IntegerType, StringType

from schemas.entities.entity import Entity
from schemas.table import column

FEATURES = Entity(
    name="features",
    comment="Finalised features: `/feature` and FeatureLevelRecord, side by side.",
    columns=(
        column("feature", StringType(), "Feature name, metadata.version included."),
        column("level", IntegerType(), "Finalised level (max_version_level in ZooKeeper)."),
        column("min_level", IntegerType(), "min_version_level of a version 1 znode."),
    ),
    key=("feature",),
    mirrored=False,
)
