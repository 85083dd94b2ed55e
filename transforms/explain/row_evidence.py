"""One row's story, built from a finished run's evidence: both values, why they differ, and the records and transactions
that made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from schemas.report import DivergenceRow
from transforms.explain.keys import RowKey
from transforms.explain.records import VersionAfter, state_at
from transforms.explain.text import Explanation, Side
from transforms.explain.timeline import BarrierPassed, row_text, timeline
from transforms.explain.writes import CREATES, ZnodeWrite, session_writers, writes
from transforms.explain.znodes import znode_paths
from transforms.kraft.side import KraftSide
from transforms.reconcile.compare.canonical import key_json
from transforms.report.printable import visible
from transforms.times import utc_time

_KRAFT_ONLY = "kraft_only"


@dataclass(frozen=True)
class RowEvidence:
    """A finished run's evidence about a row.

    `mode` is the report's, `mirrored_offset` `/migration`'s as it was read. `side` is the run's log, None without one, `versions`
    the row after each record that made it, `now` the silver row of each side, `differences` the run's divergences of it, `writes`
    what ZooKeeper's transactions did to its znodes, `barriers` those of its records (`barriers_passed`). `has_transactions` is
    false where the run read no transaction logs, `compared` where it did not compare the two sides. `unread` are znodes that may hold
    the row and could not be read, with the reason.
    """

    cluster: str
    run_id: str
    mode: str
    mirrored_offset: int | None = None
    side: KraftSide | None = None
    versions: Sequence[VersionAfter] = ()
    now: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    differences: Sequence[DivergenceRow] = ()
    writes: Sequence[ZnodeWrite] = ()
    barriers: Sequence[BarrierPassed] = ()
    has_transactions: bool = False
    compared: bool = True
    unread: Sequence[str] = ()

    @property
    def ever(self) -> bool:
        """False when there never was such a row."""
        return bool(self.versions or self.now or any(write.row is not None for write in self.writes))


def explanation_of(row: RowKey, found: RowEvidence, as_of: int | None = None) -> Explanation:
    """The row's story, with KRaft's row after the offset `as_of` (inclusive) if given."""
    return Explanation(
        row=row,
        cluster=found.cluster,
        run_id=found.run_id,
        sides=[_zookeeper_side(row, found), _kraft_side(row, found)],
        differences=found.differences,
        steps=timeline(row, found.versions, found.writes, found.barriers),
        notes=_notes(row, found),
        as_of=None if as_of is None or found.side is None else _side_at(row, found.side, found.versions, as_of),
        uncompared=_uncompared(row, found),
    )


def _uncompared(row: RowKey, found: RowEvidence) -> str:
    if not found.compared:
        return "Not compared: this run did not compare the two sides"
    if found.unread:
        return "Not compared: a znode of this row could not be read"
    flag = row.entity.comparable_flag
    if flag is not None and any(side.get(flag) is False for side in found.now.values()):
        return "Not comparable: at least one side holds ciphertext"
    return ""


def rows_of(row: RowKey, rows: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Silver's row of each side among rows of its entity."""
    mine = rows.filter(key_json(row.entity) == row.canonical)
    return {each["source"]: each for each in mine.iter_rows(named=True)}


def znode_writes(row: RowKey, logged: pl.DataFrame, known: pl.DataFrame) -> list[ZnodeWrite]:
    """What ZooKeeper's transactions did to the row's znodes: `logged` are rows of bronze zk_transactions, `known` of silver
    zookeeper_writes.

    Of other znodes, what shares a transaction with the row's is read, and what their sessions made at `/controller` and below
    `/brokers/ids`; of the kinds, those of the row's transactions and all claims.
    """
    paths = znode_paths(row)
    mine = logged.filter(pl.col("path").is_in(paths))
    operations = logged.filter(pl.col("zxid").is_in(mine["zxid"].unique().implode()) & _tells(paths))
    if operations.is_empty():
        return []
    births = logged.filter(_births() & pl.col("session").is_in(mine["session"].unique().implode()))
    kinds = known.filter(pl.col("zxid").is_in(mine["zxid"].unique().implode()))
    claimed = known.filter(pl.col("kind") == "claim")["zxid"].min()
    return writes(
        row,
        operations.to_dicts(),
        paths,
        dict(kinds.select("zxid", "kind").iter_rows()),
        session_writers(births.sort("zxid").to_dicts()),
        None if claimed is None else int(claimed),  # type: ignore[arg-type]
    )


def _tells(paths: Sequence[str]) -> pl.Expr:
    # The first two operations of a multi show whether it is KRaft's envelope.
    return pl.col("path").is_in(paths) | (pl.col("multi_index") <= 1)


def _births() -> pl.Expr:
    """Znodes that name the session's owner, where they were made."""
    owned = (pl.col("path") == "/controller") | pl.col("path").str.starts_with("/brokers/ids/")
    return pl.col("type").is_in(CREATES) & ~pl.col("failed") & owned


def barriers_passed(barriers: pl.DataFrame, offsets: Sequence[int]) -> list[BarrierPassed]:
    """Of all writes of /migration (silver `barriers`), the first one that covers each of these offsets; each once."""
    in_order = barriers.drop_nulls("kraft_metadata_offset").sort("zxid")
    # The first one at or above an offset is the first at which the highest so far is.
    highest = in_order["kraft_metadata_offset"].cum_max()
    places = highest.search_sorted(pl.Series(offsets, dtype=pl.Int64), side="left").unique().sort()
    rows = in_order[places.filter(places < len(in_order)).to_list()]
    return [
        BarrierPassed(r["zxid"], r["time"], r["kraft_metadata_offset"], r["kraft_controller_id"])
        for r in rows.iter_rows(named=True)
    ]


def _zookeeper_side(row: RowKey, found: RowEvidence) -> Side:
    now = found.now.get("zookeeper")
    if found.mode == _KRAFT_ONLY:
        return Side("ZooKeeper", "not collected", "")
    if now is None and found.unread:
        return Side("ZooKeeper", "unknown", f"could not be read: {'; '.join(found.unread)}")
    if now is None:
        return Side("ZooKeeper", row_text(row, None), "")
    place = f"{visible(now['zk_path'] or '')}, written last by zxid {now['zk_mzxid']:#x} at {utc_time(now['zk_mtime'])}"
    return Side("ZooKeeper", row_text(row, now), place)


def _kraft_side(row: RowKey, found: RowEvidence) -> Side:
    if found.side is None:
        return Side("KRaft", "not collected", "")
    return _side_at(row, found.side, found.versions, found.side.committed.proved_exclusive - 1)


def _side_at(row: RowKey, side: KraftSide, versions: Sequence[VersionAfter], offset: int) -> Side:
    version = state_at(versions, offset, side.transactions.discarded_at(offset))
    proved = "" if offset < side.committed.proved_exclusive else ", not proved committed"
    name = f"KRaft after offset {offset} (inclusive{proved})"
    waiting = _open_transaction(side, versions, offset)
    if version is None:
        return Side(name, row_text(row, None), waiting or "no record of it up to there")
    did = "removed at" if version.row is None else "since"
    place = f"{did} offset {version.offset}, epoch {version.epoch}"
    return Side(name, row_text(row, version.row), f"{place}; {waiting}" if waiting else place)


def _open_transaction(side: KraftSide, versions: Sequence[VersionAfter], offset: int) -> str:
    """Say so when records of the row up to the offset were not in force there: their transaction ended later."""
    for begin, end in side.transactions.discarded_at(offset):
        last = offset if end is None else min(end, offset)
        if any(begin <= version.offset <= last for version in versions):
            ended = "is open" if end is None else f"ended at offset {end}"
            return f"its records from offset {begin} on were not in force: their transaction {ended}"
    return ""


def _notes(row: RowKey, found: RowEvidence) -> list[str]:
    notes = []
    if found.mirrored_offset is not None and found.side is not None:
        notes.append(
            f"/migration is at offset {found.mirrored_offset}: what the log did up to there (inclusive) should be in ZooKeeper."
        )
    end = None if found.side is None else found.side.committed.proved_exclusive
    if end is not None and any(version.offset >= end for version in found.versions):
        notes.append(f"Records from offset {end} on are not proved committed.")
    if found.mode != _KRAFT_ONLY and not found.has_transactions:
        notes.append(
            "ZooKeeper's transactions are missing: the run had no transaction logs (zookeeper.folder has them)."
        )
    elif found.mode != _KRAFT_ONLY:
        notes.append("ZooKeeper's transactions are listed from where the copied transaction logs begin.")
    if found.now.get("zookeeper") is not None:
        notes += [f"Not all of ZooKeeper's row could be read: {text}." for text in found.unread]
    if row.entity.name == "brokers" and found.writes:
        notes.append("A broker's znode disappears with its session. That is not a write, so it is not listed.")
    return notes
