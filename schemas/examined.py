"""What passes between Spark and the one pass over a cluster, as bytes: nothing of it is ever a row of Java's."""

from __future__ import annotations

from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from schemas.bronze import RUN_COLUMNS
from schemas.table import Layer, Table, column

FEED = StructType(
    [
        RUN_COLUMNS[0],
        column(
            "kind", LongType(), "What it is, a number of `transforms.units.Kind`: a cluster gets them in their order."
        ),
        column("place", LongType(), "Where it comes among those of its kind."),
        column("payload", BinaryType(), "Rows as one Arrow stream, or bytes of an earlier run's state."),
    ]
)

OUTCOME_COLUMNS = (
    column(
        "kind",
        StringType(),
        "rows, few_rows (a small piece), file (one of a table, which has many rows), answers, failure, again, or a kind of kept state: "
        "fold, memory, index.",
    ),
    column("name", StringType(), "Of rows and files, the table they belong to (`layer.name`); else null."),
    column("part", LongType(), "Number of the piece, from 0 on."),
    column(
        "payload",
        BinaryType(),
        "Rows as an Arrow stream; answers, failures and files as JSON; a piece of the state's bytes.",
    ),
)

EXAMINED = Table(
    Layer.SILVER,
    "examined",
    "Results of the pass over a cluster, as bytes: rows on their way to the other tables, or the files that have them, answers for "
    "the checks, and the state that the next run resumes. Those of a cluster's older runs are removed when a run of it has finished.",
    (*RUN_COLUMNS, *OUTCOME_COLUMNS),
)
