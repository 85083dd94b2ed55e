"""The rows that a maintenance removes: those past their retention (`transforms.retention`), by table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from jobs.sinks.conditions import PRESENT, Below, Between, Condition, Equal, NoneOf, Where, all_of, any_of
from jobs.sinks.delta import Warehouse, in_parallel
from jobs.sinks.reader import ORDER, oldest_first, records
from jobs.steps.maintenance.upkeep import AT_ONCE, Upkeep
from schemas import bronze, gold, silver
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from schemas.examined import EXAMINED
from schemas.gold import ISR_BY_DAY, ISR_HISTORY, MAILS, MAINTENANCE, RUN_STEPS, RUNS
from schemas.table import Layer, Table
from transforms.clusters import CLUSTER
from transforms.examination.made import KEPT_KINDS
from transforms.retention import Chosen, KnownRun, Part, Retained, begun_at, chosen, retained
from transforms.runs import FAILED


@dataclass(frozen=True)
class Section:
    """Rows of a table that stay for the same reasons; `where` chooses them; without conditions they are all of the table's."""

    table: Table
    part: Part
    where: Where = field(default_factory=dict)


@dataclass(frozen=True)
class Going:
    """Rows of a section that go: ids of runs by cluster, all ids that are there, and how many rows of how many.

    Sums by day are of no single run: they go if they meet one of `days`.
    """

    section: Section
    ids: dict[str, set[str]] = field(default_factory=dict)
    others: dict[str, set[str]] = field(default_factory=dict)
    rows: int = 0
    of_rows: int = 0
    days: Sequence[Where] = ()


def _sections() -> Iterator[Section]:
    for table in tended_tables():
        if table is EXAMINED:
            # The answers go first: a run that has them has all its rows (`jobs.evidence.past_run`).
            yield Section(table, Part.DETAILS, {"kind": NoneOf(KEPT_KINDS)})
            yield Section(table, Part.STATE, {"kind": KEPT_KINDS})
        elif table is not ISR_BY_DAY:
            yield Section(table, _part(table))


def tended_tables() -> list[Table]:
    """All tables from which rows go, gold `runs` last."""
    judged = [table for table in gold.TABLES if table not in (RUNS, MAINTENANCE)]
    return [EXAMINED, *silver.STATE_TABLES, *bronze.TABLES, *judged, RUNS]


def _part(table: Table) -> Part:
    if table is RUNS:
        return Part.RUN
    if table in (KRAFT_RECORDS, KRAFT_LOG_COPIES):
        return Part.LOG
    if table is ISR_HISTORY:
        return Part.CHANGES
    if table.chained:
        return Part.CHAIN
    return Part.JUDGED if table.layer is Layer.GOLD and table is not RUN_STEPS else Part.DETAILS


def retained_of(warehouse: Warehouse, upkeep: Upkeep, under_way: Mapping[str, datetime]) -> dict[str, Retained]:
    """What stays of each cluster with rules; of the others all does."""
    clusters = upkeep.rules.keys()
    runs, mailed = _known_runs(warehouse, clusters), _mailed(warehouse, clusters)
    return {
        name: retained(runs.get(name, []), rules, upkeep.now, mailed.get(name, ()), under_way)
        for name, rules in upkeep.rules.items()
    }


def _known_runs(warehouse: Warehouse, clusters: Collection[str]) -> dict[str, list[KnownRun]]:
    mine = {CLUSTER: sorted(clusters)}
    copies = warehouse.rows(KRAFT_LOG_COPIES, (CLUSTER, "run_id", "base_run"), {**mine, "base_run": PRESENT})
    went_on_from = {(name, run_id): base for name, run_id, base in copies.iter_rows()}
    columns = (
        "verdict",
        "phase",
        "goes_on",
        "cluster_id",
        "log_end_offset",
        "newest_append_time",
        "state_runs",
        "kept",
    )
    rows = warehouse.rows(RUNS, (CLUSTER, *ORDER, *columns), mine)
    found: dict[str, list[KnownRun]] = defaultdict(list)
    for row in records(oldest_first(rows), RUNS):
        found[row[CLUSTER]].append(_known_run(row, went_on_from.get((row[CLUSTER], row["run_id"]))))
    return found


def _known_run(row: Mapping[str, Any], went_on_from: str | None) -> KnownRun:
    finished = row["verdict"] != FAILED
    end = (row["cluster_id"], row["log_end_offset"], row["newest_append_time"])
    own_log = finished and row["goes_on"] and (row["log_end_offset"] is not None or row["cluster_id"] is not None)
    kept = json.loads(row["kept"] or "{}")
    memory, fold = ((kept.get(name) or {}).get("run_id") for name in ("memory", "fold"))
    chain = row["state_runs"] or ()
    return KnownRun(
        run_id=row["run_id"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        finished=finished,
        phase=row["phase"],
        end=end if own_log else None,
        # The index of a chain is kept by each of its runs.
        needs=frozenset(each for each in (memory, fold, *chain) if each),
        chain=frozenset(chain),
        builds_on=frozenset(each for each in (fold, kept.get("base_run"), went_on_from) if each),
    )


def _mailed(warehouse: Warehouse, clusters: Collection[str]) -> dict[str, set[str]]:
    """Runs that the newest mails and messages were about, sent or not: the next one of a channel is compared with them."""
    columns = (CLUSTER, "channel", "run_id", "problem", "tried_at")
    mails = warehouse.rows(MAILS, columns, {CLUSTER: sorted(clusters)}).sort("tried_at")
    newest = [rows.group_by(CLUSTER, "channel").last() for rows in (mails, mails.filter(pl.col("problem").is_null()))]
    found: dict[str, set[str]] = defaultdict(set)
    for name, run_id in pl.concat(newest).select(CLUSTER, "run_id").drop_nulls().iter_rows():
        found[name].add(run_id)
    return found


def going_rows(warehouse: Warehouse, stays: Mapping[str, Retained]) -> list[Going]:
    """The rows to remove, by section of each table that exists."""
    heard_of = _heard_of(warehouse, stays)

    def look(section: Section) -> Callable[[], Going]:
        return lambda: _going_of(warehouse, section, stays, heard_of)

    there = [section for section in _sections() if warehouse.version(section.table) is not None]
    return in_parallel([*map(look, there), lambda: _days_going(warehouse, stays)], AT_ONCE) if stays else []


def _days_going(warehouse: Warehouse, stays: Mapping[str, Retained]) -> Going:
    """Days whose sums are too old: they are of no single run."""
    names_of: dict[str, list[str]] = defaultdict(list)
    for name, each in stays.items():
        names_of[each.days_from].append(name)
    old: list[Where] = [{CLUSTER: sorted(names), "day": Below(first)} for first, names in names_of.items()]
    return Going(
        Section(ISR_BY_DAY, Part.JUDGED),
        rows=sum(_rows_there(warehouse, ISR_BY_DAY, where) for where in old),
        of_rows=_rows_there(warehouse, ISR_BY_DAY, {}),
        days=old,
    )


def _rows_there(warehouse: Warehouse, table: Table, where: Where) -> int:
    return sum(warehouse.counts(table, where).values())


def _heard_of(warehouse: Warehouse, clusters: Collection[str]) -> dict[tuple[str, str], datetime]:
    """When runs in single steps, whose ids can be anything, were last heard of."""
    columns = (CLUSTER, "run_id", "started_at", "finished_at")
    steps = warehouse.rows(RUN_STEPS, columns, {CLUSTER: sorted(clusters)})
    last = pl.coalesce("finished_at", "started_at").max().alias("finished_at")
    found = steps.group_by(CLUSTER, "run_id").agg(last).drop_nulls("finished_at")
    return {(row[CLUSTER], row["run_id"]): row["finished_at"] for row in records(found, RUN_STEPS)}


def _going_of(
    warehouse: Warehouse,
    section: Section,
    stays: Mapping[str, Retained],
    heard_of: Mapping[tuple[str, str], datetime],
) -> Going:
    counted = warehouse.counts(section.table, {CLUSTER: PRESENT, "run_id": PRESENT, **section.where})
    going: dict[str, set[str]] = defaultdict(set)
    others: dict[str, set[str]] = defaultdict(set)
    gone = of_all = 0
    for (name, run_id), rows in counted.items():
        of_all += rows
        begun = [each for each in (begun_at(run_id), heard_of.get((name, run_id))) if each is not None]
        goes = name in stays and not stays[name].stays(section.part, run_id, max(begun, default=None))
        (going if goes else others)[name].add(run_id)
        gone += rows if goes else 0
    for name, run_id in heard_of:
        # A step of it may write its first rows into this table by now.
        if run_id not in going.get(name, ()):
            others[name].add(run_id)
    return Going(section, dict(going), dict(others), gone, of_all)


def condition_of(each: Going, stays: Mapping[str, Retained]) -> Condition:
    """Which rows are removed, as a condition that Delta checks by its files' statistics: no part of it is a function."""
    if each.days:
        return any_of([all_of(where) for where in each.days])
    alike: dict[Chosen, list[str]] = defaultdict(list)
    for name, ids in each.ids.items():
        barriers = each.others.get(name, set()) | stays[name].stay_somewhere
        alike[chosen(ids, barriers - ids)].append(name)
    conditions = []
    for those, names in alike.items():
        mine: list[Condition] = [Between("run_id", first, last) for first, last in those.ranges]
        mine += [Equal("run_id", those.ids)] if those.ids else []
        conditions.append(Equal(CLUSTER, sorted(names)) & any_of(mine))
    condition = any_of(conditions)
    return condition & all_of(each.section.where) if each.section.where else condition
