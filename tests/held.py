"""Rows that several queries of a test read, held as a run holds them: otherwise each query makes them anew."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame

from jobs.runtime.spark import reused
from transforms.kraft.replay.extent import Extent
from transforms.kraft.replay.image import Log

# As a run over small clusters does.
hold = partial(reused, small=True)


def held(log: Log) -> Log:
    """The log with its rows made once."""
    return Log(hold(log.events), hold(log.partition_records))


def held_log(records: DataFrame, extents: Mapping[str, Extent], base: Log | None = None) -> Log:
    """`Log.of` these records, with all rows made once."""
    return held(Log.of(records, extents, base, hold))
