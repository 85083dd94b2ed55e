"""A live ZooKeeper tree as Arrow batches: `zookeeper_walk` with the columns of bronze."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from jobs.sources.zookeeper.walk import LiveSettings, WalkSummary, walk
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.read.znode import Znode

BATCH_ROWS = 10_000


def read_live(
    settings: LiveSettings,
    redactor: Redactor,
    summary: WalkSummary | None = None,
    progress: Callable[[int], None] | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Yield a live tree as batches of `ZNODE_COLUMNS`; memory holds one batch and the paths still to read.

    `summary` is filled as the walk goes, complete when the batches are used up. Raises ZooKeeperWalkError.
    """
    rows: list[Znode] = []
    for row in walk(settings, redactor, summary, progress):
        rows.append(row)
        if len(rows) == batch_rows:
            yield znode_batch(rows)
            rows = []
    if rows:
        yield znode_batch(rows)
