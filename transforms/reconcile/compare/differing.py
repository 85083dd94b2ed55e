"""A differing row as the rules see it: both sides, where each was written, and its versions in KRaft around M."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.entities import ENTITIES, Entity
from transforms.reconcile.compare.home import homes

_ENTITIES: Mapping[str, Entity] = {entity.name: entity for entity in ENTITIES}
# These columns of a partition stand in its topic's znode; the others in its own state znode.
ASSIGNMENT = frozenset({"replicas", "adding_replicas", "removing_replicas"})


@dataclass(frozen=True)
class RowVersion:
    """A KRaft state of the row, from a record's offset on; `removed` when that record removed it."""

    from_offset: int
    row: dict[str, Any]
    removed: bool
    append_time: int | None
    created_offset: int | None


@dataclass(frozen=True)
class WrittenAt:
    """Where a value is in ZooKeeper and when that znode was last written (zxid; milliseconds)."""

    path: str | None
    mzxid: int | None
    mtime: int | None


@dataclass(frozen=True)
class DifferingRow:
    """A differing row with its story up to M and up to the committed end.

    `since` is the offset of the record that gave it the value at M (`at_migration`). `ever` is every value that KRaft gave the row up to
    M, in any of its lives; None if not all of them are known.
    """

    entity: Entity
    key: dict[str, Any]
    zk: dict[str, Any] | None
    kraft: dict[str, Any] | None
    at_migration: dict[str, Any] | None
    later: tuple[RowVersion, ...]
    tail: dict[str, Any] | None
    has_tail: bool
    ever_in_kraft: bool
    state: WrittenAt
    assignment: WrittenAt | None
    kraft_offset: int | None
    kraft_time: int | None
    comparable: bool
    created_offset: int | None = None
    ever: tuple[RowVersion, ...] | None = None
    since: int | None = None

    @property
    def made_again(self) -> bool:
        """True if KRaft removed the row after M, and has it."""
        return self.kraft is not None and any(version.removed for version in self.later)

    def changed_since(self, column: str) -> bool:
        """True if the row was there at M with another value of the column."""
        now, then = self.kraft, self.at_migration
        return now is not None and then is not None and not same(self.entity, column, now[column], then[column])

    def written(self, column: str | None) -> WrittenAt:
        """Where a column was read from; for the whole row (None), the znode that was written last."""
        if self.assignment is None or (column is not None and column not in ASSIGNMENT):
            return self.state
        if column is None:
            return WrittenAt(self.state.path, *self._newest())
        return self.assignment

    def _newest(self) -> tuple[int | None, int | None]:
        both = [written for written in (self.state, self.assignment) if written is not None]
        zxids = [written.mzxid for written in both if written.mzxid is not None]
        times = [written.mtime for written in both if written.mtime is not None]
        return max(zxids, default=None), max(times, default=None)


def same(entity: Entity, column: str, left: Any, right: Any) -> bool:
    """Equal values of a column, floats within the column's tolerance."""
    tolerance = entity.tolerance.get(column)
    # NaN and the infinities are spelled as texts: JSON has no numbers for them.
    if tolerance is None or not (isinstance(left, int | float) and isinstance(right, int | float)):
        return bool(left == right)
    return bool(abs(left - right) <= tolerance * max(1.0, abs(left)))


def read(
    raw: Mapping[str, Any], migration_offset: int, committed_end: int, history_from: int | None = None
) -> DifferingRow:
    """Read a row of `differing_rows`; `migration_offset` is inclusive, `committed_end` exclusive.

    `earlier`, where a row has it, are its versions up to `migration_offset` as far back as the log goes, removals among them.
    `history_from` is the offset from which on the log is complete (0, or its base checkpoint's); None when
    that is not known.
    """
    versions = [_version(v) for v in raw["versions"] or () if not _of_an_earlier_life(v, raw, migration_offset)]
    before = [v for v in versions if v.from_offset <= migration_offset]
    later = tuple(v for v in versions if v.from_offset > migration_offset)
    kraft = _load(raw["kraft_row"])
    at_migration = kraft if not later else None
    if before:
        at_migration = None if before[-1].removed else before[-1].row
    tail = [v for v in versions if v.from_offset >= committed_end]
    committed = [v for v in versions if v.from_offset < committed_end]
    last = committed[-1] if committed else None
    return DifferingRow(
        entity=_ENTITIES[raw["entity"]],
        key=json.loads(raw["key"]),
        zk=_load(raw["zk_row"]),
        kraft=kraft,
        at_migration=at_migration,
        later=later,
        tail=None if not tail or tail[-1].removed else tail[-1].row,
        has_tail=bool(tail),
        ever_in_kraft=kraft is not None or bool(versions),
        state=WrittenAt(raw["zk_path"], raw["zk_mzxid"], raw["zk_mtime"]),
        assignment=_assignment(raw),
        kraft_offset=raw["kraft_offset"] if raw["kraft_offset"] is not None else (last.from_offset if last else None),
        kraft_time=raw["kraft_append_time"] or (last.append_time if last else None),
        comparable=raw["comparable"],
        created_offset=raw["kraft_created_offset"],
        ever=_ever(raw, migration_offset, history_from),
        since=before[-1].from_offset if before else None if later else raw["kraft_offset"],
    )


def _ever(raw: Mapping[str, Any], migration_offset: int, history_from: int | None) -> tuple[RowVersion, ...] | None:
    """All known versions up to M, or the only one of a row that one record made and none changed."""
    made, kraft = raw["kraft_created_offset"], _load(raw["kraft_row"])
    known = [_version(v) for v in raw.get("earlier") or () if v["from_offset"] <= migration_offset]
    if known:
        first = known[0].from_offset
        # A row in a base checkpoint, or made before its known history, had unknown values.
        begins_before = history_from is None or first < history_from or (made is not None and made < first)
        return None if begins_before else tuple(known)
    if kraft is None or made is None or made != raw["kraft_offset"] or history_from is None or made < history_from:
        return None
    if any(v["from_offset"] < made for v in raw["versions"] or ()):
        return None
    return (RowVersion(made, kraft, False, raw["kraft_append_time"], made),) if made <= migration_offset else ()


def _assignment(raw: Mapping[str, Any]) -> WrittenAt | None:
    if raw["zk_assignment_mzxid"] is None:
        return None
    topic = homes(raw["entity"], json.loads(raw["key"]))[-1]
    return WrittenAt(topic, raw["zk_assignment_mzxid"], raw["zk_assignment_mtime"])


def _of_an_earlier_life(version: Mapping[str, Any], raw: Mapping[str, Any], migration_offset: int) -> bool:
    """A removal up to `migration_offset` of a row that was created again under another id: it proves nothing about the present row.

    A later one is kept: ZooKeeper may have it already, and the new row not yet.
    """
    born, at = raw["kraft_created_offset"], version["from_offset"]
    again = raw["kraft_row"] is not None and born is not None and at < born
    return bool(version["removed"]) and again and at <= migration_offset


def _version(value: Mapping[str, Any]) -> RowVersion:
    return RowVersion(
        value["from_offset"],
        json.loads(value["row"]),
        value["removed"],
        value["from_append_time"],
        value["created_offset"],
    )


def _load(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    row: dict[str, Any] = json.loads(text)
    return row
