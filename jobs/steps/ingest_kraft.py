"""Step 2: the controllers' metadata logs into bronze `kraft_log_copies` and `kraft_records`.

Every copy's facts are kept; records are read once, from the copies that make the one true log, with the snapshots.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from jobs.evidence.kept_state import Kept
from jobs.exit import AuditError, UsageError
from jobs.run.kept import look_up
from jobs.run.run import LOG, Run, note_risk, now_ms
from jobs.run.steps import step_main
from jobs.runtime.workers import failure, in_workers, unreadable, with_columns
from jobs.settings import Settings, controllers_risk
from jobs.sinks.folder_table import arrow_rows
from jobs.sources.kraft.folder import KraftSourceError, ScannedCopy, formatted_copy, read_copies
from jobs.sources.kraft.log import (
    DAMAGE,
    ReadTask,
    Selection,
    batch_place,
    plan_checkpoint,
    plan_damage,
    plan_damaged_start,
    plan_log,
    read_records,
)
from jobs.sources.remote import RemoteError, is_remote, local_path
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS, LOG_RECORD_COLUMNS, ZK_ZNODES
from schemas.zookeeper.trees import BARRIER, TREE
from transforms.clusters import CLUSTER
from transforms.kraft.decode.masking import Masking
from transforms.kraft.other_logs import common_offset, differs_at, lost_checkpoint, younger_than_later
from transforms.kraft.quorum import (
    LogCopy,
    NoUsableLogError,
    ReadPlan,
    committed_end,
    foreign_copies,
    leading_of,
    plan_read,
)
from transforms.kraft.side import versions_from

_CLUSTER = StructField(CLUSTER, StringType())
_RECORDS = StructType([_CLUSTER, *LOG_RECORD_COLUMNS])
_SCANS_AT_ONCE = 4
Work = tuple[ReadTask, Selection]


@dataclass(frozen=True)
class Copies:
    """All copies of a cluster, the plan made of them, or why there is none."""

    copies: tuple[ScannedCopy, ...]
    plan: ReadPlan | None
    problem: str | None


@dataclass(frozen=True)
class _Group:
    """Pieces of a cluster's log that one worker reads, one after the other."""

    cluster: str
    masking: Masking
    work: tuple[Work, ...]


def run_step(run: Run) -> None:
    """Read the controllers' log folders into bronze; nothing to do for clusters that have none."""
    logs = scan_logs(run)
    if not logs:
        return
    for name, found in logs.items():
        cluster = run.clusters[name]
        cluster.log_seen_at_ms = now_ms()
        cluster.notes += [note for copy in found.copies for note in notes_of(copy) if note not in cluster.notes]
    _continue_or_not(run, logs)
    starts = {name: max(0, _begin(run, name) - 1) for name in logs}
    rows = {
        name: [
            {
                **copy.row(),
                **_chosen(copy, found.plan, starts[name]),
                "base_run": run.kept[name].run_id if _begin(run, name) else None,
            }
            for copy in found.copies
        ]
        for name, found in logs.items()
    }
    run.scanned = {name: [dict(row) for row in mine] for name, mine in rows.items()}
    flat = [{CLUSTER: name, "run_id": run.run_id, **row} for name, mine in rows.items() for row in mine]
    run.keep(KRAFT_LOG_COPIES, arrow_rows(KRAFT_LOG_COPIES, flat))
    groups = [
        _Group(name, run.fingerprinter, tuple(work))
        for name, found in logs.items()
        for work in _grouped(list(_work(found, starts[name])))
    ]
    size = sum(task.end - task.start for group in groups for task, _ in group.work)
    run.keep(KRAFT_RECORDS, in_workers(run.spark, groups, _read_group, _RECORDS, size))


def notes_of(copy: ScannedCopy) -> list[str]:
    """What the reader of a copy left out or went without, each with the place; a file's name alone is in many copies."""
    folder = copy.location.rpartition("/")[0]
    return [note if folder in note else f"{copy.location}: {note}" for note in copy.notes]


def _begin(run: Run, name: str) -> int:
    """First offset whose record is not in a state that the run continues from."""
    return run.kept[name].offset if name in run.kept else 0


def scan_logs(run: Run, only: Collection[str] | None = None) -> dict[str, Copies]:
    """Copy live logs, scan each cluster's folders, once in a run, and plan what to read.

    A cluster whose path holds no log, or whose controllers can't be read, has failed. `only`: clusters to look at.
    """
    asked = {name: each for name, each in run.settings_of().items() if each.kraft is not None}
    missing = [name for name in asked if name not in run.logs and (only is None or name in only)]
    with ThreadPoolExecutor(_SCANS_AT_ONCE) as pool:
        scans = {name: pool.submit(_scan, asked[name]) for name in missing}
    for name, scan in scans.items():
        try:
            run.logs[name], notes = scan.result()
        except Exception as error:
            run.fail(name, error)
        else:
            run.clusters[name].notes += notes
            note_risk(run, name, controllers_risk(asked[name].kraft))
    return {name: found for name, found in run.logs.items() if name in run.settings_of()}


def _scan(settings: Settings) -> tuple[Copies, list[str]]:
    """The copies of one cluster's log, and the report's notes about them. Raises UsageError."""
    kraft = settings.kraft
    if kraft is None:
        raise AssertionError("only clusters with a KRaft side are asked for")
    if not kraft.controllers:
        return find_copies(kraft.folders), []
    # kafka-python is an extra: whoever reads folders need not have it.
    from jobs.sources.kraft.live.fetch import described, fetch_copy  # noqa: PLC0415

    copied = fetch_copy(kraft, copy_folder(settings))
    found = find_copies([*kraft.folders, str(copied.folder)])
    LOG.info("%s: %s", settings.cluster, described(copied)[0])
    return found, described(copied)


def copy_folder(settings: Settings) -> Path:
    """Where the copy of a live log is kept between runs: as configured, else beside the tables.

    Raises UsageError when the tables are not in a folder of this machine.
    """
    kept = None if settings.kraft is None else settings.kraft.keep_copy
    if kept is not None:
        return kept
    root = local_path(settings.warehouse)
    if settings.catalog or is_remote(root):
        raise UsageError(
            f"{settings.cluster}: the tables are not in a local folder, so the copy of the controllers' log needs one: name "
            "`kraft.keep_copy`, a folder that Spark's workers can read as well"
        )
    return Path(root).absolute() / "live" / settings.cluster


def find_copies(folders: Sequence[str]) -> Copies:
    """Scan the folders and plan what to read. Raises UsageError for a path that holds no metadata log."""
    try:
        copies = _marked(tuple(copy for folder in folders for copy in _read(folder, folders)))
    except KraftSourceError as error:
        raise UsageError(str(error)) from error
    try:
        return Copies(copies, plan_read([LogCopy.from_row(copy.row()) for copy in copies]), None)
    except NoUsableLogError as error:
        return Copies(copies, None, str(error))


def _read(folder: str, folders: Sequence[str]) -> list[ScannedCopy]:
    """The copies in a folder; beside others, it may be one of a controller that was just formatted. Raises KraftSourceError."""
    formatted = formatted_copy(folder) if len(folders) > 1 else None
    return read_copies(folder) if formatted is None else [formatted]


def _marked(copies: tuple[ScannedCopy, ...]) -> tuple[ScannedCopy, ...]:
    """The copies, with a problem in each that carries the cluster's id but is of another log than the most advanced one."""
    facts = [LogCopy.from_row(copy.row()) for copy in copies]
    usable = [fact for fact in facts if fact.has_log]
    if len(usable) < 2 or foreign_copies(facts):
        return copies
    leading = leading_of(usable)
    pairs = [(copy, fact) for copy, fact in zip(copies, facts, strict=True) if fact.has_log]
    # Those of its log may reach further back than the leading one.
    [first] = [pair for pair in pairs if pair[1] is leading]
    same = [first, *(pair for pair in pairs if pair[1] is not leading and common_offset(pair[1], leading) is not None)]
    found = {copy.location: _other_log(copy, fact, same) for copy, fact in pairs if fact is not leading}
    others = {place: why for place, why in found.items() if why is not None}
    return tuple(
        replace(copy, problem=others[copy.location], other_log=True) if copy.location in others else copy
        for copy in copies
    )


def _other_log(copy: ScannedCopy, fact: LogCopy, same: Sequence[tuple[ScannedCopy, LogCopy]]) -> str | None:
    leader, leading = same[0]
    offset = common_offset(fact, leading)
    if offset is not None:
        differs = differs_at(batch_place(copy, offset), batch_place(leader, offset), leading)
        return differs or lost_checkpoint(fact, leading)
    younger = (
        younger_than_later(fact, batch_place(other, other.log_start_offset or 0), known)
        for other, known in same
        if fact.end <= known.end
    )
    return next((text for text in younger if text), None) or lost_checkpoint(fact, leading)


def _continue_or_not(run: Run, logs: Mapping[str, Copies]) -> None:
    """Resume the kept state if it is of the same log, and no row's versions below it are needed."""
    folds = {name: kept for name, kept in run.kept.items() if name in logs and kept.fold is not None}
    migrations = _migration_znodes(run) if folds else {}
    for name, kept in folds.items():
        full = getattr(run.clusters[name].settings.kraft, "full", False)
        try:
            goes_on = not full and _goes_on(run, logs[name], kept, migrations.get(name, {}))
        except (OSError, KraftSourceError, RemoteError) as error:
            run.fail(name, AuditError(unreadable(error) if isinstance(error, OSError) else str(error)))
            continue
        if not goes_on:
            run.kept[name] = kept.without_fold


def _goes_on(run: Run, found: Copies, kept: Kept, migration: Mapping[str, int]) -> bool:
    if found.plan is None:
        return False
    facts = [LogCopy.from_row(copy.row()) for copy in found.copies]
    offset, epoch = migration.get("kraft_metadata_offset"), migration.get("kraft_metadata_epoch")
    committed = committed_end(facts, found.plan, offset, epoch)
    if kept.offset > versions_from(committed.end_exclusive, offset):
        return False
    return _record_time(run, found, kept.offset - 1) == (kept.last_epoch, kept.last_append_time)


def _migration_znodes(run: Run) -> dict[str, dict[str, int]]:
    """Numbers of each cluster's `/migration`; none of them where it is absent or can't be read."""
    walks = [run.clusters[name].walks[0] for name in run.going if run.clusters[name].walks]
    run.finish_writes()
    rows = run.looked_up(ZK_ZNODES, (CLUSTER, TREE, "data"), {"path": "/migration", "snapshot_id": walks})
    # Of two trees of a cluster, the one that is compared with the log.
    return {row[CLUSTER]: _numbers(row["data"]) for row in rows if row[TREE] in (None, BARRIER)}


def _numbers(data: str | None) -> dict[str, int]:
    try:
        parsed = json.loads(data) if data else {}
    except json.JSONDecodeError:
        return {}
    numbers = parsed.items() if isinstance(parsed, dict) else ()
    return {name: value for name, value in numbers if isinstance(value, int)}


def _record_time(run: Run, found: Copies, offset: int) -> tuple[int, int] | None:
    """Epoch and append time of the log's record at an offset: two logs hardly agree on the millisecond."""
    plan = found.plan
    pieces = [s for s in plan.slices if s.from_offset_inclusive <= offset < s.to_offset_exclusive] if plan else []
    copies = [copy for piece in pieces for copy in found.copies if copy.location == piece.location]
    selection = Selection(offset, offset + 1)
    for copy in copies:
        for batch in read_records(plan_log(copy, selection), run.fingerprinter, selection):
            for row in batch.select(["offset", "epoch", "append_time"]).to_pylist():
                if row["offset"] == offset:
                    return row["epoch"], row["append_time"]
    return None


def _chosen(copy: ScannedCopy, plan: ReadPlan | None, start: int) -> dict[str, int | None]:
    slices = (
        []
        if plan is None
        else [s for s in plan.slices if s.location == copy.location and s.to_offset_exclusive > start]
    )
    return {
        "chosen_from": min((max(s.from_offset_inclusive, start) for s in slices), default=None),
        "chosen_to": max((s.to_offset_exclusive for s in slices), default=None),
    }


def _work(found: Copies, start: int) -> Iterator[Work]:
    """What to read from offset `start` on: the plan's slices and every complete snapshot once, and of all else the damage.

    A controller that starts with damage in its log cuts the log off there (`LogLoader.recoverLog`); with damage in its newest
    snapshot it ends, or knows a part of it (`RecordsIterator`). Without a plan, all of the damaged copies are read, for their
    findings.
    """
    by_location = {copy.location: copy for copy in found.copies}
    if found.plan is None:
        for copy in found.copies:
            yield from ((task, Selection()) for task in plan_log(copy))
        return
    for piece in found.plan.slices:
        selection = Selection(max(piece.from_offset_inclusive, start), piece.to_offset_exclusive)
        yield from ((task, selection) for task in plan_log(by_location[piece.location], selection))
    used = {piece.location: (piece.from_offset_inclusive, piece.to_offset_exclusive) for piece in found.plan.slices}
    for copy in found.copies:
        yield from plan_damage(copy, used.get(copy.location))
        yield from ((task, DAMAGE) for task in plan_damaged_start(copy))
    read: set[tuple[int, int]] = set()
    for copy in found.copies:
        for checkpoint in copy.checkpoints:
            if checkpoint.offset <= start and start > 0:
                continue
            if checkpoint.complete and (checkpoint.offset, checkpoint.epoch) not in read:
                read.add((checkpoint.offset, checkpoint.epoch))
                yield from ((task, Selection()) for task in plan_checkpoint(copy, checkpoint))


def _read_group(group: _Group) -> Iterator[pa.RecordBatch]:
    names = {CLUSTER: group.cluster}
    try:
        for task, selection in group.work:
            for batch in read_records([task], group.masking, selection):
                yield with_columns(batch, names)
    except Exception as error:
        yield failure(to_arrow_schema(_RECORDS), names, error)


_GROUP_BYTES = 8 * 1024 * 1024


def _grouped(work: list[Work]) -> list[list[Work]]:
    groups: list[list[Work]] = []
    size = _GROUP_BYTES
    for task, selection in work:
        if size >= _GROUP_BYTES:
            groups.append([])
            size = 0
        groups[-1].append((task, selection))
        size += task.end - task.start
    return groups


def _alone(run: Run) -> None:
    """The step alone: the controllers' log folders into bronze, from where the run before has kept its state."""
    look_up(run)
    run_step(run)


def main(argv: list[str] | None = None) -> int:
    """Entry point of the step alone."""
    return step_main("ingest_kraft", _alone, argv)


if __name__ == "__main__":
    sys.exit(main())
