"""The declaration of an entity of cluster metadata: its key, its compared columns, its shown columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructField

from schemas.bronze import RUN_COLUMNS
from schemas.table import Layer, Table, column

PROVENANCE_COLUMNS = (
    column("zk_path", StringType(), "Znode the row was read from; null on KRaft rows."),
    column("zk_czxid", LongType(), "zxid of the transaction that created that znode."),
    column("zk_mzxid", LongType(), "zxid of the last change of its data."),
    column(
        "zk_mtime", LongType(), "Time of that change, milliseconds since the epoch, by the ZooKeeper leader's clock."
    ),
    column("kraft_offset", LongType(), "Offset of the last record that changed the row; null on ZooKeeper rows."),
    column("kraft_created_offset", LongType(), "Offset of the first record known of the row."),
    column("kraft_epoch", IntegerType(), "Leader epoch of the last record that changed the row."),
    column("kraft_append_time", LongType(), "Append time of that record, milliseconds since the epoch."),
)
SOURCE_COLUMN = column("source", StringType(), "Side of the migration: zookeeper or kraft.")
# By them the rows of several runs make up a state (`transforms.chain`).
CHAIN_COLUMNS = (
    column(
        "row_key",
        LongType(),
        "Hash of side and key: the same in every run. Of the rows of a run's `state_runs` the newest one counts.",
    ),
    column("gone", BooleanType(), "True if the key of this row_key no longer has a row; null in all other rows."),
)


@dataclass(frozen=True)
class Entity:
    """One kind of metadata, the same columns for both sides.

    `key` names the canonical key (S§6) and `compared` the columns whose difference is a divergence; every other
    column is only shown. `unordered` columns are compared as sets; `tolerance` is relative, for float columns.
    `comparable_flag` names a boolean column that is false where a cell must not be compared (ciphertext).
    """

    name: str
    comment: str
    columns: tuple[StructField, ...]
    key: tuple[str, ...]
    compared: tuple[str, ...] = ()
    severity: str = "error"
    column_severity: dict[str, str] = field(default_factory=dict)
    unordered: frozenset[str] = frozenset()
    tolerance: dict[str, float] = field(default_factory=dict)
    comparable_flag: str | None = None
    mirrored: bool = True

    @property
    def row_columns(self) -> tuple[StructField, ...]:
        """The columns of one row of a state: those of the table without the run's and the chain's."""
        return (SOURCE_COLUMN, *self.columns, *PROVENANCE_COLUMNS)

    @property
    def table(self) -> Table:
        """The entity's silver table. A run adds what changed; `transforms.chain` describes how a state is read."""
        columns = (*RUN_COLUMNS, *self.row_columns, *CHAIN_COLUMNS)
        return Table(Layer.SILVER, self.name, self.comment, columns, chained=True)
