"""Records of the metadata log: `spark.read.format("kraft_log").load(path)`, and the same without Spark.

Workers read byte ranges that are aligned to batches, so memory is bounded by the split and never by the segment.

| option | meaning |
| --- | --- |
| `controller` | only this controller's copy (its node id); all copies below the path otherwise |
| `from_offset`, `to_offset` | only log offsets in [from, to): `to_offset` is the as-of offset, exclusive |
| `include_control` | `false` leaves control records out (default `true`) |
| `checkpoint` | name of a `.checkpoint` file: its records instead of the log's |
| `fingerprint_key_env` | environment variable, on the workers, with the fingerprint key; default: a key made for this read |
| `split_bytes` | size of a byte range (default 8 MiB) |
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from jobs.sources.kraft.folder import (
    CheckpointFile,
    KraftSourceError,
    ScannedCopy,
    SegmentFile,
    named_place,
    read_copies,
    whole_file,
)
from jobs.sources.remote import read_range
from schemas.bronze import LOG_RECORD_COLUMNS
from transforms.kraft.decode.framing import BatchHeader, frames
from transforms.kraft.decode.masking import Masking
from transforms.kraft.decode.rows import Origin
from transforms.kraft.decode.scan import SPLIT_BYTES, scan_segment
from transforms.kraft.decode.segments import Continuation, decode_checkpoint, decode_segment
from transforms.kraft.other_logs import Place
from transforms.secrets import Fingerprinter

NAME = "kraft_log"
OPTIONS = (
    "path",
    "controller",
    "from_offset",
    "to_offset",
    "include_control",
    "checkpoint",
    "fingerprint_key_env",
    "split_bytes",
)
_KEY_BYTES = 32


@dataclass(frozen=True)
class ReadTask:
    """Bytes [start, end) of one file, aligned to batches; a checkpoint is always read whole."""

    path: str
    start: int
    end: int
    origin: Origin
    continuation: Continuation


@dataclass(frozen=True)
class Selection:
    """Which rows are wanted. Rows about damage without an offset are always among them; with `damage_only`, no others are.

    With `outside`, only rows about damage at other offsets than those in [from, to) are.
    """

    from_offset: int | None = None
    to_offset: int | None = None
    include_control: bool = True
    damage_only: bool = False
    outside: tuple[int, int] | None = None


EVERYTHING = Selection()
DAMAGE = Selection(damage_only=True)


def plan_log(copy: ScannedCopy, selection: Selection = EVERYTHING) -> list[ReadTask]:
    """List the byte ranges of a copy's segments that can hold wanted offsets, in log order."""
    return [task for segment in copy.segments for task in _plan_segment(segment, copy.controller_id, selection)]


def plan_damage(copy: ScannedCopy, read: tuple[int, int] | None = None) -> list[tuple[ReadTask, Selection]]:
    """List the byte ranges of a copy's damaged segments, and what to look for there: damage outside of the offsets that are `read`."""
    if read is not None and read[0] <= (copy.log_start_offset or 0) and (copy.log_end_offset or 0) <= read[1]:
        return []
    damaged = (segment for segment in copy.segments if segment.damaged)
    begun = set() if read is None else set(plan_log(copy, Selection(*read)))
    tasks = (task for segment in damaged for task in _plan_segment(segment, copy.controller_id, DAMAGE))
    return [(task, Selection(outside=read) if task in begun else DAMAGE) for task in tasks]


def plan_damaged_start(copy: ScannedCopy) -> list[ReadTask]:
    """The one task that reads the snapshot file that a controller starts from, if it is incomplete (`KafkaMetadataLog.latestSnapshot`)."""
    newest = max(copy.checkpoints, key=lambda file: (file.epoch, file.offset), default=None)
    return [] if newest is None or newest.complete else plan_checkpoint(copy, newest)


def plan_file(path: Path, selection: Selection = EVERYTHING) -> list[ReadTask]:
    """List the byte ranges of a single file: a `.checkpoint`, or anything else as a segment.

    `bootstrap.checkpoint` counts as a snapshot up to offset 0. Raises KraftSourceError when the file can't be read.
    """
    try:
        if path.suffix == ".checkpoint":
            digits = path.name.partition("-")[0]
            origin = Origin(None, path.name, int(digits) if digits.isdecimal() else 0)
            return [ReadTask(str(path), 0, path.stat().st_size, origin, Continuation())]
        with whole_file(path) as data:
            scan = scan_segment(data, named_place(path, data))
    except OSError as error:
        raise KraftSourceError(f"{path}: can't be read: {error.strerror}") from None
    segment = SegmentFile(path, scan.size, scan.next_offset, tuple(scan.ranges), str(path))
    return _plan_segment(segment, None, selection)


def _plan_segment(segment: SegmentFile, controller_id: int | None, selection: Selection) -> list[ReadTask]:
    origin = Origin(controller_id, segment.path.name)
    tasks = []
    for index, piece in enumerate(segment.ranges):
        following = segment.ranges[index + 1].continuation.next_offset if index + 1 < len(segment.ranges) else None
        after = following if following is not None else segment.next_offset
        if selection.from_offset is not None and after is not None and after <= selection.from_offset:
            continue
        first = piece.continuation.next_offset
        if selection.to_offset is not None and first is not None and first >= selection.to_offset:
            continue
        tasks.append(ReadTask(segment.location, piece.start, piece.end, origin, piece.continuation))
    return tasks


def batch_place(copy: ScannedCopy, offset: int) -> Place | None:
    """The intact batch of a copy that holds `offset`; None if there is none. Its records are not decoded."""
    for task in plan_log(copy, Selection(offset, offset + 1)):
        highest = task.continuation.epoch
        for frame in frames(read_range(task.path, task.start, task.end)):
            if not isinstance(frame, BatchHeader) or not frame.intact:
                continue
            # A later epoch that no election began is damage (S§2.10).
            epoch = frame.epoch if frame.control or highest is None else min(frame.epoch, highest)
            highest = max(epoch, -1 if highest is None else highest)
            if frame.base_offset <= offset < frame.next_offset:
                return Place(offset, epoch, frame.max_timestamp)
    return None


def plan_checkpoint(copy: ScannedCopy, checkpoint: CheckpointFile) -> list[ReadTask]:
    """The one task that reads a snapshot file of a copy."""
    origin = Origin(copy.controller_id, checkpoint.path.name, checkpoint.offset)
    return [ReadTask(checkpoint.location, 0, checkpoint.size, origin, Continuation())]


def read_records(
    tasks: Iterable[ReadTask], masking: Masking, selection: Selection = EVERYTHING
) -> Iterator[pa.RecordBatch]:
    """Read tasks one after the other into batches of the bronze schema (`transforms.kraft.decode.rows.RECORD_SCHEMA`).

    Raises KraftSourceError for a file that is shorter than it was when the tasks were planned: what is missing would pass
    for the torn tail that a running controller leaves.
    """
    for task in tasks:
        data = read_range(task.path, task.start, task.end)
        if len(data) < task.end - task.start:
            raise KraftSourceError(
                f"{task.path} became shorter while it was read: is somebody copying into this folder, or a controller running "
                "in it? Run again when that has ended"
            )
        if task.origin.checkpoint_offset is not None:
            for batch in decode_checkpoint(data, task.origin, masking):
                yield from _select(batch, DAMAGE if selection.damage_only else EVERYTHING)
        else:
            for batch in decode_segment(data, task.origin, masking, task.continuation):
                yield from _select(batch, selection)


def _select(batch: pa.RecordBatch, selection: Selection) -> Iterator[pa.RecordBatch]:
    keep = None
    offset = batch.column("offset")
    if selection.from_offset is not None:
        keep = pc.fill_null(pc.greater_equal(offset, selection.from_offset), True)
    if selection.to_offset is not None:
        below = pc.fill_null(pc.less(offset, selection.to_offset), True)
        keep = below if keep is None else pc.and_(keep, below)
    if not selection.include_control:
        data = pc.or_(pc.invert(pc.fill_null(batch.column("control"), False)), pc.is_valid(batch.column("problem")))
        keep = data if keep is None else pc.and_(keep, data)
    if selection.damage_only:
        keep = pc.is_valid(batch.column("problem"))
    if selection.outside is not None:
        begin, end = selection.outside
        unread = pc.or_(pc.less(offset, begin), pc.greater_equal(offset, end))
        keep = pc.and_(pc.is_valid(batch.column("problem")), pc.fill_null(unread, False))
    chosen = batch if keep is None else batch.filter(keep)
    if chosen.num_rows:
        yield chosen


class RangePartition(InputPartition):
    """One Spark partition: the tasks one worker reads."""

    def __init__(self, tasks: list[ReadTask]) -> None:
        super().__init__(None)
        self.tasks = tasks


class KraftLogDataSource(DataSource):
    """The data source; register it with `spark.dataSource.register(KraftLogDataSource)`."""

    @classmethod
    def name(cls) -> str:
        """Name in `spark.read.format(…)`."""
        return NAME

    def schema(self) -> StructType:
        """The columns of `schemas.bronze.LOG_RECORD_COLUMNS`."""
        return StructType(list(LOG_RECORD_COLUMNS))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make the reader; KraftSourceError for options that make no sense."""
        return KraftLogReader(dict(self.options))


class KraftLogReader(DataSourceReader):
    """Plans byte ranges on the driver and reads them in the workers."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        unknown = sorted(set(given) - set(OPTIONS))
        if unknown:
            raise KraftSourceError(f"unknown option {unknown[0]!r} of {NAME}; known: {', '.join(OPTIONS)}")
        if "path" not in given:
            raise KraftSourceError(f"{NAME} needs a path: .load(path)")
        self.path = given["path"]
        self.controller = _number(given, "controller")
        self.split_bytes = _number(given, "split_bytes") or SPLIT_BYTES
        self.checkpoint = given.get("checkpoint")
        self.selection = Selection(
            _number(given, "from_offset"), _number(given, "to_offset"), _flag(given, "include_control", True)
        )
        self._key_env = given.get("fingerprint_key_env")
        # Made here, so that every worker uses the same; it is never an option, which plans and logs would show.
        self._key = secrets.token_bytes(_KEY_BYTES)

    def partitions(self) -> list[InputPartition]:
        """One partition a byte range."""
        return [RangePartition([task]) for task in self._tasks()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition's ranges, in a worker."""
        assert isinstance(partition, RangePartition)  # noqa: S101 - Spark hands back what partitions() made
        key = _variable(self._key_env).encode() if self._key_env else self._key
        return read_records(partition.tasks, Fingerprinter(key), self.selection)

    def _tasks(self) -> list[ReadTask]:
        copies = read_copies(self.path, self.split_bytes)
        if self.controller is not None:
            copies = [copy for copy in copies if copy.controller_id == self.controller]
            if not copies:
                raise KraftSourceError(f"{self.path}: no copy of controller {self.controller} in it")
        if self.checkpoint is None:
            return [task for copy in copies for task in plan_log(copy, self.selection)]
        tasks = [
            task
            for copy in copies
            for file in copy.checkpoints
            if file.path.name == Path(self.checkpoint).name
            for task in plan_checkpoint(copy, file)
        ]
        if not tasks:
            raise KraftSourceError(f"{self.path}: no checkpoint named {Path(self.checkpoint).name} in it")
        return tasks


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise KraftSourceError(f"option {name} of {NAME} must be a number, not {text!r}") from None


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise KraftSourceError(f"option {name} of {NAME} must be true or false, not {text!r}")
    return text == "true"


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise KraftSourceError(f"the environment variable {name} is not set on the worker")
    return value
