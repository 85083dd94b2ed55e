"""Step 2: the controllers' metadata logs into bronze `kraft_log_copies` and `kraft_records`.

Every copy's facts are kept; records are read once, from the copies that make the one true log, with the snapshots.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.audit.kept_state import KeptState, newest_state, versions_from
from jobs.audit.run import Run, step_main
from jobs.exit import UsageError
from jobs.sources.kraft.folder import KraftSourceError, LogCopy, read_copies
from jobs.sources.kraft.log import ReadTask, Selection, plan_checkpoint, plan_log, read_records
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS, LOG_COPY_COLUMNS, LOG_RECORD_COLUMNS, ZK_ZNODES
from transforms.kraft.decode.masking import Masking
from transforms.kraft.quorum import LogCopyFacts, NoUsableLogError, ReadPlan, committed_end, plan_read

_COPIES = StructType(list(LOG_COPY_COLUMNS))
_RECORDS = StructType(list(LOG_RECORD_COLUMNS))
Work = tuple[ReadTask, Selection]


@dataclass(frozen=True)
class Copies:
    """All copies of a run, the plan made of them, or why there is none."""

    copies: tuple[LogCopy, ...]
    plan: ReadPlan | None
    problem: str | None


def run_step(run: Run) -> None:
    """Read the controllers' log folders into bronze; nothing to do when the run has none."""
    if run.settings.kraft is None:
        return
    found = find_copies(run.settings.kraft.folders)
    kept = None if run.settings.kraft.full else _continued(run, found)
    start = 0 if kept is None else kept.offset - 1
    base = {"base_run": None if kept is None else kept.run_id}
    rows = [{**copy.row(), **_chosen(copy, found.plan, start), **base} for copy in found.copies]
    run.append(KRAFT_LOG_COPIES, run.spark.createDataFrame(rows, _COPIES))
    run.append(KRAFT_RECORDS, _read(run, list(_work(found, start))))


def find_copies(folders: Sequence[str]) -> Copies:
    """Scan the folders and plan what to read. Raises UsageError for a path that holds no metadata log."""
    try:
        copies = tuple(copy for folder in folders for copy in read_copies(folder))
    except KraftSourceError as error:
        raise UsageError(str(error)) from error
    try:
        return Copies(copies, plan_read([LogCopyFacts.from_row(copy.row()) for copy in copies]), None)
    except NoUsableLogError as error:
        return Copies(copies, None, str(error))


def _continued(run: Run, found: Copies) -> KeptState | None:
    """The kept state that the log goes on from: it is the same log, and no row's versions below it are asked for."""
    kept = newest_state(run)
    if kept is None or found.plan is None:
        return None
    migration = _migration_znode(run)
    facts = [LogCopyFacts.from_row(copy.row()) for copy in found.copies]
    offset, epoch = migration.get("kraft_metadata_offset"), migration.get("kraft_metadata_epoch")
    committed = committed_end(facts, found.plan, offset, epoch)
    if kept.offset > versions_from(committed.offset, offset):
        return None
    return kept if _record_time(run, found, kept.offset - 1) == (kept.last_epoch, kept.last_append_time) else None


def _migration_znode(run: Run) -> dict[str, int]:
    """Numbers of the run's `/migration`; none of them when it is absent or can't be read."""
    rows = run.read(ZK_ZNODES).where((F.col("path") == "/migration") & (F.col("snapshot_id") == run.run_id))
    found = rows.select("data").collect()
    try:
        parsed = json.loads(found[0]["data"]) if found and found[0]["data"] else {}
    except json.JSONDecodeError:
        return {}
    numbers = parsed.items() if isinstance(parsed, dict) else ()
    return {name: value for name, value in numbers if isinstance(value, int)}


def _record_time(run: Run, found: Copies, offset: int) -> tuple[int, int] | None:
    """Epoch and append time of the log's record at an offset: two logs hardly agree on the millisecond."""
    plan = found.plan
    pieces = [s for s in plan.slices if s.from_offset <= offset < s.to_offset] if plan else []
    copies = [copy for piece in pieces for copy in found.copies if copy.location == piece.location]
    selection = Selection(offset, offset + 1)
    for copy in copies:
        for batch in read_records(plan_log(copy, selection), run.fingerprinter, selection):
            for row in batch.select(["offset", "epoch", "append_time"]).to_pylist():
                if row["offset"] == offset:
                    return row["epoch"], row["append_time"]
    return None


def _chosen(copy: LogCopy, plan: ReadPlan | None, start: int) -> dict[str, int | None]:
    slices = [] if plan is None else [s for s in plan.slices if s.location == copy.location and s.to_offset > start]
    return {
        "chosen_from": min((max(s.from_offset, start) for s in slices), default=None),
        "chosen_to": max((s.to_offset for s in slices), default=None),
    }


def _work(found: Copies, start: int) -> Iterator[Work]:
    """What to read from offset `start` on: the plan's slices and every complete snapshot once.

    Without a plan, all of the damaged copies, for their findings.
    """
    by_location = {copy.location: copy for copy in found.copies}
    if found.plan is None:
        for copy in found.copies:
            yield from ((task, Selection()) for task in plan_log(copy))
        return
    for piece in found.plan.slices:
        selection = Selection(max(piece.from_offset, start), piece.to_offset)
        yield from ((task, selection) for task in plan_log(by_location[piece.location], selection))
    read: set[tuple[int, int]] = set()
    for copy in found.copies:
        for checkpoint in copy.checkpoints:
            if checkpoint.offset <= start and start > 0:
                continue
            if checkpoint.complete and (checkpoint.offset, checkpoint.epoch) not in read:
                read.add((checkpoint.offset, checkpoint.epoch))
                yield from ((task, Selection()) for task in plan_checkpoint(copy, checkpoint))


def _read(run: Run, work: list[Work]) -> DataFrame:
    """Records of the work, read by as many workers as there are pieces, a few pieces each when they are small."""
    groups = _grouped(work)
    masking: Masking = run.fingerprinter

    def read_group(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                for task, selection in groups[index]:
                    yield from read_records([task], masking, selection)

    return run.spark.range(0, len(groups), 1, max(1, len(groups))).mapInArrow(read_group, _RECORDS)


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


def main(argv: list[str] | None = None) -> int:
    """Entry point of the step alone."""
    return step_main("ingest_kraft", run_step, argv)


if __name__ == "__main__":
    sys.exit(main())
