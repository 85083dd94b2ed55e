"""Frames with the same columns, put together."""

from __future__ import annotations

from pyspark.sql import DataFrame


def union_all(frames: list[DataFrame]) -> DataFrame:
    """Union of frames with the same columns.

    In halves: Spark looks through a whole plan each time something is added to it, so that one by one is quadratic.
    """
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return union_all(frames[:middle]).unionByName(union_all(frames[middle:]))
