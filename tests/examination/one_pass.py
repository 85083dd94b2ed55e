"""The one pass over files of one cluster, fed as the steps feed it, in this process: no table, no Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.evidence.feed import Spool, SpooledFeed
from jobs.runtime.workers import with_columns
from jobs.sources.kraft.log import read_records
from jobs.sources.zookeeper.dump import read_dump
from jobs.steps.ingest_kraft import Copies, _chosen, _work, find_copies
from schemas.zookeeper.trees import BARRIER, NEWEST, TREE
from transforms.examination.answers import KEEPING, RECORDED
from transforms.examination.examine import examine
from transforms.examination.made import ANSWERS, FAILURE, FOLD, MEMORY, ROWS, Made
from transforms.examination.task import ClusterTask, Recorded
from transforms.kraft.coverage import planned_log
from transforms.kraft.side import LogKept, kraft_side, milestones
from transforms.reconcile.judge.given import Given
from transforms.secrets import Fingerprinter
from transforms.units import UnitKind, batches_of, feed_row, packed_records, stream
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.read.routes import MIGRATION_PATHS
from transforms.zookeeper.read.state import cluster_state
from transforms.zookeeper.read.tables import migration_row
from transforms.zookeeper.storage.chroot import needed

NAME = "c"
MASKING = Fingerprinter(b"a key of the tests, as long as one")
Payloads = list[tuple[int, bytes]]


@dataclass(frozen=True)
class Outcome:
    """The pieces of a pass by what they are."""

    pieces: Sequence[Made]

    @property
    def kinds(self) -> set[str]:
        return {piece.kind for piece in self.pieces}

    @property
    def answers(self) -> dict[str, Any]:
        return self._said(ANSWERS)["answers"]

    @property
    def failure(self) -> dict[str, Any]:
        return self._said(FAILURE)

    def _said(self, kind: str) -> dict[str, Any]:
        [piece] = [piece for piece in self.pieces if piece.kind == kind]
        said: dict[str, Any] = json.loads(piece.payload)
        return said

    def bytes_of(self, kind: str) -> bytes:
        """Kept bytes."""
        return b"".join(piece.payload for piece in self.pieces if piece.kind == kind)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Rows of a table (`layer.name`), but for the run's id."""
        mine = [piece for piece in self.pieces if piece.kind == ROWS and piece.name == table]
        found = [row for piece in mine for batch in batches_of(piece.payload) for row in batch.to_pylist()]
        return [{name: value for name, value in row.items() if name != "run_id"} for row in found]

    @property
    def tables(self) -> set[str]:
        return {piece.name for piece in self.pieces if piece.kind == ROWS and piece.name is not None}


@dataclass(frozen=True)
class Left:
    """What a run has left: its state of the log, its memory, and which changes it has recorded."""

    of_log: LogKept
    fold: bytes
    memory: bytes
    recorded: Recorded


@dataclass
class Files:
    """A capture's files: a dump of ZooKeeper, where there is one, and the controllers' folders.

    `kept` is what a run of the same cluster has left, which this one continues from; `keep_every` as configured.
    """

    folder: Path
    kept: Left | None = None
    keep_every: int | None = 1
    alone: bool = False
    found: Copies = field(init=False)

    def __post_init__(self) -> None:
        self.found = find_copies([str(self.folder / "kraft")])

    @property
    def start(self) -> int:
        """First offset that is read (inclusive): of the record by which the log is known, where the run goes on."""
        return 0 if self.kept is None else max(0, self.kept.of_log.offset - 1)

    @property
    def copies(self) -> list[dict[str, Any]]:
        """Rows of bronze kraft_log_copies."""
        base = None if self.kept is None else self.kept.of_log.run_id
        rows = [
            {**copy.row(), **_chosen(copy, self.found.plan, self.start), "base_run": base} for copy in self.found.copies
        ]
        return sorted(rows, key=lambda row: str(row["location"]))

    def records(self, start: int | None = None) -> Iterator[pa.RecordBatch]:
        """Rows of bronze kraft_records from an offset on."""
        for task, selection in _work(self.found, self.start if start is None else start):
            for batch in read_records([task], MASKING, selection):
                yield with_columns(batch, {"cluster": NAME})

    def znodes(self) -> list[pa.RecordBatch]:
        """Rows of bronze zk_znodes."""
        dump = self.folder / "zookeeper.jsonl.gz"
        if not dump.exists():
            return []
        return [with_columns(needed(batch), {TREE: None}) for batch in read_dump(dump, Redactor(MASKING))]

    def given(self) -> Given:
        """What a run knows of the cluster before it is examined."""
        znodes, copies = self.znodes(), self.copies
        of_migration = [batch.filter(pc.is_in(batch["path"], pa.array(sorted(MIGRATION_PATHS)))) for batch in znodes]
        state = cluster_state(of_migration)
        compared = migration_row(state, BARRIER)
        seen = [row for batch in self.records() for row in milestones(batch)]
        side = kraft_side(copies, seen, compared, None if self.kept is None else self.kept.of_log)
        return Given(
            NAME,
            has_zookeeper=bool(znodes),
            has_kraft=True,
            walks=1 if znodes else 0,
            copies=copies,
            side=side,
            zookeeper=migration_row(state, NEWEST),
            compared=compared,
        )

    def asked(self, run_id: str) -> ClusterTask:
        """What the pass is asked."""
        recorded = None if self.kept is None else self.kept.recorded
        planned = planned_log(self.copies)
        return ClusterTask(self.given(), run_id, planned, self.keep_every, alone=self.alone, recorded=recorded)

    def payloads(self, records: Iterator[pa.RecordBatch] | None = None) -> Payloads:
        """What the pass is fed, in order."""
        packed = [row for batch in packed_records(records or self.records()) for row in batch.to_pylist()]
        packed.sort(key=lambda row: (row["kind"], row["place"]))
        fed: Payloads = [(int(UnitKind.BEGIN), b"")]
        if self.kept is not None:
            fed += [(int(UnitKind.FOLD), self.kept.fold), (int(UnitKind.MEMORY), self.kept.memory)]
        fed += [(int(UnitKind.ZNODES), stream(batch)) for batch in self.znodes()]
        return [*fed, *((row["kind"], row["payload"]) for row in packed)]

    def examined(self, run_id: str = "r1", **asked: Any) -> Outcome:
        """The pass over them; what is `asked` otherwise than by a run."""
        return examined(replace(self.asked(run_id), **asked), self.payloads())


@contextmanager
def spooled(payloads: Payloads) -> Iterator[SpooledFeed]:
    """The feed of one cluster, in the order of the payloads."""
    rows = [feed_row(NAME, kind, place, payload) for place, (kind, payload) in enumerate(payloads)]
    with Spool(rows) as spool:
        yield spool.feed(NAME)


def examined(asked: ClusterTask, payloads: Payloads) -> Outcome:
    """A pass over what is fed."""
    with spooled(payloads) as feed:
        return Outcome(list(examine(asked, feed)))


def left_by(outcome: Outcome, run_id: str = "r1") -> Left:
    """What a run that is over has left for the next one."""
    keeping: Mapping[str, Any] = outcome.answers[KEEPING]
    return Left(
        LogKept(
            run_id,
            keeping["offset"],
            keeping["last_epoch"],
            keeping["last_append_time"],
            tuple(keeping["milestones"]),
            keeping["base_run"],
        ),
        outcome.bytes_of(FOLD),
        outcome.bytes_of(MEMORY),
        Recorded(**outcome.answers[RECORDED]),
    )
