"""What a run came to, which of a cluster's runs is the newest (by sequence, never by a clock), and which times are of a wrong clock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

CLEAN, WARNINGS, ERRORS = "clean", "warnings", "errors"
# One of these is not a failure of a run, but a run that must not count as finished.
FAILED = "failed"
# Two machines' clocks may differ by this much; what is dated later than that was written by one whose clock is wrong.
_CLOCKS_DIFFER = timedelta(hours=1)


def newest_first() -> list[Column]:
    """The order of rows of gold `runs`, newest first.

    `sequence` counts the cluster's runs. Rows of releases that did not count have none and come before those that have one,
    by their times, as do two runs that counted at the same moment.
    """
    from pyspark.sql import functions as F  # noqa: PLC0415 - who only reads tables needs no Spark

    return [
        F.col("sequence").desc_nulls_last(),
        F.col("started_at").desc(),
        F.col("finished_at").desc(),
        F.col("run_id").desc(),
    ]


def oldest_first() -> list[Column]:
    """The order of rows of gold `runs`, oldest first."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - who only reads tables needs no Spark

    return [
        F.col("sequence").asc_nulls_first(),
        F.col("started_at").asc(),
        F.col("finished_at").asc(),
        F.col("run_id").asc(),
    ]


def latest_now(as_of: datetime) -> datetime:
    """The latest time that another machine may call now; a later one is of a wrong clock."""
    return as_of + _CLOCKS_DIFFER
