"""Which part of a log takes effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Ranges = Sequence[tuple[int, int | None]]


def within(offset: int, ranges: Ranges) -> bool:
    """True if the offset is in one of these ranges; both ends inclusive, None is the end of the log."""
    return any(begin <= offset and (last is None or offset <= last) for begin, last in ranges)


@dataclass(frozen=True)
class Extent:
    """Which part of a cluster's log is applied.

    Records from offset `start` (inclusive) to `end` (exclusive) are, but for those in `discarded`: offset ranges with
    both ends inclusive (None: to the end of the log), of transactions that were aborted or are still open. With a `base`
    (the exclusive end offset of a checkpoint) the checkpoint's records come first.
    """

    end: int
    start: int = 0
    base: int | None = None
    discarded: Ranges = ()
