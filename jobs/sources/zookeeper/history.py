"""ZooKeeper's transaction logs as Arrow batches: every operation, the barriers, the writes by kind.

Made for one Spark worker each (`mapInArrow`): the logs pass through the worker, never through the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from jobs.sources.zookeeper.folder import read_log
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.storage.history import History, Write, transaction_batch

BATCH_ROWS = 10_000
# While KRaft owns ZooKeeper these are the writes somebody should look at.
SUSPICIOUS: frozenset[str] = frozenset({"foreign", "envelope_failed", "rollback", "claim"})


def read_transaction_rows(
    location: str | Path, redactor: Redactor, log_location: str | Path | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield every operation of the logs as rows of bronze `zk_transactions` (without RUN_COLUMNS)."""
    transactions = read_log(location, log_location=log_location)
    while part := list(islice(transactions, BATCH_ROWS)):
        yield transaction_batch(part, redactor)


def read_barriers(location: str | Path, log_location: str | Path | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the barriers as rows of `BARRIER_COLUMNS`, oldest first; one batch, maybe empty."""
    history = History()
    for _ in history.read(read_log(location, log_location=log_location)):
        pass
    yield history.barrier_batch()


def read_writes(
    location: str | Path, kinds: frozenset[str] = SUSPICIOUS, log_location: str | Path | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the writes of some kinds as rows of `WRITE_COLUMNS`, oldest first; one batch, maybe empty."""
    history = History()
    found: list[Write] = [
        write for write in history.read(read_log(location, log_location=log_location)) if write.kind in kinds
    ]
    yield history.write_batch(found)
