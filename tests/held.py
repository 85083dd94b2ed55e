"""Rows that several queries of a test read, held as a run holds them: otherwise each query makes them anew."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from transforms.kraft.replay.events import Extent
from transforms.kraft.replay.image import Log


def hold(rows: DataFrame) -> DataFrame:
    """The rows, made once."""
    return rows.localCheckpoint()


def held(log: Log) -> Log:
    """The log with its rows made once."""
    return Log(hold(log.events), hold(log.partition_records))


def held_log(records: DataFrame, extents: Mapping[str, Extent], base: Log | None = None) -> Log:
    """`Log.of` these records, with all rows made once."""
    return held(Log.of(records, extents, base, hold))
