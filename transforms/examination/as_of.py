"""A finished run's rows of ZooKeeper against KRaft's state at another offset: one pass over what that run has read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import polars as pl

from schemas.classes import NOT_COMPARABLE
from schemas.entities import MIRRORED
from transforms.examination.log import checkpoints_of
from transforms.examination.trees import trees_of, znodes_without_data
from transforms.examination.written import barriers_of
from transforms.kraft.replayed import Replayed, state_at, versions_of
from transforms.kraft.side import KraftSide
from transforms.reconcile.compare.between import located
from transforms.reconcile.compare.comparison import Inputs, classified, of_migration
from transforms.reconcile.compare.difference import Ends, differing_rows, sides_of, without_moved
from transforms.reconcile.compare.divergences import FOLLOWED, seen_from
from transforms.reconcile.judge.contexts import context_at, context_of
from transforms.reconcile.judge.evidence import ClusterFacts
from transforms.units import Feed, UnitKind
from transforms.zookeeper.read.bracket import moved_znodes
from transforms.zookeeper.read.trees import at_barrier


@dataclass(frozen=True)
class TaskAt:
    """A finished run's cluster and the offset (inclusive) that is asked for.

    `gathered` are its facts, by which rows can be compared. The feed has the whole log of `side`, also where the run continued from
    an earlier one's state; `base` is the checkpoint (exclusive end) that it begins with, None for offset 0. `bracketed` is true where
    its tree was walked twice, `reads_data_folder` where ZooKeeper's transaction logs were read, whose barriers the feed has.
    """

    gathered: ClusterFacts
    side: KraftSide
    base: int | None
    bracketed: bool
    offset: int
    reads_data_folder: bool = False


def divergences_at(task: TaskAt, feed: Feed) -> pl.DataFrame:
    """The divergences with KRaft's state at the offset: rows of `transforms.reconcile.compare.between.located`."""
    trees = trees_of(feed.batches(UnitKind.ZNODES))
    moved = (
        moved_znodes(trees.znodes, znodes_without_data(feed.batches(UnitKind.SECOND_WALK))) if task.bracketed else None
    )
    then = context_at(context_of(task.gathered), task.offset)
    log = _Log(task, feed)
    kraft, row_versions = log.replayed(task.offset + 1, then.committed_end, then.migration_offset + 1)

    def versions(keys: Collection[tuple[str, str]]) -> pl.DataFrame:
        return log.versions_of(keys, then.committed_end, then.migration_offset)

    inputs = Inputs(
        {entity.name: pl.concat([trees.tables[entity.name], kraft[entity.name]]) for entity in MIRRORED},
        row_versions,
        trees.znodes.filter(at_barrier()),
        pl.DataFrame(schema=FOLLOWED),
        versions,
        moved,
        barriers_of(feed) if task.reads_data_folder else None,
    )
    return _divergences(task, inputs)


def _divergences(task: TaskAt, inputs: Inputs) -> pl.DataFrame:
    """The divergences of `inputs`; those not comparable are left out.

    Of `inputs`, KRaft's rows are those at the offset, and the row versions those after `context_at`'s migration offset up to
    its committed end. From /migration's offset on, it is the audit as if the log had ended there. Below it, ZooKeeper is ahead:
    rows that it has from later records are in_flight.
    """
    context = context_of(task.gathered)
    then = context_at(context, task.offset)
    differing = differing_rows(sides_of(inputs.tables), inputs.row_versions, Ends(then.committed_end))
    found = classified(without_moved(differing, inputs.moved), then, inputs.znodes, inputs.versions)
    rows = located(found.filter(pl.col("class") != NOT_COMPARABLE), of_migration(inputs.barriers, then))
    reached = context.migration_offset
    return rows if task.offset >= reached else seen_from(rows, task.offset, reached)


class _Log:
    """The run's log, to be replayed to several ends (exclusive)."""

    def __init__(self, task: TaskAt, feed: Feed) -> None:
        self.task, self.feed = task, feed
        self.checkpoints = checkpoints_of(feed)

    def replayed(self, at: int, end: int, after: int) -> tuple[Mapping[str, pl.DataFrame], pl.DataFrame]:
        """KRaft's rows by entity below offset `at`, and the versions from `after` (inclusive) to `end`."""
        whole = self._replayed(end, after)
        # Of two states only one is held: the versions are few.
        return (whole.tables if at == end else self._replayed(at).tables), whole.row_versions

    def _replayed(self, end: int, after: int | None = None) -> Replayed:
        side, extent = self.task.side, self.task.side.whole(self.task.base, end)
        name = self.task.gathered.name
        return state_at(name, side, extent, self.feed.batches(UnitKind.LOG), self.checkpoints, after)

    def versions_of(self, keys: Collection[tuple[str, str]], end: int, until: int) -> pl.DataFrame:
        """All that happened to some rows up to an offset (inclusive)."""
        side, extent = self.task.side, self.task.side.whole(self.task.base, end)
        return versions_of(side, extent, self.feed.batches(UnitKind.LOG), self.checkpoints, keys, until)
