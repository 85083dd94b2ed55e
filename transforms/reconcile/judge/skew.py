"""How far ZooKeeper's clock is from the controllers', told by what was mirrored (S§7.3, DUR-04)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

# Fewer changes than this say nothing of a clock: one write that was repeated late would count as skew.
_ENOUGH = 5


@dataclass(frozen=True)
class ClockSkew:
    """ZooKeeper's clock minus the controllers', in milliseconds: the median over `pairs` changes and its spread.

    `spread` is how far half of the changes lie from the median at most. The time that mirroring takes is part of the
    median, so it is an upper bound of the skew by some milliseconds in a healthy cluster, by more in one that lags.
    """

    median: float
    spread: float
    pairs: int


def clock_skew(times: Iterable[tuple[int, int]]) -> ClockSkew | None:
    """Estimate the skew from (append time of the record, mtime of the znode that holds it) of the same changes.

    Give changes that dual writing mirrored, each once: what the load copied is older than its record. None when there are
    too few of them to tell.
    """
    apart = [written - appended for appended, written in times]
    if len(apart) < _ENOUGH:
        return None
    middle = median(apart)
    return ClockSkew(middle, median(abs(value - middle) for value in apart), len(apart))
