"""A finished run's log, read from its beginning, and the znodes that decide how it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.past import PastRun
from jobs.audit.past_records import applied, kept_by, whole_log
from jobs.exit import UsageError
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from schemas.checks import ZOOKEEPER
from schemas.entities.migration import MIGRATION
from schemas.zookeeper.trees import BARRIER, TREE
from transforms.kraft.replay.extent import Extent
from transforms.kraft.side import MILESTONE_COLUMNS, MILESTONES, Kept, KraftSide, kraft_side

_OF_TABLE = ("cluster", "run_id", "source", TREE)


@dataclass(frozen=True)
class PastKraft:
    """A finished run's log.

    `records` are rows of bronze kraft_records, all that the run's state comes from, also where it read only the newest part itself;
    `base` is the checkpoint (exclusive end) that they begin with, None for offset 0.
    """

    side: KraftSide
    records: DataFrame
    base: int | None

    @property
    def first(self) -> int:
        """First offset (inclusive) whose state the run's own copies can tell."""
        plan = self.side.plan
        return plan.slices[0].from_offset_inclusive if self.side.base is None else self.side.base - 1

    @property
    def last(self) -> int:
        """Last offset (inclusive) of the log."""
        return self.side.plan.leading.end - 1

    def checked(self, offset: int) -> int:
        """The offset, if its state can be told. Raises UsageError with the range that can."""
        if not self.first <= offset <= self.last:
            raise UsageError(
                f"--as-of: offset {offset} is not in the run's log; give one from {self.first} to {self.last} (inclusive)"
            )
        return offset

    @property
    def extent(self) -> Extent:
        """What of the records takes effect, to the log's end."""
        return self.side.whole(self.base)

    def applied(self) -> DataFrame:
        """The records that take effect; those of the checkpoint stand just before its end."""
        return applied(self.records, self.extent)


def migration_znodes(past: PastRun, tree: str = BARRIER) -> dict[str, Any] | None:
    """What `/migration`, `/controller` and `/controller_epoch` said, in the columns of silver `migration`; None without ZooKeeper.

    They are those of the tree that was compared, or of the `newest` (`schemas.zookeeper.trees`).
    """
    of_tree = F.col(TREE).isNull() | (F.col(TREE) == tree)
    rows = past.read(MIGRATION.table).where((F.col("source") == ZOOKEEPER) & of_tree).collect()
    if not rows:
        return None
    return {name: value for name, value in rows[0].asDict().items() if name not in _OF_TABLE and value is not None}


def past_copies(past: PastRun) -> list[dict[str, Any]]:
    """The copies of the log that the run found: rows of bronze kraft_log_copies."""
    return [row.asDict(recursive=True) for row in past.read(KRAFT_LOG_COPIES).collect()]


def past_kraft(past: PastRun, znodes: Mapping[str, Any] | None) -> PastKraft | None:
    """The run's log by its copies and its `migration_znodes`; None when it had none that could be used."""
    copies = past_copies(past)
    if not copies:
        return None
    read = past.read(KRAFT_RECORDS).where(F.col("problem").isNull() & F.col("type").isin(list(MILESTONES)))
    found = [row.asDict() for row in read.select(*MILESTONE_COLUMNS).collect()]
    side = kraft_side(copies, found, znodes, _kept(past, copies))
    if side is None:
        return None
    whole = whole_log(past.warehouse, past.cluster, past.run_id, side)
    return PastKraft(side, whole.records, whole.base)


def _kept(past: PastRun, copies: list[dict[str, Any]]) -> Kept | None:
    """The state that the run went on from."""
    base_run = next((row["base_run"] for row in copies if row["base_run"] is not None), None)
    return kept_by(past.warehouse, past.cluster, base_run)
