"""A finished run's comparison with KRaft's state at another offset than the committed end."""

from __future__ import annotations

import polars as pl

from schemas.classes import NOT_COMPARABLE
from transforms.reconcile.compare.between import located
from transforms.reconcile.compare.comparison import Inputs, classified, of_migration
from transforms.reconcile.compare.difference import Ends, differing_rows, sides_of, without_moved
from transforms.reconcile.compare.divergences import seen_from
from transforms.reconcile.judge.contexts import context_at, context_of
from transforms.reconcile.judge.evidence import ClusterFacts


def divergences_as_of(gathered: ClusterFacts, inputs: Inputs, offset: int) -> pl.DataFrame:
    """The divergences with KRaft's state at `offset` (inclusive), rows of `located`; those not comparable are left out.

    Of `inputs`, KRaft's rows are those at the offset, and the row versions those after `context_at`'s migration offset up to
    its committed end. From /migration's offset on, it is the audit as if the log had ended there. Below it, ZooKeeper is ahead:
    rows that it has from later records are in_flight.
    """
    context = context_of(gathered)
    then = context_at(context, offset)
    differing = differing_rows(sides_of(inputs.tables), inputs.row_versions, Ends(then.committed_end))
    found = classified(without_moved(differing, inputs.moved), then, inputs.znodes, inputs.versions)
    rows = located(found.filter(pl.col("class") != NOT_COMPARABLE), of_migration(inputs.barriers, then))
    reached = context.migration_offset
    return rows if offset >= reached else seen_from(rows, offset, reached)
