"""The replayed log: versions of compared rows, and the form in which its state is kept for the next run."""

from __future__ import annotations

from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType

from schemas.bronze import RUN_COLUMNS
from schemas.table import column

# Rises whenever bytes of an earlier release must not be continued: another meaning, another event, another column.
FORMAT = 1

# KRaft states of compared rows other than the committed one: what a row was at `/migration`'s offset, every version
# since, and the removal of rows that are gone. This distinguishes lag from loss.
ROW_VERSION_COLUMNS = (
    RUN_COLUMNS[0],
    column("entity", StringType(), "Entity of the row."),
    column("key", StringType(), "Canonical key as one JSON object."),
    column("row", StringType(), "Compared columns as one JSON object; for a removal, the last content."),
    column("removed", BooleanType(), "True for a removal."),
    column("from_offset", LongType(), "Offset of the record that made the version; valid until the next version's."),
    column("from_epoch", IntegerType(), "Leader epoch of that record."),
    column("from_append_time", LongType(), "Append time of that record, milliseconds since the epoch."),
    column("created_offset", LongType(), "First record known of the row; null on versions after the first."),
)
