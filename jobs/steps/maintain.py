"""Keep a warehouse small: remove rows past their retention, merge small files, remove files that no table needs any more.

Rows that the next run resumes are never removed (`transforms.retention`), so its result does not change. A removal is written into gold
`maintenance` first, so that after a kill no run looks complete that is not. Rows are removed table by table, those of gold `runs` last:
the rest is removed the next time. Of changes of partitions the sums by day are written before they go (`jobs.steps.isr_days`).
"""

from __future__ import annotations

import errno
import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from jobs.disk import said as words_of
from jobs.evidence.journal import running
from jobs.evidence.removed import BEGUN, DETAILS, ENDED, FILES, JUDGED, ROWS
from jobs.exit import AuditError
from jobs.run.run import LOG, new_run_id
from jobs.settings import MaintainSettings, Settings, retention_of
from jobs.sinks.conditions import PRESENT, Below, Between, Condition, Equal, NoneOf, Where, all_of, any_of
from jobs.sinks.delta import ConcurrentWriteError, TableSize, Warehouse, in_parallel
from jobs.sinks.folder_table import arrow_rows
from jobs.sinks.lock import LOCKS, held
from jobs.sinks.reader import ORDER, oldest_first, records
from jobs.sinks.storage import WarehouseError
from jobs.sinks.views import store_views
from jobs.sources.remote import RemoteError, left_staged, sweep_staged
from jobs.steps.isr_days import sum_up
from schemas import bronze, gold, silver
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from schemas.examined import EXAMINED
from schemas.gold import ISR_BY_DAY, ISR_HISTORY, MAILS, MAINTENANCE, RUN_STEPS, RUNS
from schemas.table import Layer, Table
from transforms.clusters import CLUSTER
from transforms.examination.made import KEPT_KINDS
from transforms.retention import Chosen, KnownRun, Part, Retained, Retention, begun_at, chosen, retained
from transforms.runs import FAILED

_MARKS = {Part.DETAILS: DETAILS, Part.JUDGED: JUDGED}
# A table with fewer files is read as fast as a compacted one.
_FEWEST_FILES = 8
# Files of this size are left as they are, so that a day's rows are not written again every day.
_LARGE_FILE_BYTES = 32 << 20
_LEAST_VACUUM_HOURS = 168
# Delta refuses to keep its log for less than its own week of removed files.
_LEAST_LOG_DAYS = 8
_AT_ONCE = 2
_HOUR = timedelta(hours=1)
_LOCK = "maintenance"
_LEFT_AFTER = timedelta(days=1)
# A maintenance that began longer ago and has not ended was killed.
_LONGEST = timedelta(hours=6)


@dataclass(frozen=True)
class Upkeep:
    """The work of a maintenance: rows of the clusters with `rules` go by them; with `files` all tables are compacted
    and vacuumed.

    `now` is UTC. `vacuum_hours` is how long files stay that no table needs any more.
    """

    rules: Mapping[str, Retention]
    now: datetime
    vacuum_hours: float = MaintainSettings().vacuum_hours
    files: bool = True
    dry_run: bool = False


@dataclass
class Tended:
    """The work on a table, done or planned: rows removed, and of how many; files before and after merging; files
    that no version needs and that were removed, with their bytes (None if unknown); about how many bytes the rows of a dry run
    take, by their share of the table's; the problem, if any."""

    table: str
    rows: int = 0
    of_rows: int = 0
    files: int = 0
    files_after: int = 0
    removed_files: int | None = 0
    removed_bytes: int | None = 0
    about_row_bytes: int = 0
    problem: str = ""

    @property
    def idle(self) -> bool:
        """True when there was nothing to do."""
        return not (self.rows or self.removed_files or self.problem or self.files != self.files_after)


@dataclass(frozen=True)
class _Section:
    """Rows of a table that stay for the same reasons; `where` chooses them, None for all of the table's."""

    table: Table
    part: Part
    where: Where = field(default_factory=dict)


@dataclass(frozen=True)
class _Going:
    """Rows of a section that go: ids of runs by cluster, all ids that are there, and how many rows of how many.

    Sums by day are of no single run: they go if they meet one of `days`.
    """

    section: _Section
    ids: dict[str, set[str]] = field(default_factory=dict)
    others: dict[str, set[str]] = field(default_factory=dict)
    rows: int = 0
    of_rows: int = 0
    days: Sequence[Where] = ()


class BusyError(AuditError):
    """Another maintenance of the warehouse is running."""


def maintain(warehouse: Warehouse, upkeep: Upkeep) -> list[Tended]:
    """Do it, or with `dry_run` only look; what was done to each table.

    One table's trouble is its own (`Tended.problem`). Raises BusyError when another maintenance is running, and what the
    warehouse raises when it can't be read.
    """
    with _alone(warehouse, upkeep), _settings(warehouse.spark, upkeep):
        under_way = running(warehouse.root, catalog=warehouse.catalog)
        stays = _retained(warehouse, upkeep, {each.run_id: each.started_at for each in under_way})
        going = _going(warehouse, stays)
        if not upkeep.dry_run:
            _mark(warehouse, upkeep, going, stays)
        vacuum = _vacuum_hours(upkeep, [each.started_at for each in under_way])
        found = _tend_all(warehouse, upkeep, going, stays, vacuum)
        if not upkeep.dry_run:
            store_views(warehouse, again=True)
            _end(warehouse, upkeep, found)
    return found


def _tend_all(
    warehouse: Warehouse, upkeep: Upkeep, going: Sequence[_Going], stays: Mapping[str, Retained], vacuum: int
) -> list[Tended]:
    of_table: dict[Table, list[_Going]] = defaultdict(list)
    for each in going:
        of_table[each.section.table].append(each)

    def tend(table: Table) -> Callable[[], Tended]:
        return lambda: _tended(warehouse, upkeep, table, of_table[table], stays, vacuum)

    # Other rows of a run without its row in gold `runs` would count for nobody, so that one goes last. Sums by day are written before
    # the changes go, and that table is tended afterwards.
    tables = [table for table in _tables() if table not in (ISR_BY_DAY, RUNS)]
    there = [table for table in (*tables, MAINTENANCE) if warehouse.version(table) is not None]
    found = in_parallel([tend(table) for table in there], _AT_ONCE)
    if warehouse.version(ISR_BY_DAY) is not None:
        found.append(tend(ISR_BY_DAY)())
    if warehouse.version(RUNS) is not None:
        if any(each.problem for each in found):
            # Some of these runs' other rows may be there still.
            of_table[RUNS] = []
        found.append(tend(RUNS)())
    return found


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


def due(warehouse: Warehouse, several: Mapping[str, Settings], now: datetime) -> tuple[list[str], bool]:
    """Clusters for which maintenance is due after a run, by their configurations; and whether files are due as well."""
    wanted = {name: each.maintain for name, each in several.items() if each.maintain is not None}
    if not wanted:
        return [], False
    done = _last_done(warehouse)
    ended = _runs_since(warehouse, wanted, done) if any(each.after_runs for each in wanted.values()) else {}

    def is_due(last: datetime | None, each: MaintainSettings, runs: int) -> bool:
        often = each.after_runs is not None and runs >= each.after_runs
        return last is None or often or now - last >= timedelta(hours=each.every_hours)

    names = [name for name, each in wanted.items() if is_due(done.get((name, ROWS)), each, ended.get(name, 0))]
    files = any(is_due(done.get((None, FILES)), each, ended.get(name, 0)) for name, each in wanted.items())
    return sorted(names), files


def _last_done(warehouse: Warehouse) -> dict[tuple[str | None, str], datetime]:
    ends = warehouse.rows(MAINTENANCE, (CLUSTER, "what", "done_at"), {"run_id": None})
    newest = ends.group_by(CLUSTER, "what").agg(pl.col("done_at").max())
    return {(row[CLUSTER], row["what"]): row["done_at"] for row in records(newest, MAINTENANCE)}


def _runs_since(
    warehouse: Warehouse, clusters: Collection[str], done: Mapping[tuple[str | None, str], datetime]
) -> dict[str, int]:
    rows = warehouse.rows(RUNS, (CLUSTER, "started_at"), {CLUSTER: sorted(clusters)})
    found: dict[str, int] = defaultdict(int)
    for row in records(rows, RUNS):
        last = done.get((row[CLUSTER], ROWS))
        found[row[CLUSTER]] += last is None or row["started_at"] > last
    return found


def _sections() -> Iterator[_Section]:
    for table in _tables():
        if table is EXAMINED:
            # The answers go first: a run that has them has all its rows (`jobs.evidence.past`).
            yield _Section(table, Part.DETAILS, {"kind": NoneOf(KEPT_KINDS)})
            yield _Section(table, Part.STATE, {"kind": KEPT_KINDS})
        elif table is not ISR_BY_DAY:
            yield _Section(table, _part(table))


def _tables() -> list[Table]:
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


def _retained(warehouse: Warehouse, upkeep: Upkeep, under_way: Mapping[str, datetime]) -> dict[str, Retained]:
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


def _going(warehouse: Warehouse, stays: Mapping[str, Retained]) -> list[_Going]:
    """The rows to remove, by section of each table that exists."""
    heard_of = _heard_of(warehouse, stays)

    def look(section: _Section) -> Callable[[], _Going]:
        return lambda: _going_of(warehouse, section, stays, heard_of)

    there = [section for section in _sections() if warehouse.version(section.table) is not None]
    return in_parallel([*map(look, there), lambda: _days_going(warehouse, stays)], _AT_ONCE) if stays else []


def _days_going(warehouse: Warehouse, stays: Mapping[str, Retained]) -> _Going:
    """Days whose sums are too old: they are of no single run."""
    names_of: dict[str, list[str]] = defaultdict(list)
    for name, each in stays.items():
        names_of[each.days_from].append(name)
    old: list[Where] = [{CLUSTER: sorted(names), "day": Below(first)} for first, names in names_of.items()]
    return _Going(
        _Section(ISR_BY_DAY, Part.JUDGED),
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
    section: _Section,
    stays: Mapping[str, Retained],
    heard_of: Mapping[tuple[str, str], datetime],
) -> _Going:
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
    return _Going(section, dict(going), dict(others), gone, of_all)


def _condition(each: _Going, stays: Mapping[str, Retained]) -> Condition:
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


def _mark(warehouse: Warehouse, upkeep: Upkeep, going: Sequence[_Going], stays: Mapping[str, Retained]) -> None:
    """Write down which finished or failed runs lose rows, once."""
    marks = {
        (name, run_id, _MARKS[each.section.part])
        for each in going
        if each.section.part in _MARKS
        for name, ids in each.ids.items()
        for run_id in ids & stays[name].known
    }
    if marks:
        there = warehouse.rows(MAINTENANCE, (CLUSTER, "run_id", "what"), {"run_id": PRESENT})
        marks -= {*there.iter_rows()}
    _note(warehouse, upkeep.now, sorted(marks))


def _end(warehouse: Warehouse, upkeep: Upkeep, found: Sequence[Tended]) -> None:
    """Record that it finished, unless something has to be done again."""
    if not any(each.problem for each in found):
        ends: list[tuple[str | None, str | None, str]] = [(name, None, ROWS) for name in sorted(upkeep.rules)]
        _note(warehouse, upkeep.now, [*ends, (None, None, FILES)] if upkeep.files else ends)


def _note(warehouse: Warehouse, now: datetime, rows: Sequence[tuple[str | None, str | None, str]]) -> None:
    values = [{CLUSTER: name, "run_id": run_id, "done_at": now, "what": what} for name, run_id, what in rows]
    if values:
        warehouse.append(MAINTENANCE, arrow_rows(MAINTENANCE, values))


def _tended(
    warehouse: Warehouse,
    upkeep: Upkeep,
    table: Table,
    going: Sequence[_Going],
    stays: Mapping[str, Retained],
    vacuum: int,
) -> Tended:
    made = Tended(table.full_name, sum(each.rows for each in going), sum(each.of_rows for each in going))
    try:
        if not upkeep.dry_run:
            for each in [each for each in going if each.rows]:
                condition = _condition(each, stays)
                if table is ISR_HISTORY:
                    sum_up(warehouse, each.ids.keys(), condition.column())
                warehouse.delete(table, condition)
        if upkeep.files:
            _tend_files(warehouse, upkeep, table, made, vacuum)
    except (ConcurrentWriteError, AuditError) as error:
        made.problem = str(error)
    return made


def _tend_files(warehouse: Warehouse, upkeep: Upkeep, table: Table, made: Tended, vacuum: int) -> None:
    before = warehouse.size(table)
    made.files = made.files_after = before.files
    if upkeep.dry_run:
        # Rows are not of one size, and their bytes go only when no version of the last days needs them.
        made.about_row_bytes = before.bytes * made.rows // max(made.of_rows, 1)
        _look_at_files(warehouse, table, made, vacuum)
        return
    if warehouse.folder is not None:
        # Under the table's lock: elsewhere a change of a table's properties makes other runs' commits fail.
        warehouse.keep_log(table, max(_LEAST_LOG_DAYS, math.ceil(vacuum / 24) + 1))
    if before.files > _FEWEST_FILES:
        warehouse.compact(table, _LARGE_FILE_BYTES)
        made.files_after = warehouse.size(table).files
    folder = _folder(warehouse, table)
    disk = None if folder is None else _on_disk(folder)
    if folder is not None and not _anything_old(folder, vacuum):
        return
    warehouse.vacuum(table, vacuum)
    made.removed_files = made.removed_bytes = None
    if folder is not None and disk is not None:
        left = _on_disk(folder)
        made.removed_files, made.removed_bytes = disk.files - left.files, disk.bytes - left.bytes


def _look_at_files(warehouse: Warehouse, table: Table, made: Tended, vacuum: int) -> None:
    if made.files > _FEWEST_FILES:
        made.files_after = 1
    folder = _folder(warehouse, table)
    if folder is not None and not _anything_old(folder, vacuum):
        return
    paths = warehouse.vacuum(table, vacuum, dry_run=True)
    made.removed_files, made.removed_bytes = len(paths), None
    if folder is not None:
        made.removed_bytes = sum(_bytes_of(Path(path.removeprefix("file:"))) for path in paths)


def _folder(warehouse: Warehouse, table: Table) -> Path | None:
    return None if warehouse.folder is None else warehouse.folder / table.layer.value / table.name


def _on_disk(folder: Path) -> TableSize:
    """Data files that lie in a table's folder, whether or not the table needs them."""
    found = [path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts]
    return TableSize(len(found), sum(_bytes_of(path) for path in found))


def _anything_old(folder: Path, hours: int) -> bool:
    """Whether any data file is so old that VACUUM could remove it."""
    before = (datetime.now(UTC) - timedelta(hours=hours)).timestamp()
    return any(path.stat().st_mtime <= before for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts)


def _bytes_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _vacuum_hours(upkeep: Upkeep, begun: Sequence[datetime]) -> int:
    """How many hours back files stay that were written or let go then: as configured, and since before any run in
    progress began."""
    now = datetime.now(UTC)
    since = min([upkeep.now - timedelta(hours=upkeep.vacuum_hours), *[each - _HOUR for each in begun]])
    return max(0, math.ceil((now - since) / _HOUR))


@contextmanager
def _alone(warehouse: Warehouse, upkeep: Upkeep) -> Iterator[None]:
    """One maintenance at a time: of two with different finished runs one could write a day's sums without a run of the other's."""
    if upkeep.dry_run:
        yield
    elif warehouse.folder is None:
        with _announced(warehouse):
            yield
    else:
        with _locked(warehouse, warehouse.folder):
            yield


@contextmanager
def _locked(warehouse: Warehouse, folder: Path) -> Iterator[None]:
    warehouse.prepare()
    path = folder / LOCKS / _LOCK
    lock = held(path, 0)
    try:
        path.parent.mkdir(exist_ok=True)
        lock.__enter__()
    except OSError as error:
        if error.errno != errno.EAGAIN:
            raise WarehouseError(f"the warehouse {warehouse.root} can't be written: {words_of(error)}") from None
        raise BusyError(f"another maintenance of {warehouse.root} is running; nothing was done") from None
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


@contextmanager
def _announced(warehouse: Warehouse) -> Iterator[None]:
    """Where there are no locks: a row in gold `maintenance` before and after the work.

    Commits to a table have an order, so of two that begin at once the second one at least sees the first, and leaves.
    """
    mine = new_run_id(datetime.now(UTC))
    _announce(warehouse, mine, BEGUN)
    try:
        since = _another_since(warehouse, mine)
        if since is not None:
            raise BusyError(
                f"another maintenance of {warehouse.root} has begun at {since:%Y-%m-%d %H:%M} UTC and has not ended; nothing was done. "
                f"If it was killed, start again {_LONGEST // _HOUR} hours after that"
            )
        yield
    finally:
        _announce(warehouse, mine, ENDED)


def _announce(warehouse: Warehouse, mine: str, what: str) -> None:
    _note(warehouse, datetime.now(UTC), [(None, mine, what)])


def _another_since(warehouse: Warehouse, mine: str) -> datetime | None:
    """When another maintenance began that is running (UTC); None without one."""
    noted = warehouse.rows(MAINTENANCE, ("run_id", "done_at", "what"), {"what": [BEGUN, ENDED]})
    rows = list(records(noted, MAINTENANCE))
    ended = {mine, *(row["run_id"] for row in rows if row["what"] == ENDED)}
    begun = [row["done_at"] for row in rows if row["what"] == BEGUN and row["run_id"] not in ended]
    return max([each for each in begun if datetime.now(UTC) - each < _LONGEST], default=None)


@contextmanager
def _settings(spark: SparkSession, upkeep: Upkeep) -> Iterator[None]:
    """Settings of Delta while the block runs. A session that does not allow it keeps its own."""
    wanted = {"spark.databricks.delta.optimize.minFileSize": str(_LARGE_FILE_BYTES)}
    if upkeep.vacuum_hours < _LEAST_VACUUM_HOURS or upkeep.now > datetime.now(UTC):
        wanted["spark.databricks.delta.retentionDurationCheck.enabled"] = "false"
    before: dict[str, str | None] = {}
    for name, value in wanted.items():
        with suppress(PySparkException):
            before[name] = spark.conf.get(name, None)
            spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            with suppress(PySparkException):
                spark.conf.unset(name) if earlier is None else spark.conf.set(name, earlier)


def sweep(several: Sequence[Settings], now: datetime) -> list[str]:
    """Remove what killed processes have left beside the tables: staged copies and half-written reports; what went wrong, a line each."""
    problems = []
    try:
        sweep_staged()
    except (OSError, RemoteError) as error:
        problems.append(_of_staged(error))
    for path in _half_written(several, now):
        with suppress(OSError):
            path.unlink()
    return problems


@dataclass(frozen=True)
class Left:
    """A file or folder that a killed process has left, and its bytes."""

    left: str
    bytes: int


def left_behind(several: Sequence[Settings], now: datetime) -> tuple[list[Left], list[str]]:
    """What `sweep` would remove, and what went wrong, a line each; nothing is changed."""
    problems, staged = [], []
    try:
        staged = left_staged()
    except (OSError, RemoteError) as error:
        problems.append(_of_staged(error))
    return [Left(str(path), _bytes_below(path)) for path in [*staged, *_half_written(several, now)]], problems


def _of_staged(error: Exception) -> str:
    return f"staged copies of killed runs: {error}"


def _half_written(several: Sequence[Settings], now: datetime) -> Iterator[Path]:
    """Reports that killed runs have left half written. On an object store there are none."""
    for folder in sorted({each.report.folder for each in several if isinstance(each.report.folder, Path)}):
        for path in sorted(folder.rglob(".*.part")) if folder.is_dir() else ():
            with suppress(OSError):
                if datetime.fromtimestamp(path.stat().st_mtime, UTC) < now - _LEFT_AFTER:
                    yield path


def _bytes_below(path: Path) -> int:
    return sum(_bytes_of(each) for each in path.rglob("*") if each.is_file()) if path.is_dir() else _bytes_of(path)


def after_run(warehouse: Warehouse, several: Mapping[str, Settings], now: datetime) -> list[str]:
    """Do what the configurations of a run's clusters say is due; what went wrong, a line each. Changes no verdict."""
    names, files = due(warehouse, several, now)
    if not names and not files:
        return []
    chosen_ones = [several[name] for name in names]
    hours = max(each.maintain.vacuum_hours for each in several.values() if each.maintain is not None)
    try:
        found = maintain(warehouse, Upkeep(rules_of(chosen_ones), now, hours, files))
    except BusyError as error:
        LOG.info("%s", error)
        return []
    return [f"maintenance: {each.table}: {each.problem}" for each in found if each.problem] + sweep(chosen_ones, now)
