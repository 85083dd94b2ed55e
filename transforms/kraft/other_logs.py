"""Copies that carry the cluster's id and are of another log: controllers were formatted, and a majority of them began again.

Two copies of one log have the same record wherever both have one that is committed, and its later records are younger (S§2.10).
"""

from __future__ import annotations

from dataclasses import dataclass

from transforms.kraft.quorum import LogCopy, common_end
from transforms.times import utc_time

# So far may the clocks of two leaders, and the last records of one that was cut off, be apart.
CLOCKS_APART_MS = 60_000
_ANOTHER_LOG = "another log: "


@dataclass(frozen=True)
class Place:
    """A batch of a copy: an offset in it, its epoch, and its append time (ms)."""

    offset: int
    epoch: int
    append_time: int


def common_offset(copy: LogCopy, leading: LogCopy) -> int | None:
    """The newest offset that both copies have, in one epoch, if they are of one log; None if there is none."""
    end = common_end(copy, leading)
    start = max(copy.log_start or 0, leading.log_start or 0)
    return None if end is None or end <= start else end - 1


def differs_at(mine: Place | None, theirs: Place | None, leading: LogCopy) -> str | None:
    """Why a copy is of another log than the leading one, by the batches of both at their common offset."""
    if mine is None or theirs is None or (mine.epoch, mine.append_time) == (theirs.epoch, theirs.append_time):
        return None
    return (
        f"{_ANOTHER_LOG}its record at offset {mine.offset} is of epoch {mine.epoch}, {utc_time(mine.append_time)}, that of "
        f"{leading.name} of epoch {theirs.epoch}, {utc_time(theirs.append_time)}"
    )


def younger_than_later(copy: LogCopy, first: Place | None, leading: LogCopy) -> str | None:
    """The same for a copy that ends before the leading one begins: then all its records are older than the leading one's first."""
    if first is None or copy.last_append_time is None or copy.last_epoch is None or copy.last_epoch > first.epoch:
        return None
    if copy.last_append_time <= first.append_time + CLOCKS_APART_MS:
        return None
    return (
        f"{_ANOTHER_LOG}it ends at offset {copy.end - 1} in epoch {copy.last_epoch} and was written until "
        f"{utc_time(copy.last_append_time)}, while {leading.name} was at offset {first.offset} in epoch {first.epoch} already at "
        f"{utc_time(first.append_time)}"
    )


def lost_checkpoint(copy: LogCopy, leading: LogCopy) -> str | None:
    """The same for a copy with a checkpoint, which holds committed records alone, that the leading log has no longer."""
    newest = max((each for each in copy.checkpoints if each.complete), key=lambda each: each.offset, default=None)
    if newest is None or newest.offset <= (leading.log_start or 0):
        return None
    there = leading.epoch_at(newest.offset - 1)
    if there == newest.epoch or (there is None and newest.epoch >= (leading.last_epoch or 0)):
        return None
    theirs = f"ends at {leading.end - 1} in epoch {leading.last_epoch}" if there is None else f"has epoch {there} there"
    return (
        f"{_ANOTHER_LOG}its checkpoint holds what was committed up to offset {newest.offset - 1} in epoch {newest.epoch}, and "
        f"{leading.name} {theirs}"
    )
