"""Old silver rows, removed every few runs: states of runs that nobody looks at any more."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from jobs.evidence.journal import Died, running
from jobs.run.earlier_runs import previous_runs
from jobs.run.run import LOG, Run, time_in_run_id
from jobs.settings import retention_of
from jobs.sinks.conditions import PRESENT, Between, Condition, Equal, all_of, any_of
from jobs.sinks.delta_errors import ConcurrentWriteError, UnreadableError
from schemas import silver
from schemas.examined import EXAMINED
from schemas.gold import RUNS
from transforms.clusters import CLUSTER
from transforms.examination.made import KEPT_KINDS
from transforms.retention import KnownRun, in_use_since, is_on_hold


def forget_old_state(run: Run, needed: Collection[str]) -> None:
    """Every few runs, remove a cluster's silver rows of all but its newest runs and those that are held; the rest stays.

    Rows of runs that were killed or failed before the oldest of these are removed, too. Delta keeps removed rows for a
    week: until then, time travel still reads these runs.
    """
    due = {name: rows for name, rows in previous_runs(run).items() if _forgets(run, name, rows)}
    if not due:
        return
    under_way = [
        each for each in running(run.warehouse.root, catalog=run.warehouse.catalog) if each.run_id != run.run_id
    ]
    kept = {name: _state_stays(run, name, rows) | _in_use(name, rows, under_way) for name, rows in due.items()}
    built_on = _built_on(run, kept)
    conditions = {
        # In a chained table, the rows that make up the state of a kept run stay.
        chained: any_of([_old_state(run, name, rows, kept[name] | more.get(name, set())) for name, rows in due.items()])
        for chained, more in ((False, {}), (True, built_on))
    }
    gone_on_from = all_of({"run_id": sorted(needed), "kind": KEPT_KINDS})
    # The answers go first: a run that has them has all its rows (`jobs.evidence.past_run`).
    tables = [EXAMINED, *silver.STATE_TABLES]
    for table in [table for table in tables if run.warehouse.version(table) is not None]:
        condition = conditions[table.chained]
        mine = condition & ~gone_on_from if table is EXAMINED else condition
        try:
            run.warehouse.delete(table, mine)
        except (ConcurrentWriteError, UnreadableError) as error:
            LOG.info("old rows of %s are kept for now: %s", table.full_name, error)


def _forgets(run: Run, name: str, rows: Sequence[Any]) -> bool:
    settings = run.clusters[name].settings
    keep = settings.keep_state_of_runs
    due = len(rows) > keep and rows[-1]["finished"] % keep == 0
    return due and not is_on_hold(retention_of(settings).hold, rows[-1]["phase"])


def _state_stays(run: Run, name: str, rows: Sequence[Any]) -> set[str]:
    """Ids of the cluster's runs whose silver rows stay, this one's among them: its clock may have been put back."""
    settings = run.clusters[name].settings
    return {run.run_id, *(row["run_id"] for row in rows[-settings.keep_state_of_runs :]), *retention_of(settings).hold}


def _in_use(name: str, rows: Sequence[Any], under_way: Sequence[Died]) -> set[str]:
    """Runs of the cluster that are in progress, regardless of when they began, and those that they may continue from."""
    mine = [each for each in under_way if name in each.clusters]
    if not mine:
        return set()
    finished = [
        KnownRun(
            row["run_id"],
            row["started_at"].astimezone(UTC),
            finished=True,
            end=(row["cluster_id"], row["log_end_offset"], row["newest_append_time"]) if row["goes_on"] else None,
            finished_at=row["finished_at"].astimezone(UTC),
        )
        for row in rows
    ]
    used = in_use_since(finished, min(each.started_at for each in mine))
    return {*(each.run_id for each in mine), *(each.run_id for each in used)}


def _built_on(run: Run, kept: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The runs whose rows make up the states of these runs and of this one, by cluster."""
    found: dict[str, set[str]] = {name: {*run.chains.get(name, ())} for name in kept}
    mine = {CLUSTER: sorted(kept), "run_id": sorted(set().union(*kept.values())), "state_runs": PRESENT}
    rows = run.warehouse.rows(RUNS, (CLUSTER, "run_id", "state_runs"), mine)
    for name, run_id, state_runs in rows.iter_rows():
        if run_id in kept[name]:
            found[name] |= set(state_runs)
    return found


def _old_state(run: Run, name: str, rows: Sequence[Any], stays: Collection[str]) -> Condition:
    keep = run.clusters[name].settings.keep_state_of_runs
    # Not the first of them by number: a wrong clock may have dated that one in the future.
    since = min(row["started_at"] for row in rows[-keep:])
    old = [row["run_id"] for row in rows[:-keep] if row["run_id"] not in stays]
    return _older_than(name, sorted(stays), old, since)


def _older_than(cluster: str, kept: Sequence[str], old: Sequence[str], since: datetime) -> Condition:
    """A condition that Delta checks by its files' statistics: the old runs' rows, and those with an id of an earlier time.

    Ids that a user has chosen for single steps have no time, unless they look like one.
    """
    earlier = Between("run_id", "2000", time_in_run_id(since)) & ~Equal("run_id", list(kept))
    return Equal(CLUSTER, cluster) & (Equal("run_id", list(old)) | earlier)
