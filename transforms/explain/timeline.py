"""Records, transactions and barriers of one row, merged in order of time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transforms.explain.keys import RowKey
from transforms.explain.records import VersionAfter
from transforms.explain.writes import CREATES, ZnodeWrite
from transforms.report.printable import ABSENT, PRESENT, value_text, visible

# Columns that are shown although they are never compared.
_ALSO = {"partitions": ("partition_epoch",)}
_VALUE = 2_000


@dataclass(frozen=True)
class TimelineLine:
    """One line: when, where in its log, who, what, and the row afterwards (empty when it is not shown)."""

    time: int | None
    place: str
    who: str
    what: str
    after: str


@dataclass(frozen=True)
class BarrierPassed:
    """A stand-alone write of /migration: from here on ZooKeeper has every record up to `offset` (inclusive)."""

    zxid: int
    time: int
    offset: int
    controller: int


def row_text(row: RowKey, content: Mapping[str, Any] | None) -> str:
    """One side's row in a line: only the value when there is just one column, `absent` without a row."""
    if content is None:
        return ABSENT
    names = _columns(row)
    if len(names) == 1:
        return value_text(content.get(names[0]), _VALUE)
    # Empty columns are left out.
    filled = {name: content[name] for name in names if content.get(name) not in (None, [])}
    return " ".join(f"{name}={value_text(value, _VALUE)}" for name, value in filled.items()) or PRESENT


def _columns(row: RowKey) -> list[str]:
    """The columns shown of a row: those compared, or all if none is compared with the other side."""
    if row.entity.mirrored:
        return [*row.entity.compared, *_ALSO.get(row.entity.name, ())]
    return [field.name for field in row.entity.columns if field.name not in row.entity.key]


def change_text(row: RowKey, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """What a record or a write changed: `made`, `removed`, `unchanged`, or the changed columns, old -> new.

    For a row of one column the new value is given in any case; the text is empty when there is no row before or after.
    """
    alone = len(_columns(row)) == 1
    if after is None:
        return "" if before is None else "removed"
    if before is None:
        return f"made, {row_text(row, after)}" if alone else "made"
    names = [name for name in _columns(row) if name in after and after[name] != before.get(name)]
    if not names:
        return f"unchanged, {row_text(row, after)}" if alone else "unchanged"
    if alone:
        return f"{row_text(row, before)} -> {row_text(row, after)}"
    return ", ".join(f"{n} {value_text(before.get(n), _VALUE)} -> {value_text(after[n], _VALUE)}" for n in names)


def _after(row: RowKey, changed: str, content: Mapping[str, Any] | None) -> str:
    """The row as a line of its own, where the change alone does not show it."""
    is_said = len(_columns(row)) < 2 or changed == "unchanged" or content is None
    return "" if is_said else row_text(row, content)


def timeline(
    row: RowKey, versions: Sequence[VersionAfter], writes: Sequence[ZnodeWrite], barriers: Sequence[BarrierPassed]
) -> list[TimelineLine]:
    """All steps in order of time. Each log keeps its own order even if its clock went back."""
    zookeeper = [*_write_steps(row, writes), *_barrier_steps(barriers)]
    in_order = [step for _, step in sorted(zookeeper, key=lambda pair: pair[0])]
    logs = (list(_record_steps(row, versions)), in_order)
    return [step for _, step in heapq.merge(*map(_by_time, logs), key=lambda pair: pair[0])]


def _by_time(steps: Sequence[TimelineLine]) -> Iterator[tuple[int, TimelineLine]]:
    latest = 0
    for step in steps:
        latest = max(latest, step.time or 0)
        yield latest, step


def _record_steps(row: RowKey, versions: Sequence[VersionAfter]) -> Iterator[TimelineLine]:
    before: Mapping[str, Any] | None = None
    for version in versions:
        changed = change_text(row, before, version.row)
        what = f"{version.type or 'in the checkpoint the log starts with'}: {changed}"
        who = f"KRaft, epoch {version.epoch}"
        yield TimelineLine(version.time, f"offset {version.offset}", who, what, _after(row, changed, version.row))
        before = version.row


def _write_steps(row: RowKey, writes: Sequence[ZnodeWrite]) -> Iterator[tuple[int, TimelineLine]]:
    before: dict[str, Mapping[str, Any] | None] = {}
    for write in writes:
        # A znode that is created again proves nothing about the earlier one, which may have disappeared with its session.
        changed = change_text(row, None if write.type in CREATES else before.get(write.path), write.row)
        version = "" if write.version is None else f" version {write.version}"
        what = f"{write.type} {visible(write.path)}{version}"
        if write.known and changed:
            what += f": {changed}"
        if write.known:
            before[write.path] = write.row
        who = f"{visible(write.writer, 60)}, {write.kind}"
        yield write.zxid, TimelineLine(write.time, f"zxid {write.zxid:#x}", who, what, _after(row, changed, write.row))


def _barrier_steps(barriers: Sequence[BarrierPassed]) -> Iterator[tuple[int, TimelineLine]]:
    for barrier in barriers:
        what = f"/migration at {barrier.offset}: everything up to it (inclusive) should be mirrored"
        who = f"controller {barrier.controller}"
        yield barrier.zxid, TimelineLine(barrier.time, f"zxid {barrier.zxid:#x}", who, what, "")
