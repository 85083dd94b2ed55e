"""The changes of partitions that a run examines: those that it read itself, and those that an earlier run remembered.

hourly.RECORD identifies a change: in a log that was formatted again, offsets and topic ids can repeat, times cannot.
"""

from __future__ import annotations

import polars as pl

from transforms.isr.hourly import RECORD
from transforms.isr.violations import JUDGED, is_needed
from transforms.kraft.side import LEADER_CHANGE, KraftSide


def log_begun(side: KraftSide) -> int:
    """When the log began (ms), if known: a quorum that was formatted again also has the history of another log."""
    first = next((m for m in side.milestones if m["type"] == LEADER_CHANGE and m["checkpoint_offset"] is None), None)
    return first["append_time"] if first is not None and first["offset"] == 0 else 0


def judged_of(changes: pl.DataFrame, end: int | None) -> pl.DataFrame:
    """Of rows of gold isr_history those that a rule looks at: columns JUDGED.

    An election that can have lost data is open until it is healed, however long ago it was. `end` is the append time of the
    log's newest record (ms).
    """
    return changes.filter(is_needed(end)).select(*JUDGED)


def once(changes: pl.DataFrame) -> pl.DataFrame:
    """Changes without those that are there twice: two runs at the same time may both have remembered one."""
    return changes.unique([*RECORD], keep="first", maintain_order=True)
