"""The content of ZooKeeper's transaction logs, for a cluster whose data folder was read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from schemas.bronze import ZK_TRANSACTIONS
from schemas.silver import BARRIERS, ZOOKEEPER_WRITES
from transforms.frames import columns_of, from_arrow
from transforms.reconcile.judge.given import Given
from transforms.reconcile.judge.lag_series import oldest_brought
from transforms.reconcile.judge.znode_look import TransactionLook
from transforms.reconcile.judge.zookeeper_writes import Logged, holes_of
from transforms.units import Feed, UnitKind

_BARRIERS: pl.Schema = columns_of(BARRIERS.columns, "cluster", "run_id")
_WRITES: pl.Schema = columns_of(ZOOKEEPER_WRITES.columns, "cluster", "run_id")
# Barriers have numbers only.
_UNREAD = "ZooKeeper's transaction logs could not be read when its barriers were looked for. Run again"
_TRANSACTIONS: pl.Schema = columns_of(ZK_TRANSACTIONS.columns, "cluster", "run_id")


class UnreadLogsError(ValueError):
    """ZooKeeper's transaction logs could not be read when a table was made of them; the message is for a person."""

    for_the_user = True


@dataclass(frozen=True)
class Written:
    """`barriers` and `writes` are silver rows, `holes` where the logs lack transactions; the looks have seen all transactions.

    `born` is when the log began (append time of its first record that the run itself reads, ms), None without a log;
    `offsets` are those whose append times the series of waiting times asks for.
    """

    barriers: pl.DataFrame
    writes: pl.DataFrame
    logged: Logged = field(default_factory=Logged)
    look: TransactionLook = field(default_factory=TransactionLook)
    born: int | None = None
    offsets: frozenset[int] = frozenset()
    holes: list[dict[str, Any]] = field(default_factory=list)


def written_of(feed: Feed, given: Given) -> Written:
    """Read the writes to ZooKeeper. Raises UnreadLogsError where a table lacks them because they could not be read."""
    transactions, writes = feed.batches(UnitKind.TRANSACTIONS), feed.batches(UnitKind.WRITES)
    logged, look = Logged(), TransactionLook()
    for batch in transactions:
        rows = _read(from_arrow(batch, _TRANSACTIONS))
        logged.add(rows)
        look.add(rows)
    known, made = _read(from_arrow(writes, _WRITES)), _read(barriers_of(feed))
    milestones = given.side.milestones if given.side else ()
    born = milestones[0]["append_time"] if milestones and given.reads_data_folder else None
    holes = holes_of(known)
    offsets = () if born is None else oldest_brought(made, born, holes)
    return Written(made, known, logged, look, born, frozenset(offsets), holes)


def _read(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows. One without a zxid stands for logs that could not be read."""
    failed = rows.filter(pl.col("zxid").is_null())
    if failed.height:
        raise UnreadLogsError(failed["type"][0] if "type" in failed.columns else _UNREAD)
    return rows


def barriers_of(feed: Feed) -> pl.DataFrame:
    """Rows of silver barriers."""
    return from_arrow(feed.batches(UnitKind.BARRIERS), _BARRIERS)
