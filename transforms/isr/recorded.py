"""The changes of partitions that a run examines: those that it read itself, and those that an earlier run remembered.

hourly.RECORD identifies a change: in a log that was formatted again, offsets and topic ids can repeat, times cannot.
"""

from __future__ import annotations

import polars as pl

from transforms.isr.hourly import RECORD
from transforms.isr.violations import JUDGED, is_needed


def judged_of(changes: pl.DataFrame, end: int | None) -> pl.DataFrame:
    """Of rows of gold isr_history those that a rule looks at: columns JUDGED.

    An election that can have lost data is open until it is healed, however long ago it was. `end` is the append time of the
    log's newest record (ms).
    """
    return changes.filter(is_needed(end)).select(*JUDGED)


def once(changes: pl.DataFrame) -> pl.DataFrame:
    """Changes without those that are there twice: two runs at the same time may both have remembered one."""
    return changes.unique([*RECORD], keep="first", maintain_order=True)
