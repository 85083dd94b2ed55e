"""ZooKeeper's trees of a run: those of the walk that is judged, and what moved until a bracket's second one."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.run import Run
from schemas.bronze import ZK_ZNODES
from transforms.zookeeper.read.bracket import bracket
from transforms.zookeeper.read.trees import at_barrier, newest


def compared_tree(run: Run) -> DataFrame:
    """Znodes of the tree that is compared with the log, of each cluster: of a data folder, at its barrier (S§5.5)."""
    return both_trees(run).where(at_barrier())


def newest_tree(run: Run) -> DataFrame:
    """Znodes of the tree as it was when it was read, of each cluster: all but rows are judged by it."""
    return both_trees(run).where(newest())


def both_trees(run: Run) -> DataFrame:
    """Znodes of both trees, with the column `tree`; a second walk is none of them, it only tells what moved."""
    return _walked(run, [name for name in run.going if run.clusters[name].walks], 0)


def bracketed(run: Run) -> list[str]:
    """Clusters whose tree was walked twice, around the log."""
    return [name for name in run.going if len(run.clusters[name].walks) > 1]


def second_walks(run: Run) -> DataFrame:
    """Znodes of each bracket's second walk."""
    return _walked(run, bracketed(run), 1)


def moved_znodes(run: Run) -> DataFrame | None:
    """Znodes that changed between two walks around the log (cluster, path, moved, …); None when nobody walked twice."""
    twice = bracketed(run)
    if not twice:
        return None
    return bracket(_walked(run, twice, 0), second_walks(run))[1]


def _walked(run: Run, clusters: Sequence[str], number: int) -> DataFrame:
    """Znodes of one walk of each cluster: a walk's snapshot_id is its own."""
    return run.rows(ZK_ZNODES).where(F.col("snapshot_id").isin([run.clusters[name].walks[number] for name in clusters]))
