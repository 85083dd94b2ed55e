"""The inputs of a classification: offsets, transactions, clocks, and the places looked up in the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from transforms.reconcile.compare.differing import WrittenAt
from transforms.reconcile.compare.home import parent
from transforms.reconcile.compare.release_limits import Limits

# Clocks of ZooKeeper's leader and of the controllers differ, and a mirrored write takes time: as long as neither was
# measured, only a znode written this much later than KRaft's last change of the row was certainly not written because
# of it.
CLOCK_MARGIN_MS = 60_000
# A row that lags longer than `thresholds.lag_seconds` is a warning; this is its default.
_LAG_LIMIT_MS = 60_000


@dataclass(frozen=True)
class Clocks:
    """ZooKeeper's times compared with the log's, in milliseconds.

    `ahead_ms` is by how much a mirrored znode's mtime is usually later than its record's append time; a time further
    from that than `margin_ms` is not of the same change.
    """

    ahead_ms: int = 0
    margin_ms: int = CLOCK_MARGIN_MS

    def after(self, written: int | None, appended: int | None) -> bool:
        """The znode was surely written later than what the record changed; false if a time is unknown."""
        return written is not None and appended is not None and written - self.ahead_ms > appended + self.margin_ms

    def before(self, written: int | None, appended: int | None) -> bool:
        """The znode was surely written earlier than the record; false if a time is unknown."""
        return written is not None and appended is not None and written - self.ahead_ms < appended - self.margin_ms


@dataclass(frozen=True)
class Children:
    """A znode's list of children: the transaction that changed it last, and how many were ever removed from it.

    `lost_a_child` is true when that last change was a removal: nothing that exists was made in it.
    """

    pzxid: int | None
    removed: int | None
    lost_a_child: bool = False


@dataclass(frozen=True)
class Homes:
    """Znodes that would contain the rows that ZooKeeper lacks, as far as they were looked up.

    `written` are those that exist, by path; `emptied` are znodes that lost a child after `/migration`'s last write; `above` are
    the znodes over the places, by path. `gone` has the highest znode that is missing above a place whose parent is missing too.
    `looked_up` is false until a look-up was made.
    """

    written: Mapping[str, WrittenAt] = field(default_factory=dict)
    emptied: frozenset[str] = frozenset()
    above: Mapping[str, Children] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)
    looked_up: bool = False

    def over(self, place: str) -> str:
        """The lowest znode above a place that exists: from its list of children the place went, if it was ever there."""
        return parent(self.gone.get(place, place))


@dataclass(frozen=True)
class Context:
    """Facts of the run for the comparison: offsets are of the KRaft log, zxids of ZooKeeper, times in milliseconds.

    `migration_offset` is M (inclusive), or its substitute if the release does not move it; `load_time_ms` is the end of
    the load, `claim_zxid` the czxid of a KRaft controller's `/controller`; `frozen` is true when M does not move
    because the migration is finalised. `limits` is what the release fails to migrate, mirror or name correctly.

    `after_load` is a transaction after the load, if the claim before it is not known any more (`load_claim`).
    `removed` are znodes that somebody removed with all that was below them: of topics, and folders that Kafka never removes.
    `emptied` is true when none of the topics that the load read is left, in a release whose own full sync may have deleted them.
    `unread` are znodes that could not be read (CAP-07): what they and those below them hold is unknown.
    `load` are the first and last offset of the load, `load_claim` the claim before it if none came since.
    `history_from` is the offset from which on the log is complete (None: unknown). `transactions_known` is true when
    ZooKeeper's transaction logs were read from the claim on, without a hole: then every write outside `foreign_zxids` is KRaft's, also
    of earlier claims from `known_from` on, the first that the logs have.
    A row that lags longer than `lag_limit_ms` is a warning.
    """

    frozen: bool
    migration_offset: int
    migration_mzxid: int | None
    committed_end: int
    load_time_ms: int | None
    newest_append_time_ms: int | None
    pending_deletes: frozenset[str] = frozenset()
    foreign_zxids: frozenset[int] = frozenset()
    foreign_paths: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    emptied: bool = False
    unread: frozenset[str] = frozenset()
    claim_zxid: int | None = None
    limits: Limits = field(default_factory=Limits)
    homes: Homes = field(default_factory=Homes)
    clocks: Clocks = field(default_factory=Clocks)
    load: tuple[int, int] | None = None
    load_claim: int | None = None
    after_load: int | None = None
    history_from: int | None = None
    transactions_known: bool = False
    known_from: int | None = None
    lag_limit_ms: int = _LAG_LIMIT_MS

    @property
    def begins_after_migration(self) -> int | None:
        """`history_from` if it is so late that KRaft's state at M is unknown; else None."""
        begins = self.history_from
        # What a log begins with is the state just before that offset.
        return begins if begins is not None and begins > self.migration_offset + 1 else None

    @property
    def passed(self) -> str:
        """Up to where ZooKeeper must have everything, in words."""
        if self.limits.offset_moves:
            return f"/migration has passed {self.migration_offset}"
        return f"by the time of /migration's last write everything up to offset {self.migration_offset} was mirrored"
