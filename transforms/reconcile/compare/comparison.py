"""The comparison of one cluster's sides: its differing rows with their classes, and those that a report needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from schemas.classes import NOT_COMPARABLE
from transforms.reconcile.compare.between import located
from transforms.reconcile.compare.context import CLOCK_MARGIN_MS, Context
from transforms.reconcile.compare.difference import (
    Ends,
    differing_rows,
    duplicated,
    sides_of,
    with_earlier,
    without_moved,
)
from transforms.reconcile.compare.divergences import divergences, followed, listed
from transforms.reconcile.compare.home import parent
from transforms.reconcile.compare.places import Doubtful, doubtful, look_up
from transforms.reconcile.compare.suppressions import MARK, SuppressionRule, counted_matches, marked
from transforms.reconcile.compare.writers import removed_whole
from transforms.zookeeper.storage.limits import MAX_ZNODE_BYTES

# The known history of rows up to `/migration`'s offset (inclusive) in all their lives: from their (entity, canonical key) to
# ROW_VERSION_COLUMNS rows, one for each record on a row.
VersionsOf = Callable[[Collection[tuple[str, str]]], pl.DataFrame]
_TOPICS = "/brokers/topics"
# Rows by the name of the answer, as JSON can spell them: what `transforms.report.comparison` makes a report's lists of.
Answers = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Inputs:
    """What a comparison reads of its cluster.

    `tables` are silver rows of both sides by entity, `row_versions` ROW_VERSION_COLUMNS rows, `znodes` those of the tree that is
    compared, `previous` the rows of gold divergences of the cluster's run before (none on its first). `moved` are znodes
    that changed between the two walks of a bracket (column path), `barriers` silver barriers; None where nobody walked
    twice, and where no transaction logs were read.
    """

    tables: Mapping[str, pl.DataFrame]
    row_versions: pl.DataFrame
    znodes: pl.DataFrame
    previous: pl.DataFrame
    versions: VersionsOf
    moved: pl.DataFrame | None = None
    barriers: pl.DataFrame | None = None


@dataclass(frozen=True)
class Compared:
    """The run's rows of gold divergences (columns `divergences.FOLLOWED`), and the answers a report needs.

    Answers: `row` has the rows of `listed`, `twice` those of `duplicated`. With suppressions there are `matched`,
    the rows of `counted_matches`, and the rows of `listed` for suppressed (`hidden`) and other (`others`) differences.
    """

    rows: pl.DataFrame
    answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def compare(
    inputs: Inputs,
    context: Context,
    ends: Ends,
    run_id: str,
    limit: int,
    suppressions: Sequence[SuppressionRule] = (),
) -> Compared:
    """Compare the sides of a cluster that can be compared.

    `limit` is how many rows a report lists; `suppressions` are those in force: they change the list, but no row.
    """
    differing = without_moved(differing_rows(sides_of(inputs.tables), inputs.row_versions, ends), inputs.moved)
    found = classified(differing, context, inputs.znodes, inputs.versions)
    current = located(found, of_migration(inputs.barriers, context)).filter(pl.col("class") != NOT_COMPARABLE)
    rows = followed(current, inputs.previous, run_id)
    answers = {"row": listed(rows, limit).to_dicts(), "twice": duplicated(differing)}
    return Compared(rows, answers | (_vouched_for(rows, suppressions, limit) if suppressions else {}))


def classified(differing: pl.DataFrame, context: Context, znodes: pl.DataFrame, versions: VersionsOf) -> pl.DataFrame:
    """Divergences of `differing_rows`: columns DIVERGENCE.

    Rows that seem lost are examined twice: all values that KRaft ever gave them, and the places in the tree where ZooKeeper
    should have them, show what else wrote or removed them.
    """
    context = replace(context, unread=_unread(znodes))
    current = divergences(differing, context)
    lost = doubtful(current)
    if not lost.keys:
        return current
    looked = _looked_up(lost, context, znodes)
    return divergences(with_earlier(differing, versions(sorted(lost.keys))), looked)


def _unread(znodes: pl.DataFrame) -> frozenset[str]:
    """Znodes whose data, or list of children, could not be read: without a stat, or too large. Of others the text alone is odd."""
    unread = pl.col("problem").is_not_null() & (pl.col("mzxid").is_null() | (pl.col("data_length") > MAX_ZNODE_BYTES))
    return frozenset(znodes.filter(unread)["path"])


def _looked_up(lost: Doubtful, context: Context, znodes: pl.DataFrame) -> Context:
    homes = look_up(znodes, lost.places, context.migration_mzxid) if lost.places else context.homes
    looked = replace(
        context, homes=homes, after_load=_after_load(znodes, context), emptied=_emptied(lost, znodes, context)
    )
    removed = (removed_whole(place, made, looked) for place, made in lost.made.items())
    return replace(
        looked, foreign_paths=context.foreign_paths | lost.rewritten, removed=frozenset(filter(None, removed))
    )


def _emptied(lost: Doubtful, znodes: pl.DataFrame, context: Context) -> bool:
    """Whether the first full sync may have deleted what was loaded: it deletes all topics or none (`KRaftMigrationZkWriter`)."""
    if not context.limits.empties or context.load is None:
        return False
    begin, end = context.load
    topics = [made for place, made in lost.made.items() if parent(place) == _TOPICS and begin <= made <= end]
    return bool(topics) and znodes.filter(pl.col("path").str.starts_with(f"{_TOPICS}/") & _loaded(context)).is_empty()


def _loaded(context: Context) -> pl.Expr:
    """Znodes that were there when the load read them."""
    if context.load_claim is not None:
        return pl.col("czxid") < context.load_claim
    return pl.col("ctime") < (context.load_time_ms or 0) + context.clocks.ahead_ms


def _after_load(znodes: pl.DataFrame, context: Context) -> int | None:
    """The first transaction that left a znode surely written after the load: a failover's claim hides the one before the load."""
    if context.load_claim is not None or context.load_time_ms is None:
        return None
    after = context.load_time_ms + context.clocks.ahead_ms + context.clocks.margin_ms
    first: int | None = znodes.filter(pl.col("mtime") > after)["mzxid"].min()  # type: ignore[assignment]
    return first


def of_migration(barriers: pl.DataFrame | None, context: Context) -> pl.DataFrame | None:
    """Of rows of silver barriers those of the present migration; None if its beginning is unknown."""
    if barriers is None or context.load_time_ms is None:
        return None
    return barriers.filter(pl.col("time") >= context.load_time_ms - CLOCK_MARGIN_MS)


def _vouched_for(rows: pl.DataFrame, rules: Sequence[SuppressionRule], limit: int) -> dict[str, list[dict[str, Any]]]:
    rows = marked(rows, rules)
    current, vouched = rows.filter(pl.col("status") != "resolved"), pl.col(MARK).is_not_null()
    return {
        "matched": counted_matches(current, rules),
        "others": listed(rows.filter(~vouched), limit).to_dicts(),
        "hidden": listed(current.filter(vouched), limit).to_dicts(),
    }
