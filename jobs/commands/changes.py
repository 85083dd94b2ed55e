"""`kraft-audit history ENTITY KEY` and `--topic T`: every change in the log, with old and new value and time, over all runs.

Records of the log contain no principal, so no copy shows who made a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.evidence.all_runs import OneLog, applied_logs, is_of_one_cluster
from jobs.evidence.opening import Finished
from jobs.evidence.row_records import configs_of, lives_of, partitions_of, row_versions
from jobs.exit import UsageError
from schemas.entities.topics import TOPICS
from transforms.explain.keys import KeyFormError, RowKey, parse_key
from transforms.explain.records import VersionAfter, partition_versions, versions
from transforms.explain.timeline import change_text, row_text
from transforms.report.printable import visible
from transforms.times import utc_time

_LINE = 2_000


@dataclass(frozen=True)
class RowChange:
    """One change of one row: the offset of its record, when (ms), the record's type, and old → new."""

    row: RowKey
    offset: int
    time: int | None
    type: str | None
    text: str

    @property
    def record(self) -> dict[str, Any]:
        """The change for automation."""
        named = {"entity": self.row.entity.name, "key": self.row.report}
        return {**named, "offset": self.offset, "time": self.time, "type": self.type, "change": self.text}


def changes_of_row(run: Finished, entity: str, key: str | None) -> Iterator[tuple[OneLog, list[RowChange]]]:
    """The changes of one row, one list for each log. Raises UsageError for an invalid key."""
    try:
        row = parse_key(entity, key)
    except KeyFormError as error:
        raise UsageError(visible(str(error))) from None
    for applied in applied_logs(run):
        yield applied.log, list(_row_changes(row, row_versions(applied.records, row, applied.base_end)))


def changes_of_topic(run: Finished, topic: str) -> Iterator[tuple[OneLog, list[RowChange]]]:
    """The changes of a topic, its configurations and its partitions, one list a log, in the log's order."""
    name = parse_key(TOPICS.name, {"topic": topic})
    for applied in applied_logs(run):
        lives = lives_of(applied.records, name)
        found = [*_row_changes(name, versions(lives))]
        for row, events in configs_of(applied.records, topic):
            found += _row_changes(row, versions(events))
        for row, states in partitions_of(applied.records, topic, lives):
            found += _row_changes(row, partition_versions(states, lives, applied.base_end))
        yield applied.log, sorted(found, key=lambda change: (change.offset, change.row.shown))


def _row_changes(row: RowKey, found: Sequence[VersionAfter]) -> Iterator[RowChange]:
    before: Mapping[str, Any] | None = None
    for version in found:
        text = change_text(row, before, version.row)
        if text == "made":
            text = f"made, {row_text(row, version.row)}"
        elif text == "removed":
            text = f"removed, it was {row_text(row, before)}"
        yield RowChange(row, version.offset, version.time, version.type, text)
        before = version.row


def heading(log: OneLog, before: OneLog | None, *, whole: bool = True) -> str:
    """The shown part of which log, and its offsets that no run has read; without the `whole` rows, the subject without changes.

    `before` is the log that was shown before it, None of the first.
    """
    new = "" if before is None else "A new log: the controllers were formatted again. "
    if before is not None and not is_of_one_cluster(log, before):
        new = f"The log of another cluster, {visible(str(log.cluster_id), 80)}. "
    without = "nobody has read" if whole else "there is nothing of"
    gaps = "".join(f"; {without} {begin} to {end - 1}" for begin, end in log.gaps)
    read = "1 run" if len(log.parts) == 1 else f"{len(log.parts)} runs"
    return f"{new}Offsets {log.first} to {log.end - 1} (inclusive) by {read}{gaps}; times are UTC"


def lines(changes: Sequence[RowChange], *, named: bool) -> Iterator[str]:
    """Lines for a terminal; with `named` each names its row."""
    for change in changes:
        what = f"{change.row.entity.name.replace('_', ' ')} {change.row.shown}  " if named else ""
        kind = change.type or "in the checkpoint that the log begins with"
        yield visible(f"  {change.offset:>9}  {utc_time(change.time)}  {what}{change.text}  ({kind})", _LINE)
