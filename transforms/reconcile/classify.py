"""Why a row differs (S§5.6): one pure function from a differing row to its divergences.

A difference is a defect only by rule. The rule needs three states of the row: ZooKeeper's, KRaft's at `/migration`'s
offset M, and every KRaft version since. What ZooKeeper holds of an older version is lag if the newer one is past M and
loss if it is not; what it holds of a newer one is in flight; what no version explains was written by someone else, or
was lost on the way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas import classes
from schemas.entities import ENTITIES, Entity

_ENTITIES: Mapping[str, Entity] = {entity.name: entity for entity in ENTITIES}
# Clocks of ZooKeeper's leader and of the controllers differ, and a mirrored write takes time: only a znode written
# this much later than KRaft's last change of the row was certainly not written because of it.
CLOCK_MARGIN_MS = 60_000
LAG_WARNING_MS = 60_000


@dataclass(frozen=True)
class Context:
    """What is known of the run: offsets are of the KRaft log, zxids of ZooKeeper, times in milliseconds.

    `migration_offset` is M (inclusive); `load_time` is when the load ended; `frozen` is true when M does not move because
    the migration is finalised.
    """

    frozen: bool
    migration_offset: int
    migration_mzxid: int | None
    committed_end: int
    load_time: int | None
    newest_append_time: int | None
    pending_deletes: frozenset[str] = frozenset()
    tokens_migrate: bool = True
    foreign_zxids: frozenset[int] = frozenset()
    foreign_paths: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Divergence:
    """One differing cell, or a missing row (`column` None). Values are JSON-ready."""

    entity: str
    key: dict[str, Any]
    column: str | None
    kind: str
    zk_value: Any
    kraft_value: Any
    class_: str
    severity: str
    explanation: str
    zk_path: str | None
    zk_mzxid: int | None
    kraft_offset: int | None


@dataclass(frozen=True)
class _Version:
    from_offset: int
    row: dict[str, Any]
    removed: bool
    append_time: int | None
    created_offset: int | None


@dataclass(frozen=True)
class _Row:
    """A differing row with its story cut at M and at the committed end."""

    entity: Entity
    key: dict[str, Any]
    zk: dict[str, Any] | None
    kraft: dict[str, Any] | None
    at_migration: dict[str, Any] | None
    later: tuple[_Version, ...]
    tail: dict[str, Any] | None
    has_tail: bool
    removed_offset: int | None
    ever_in_kraft: bool
    zk_path: str | None
    zk_mzxid: int | None
    zk_mtime: int | None
    kraft_offset: int | None
    kraft_time: int | None
    created_offset: int | None
    comparable: bool


def classify(raw: Mapping[str, Any], context: Context) -> Iterator[Divergence]:
    """Divergences of one row of `differing_rows`; nothing when the difference is only a tolerated one."""
    row = _read(raw, context)
    if row.zk is None and row.kraft is None:
        return
    if row.zk is None or row.kraft is None:
        yield _missing(row, context)
    else:
        yield from _cells(row, row.zk, row.kraft, context)
    if row.has_tail:
        yield from _tail(row)


def _read(raw: Mapping[str, Any], context: Context) -> _Row:
    versions = [_version(v) for v in raw["versions"] or () if not _of_an_earlier_life(v, raw)]
    before = [v for v in versions if v.from_offset <= context.migration_offset]
    later = tuple(v for v in versions if v.from_offset > context.migration_offset)
    kraft = _load(raw["kraft_row"])
    at_migration = kraft if not later else None
    if before:
        at_migration = None if before[-1].removed else before[-1].row
    tail = [v for v in versions if v.from_offset >= context.committed_end]
    committed = [v for v in versions if v.from_offset < context.committed_end]
    last = committed[-1] if committed else None
    return _Row(
        entity=_ENTITIES[raw["entity"]],
        key=json.loads(raw["key"]),
        zk=_load(raw["zk_row"]),
        kraft=kraft,
        at_migration=at_migration,
        later=later,
        tail=None if not tail or tail[-1].removed else tail[-1].row,
        has_tail=bool(tail),
        removed_offset=last.from_offset if last and last.removed else None,
        ever_in_kraft=kraft is not None or bool(versions),
        zk_path=raw["zk_path"],
        zk_mzxid=raw["zk_mzxid"],
        zk_mtime=raw["zk_mtime"],
        kraft_offset=raw["kraft_offset"] if raw["kraft_offset"] is not None else (last.from_offset if last else None),
        kraft_time=raw["kraft_append_time"] or (last.append_time if last else None),
        created_offset=raw["kraft_created_offset"],
        comparable=raw["comparable"],
    )


def _of_an_earlier_life(version: Mapping[str, Any], raw: Mapping[str, Any]) -> bool:
    """A removal before the row was made again, under another id: it says nothing of the row that lives now."""
    born = raw["kraft_created_offset"]
    return (
        bool(version["removed"]) and raw["kraft_row"] is not None and born is not None and version["from_offset"] < born
    )


def _version(value: Mapping[str, Any]) -> _Version:
    return _Version(
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


def _missing(row: _Row, context: Context) -> Divergence:
    kind = "kraft_only" if row.zk is None else "zk_only"
    verdict, why = _kraft_only(row, context) if row.zk is None else _zk_only(row, context)
    return _divergence(row, None, kind, row.zk, row.kraft, (verdict, why), context)


def _kraft_only(row: _Row, context: Context) -> tuple[str, str]:
    if _pending_delete(row, context):
        return classes.PENDING_DELETE, "its topic is in /admin/delete_topics"
    if row.at_migration is None:
        return _not_yet(row, context)
    if row_path(row.entity.name, row.key) in context.foreign_paths:
        return classes.FOREIGN_WRITE, "something other than the KRaft controller removed or rewrote its znode"
    if any(version.removed for version in row.later):
        return classes.IN_FLIGHT, "removed after /migration's offset and made again; ZooKeeper has the removal"
    mangled = _mangled(row)
    if mangled:
        return classes.LOAD_EXTRA, mangled
    return classes.LOST_WRITE, (
        f"KRaft has it since offset {row.kraft_offset}, /migration has passed {context.migration_offset}, "
        "and ZooKeeper does not have it"
    )


def _zk_only(row: _Row, context: Context) -> tuple[str, str]:
    if _pending_delete(row, context):
        return classes.PENDING_DELETE, "its topic is in /admin/delete_topics"
    if row.at_migration is not None and row.later:
        return _not_yet(row, context)
    if any(not version.removed for version in row.later):
        return classes.IN_FLIGHT, "made after /migration's offset and removed again; ZooKeeper has it for a moment"
    if _after_migration_write(row, context):
        return classes.FOREIGN_WRITE, _foreign(row, context)
    if row.removed_offset is not None:
        if _written_long_after(row):
            return (
                classes.FOREIGN_WRITE,
                f"KRaft removed it at offset {row.removed_offset}; the znode was written later",
            )
        return classes.LOST_WRITE, (
            f"KRaft removed it at offset {row.removed_offset}, /migration has passed {context.migration_offset}, "
            "and ZooKeeper still has it"
        )
    return _never_in_kraft(row, context)


def _never_in_kraft(row: _Row, context: Context) -> tuple[str, str]:
    written, loaded = row.zk_mtime, context.load_time
    if written is not None and loaded is not None and written > loaded + CLOCK_MARGIN_MS:
        return classes.FOREIGN_WRITE, "KRaft never had it and the znode was written after the load"
    if row.entity.name == "delegation_tokens" and not context.tokens_migrate:
        return classes.LOAD_LOSS, "Kafka before 3.6 does not migrate delegation tokens"
    return classes.LOAD_LOSS, "it was in ZooKeeper before the load, and KRaft never had it"


def _cells(row: _Row, zk_row: dict[str, Any], kraft_row: dict[str, Any], context: Context) -> Iterator[Divergence]:
    for column in row.entity.compared:
        zk, kraft = zk_row[column], kraft_row[column]
        if _same(row.entity, column, zk, kraft):
            continue
        yield _divergence(row, column, "differs", zk, kraft, _cell(row, column, zk, context), context)


def _cell(row: _Row, column: str, zk: Any, context: Context) -> tuple[str, str]:
    if not row.comparable:
        return classes.NOT_COMPARABLE, "at least one side holds ciphertext"
    if _pending_delete(row, context):
        return classes.PENDING_DELETE, "its topic is in /admin/delete_topics"
    if row.later and row.at_migration is None:
        # Made after /migration's offset: its znodes are written one after the other, and may be half there.
        return classes.IN_FLIGHT, "the row was made after /migration's offset and is being written"
    if row.later and row.at_migration is not None and _same(row.entity, column, zk, row.at_migration[column]):
        return _not_yet(row, context)
    if any(not v.removed and _same(row.entity, column, zk, v.row[column]) for v in row.later):
        return classes.IN_FLIGHT, "ZooKeeper has a version newer than /migration's offset"
    if _after_migration_write(row, context):
        return classes.FOREIGN_WRITE, _foreign(row, context)
    if not row.later and _written_long_after(row):
        return classes.FOREIGN_WRITE, "the znode was written long after KRaft's last change of the row"
    return classes.LOST_WRITE, (
        f"KRaft has this value since offset {row.kraft_offset} at the latest, and /migration has passed "
        f"{context.migration_offset}"
    )


def _tail(row: _Row) -> Iterator[Divergence]:
    """Differences that only records past the committed end make; a ZooKeeper row that has them proves nothing lost."""
    if row.tail in (row.kraft, row.zk) or row.zk != row.kraft:
        return
    why = (classes.UNCOMMITTED_TAIL, "only records past the proved committed end change it")
    if row.zk is None or row.tail is None:
        kind = "kraft_only" if row.zk is None else "zk_only"
        yield _build(row, None, kind, row.zk, row.tail, why, "info")
        return
    for column in row.entity.compared:
        if not _same(row.entity, column, row.zk[column], row.tail[column]):
            yield _build(row, column, "differs", row.zk[column], row.tail[column], why, "info")


def _not_yet(row: _Row, context: Context) -> tuple[str, str]:
    if context.frozen:
        return classes.EXPECTED_STALE, (
            f"changed at offset {row.kraft_offset}, after the migration was finalised; ZooKeeper stays at "
            f"{context.migration_offset}"
        )
    return classes.LAG, f"changed at offset {row.kraft_offset}; ZooKeeper is at {context.migration_offset}"


def _pending_delete(row: _Row, context: Context) -> bool:
    topic = row.key.get("topic") or (row.key.get("resource_name") if row.key.get("resource_type") == "TOPIC" else None)
    return topic in context.pending_deletes


def _after_migration_write(row: _Row, context: Context) -> bool:
    if row.zk_mzxid in context.foreign_zxids:
        return True
    return row.zk_mzxid is not None and context.migration_mzxid is not None and row.zk_mzxid > context.migration_mzxid


def _foreign(row: _Row, context: Context) -> str:
    if row.zk_mzxid in context.foreign_zxids:
        return f"the znode was written in transaction {row.zk_mzxid}, and not by the KRaft controller"
    return (
        f"the znode was written in transaction {row.zk_mzxid}, after /migration's last write "
        f"({context.migration_mzxid}), and no KRaft version of the row explains it"
    )


def _written_long_after(row: _Row) -> bool:
    if row.zk_mtime is None or row.kraft_time is None:
        return False
    return row.zk_mtime > row.kraft_time + CLOCK_MARGIN_MS


def _mangled(row: _Row) -> str | None:
    """Name the defect when the key is a percent-encoded name or an empty default (KAFKA-16222, KAFKA-16411)."""
    if row.entity.name == "scram_credentials":
        names = [row.key["user"]]
    elif row.entity.name == "client_quotas":
        names = [part["name"] for part in row.key["entity"]]
    else:
        return None
    if any(name == "" for name in names):
        return "the load stored a default entity as an empty name (KAFKA-16411)"
    if any(name and "%" in name for name in names):
        return "the load kept the percent-encoded name (KAFKA-16222)"
    return None


def _same(entity: Entity, column: str, left: Any, right: Any) -> bool:
    tolerance = entity.tolerance.get(column)
    if tolerance is None or left is None or right is None:
        return bool(left == right)
    return bool(abs(left - right) <= tolerance * max(1.0, abs(left)))


def _divergence(
    row: _Row, column: str | None, kind: str, zk: Any, kraft: Any, verdict: tuple[str, str], context: Context
) -> Divergence:
    return _build(row, column, kind, zk, kraft, verdict, _severity(row, column, zk, kraft, verdict[0], context))


def _severity(row: _Row, column: str | None, zk: Any, kraft: Any, class_: str, context: Context) -> str:
    if class_ == classes.LAG and context.newest_append_time is not None and row.kraft_time is not None:
        return "warning" if context.newest_append_time - row.kraft_time > LAG_WARNING_MS else "info"
    if not classes.CLASSES[class_].defect:
        return "info"
    if column is None:
        return row.entity.severity
    if isinstance(zk, list) and isinstance(kraft, list) and sorted(zk) == sorted(kraft):
        return "info" if column == "isr" else "warning"
    return row.entity.column_severity.get(column, row.entity.severity)


def _build(
    row: _Row, column: str | None, kind: str, zk: Any, kraft: Any, verdict: tuple[str, str], severity: str
) -> Divergence:
    class_, why = verdict
    return Divergence(
        entity=row.entity.name,
        key=report_key(row.entity.name, row.key),
        column=column,
        kind=kind,
        zk_value=_shown(row.entity, zk),
        kraft_value=_shown(row.entity, kraft),
        class_=class_,
        severity=severity,
        explanation=why,
        zk_path=row.zk_path,
        zk_mzxid=row.zk_mzxid,
        kraft_offset=row.kraft_offset,
    )


def _shown(entity: Entity, value: Any) -> Any:
    """A missing row shows its other side: the value itself when there is one compared column, else the object."""
    if isinstance(value, dict) and len(entity.compared) == 1:
        return value[entity.compared[0]]
    return value


def report_key(entity: str, key: dict[str, Any]) -> dict[str, Any]:
    """The key as report.json spells it: a quota's entity is an object from type to name."""
    if entity != "client_quotas":
        return key
    return {"entity": {part["type"]: part["name"] for part in key["entity"]}, "quota": key["quota"]}


def row_path(entity: str, key: dict[str, Any]) -> str | None:
    """The znode a row would be in, for the entities whose znode holds one row or one resource; None for others."""
    if entity == "topics":
        return f"/brokers/topics/{key['topic']}"
    if entity == "partitions":
        return f"/brokers/topics/{key['topic']}/partitions/{key['partition']}/state"
    if entity == "configs" and key["resource_type"] in ("TOPIC", "BROKER"):
        return f"/config/{key['resource_type'].lower()}s/{key['resource_name'] or '<default>'}"
    if entity == "delegation_tokens":
        return f"/delegation_token/tokens/{key['token_id']}"
    return None


SEVERITIES: Sequence[str] = ("critical", "error", "warning", "info")
