"""A live ZooKeeper tree as Arrow batches: `zookeeper_walk` with the columns of bronze."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from jobs.sources.zookeeper.walk import LiveSettings, WalkSummary, walk
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.storage.limits import groups, znode_bytes

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
    for rows in groups(walk(settings, redactor, summary, progress), batch_rows, znode_bytes):
        yield znode_batch(rows)
