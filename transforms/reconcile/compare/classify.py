"""Why a row differs (S§5.6): one pure function from a differing row to its divergences.

A rule decides whether a difference is a defect. It needs three states of the row: ZooKeeper's, KRaft's at `/migration`'s
offset M, and every KRaft version since. An older version in ZooKeeper is lag if the newer one is past M, else a
loss; a newer version is in flight; any other value was written by somebody else, or the change was lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from schemas import classes
from schemas.entities import Entity
from transforms.reconcile.compare import writers
from transforms.reconcile.compare.context import CLOCK_MARGIN_MS, Clocks, Context, Homes
from transforms.reconcile.compare.differing import DifferingRow, WrittenAt, read, same
from transforms.reconcile.compare.home import ancestors, homes
from transforms.reconcile.compare.names import mangled, mangled_by_load
from transforms.zookeeper.read.entities.producer_ids import BLOCK_WIDTH
from transforms.zookeeper.zxids import hexadecimal

__all__ = ["CLOCK_MARGIN_MS", "SEVERITIES", "Clocks", "Context", "Divergence", "Homes", "classify", "report_key"]


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
    lost_offset: int | None = None


def classify(raw: Mapping[str, Any], context: Context) -> Iterator[Divergence]:
    """Divergences of one row of `differing_rows`; nothing when the difference is only a tolerated one."""
    row = _as_loaded(read(raw, context.migration_offset, context.committed_end, context.history_from), context)
    if row.zk is not None and row.kraft is not None:
        yield from _cells(row, row.zk, row.kraft, context)
    elif row.zk is not None or row.kraft is not None:
        yield _missing(row, context)
    if row.has_tail:
        yield from _tail(row)


def _as_loaded(row: DifferingRow, context: Context) -> DifferingRow:
    """The row, with ZooKeeper's producer ids as the load took them (S§6).

    A block that KRaft wrote is read by its start, as one that it mirrors. But the load begins behind every block, also one of an earlier
    migration, and the full sync then leaves it (`ZkMigrationClient.migrateProducerId`, `KRaftMigrationZkWriter.handleProducerIdSnapshot`).
    """
    if row.entity.name != "producer_ids" or row.zk is None or context.load is None:
        return row
    first, last = context.load
    behind = {"next_producer_id": row.zk["next_producer_id"] + BLOCK_WIDTH}
    given = [(version.from_offset, version.row) for version in row.ever or ()]
    if row.since is not None and row.at_migration is not None:
        given.append((row.since, row.at_migration))
    loaded = any(first <= offset <= last and value == behind for offset, value in given)
    return replace(row, zk=behind) if loaded else row


def _missing(row: DifferingRow, context: Context) -> Divergence:
    kind = "kraft_only" if row.zk is None else "zk_only"
    verdict, why = _kraft_only(row, context) if row.zk is None else _zk_only(row, context)
    found = _divergence(row, None, kind, row.zk, row.kraft, (verdict, why), context)
    places = homes(row.entity.name, row.key)
    folder = context.homes.gone.get(places[-1]) if places and row.zk is None else None
    if verdict == classes.LOST_WRITE and row.zk is None and writers.may_be_taken(row, context):
        # It was or may have been mirrored, and taken away later: nothing was lost at the barriers around its record.
        found = replace(found, lost_offset=None)
    return replace(found, zk_path=folder) if folder else found


def _kraft_only(row: DifferingRow, context: Context) -> tuple[str, str]:
    if _is_unread(row, None, context):
        return _unread()
    if _pending_delete(row, context):
        return classes.PENDING_DELETE, "its topic is in /admin/delete_topics"
    unmirrored = _unmirrored(row, None, context)
    if unmirrored:
        return classes.LOST_WRITE, unmirrored
    if row.at_migration is None:
        return _before_the_log(context) if _undecided(row, context) else _not_yet(row, context)
    # Before what the znodes around its place show, where KRaft's own removal is seen as well.
    if _may_be_removed(row, context):
        return _under_way("removed after /migration's offset and created again; ZooKeeper has the removal", context)
    removed = _removed_by_hand(row, None, context)
    if removed:
        return classes.FOREIGN_WRITE, removed
    name = mangled(row.entity.name, row.key) if context.limits.mangles_names else None
    if name:
        return classes.LOAD_EXTRA, name
    sentence = f"KRaft has it since offset {row.kraft_offset}, {context.passed}, and ZooKeeper does not have it"
    return writers.of_what_is_gone(row, None, context) or (
        classes.LOST_WRITE,
        writers.taken(sentence, row, context) or writers.lost(sentence, row, None, context),
    )


def _removed_by_hand(row: DifferingRow, column: str | None, context: Context) -> str | None:
    """How something other than KRaft took away what ZooKeeper lacks; None when nothing shows it.

    A znode that exists without the row was written without it. KRaft writes znodes whole, so that a write long after
    the row's last change is not KRaft's; only the ACLs of a resource it was seen to write wrongly (PR 15327).
    """
    places = homes(row.entity.name, row.key)
    if _foreign_place(row, context):
        return "something other than the KRaft controller removed or rewrote its znode"
    if not places:
        return None
    removed = next((above for above in ancestors(places[0]) if above in context.removed), None)
    if removed:
        return f"something other than the KRaft controller removed {removed}, which was there at the load, and all that was below it"
    place = places[-1] if column is None else places[0]
    there = context.homes.written.get(place)
    if there is not None:
        dropped = row.entity.name == "acls" and context.limits.drops_acls
        late = not dropped and _written_long_after(there, row, context)
        if late or _after_migration_write(there, context):
            return f"{place} was written without it in transaction {hexadecimal(there.mzxid)}, and not by the KRaft controller"
    elif context.homes.over(place) in context.homes.emptied:
        return f"a child of {context.homes.over(place)} was removed after /migration's last write"
    else:
        return writers.removed_as_kafka_never_does(row, column, context)
    return None


def _foreign_place(row: DifferingRow, context: Context) -> bool:
    return any(path in context.foreign_paths for path in homes(row.entity.name, row.key))


def _may_be_removed(row: DifferingRow, context: Context) -> bool:
    """A row that is there again, of which ZooKeeper may have the removal: a delta's removals come first (S§5.2)."""
    unseen = not context.limits.mirrors_all and row.entity.name in ("topics", "partitions")
    return row.made_again and not unseen and not _foreign_place(row, context)


def _zk_only(row: DifferingRow, context: Context) -> tuple[str, str]:
    if _pending_delete(row, context):
        return classes.PENDING_DELETE, "its topic is in /admin/delete_topics"
    if not row.ever_in_kraft:
        return _never_in_kraft(row, context)
    unmirrored = _unmirrored(row, None, context)
    if unmirrored:
        return classes.LOST_WRITE, unmirrored
    if row.later and (row.at_migration is not None or _undecided(row, context)):
        return _not_yet(row, context)
    if any(not version.removed for version in row.later):
        return _under_way(
            "created after /migration's offset and removed again; ZooKeeper still has it for a moment", context
        )
    if _after_migration_write(row.written(None), context):
        return classes.FOREIGN_WRITE, _foreign(row.written(None), context)
    if _written_long_after(row.written(None), row, context):
        return classes.FOREIGN_WRITE, f"KRaft removed it at offset {row.kraft_offset}; the znode was written later"
    sentence = f"KRaft removed it at offset {row.kraft_offset}, {context.passed}, and ZooKeeper still has it"
    return writers.of_a_value(row, None, context) or (
        classes.LOST_WRITE,
        writers.lost(sentence, row, None, context),
    )


def _never_in_kraft(row: DifferingRow, context: Context) -> tuple[str, str]:
    """Lost by the load, or written since: decided by the claim's transaction if possible, otherwise by the clock.

    Brokers may still write entities that the release does not migrate, and KRaft writes back rows that the load stored under a
    wrong name. While the log begins after M, KRaft may have had any row, and removed it since.
    """
    if _undecided(row, context):
        there = row.written(None)
        return (
            (classes.FOREIGN_WRITE, _foreign(there, context)) if _proved(there, context) else _before_the_log(context)
        )
    unmigrated = context.limits.unmigrated.get(row.entity.name)
    if unmigrated:
        return classes.LOAD_LOSS, unmigrated
    twin = mangled_by_load(row.entity.name, row.key) if context.limits.mangles_names else None
    if twin:
        return classes.LOAD_LOSS, twin
    there = row.written(None)
    if _after_migration_write(there, context):
        return classes.FOREIGN_WRITE, _foreign(there, context)
    if there.mzxid is not None and context.claim_zxid is not None and there.mzxid > context.claim_zxid:
        sentence = (
            f"the znode was written in transaction {hexadecimal(there.mzxid)}, after the KRaft controller took over "
            f"({context.claim_zxid}), and KRaft never had it"
        )
        return classes.FOREIGN_WRITE, writers.as_far_as_known(sentence, context)
    if context.clocks.after(there.mtime, context.load_time_ms):
        sentence = "the znode was written after the load, and KRaft never had it"
        return classes.FOREIGN_WRITE, writers.as_far_as_known(sentence, context)
    return classes.LOAD_LOSS, writers.as_far_as_known(
        "it was in ZooKeeper before the load, and KRaft never had it", context
    )


def _cells(
    row: DifferingRow, zk_row: dict[str, Any], kraft_row: dict[str, Any], context: Context
) -> Iterator[Divergence]:
    for column in row.entity.compared:
        zk, kraft = zk_row[column], kraft_row[column]
        if same(row.entity, column, zk, kraft):
            continue
        yield _divergence(row, column, "differs", zk, kraft, _cell(row, column, zk, kraft, context), context)


def _cell(row: DifferingRow, column: str, zk: Any, kraft: Any, context: Context) -> tuple[str, str]:
    if not row.comparable:
        return classes.NOT_COMPARABLE, "at least one side holds ciphertext"
    if zk is None and _is_unread(row, column, context):
        return _unread()
    if column == "isr" and _same_members(zk, kraft):
        return classes.IN_SYNC, "the same in-sync replicas, in another order"
    if _pending_delete(row, context):
        return classes.PENDING_DELETE, "its topic is in /admin/delete_topics"
    unmirrored = _unmirrored(row, column, context)
    if unmirrored:
        return classes.LOST_WRITE, unmirrored
    return _since_migration(row, column, zk, context) or _wrong_cell(row, column, zk, context)


def _since_migration(row: DifferingRow, column: str, zk: Any, context: Context) -> tuple[str, str] | None:
    """A value that what KRaft did since M explains; None if nothing does."""
    if _undecided(row, context):
        return _in_a_late_log(row, column, zk, context)
    if row.later and row.at_migration is None and not _proved(row.written(column), context):
        # Its znodes are written one after the other, and may be half there.
        return _under_way("the row was created after /migration's offset and is being written", context)
    if row.later and row.at_migration is not None and same(row.entity, column, zk, row.at_migration[column]):
        return _not_yet(row, context)
    if any(not v.removed and same(row.entity, column, zk, v.row[column]) for v in row.later):
        return _under_way("ZooKeeper has a version newer than /migration's offset", context)
    if zk is None and _may_be_removed(row, context):
        # The znodes of a topic are removed one after the other, its own last.
        return _under_way("the row was removed after /migration's offset and is being written again", context)
    return None


def _in_a_late_log(row: DifferingRow, column: str, zk: Any, context: Context) -> tuple[str, str]:
    there = row.written(column)
    if any(not v.removed and same(row.entity, column, zk, v.row[column]) for v in row.later):
        return _under_way("ZooKeeper has a version newer than /migration's offset", context)
    if _proved(there, context):
        return classes.FOREIGN_WRITE, _foreign(there, context)
    return _before_the_log(context)


def _wrong_cell(row: DifferingRow, column: str, zk: Any, context: Context) -> tuple[str, str]:
    """A value that no KRaft version since M explains."""
    there = row.written(column)
    if _after_migration_write(there, context):
        return classes.FOREIGN_WRITE, _foreign(there, context)
    decided = writers.of_a_value(row, column, context)
    if decided:
        return decided
    if not row.later and _written_long_after(there, row, context):
        return classes.FOREIGN_WRITE, "the znode was written long after KRaft's last change of the row"
    return _gone_cell(row, column, zk, context)


def _gone_cell(row: DifferingRow, column: str, zk: Any, context: Context) -> tuple[str, str]:
    removed = _removed_by_hand(row, column, context) if zk is None else None
    if removed:
        return classes.FOREIGN_WRITE, removed
    gone = writers.of_what_is_gone(row, column, context) if zk is None else None
    if gone:
        return gone
    if context.frozen and row.changed_since(column):
        return _not_yet(row, context)
    sentence = f"KRaft has this value since offset {row.kraft_offset} at the latest, and {context.passed}"
    return classes.LOST_WRITE, writers.lost(sentence, row, column, context)


def _tail(row: DifferingRow) -> Iterator[Divergence]:
    """Differences that only records past the committed end make; a ZooKeeper row that has them proves nothing lost."""
    if row.tail in (row.kraft, row.zk) or row.zk != row.kraft:
        return
    why = (classes.UNCOMMITTED_TAIL, "only records past the proved committed end change it")
    if row.zk is None or row.tail is None:
        kind = "kraft_only" if row.zk is None else "zk_only"
        yield _build(row, None, kind, row.zk, row.tail, why, "info")
        return
    for column in row.entity.compared:
        if not same(row.entity, column, row.zk[column], row.tail[column]):
            yield _build(row, column, "differs", row.zk[column], row.tail[column], why, "info")


def _not_yet(row: DifferingRow, context: Context) -> tuple[str, str]:
    if context.frozen:
        return classes.EXPECTED_STALE, (
            f"changed at offset {row.kraft_offset}, after the migration was finalised; ZooKeeper stays at "
            f"{context.migration_offset}"
        )
    if not context.limits.offset_moves:
        return classes.LAG, (
            f"changed at offset {row.kraft_offset}; nothing shows that ZooKeeper was written since, and this release "
            "does not record how far ZooKeeper is"
        )
    return classes.LAG, f"changed at offset {row.kraft_offset}; ZooKeeper is at {context.migration_offset}"


def _under_way(why: str, context: Context) -> tuple[str, str]:
    """In flight; after finalising, whatever dual write had begun stays as it is."""
    if context.frozen:
        return classes.EXPECTED_STALE, (
            f"changed after offset {context.migration_offset}, where /migration stays; the migration was finalised, "
            "and ZooKeeper is no longer written"
        )
    return classes.IN_FLIGHT, why


def _unmirrored(row: DifferingRow, column: str | None, context: Context) -> str | None:
    """Why the release never writes this change to ZooKeeper; None when it does, or when nothing is written any more."""
    if context.frozen and row.later:
        return None
    return context.limits.unmirrored(row, column)


def _undecided(row: DifferingRow, context: Context) -> bool:
    """True if it is unknown what KRaft had at M: the log begins after it, and the row is in its checkpoint or gone since."""
    begins = context.begins_after_migration
    return begins is not None and (not row.later or row.later[0].from_offset < begins)


def _before_the_log(context: Context) -> tuple[str, str]:
    """The class of a row that changed, or was lost, in the part of the log that Kafka has removed."""
    begins = f"the log begins at offset {context.history_from}, after /migration's offset {context.migration_offset}"
    if context.frozen:
        return classes.EXPECTED_STALE, (
            f"{begins}, where it stays since the migration was finalised: what KRaft had there is unknown, and ZooKeeper is no "
            "longer used"
        )
    return classes.LAG, (
        f"undecidable, late or lost: {begins}. The log of a controller that reaches back to offset "
        f"{context.migration_offset} would show which"
    )


def _is_unread(row: DifferingRow, column: str | None, context: Context) -> bool:
    """The znode that would hold it, or one above, could not be read. `column` is a cell that ZooKeeper lacks, None the whole row."""
    places = homes(row.entity.name, row.key)
    if not places or not context.unread:
        return False
    place = places[-1] if column is None else places[0]
    return place in context.unread or any(above in context.unread for above in ancestors(place))


def _unread() -> tuple[str, str]:
    return classes.NOT_COMPARABLE, "its znode could not be read"


def _pending_delete(row: DifferingRow, context: Context) -> bool:
    topic = row.key.get("topic") or (row.key.get("resource_name") if row.key.get("resource_type") == "TOPIC" else None)
    return topic in context.pending_deletes


def _proved(there: WrittenAt, context: Context) -> bool:
    """ZooKeeper's transaction logs show that something other than KRaft wrote it."""
    return there.mzxid is not None and there.mzxid in context.foreign_zxids


def _after_migration_write(there: WrittenAt, context: Context) -> bool:
    if there.mzxid is None:
        return False
    if _proved(there, context):
        return True
    return context.migration_mzxid is not None and there.mzxid > context.migration_mzxid


def _foreign(there: WrittenAt, context: Context) -> str:
    if _proved(there, context):
        return f"the znode was written in transaction {hexadecimal(there.mzxid)}, and not by the KRaft controller"
    return (
        f"the znode was written in transaction {hexadecimal(there.mzxid)}, after /migration's last write "
        f"({hexadecimal(context.migration_mzxid)}), and no KRaft version of the row explains it"
    )


def _written_long_after(there: WrittenAt, row: DifferingRow, context: Context) -> bool:
    """Later than KRaft's last change of the row explains, and not by the KRaft controller, as far as the transaction logs show."""
    return context.clocks.after(there.mtime, row.kraft_time) and not writers.written_by_kraft(there, context)


def _same_members(zk: Any, kraft: Any) -> bool:
    """Lists of the same values in another order."""
    return isinstance(zk, list) and isinstance(kraft, list) and sorted(zk) == sorted(kraft)


def _divergence(
    row: DifferingRow, column: str | None, kind: str, zk: Any, kraft: Any, verdict: tuple[str, str], context: Context
) -> Divergence:
    return _build(row, column, kind, zk, kraft, verdict, _severity(row, column, zk, kraft, verdict[0], context))


def _severity(row: DifferingRow, column: str | None, zk: Any, kraft: Any, class_: str, context: Context) -> str:
    if class_ == classes.LAG and context.newest_append_time_ms is not None and row.kraft_time is not None:
        return "warning" if context.newest_append_time_ms - row.kraft_time > context.lag_limit_ms else "info"
    if not classes.CLASSES[class_].defect:
        return "info"
    if column is None:
        return row.entity.severity
    if _same_members(zk, kraft):
        return "warning"
    if column == "leader_epoch" and zk is not None and kraft is not None and zk > kraft:
        # No controller but another one could have raised it, and after a rollback brokers would follow that one.
        return "critical"
    return row.entity.column_severity.get(column, row.entity.severity)


def _build(
    row: DifferingRow, column: str | None, kind: str, zk: Any, kraft: Any, verdict: tuple[str, str], severity: str
) -> Divergence:
    class_, why = verdict
    there = row.written(column)
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
        zk_path=there.path,
        zk_mzxid=there.mzxid,
        kraft_offset=row.kraft_offset,
        lost_offset=writers.lost_from(row, column) if class_ == classes.LOST_WRITE else None,
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


SEVERITIES: Sequence[str] = ("critical", "error", "warning", "info")
