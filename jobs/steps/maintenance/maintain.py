"""Keep a warehouse small: remove rows past their retention, merge small files, remove files that no table needs any more.

Rows that the next run resumes are never removed (`transforms.retention`), so its result does not change. A removal is written into gold
`maintenance` first, so that after a kill no run looks complete that is not. Rows are removed table by table, those of gold `runs` last:
the rest is removed the next time. Of changes of partitions the sums by day are written before they go (`isr_days`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from jobs.evidence.journal import running
from jobs.exit import AuditError
from jobs.run.run import LOG
from jobs.settings import Settings, retention_of
from jobs.sinks.conditions import NoneOf
from jobs.sinks.delta import Warehouse, in_parallel
from jobs.sinks.delta_errors import ConcurrentWriteError
from jobs.sinks.reader import ORDER, oldest_first
from jobs.sinks.views import store_views
from jobs.steps.maintenance.alone import BusyError, alone
from jobs.steps.maintenance.clock import why_doubted
from jobs.steps.maintenance.due import due, neglected
from jobs.steps.maintenance.files import delta_settings, hours_to_keep, tend_files
from jobs.steps.maintenance.isr_days import sum_up
from jobs.steps.maintenance.left_behind import sweep
from jobs.steps.maintenance.noted import end, mark
from jobs.steps.maintenance.old_rows import Going, condition_of, going_rows, retained_of, tended_tables
from jobs.steps.maintenance.upkeep import AT_ONCE, Tended, Upkeep
from schemas.gold import ISR_BY_DAY, ISR_HISTORY, MAINTENANCE, RUNS
from schemas.table import Table
from transforms.clusters import CLUSTER
from transforms.retention import Retained, Retention
from transforms.runs import FAILED


def maintain(warehouse: Warehouse, upkeep: Upkeep) -> list[Tended]:
    """Do it, or with `dry_run` only look; what was done to each table.

    One table's trouble is its own (`Tended.problem`). Raises BusyError when another maintenance is running, and what the
    warehouse raises when it can't be read.
    """
    with alone(warehouse, upkeep), delta_settings(warehouse.spark, upkeep):
        under_way = running(warehouse.root, catalog=warehouse.catalog)
        stays = retained_of(warehouse, upkeep, {each.run_id: each.started_at for each in under_way})
        going = going_rows(warehouse, stays)
        if not upkeep.dry_run:
            mark(warehouse, upkeep, going, stays)
        vacuum = hours_to_keep(upkeep, [each.started_at for each in under_way])
        found = _tend_all(warehouse, upkeep, going, stays, vacuum)
        if not upkeep.dry_run:
            store_views(warehouse, again=True)
            end(warehouse, upkeep, found)
    return found


def _tend_all(
    warehouse: Warehouse, upkeep: Upkeep, going: Sequence[Going], stays: Mapping[str, Retained], vacuum: int
) -> list[Tended]:
    of_table: dict[Table, list[Going]] = defaultdict(list)
    for each in going:
        of_table[each.section.table].append(each)

    def tend(table: Table) -> Callable[[], Tended]:
        return lambda: _tended(warehouse, upkeep, table, of_table[table], stays, vacuum)

    # Other rows of a run without its row in gold `runs` would count for nobody, so that one goes last. Sums by day are written before
    # the changes go, and that table is tended afterwards.
    tables = [table for table in tended_tables() if table not in (ISR_BY_DAY, RUNS)]
    there = [table for table in (*tables, MAINTENANCE) if warehouse.version(table) is not None]
    found = in_parallel([tend(table) for table in there], AT_ONCE)
    if warehouse.version(ISR_BY_DAY) is not None:
        found.append(tend(ISR_BY_DAY)())
    if warehouse.version(RUNS) is not None:
        if any(each.problem for each in found):
            # Some of these runs' other rows may be there still.
            of_table[RUNS] = []
        found.append(tend(RUNS)())
    return found


def _tended(
    warehouse: Warehouse,
    upkeep: Upkeep,
    table: Table,
    going: Sequence[Going],
    stays: Mapping[str, Retained],
    vacuum: int,
) -> Tended:
    made = Tended(table.full_name, sum(each.rows for each in going), sum(each.of_rows for each in going))
    try:
        if not upkeep.dry_run:
            for each in [each for each in going if each.rows]:
                condition = condition_of(each, stays)
                if table is ISR_HISTORY:
                    sum_up(warehouse, each.ids.keys(), condition.column())
                warehouse.delete(table, condition)
        if upkeep.files:
            tend_files(warehouse, upkeep, table, made, vacuum)
    except (ConcurrentWriteError, AuditError) as error:
        made.problem = str(error)
    return made


def after_run(warehouse: Warehouse, several: Mapping[str, Settings], now: datetime) -> list[str]:
    """Do what the configurations of a run's clusters say is due; what went wrong, a line each. Changes no verdict."""
    if why := neglected(warehouse, several, now):
        return [f"maintenance: {why}"]
    names, files = due(warehouse, several, now)
    if not names and not files:
        return []
    if doubt := why_doubted(warehouse, now):
        return [f"maintenance: {doubt}"]
    chosen_ones = [several[name] for name in names]
    hours = max(each.maintain.vacuum_hours for each in several.values() if each.maintain is not None)
    try:
        found = maintain(warehouse, Upkeep(rules_of(chosen_ones), now, hours, files))
    except BusyError as error:
        LOG.info("%s", error)
        return []
    return [f"maintenance: {each.table}: {each.problem}" for each in found if each.problem] + sweep(chosen_ones, now)


def rules_of(several: Sequence[Settings]) -> dict[str, Retention]:
    """How long rows of the configured clusters stay."""
    return {settings.cluster: retention_of(settings) for settings in several}


def stored_rules(warehouse: Warehouse) -> dict[str, Retention]:
    """The same of all clusters of the warehouse, as the configuration of each one's newest run said; defaults of older releases."""
    rows = warehouse.rows(RUNS, (CLUSTER, "retention", *ORDER), {"verdict": NoneOf([FAILED])})
    found: dict[str, Retention] = {}
    for name, retention in oldest_first(rows).select(CLUSTER, "retention").iter_rows():
        said = json.loads(retention or "{}")
        found[name] = Retention(**{**said, "hold": tuple(said.get("hold", ()))})
    return found
