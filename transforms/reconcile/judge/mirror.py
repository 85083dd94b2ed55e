"""How far ZooKeeper has come according to `/migration`, compared with the log's own times (S§4.4, S§7.3)."""

from __future__ import annotations

from dataclasses import dataclass

from transforms.kraft.release import before
from transforms.kraft.replay.extent import Ranges
from transforms.kraft.side import KraftSide
from transforms.reconcile.compare.context import CLOCK_MARGIN_MS
from transforms.reconcile.judge.facts import LagMeasure
from transforms.reconcile.judge.given import Given, Row
from transforms.reconcile.judge.skew import OneByOne


@dataclass(frozen=True)
class MirrorPosition:
    """`lag` if `/migration` shows it; otherwise the offset up to which ZooKeeper must have everything, and the load's end."""

    lag: LagMeasure | None = None
    mirrored_offset: int | None = None
    loaded_at: int | None = None


@dataclass(frozen=True)
class Mirrored:
    """`/migration`: its offset (inclusive), the log's end (exclusive), when a write is surely in (ms).

    `aborted` are the offsets of transactions whose records ZooKeeper never gets.
    """

    offset: int
    log_end: int
    written_by: int = 0
    aborted: Ranges = ()


def mirrored(given: Given) -> Mirrored | None:
    """`/migration`, as it was read and as it was compared; None without a log, or an offset in it."""
    side, offset = given.side, (given.zookeeper or {}).get("kraft_metadata_offset")
    if side is None or offset is None or offset < 0:
        return None
    written = (given.compared or {}).get("migration_mtime")
    surely = 0 if written is None else written - CLOCK_MARGIN_MS
    # To the log's very end: a copy that can't prove its tail committed must not make the lag look small.
    return Mirrored(offset, side.plan.leading.end, surely, side.transactions.aborted)


def one_by_one(given: Given) -> OneByOne | None:
    """The changes that the compared tree received one by one (S§5.2).

    They begin with the leader that mirrored last: its full sync wrote everything before. None before the load, and in 3.4,
    whose log has the load after its only state record.
    """
    side, znodes = given.side, given.compared or {}
    begun = None if side is None else side.dual_write()
    offset, mzxid = znodes.get("kraft_metadata_offset"), znodes.get("migration_mzxid")
    if side is None or begun is None or offset is None or mzxid is None or not side.shows_waiting:
        return None
    starts = [start for _, start in side.plan.leading.epoch_starts if start <= offset]
    return OneByOne(max([begun[0], *starts]), offset, mzxid)


def mirror_position(times: Row | None, given: Given, kafka_version: str | None) -> MirrorPosition:
    """How far ZooKeeper is, from a row of `append_times` and the release that wrote the log.

    3.4 never moves `/migration`'s offset, but writes the znode with every change (S§4.4).
    """
    znodes, side = given.zookeeper or {}, given.side
    offset, written = znodes.get("kraft_metadata_offset"), znodes.get("migration_mtime")
    if side is None or offset is None or offset < 0:
        return MirrorPosition()
    times = times or dict.fromkeys(("newest", "oldest_behind", "at_migration", "before_written")) | {"changes": 0}
    if before(kafka_version, 3, 5):
        return MirrorPosition(None, max(offset, times["before_written"] or 0), times["at_migration"])
    return MirrorPosition(_lag(times, side, offset, written))


def _lag(times: Row, side: KraftSide, offset: int, written: int | None) -> LagMeasure:
    newest, oldest, appended = times["newest"], times["oldest_behind"], times["at_migration"]
    records = side.plan.leading.end - 1 - offset
    return LagMeasure(
        records=records if records >= 0 else None,
        seconds=0.0 if oldest is None else (newest - oldest) / 1000,
        silence=None if newest is None or written is None else (newest - written) / 1000,
        changes=times["changes"],
        mirrored_age=None if newest is None or appended is None else (newest - appended) / 1000,
    )
