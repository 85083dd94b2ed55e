"""Lost or foreign: the writer of a differing row, inferred from the row's versions and its znodes' zxids and times (S§5.6).

The log has every value that a row ever had. KRaft mirrors whole znodes, so any other value in ZooKeeper has another writer; and
KRaft did not remove a row that came with the load and that KRaft has not changed since. Other rows can't be decided without
ZooKeeper's transaction logs, and their explanation names both possibilities.
"""

from __future__ import annotations

from typing import Any

from schemas import classes
from transforms.reconcile.compare.context import CLOCK_MARGIN_MS, Context
from transforms.reconcile.compare.differing import ASSIGNMENT, DifferingRow, RowVersion, WrittenAt, same
from transforms.reconcile.compare.home import homes
from transforms.zookeeper.zxids import hexadecimal

_WOULD_TELL = "a ZooKeeper data folder with its transaction logs would show which"


def of_a_value(row: DifferingRow, column: str | None, context: Context) -> tuple[str, str] | None:
    """Class and reason of a value in ZooKeeper that KRaft never gave the row; None if KRaft had it, or may have.

    A znode's content is one value: a leader that KRaft once chose, with an epoch that it never had, did not come from KRaft.
    """
    if row.ever is None or row.zk is None or _by_kraft(row.written(column), context):
        return None
    zk, columns = row.zk, _together(row, column)
    if all(zk[name] is None for name in columns):
        return None
    for version in row.ever:
        if all(_equal(row, name, version.row[name]) for name in columns):
            return None
    there = row.written(column)
    if _older_than_load(there, context):
        return classes.LOAD_LOSS, "it has been in ZooKeeper since before the load, and KRaft never had this value"
    sentence = f"KRaft never gave it this value up to offset {context.migration_offset}: something else wrote the znode"
    if there.mzxid is not None:
        sentence += f", last in transaction {hexadecimal(there.mzxid)}"
    return classes.FOREIGN_WRITE, sentence


def of_what_is_gone(row: DifferingRow, column: str | None, context: Context) -> tuple[str, str] | None:
    """Class and reason of a row that came with the load and that ZooKeeper lacks; None if the row does not show it.

    `column` is a cell whose znode is not there, None the whole row. Only if its places in the tree were looked up: a place that
    never existed, or has lacked the row since before the load, shows that the load invented the row.
    """
    places = homes(row.entity.name, row.key)
    if not context.homes.looked_up or not places or not _loaded(row, context):
        return None
    place = places[-1] if column is None else places[0]
    made_up = _never_there(place, context)
    if made_up:
        return classes.LOAD_EXTRA, f"the load created it at offset {row.created_offset}, and {made_up}"
    if not _untouched(row) and not (column is None and _never_removed(row)):
        return None
    dropped_by_kafka = row.entity.name == "acls" and context.limits.drops_acls and place in context.homes.written
    if dropped_by_kafka or _kraft_may_remove(context):
        return None
    since = "has not changed it since" if _untouched(row) else "changed it since and never removed it"
    return classes.FOREIGN_WRITE, (
        f"it came from ZooKeeper with the load, at offset {row.created_offset}, KRaft {since}, and it "
        "is gone: something other than the KRaft controller removed it"
    )


# Their znodes are emptied when the last value is removed, never deleted: by ZooKeeper controllers (`AdminZkClient`) and by
# KRaft's (`ZkConfigMigrationClient.writeClientQuotas`) alike. A partition's state goes with its topic alone
# (`ZkTopicMigrationClient.deleteTopic`), and then nothing is left above it.
_NEVER_DELETED = frozenset({"client_quotas", "scram_credentials"})


def removed_as_kafka_never_does(row: DifferingRow, column: str | None, context: Context) -> str | None:
    """How the parent's list of children shows the deletion of a znode that Kafka never deletes; None if it does not.

    `column` is a cell whose znode is not there, None the whole row.
    """
    places = homes(row.entity.name, row.key)
    since = [zxid for zxid in (context.load_claim, context.after_load, context.claim_zxid) if zxid is not None]
    state = row.entity.name == "partitions" and column is not None and column not in ASSIGNMENT
    if not (state or row.entity.name in _NEVER_DELETED) or not places or not since or context.transactions_known:
        return None
    place = places[0] if state else places[-1]
    over = context.homes.over(place)
    above = context.homes.above.get(over)
    if above is None or not above.lost_a_child or above.pzxid is None or above.pzxid < min(since):
        return None
    return (
        f"a child of {over} was deleted in transaction {hexadecimal(above.pzxid)}, after the KRaft controller took over, and "
        "Kafka itself never deletes one there"
    )


def removed_whole(place: str, made: int, context: Context) -> str | None:
    """The highest missing znode of a place whose row the record at offset `made` changed last; None unless it was removed by hand.

    The row came with the load, so that the place was there, and KRaft removes neither a row that it has nor a folder of any.
    """
    if place in context.homes.written:
        return None
    if context.load is None or not context.load[0] <= made <= context.load[1] or not context.homes.looked_up:
        return None
    return None if _kraft_may_remove(context) or _never_there(place, context) else context.homes.gone.get(place, place)


def _kraft_may_remove(context: Context) -> bool:
    """Whether KRaft itself may have removed what it loaded.

    Transaction logs that have every write since the load, and no other writer's, say so; and KAFKA-15825 is possible where no topic of
    the load is left.
    """
    return context.emptied or (context.transactions_known and context.load_claim is not None)


def lost(sentence: str, row: DifferingRow, column: str | None, context: Context) -> str:
    """The words for a lost write: `sentence`, and that it may be somebody's work where nothing rules that out."""
    if context.transactions_known or context.limits.unmirrored(row, column):
        return sentence
    if row.zk is not None and (column is None or row.zk[column] is not None):
        there = row.written(column)
        if context.clocks.before(there.mtime, row.kraft_time):
            return f"{sentence}; the znode has not been written since"
        return f"{sentence}; lost, or written by hand: {_WOULD_TELL}"
    places = homes(row.entity.name, row.key)
    place = (places[-1] if column is None else places[0]) if places else None
    if place is None:
        return sentence
    if _nothing_removed(place, context):
        return f"{sentence}; nothing was ever removed from {context.homes.over(place)}: it was never written"
    how = (
        "removed by the full sync after the load (KAFKA-15825)" if context.emptied and _loaded(row, context) else "lost"
    )
    return f"{sentence}; {how}, or removed by hand: {_WOULD_TELL}"


def lost_from(row: DifferingRow, column: str | None) -> int | None:
    """Offset of the first record on a lost row whose effect ZooKeeper lacks: it may have lacked others since."""
    offset = row.kraft_offset
    for version in reversed(row.ever or ()):
        if _has(row, column, version):
            break
        offset = version.from_offset
    return offset


def _has(row: DifferingRow, column: str | None, version: RowVersion) -> bool:
    """ZooKeeper has the row, or the column of it, as this version made it."""
    if row.zk is None or version.removed:
        return row.zk is None and version.removed
    columns = row.entity.compared if column is None else (column,)
    return all(_equal(row, name, version.row[name]) for name in columns)


def as_far_as_known(sentence: str, context: Context) -> str:
    """Words about what KRaft never had, when the log that was given begins after the load."""
    begins = context.history_from
    if not begins or (context.load is not None and begins <= context.load[0]):
        return sentence
    return f"{sentence} as far as the log goes back (offset {begins}); it may have removed it before"


def _equal(row: DifferingRow, column: str, kraft: Any) -> bool:
    zk = None if row.zk is None else row.zk[column]
    if column == "isr" and zk is not None and kraft is not None:
        # The order of the in-sync replicas means nothing.
        return sorted(zk) == sorted(kraft)
    return same(row.entity, column, zk, kraft)


def _together(row: DifferingRow, column: str | None) -> tuple[str, ...]:
    """The compared columns that one znode holds; of a whole row, those of the znode that decides whether it exists."""
    if row.entity.name != "partitions":
        return row.entity.compared
    assigned = column is None or column in ASSIGNMENT
    return tuple(name for name in row.entity.compared if (name in ASSIGNMENT) == assigned)


def _loaded(row: DifferingRow, context: Context) -> bool:
    made, load = row.created_offset, context.load
    return made is not None and load is not None and load[0] <= made <= load[1]


def _untouched(row: DifferingRow) -> bool:
    return row.kraft_offset == row.created_offset and not row.later


def _never_removed(row: DifferingRow) -> bool:
    return row.ever is not None and not any(version.removed for version in (*row.ever, *row.later))


def _by_kraft(there: WrittenAt, context: Context) -> bool:
    """ZooKeeper's transaction logs hold the write, and it is not among those that were somebody else's."""
    known = context.transactions_known and there.mzxid is not None and context.claim_zxid is not None
    return known and there.mzxid >= context.claim_zxid and there.mzxid not in context.foreign_zxids  # type: ignore[operator]


def written_by_kraft(there: WrittenAt, context: Context) -> bool:
    """ZooKeeper's transaction logs hold the write, be it of an earlier controller, and it is not among those of somebody else."""
    if not context.transactions_known or there.mzxid is None or context.known_from is None:
        return False
    return there.mzxid >= context.known_from and there.mzxid not in context.foreign_zxids


def taken_by(row: DifferingRow, context: Context) -> WrittenAt | None:
    """The write with which a KRaft controller took the row from ZooKeeper after mirroring it; None if the logs show none.

    That controller does not have the row itself: a node that starts can lose a credential (`ScramDelta.apply`, S§12.2).
    """
    there = _without_it(row, context)
    return there if there is not None and context.clocks.after(there.mtime, row.kraft_time) else None


def may_be_taken(row: DifferingRow, context: Context) -> bool:
    """The same as far as clocks tell it that nobody has measured: a write shortly after the record is not surely later."""
    there = _without_it(row, context)
    if there is None or context.clocks.margin_ms < CLOCK_MARGIN_MS:
        return taken_by(row, context) is not None
    return not context.clocks.before(there.mtime, row.kraft_time)


def _without_it(row: DifferingRow, context: Context) -> WrittenAt | None:
    """The last write of the row's znode, which a KRaft controller made without the row; None if the logs show none."""
    places = homes(row.entity.name, row.key)
    there = context.homes.written.get(places[-1]) if places else None
    return there if there is not None and written_by_kraft(there, context) else None


def taken(sentence: str, row: DifferingRow, context: Context) -> str | None:
    """`sentence`, and which write `taken_by` has found; None if it has found none."""
    there = taken_by(row, context)
    if there is None:
        return None
    return f"{sentence}: the KRaft controller itself wrote {there.path} without it in transaction {hexadecimal(there.mzxid)}"


def _older_than_load(there: WrittenAt, context: Context) -> bool:
    if there.mzxid is not None and context.load_claim is not None:
        return there.mzxid < context.load_claim
    return context.clocks.before(there.mtime, context.load_time_ms)


def _never_there(place: str, context: Context) -> str | None:
    """How the tree shows that a place never had what the load claims to have read there; None if it does not."""
    there = context.homes.written.get(place)
    if there is not None:
        if _older_than_load(there, context):
            return f"{place}, not written since before the load, does not have it"
        return None
    if _nothing_removed(place, context):
        return f"nothing was ever removed from {context.homes.over(place)}: ZooKeeper never had it"
    above = context.homes.above.get(context.homes.over(place))
    changed = None if above is None else above.pzxid
    if changed is not None and context.load_claim is not None and changed < context.load_claim:
        return f"the children of {context.homes.over(place)} have not changed since before the load: ZooKeeper did not have it"
    return None


def _nothing_removed(place: str, context: Context) -> bool:
    above = context.homes.above.get(context.homes.over(place))
    return place not in context.homes.written and above is not None and above.removed == 0
