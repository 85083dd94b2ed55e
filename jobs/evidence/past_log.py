"""A finished run's log, read from its beginning, and the znodes that decide how it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jobs.evidence.kept_state import kept_by
from jobs.evidence.opening import spark_tables
from jobs.evidence.past_run import PastRun
from jobs.exit import UsageError
from jobs.sinks.reader import records
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from schemas.checks import ZOOKEEPER
from schemas.entities.migration import MIGRATION
from schemas.zookeeper.trees import BARRIER, TREE
from transforms.kraft.replay.extent import Extent
from transforms.kraft.side import MILESTONE_COLUMNS, MILESTONES, KraftSide, LogKept, kraft_side

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobs.evidence.past_records import WholeLog

_OF_TABLE = ("cluster", "run_id", "source", TREE)


@dataclass(frozen=True)
class PastKraft:
    """A finished run's log: its plan, and its records in Spark on request."""

    past: PastRun
    side: KraftSide

    @cached_property
    def _whole(self) -> WholeLog:
        from jobs.evidence.past_records import whole_log  # noqa: PLC0415 - who asks for no record needs no Spark

        past = self.past
        return whole_log(spark_tables(past.warehouse), past.cluster, past.run_id, self.side)

    @property
    def records(self) -> DataFrame:
        """Rows of bronze kraft_records, all that the run's state comes from, also where it read only the newest part itself."""
        return self._whole.records

    @property
    def base(self) -> int | None:
        """The checkpoint (exclusive end) that the records begin with, None for offset 0."""
        return self._whole.base

    @property
    def first(self) -> int:
        """First offset (inclusive) whose state the run's own copies show."""
        plan = self.side.plan
        return plan.slices[0].from_offset_inclusive if self.side.base is None else self.side.base - 1

    @property
    def last(self) -> int:
        """Last offset (inclusive) of the log."""
        return self.side.plan.leading.end - 1

    def checked(self, offset: int) -> int:
        """The offset, if its state is known. Raises UsageError with the valid range."""
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
        from jobs.evidence.past_records import applied  # noqa: PLC0415 - who asks for no record needs no Spark

        return applied(self.records, self.extent)


def migration_znodes(past: PastRun, tree: str = BARRIER) -> dict[str, Any] | None:
    """What `/migration`, `/controller` and `/controller_epoch` said, in the columns of silver `migration`; None without ZooKeeper.

    They are those of the tree that was compared, or of the `newest` (`schemas.zookeeper.trees`).
    """
    rows = list(records(past.rows(MIGRATION.table, where={"source": ZOOKEEPER}), MIGRATION.table))
    found = next((row for row in rows if row[TREE] in (None, tree)), None)
    if found is None:
        return None
    return {name: value for name, value in found.items() if name not in _OF_TABLE and value is not None}


def past_copies(past: PastRun) -> list[dict[str, Any]]:
    """The copies of the log that the run found: rows of bronze kraft_log_copies."""
    return list(records(past.rows(KRAFT_LOG_COPIES), KRAFT_LOG_COPIES))


def past_kraft(past: PastRun, znodes: Mapping[str, Any] | None) -> PastKraft | None:
    """The run's log by its copies and its `migration_znodes`; None when it had none that could be used."""
    copies = past_copies(past)
    if not copies:
        return None
    found = past.rows(KRAFT_RECORDS, MILESTONE_COLUMNS, {"problem": None, "type": MILESTONES})
    side = kraft_side(copies, found.iter_rows(named=True), znodes, _kept(past, copies))
    return None if side is None else PastKraft(past, side)


def _kept(past: PastRun, copies: list[dict[str, Any]]) -> LogKept | None:
    """The state that the run continued from. Raises UsageError if it is gone: then the run's records are not the whole log."""
    base_run = next((row["base_run"] for row in copies if row["base_run"] is not None), None)
    found = kept_by(past.warehouse, past.cluster, base_run)
    if base_run is not None and found is None:
        raise UsageError(
            f"run {past.run_id} read only the end of the log, and what run {base_run} kept of the rest is gone or of an "
            "earlier release; look at another run, or at all of them (`kraft-audit history ENTITY KEY`)"
        )
    return found
