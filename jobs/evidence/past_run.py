"""A finished run of a cluster: which one is meant, its report, and its tables as they were then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from jobs.evidence.fleet_runs import fleet_runs
from jobs.evidence.kept_state import read
from jobs.evidence.opening import Finished, spark_tables
from jobs.evidence.removed import JUDGED, OF_LAYER, removed_parts, removed_text
from jobs.exit import AuditError, UsageError
from jobs.sinks.conditions import PRESENT, NoneOf, Where, all_of
from jobs.sinks.reader import Reader, records
from schemas.examined import EXAMINED
from schemas.gold import DIVERGENCES, RUNS
from schemas.report import Report
from schemas.table import Layer, Table
from transforms.chain.chain import Chain
from transforms.clusters import of_clusters
from transforms.examination.made import ANSWERS
from transforms.reconcile.judge.beside import Beside, read_beside
from transforms.report.fleet_model import FleetRun
from transforms.report.json import from_json
from transforms.report.printable import visible
from transforms.report.run_standing import RunStanding, standing_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.runtime.workers import WorkerRows


@dataclass(frozen=True)
class PastRun:
    """A finished run of a cluster: its report, and its rows of every table.

    Rows of a cluster's older runs are removed from silver. Such a run is read from the tables as of its end, as long as Delta still
    has those: `versions` are the tables' Delta versions then. `chain` are the runs whose rows make up its state; without parts they
    are the run's own. `walks` are the snapshot_ids of its trees, `standing` is the run's age and the result of later ones. `beside`
    are its inputs besides its sources; for a run of a release that did not store them, only the limits of the current configuration.
    With `all_differences` it is an error if fewer of them are stored than the report counts: `verify` compares what is there.
    """

    warehouse: Reader
    cluster: str
    run_id: str
    report: Report
    versions: Mapping[str, int]
    walks: Sequence[str]
    standing: RunStanding
    beside: Beside = field(default_factory=Beside)
    chain: Chain = field(default_factory=Chain)
    all_differences: bool = True

    @property
    def spark(self) -> SparkSession:
        """The session of the warehouse."""
        return spark_tables(self.warehouse).spark

    def read(self, table: Table) -> DataFrame:
        """The run's rows of a table, in Spark; of a chained one its state's. Raises as `rows`."""
        rows = spark_tables(self.warehouse).read(table, self._version(table))
        if table.chained:
            # Imported here: commands that read without Spark must not need it.
            from jobs.sinks.chained import state_rows  # noqa: PLC0415

            return state_rows(rows, {self.cluster: self._chain_of(table)})
        return rows.where(of_clusters([self.cluster]) & (rows["run_id"] == self.run_id))

    def in_workers(self, table: Table, where: Where) -> WorkerRows:
        """The run's rows of a table, for what workers make of them; of a chained one all rows of the runs that make up its state.

        Raises as `rows`.
        """
        version = self._version(table)
        runs = self._chain_of(table) if table.chained else (self.run_id,)
        mine = {"cluster": self.cluster, "run_id": [*runs], **where}
        tables = spark_tables(self.warehouse)
        if version is None:
            return tables.in_workers(table, mine, runs)
        from jobs.runtime.workers import as_they_are  # noqa: PLC0415 - commands that read without Spark must not need it

        return as_they_are(tables.read(table, version).where(all_of(mine).column()))

    def rows(
        self, table: Table, columns: Sequence[str] = (), where: Where | None = None, most: int | None = None
    ) -> pl.DataFrame:
        """The run's rows of a table that meet the conditions, as `jobs.sinks.reader.Reader.rows`; of a chained one its state's.

        Raises UsageError when retention has removed them, WarehouseError when an old version is gone (Delta's VACUUM), AuditError when
        rows are gone that the run or an earlier one has stored.
        """
        version = self._version(table)
        if table.chained:
            mine = {"cluster": self.cluster, **(where or {})}
            return self.warehouse.rows(table, columns, mine, version, most, self._chain_of(table))
        mine = {"cluster": self.cluster, "run_id": self.run_id, **(where or {})}
        return self.warehouse.rows(table, columns, mine, version, most)

    @property
    def state_runs(self) -> tuple[str, ...]:
        """The runs whose rows in chained tables make up the state, the base's first."""
        return self.chain.runs or (self.run_id,)

    def _chain_of(self, table: Table) -> tuple[str, ...]:
        """`state_runs`. Raises AuditError where rows that they have stored in the table are gone: some of the rows are
        not a state."""
        if self.state_runs != (self.run_id,) and table.full_name not in self._looked_at:
            of_runs = {"cluster": self.cluster, "run_id": [*self.state_runs]}
            counted = self.warehouse.counts(table, of_runs, self._version(table))
            there = {(run_id, table.full_name): rows for (_, run_id), rows in counted.items()}
            short = self.chain.only(table.full_name).rows_gone(there)
            if short is not None:
                raise AuditError(f"the state of run {self.run_id} is incomplete: {short}; look at a newer run")
            self._looked_at.add(table.full_name)
        return self.state_runs

    @cached_property
    def _looked_at(self) -> set[str]:
        return set()

    def _version(self, table: Table) -> int | None:
        """The version of the table that has the run's rows; None for the present one."""
        part = OF_LAYER[table.layer]
        if part in self._removed:
            raise UsageError(removed_text(self.run_id, part, self._removed[part]))
        if table is DIVERGENCES and self.all_differences:
            self._check_differences()
        return self.versions.get(table.full_name) if table.layer is Layer.SILVER and not self._in_silver else None

    def _check_differences(self) -> None:
        """Raise AuditError where the table has fewer differences than the report counts: what is left would look like all."""
        name, counted = DIVERGENCES.full_name, self.report.divergences.total
        if name in self._looked_at or not counted:
            return
        mine = {"cluster": self.cluster, "run_id": self.run_id, "status": NoneOf(("resolved",))}
        there = sum(self.warehouse.counts(DIVERGENCES, mine).values())
        if there < counted:
            raise AuditError(
                f"{there:,} of {counted:,} differences of run {self.run_id} are in {name}, and retention did not remove the others; "
                "restore the table, or look at a newer run"
            )
        self._looked_at.add(name)

    @cached_property
    def _removed(self) -> Mapping[str, datetime]:
        return removed_parts(self.warehouse, self.cluster, self.run_id)

    @cached_property
    def _in_silver(self) -> bool:
        """Whether silver has the run's rows now: its answers are the first to go."""
        mine = {"cluster": self.cluster, "run_id": self.run_id, "kind": ANSWERS}
        return not self.warehouse.rows(EXAMINED, ["run_id"], mine, most=1).is_empty()


def past_run(finished: Finished, run_id: str | None = None) -> PastRun:
    """A finished run of the cluster, the newest when none is named. Raises UsageError when there is none."""
    cluster = finished.cluster
    runs = runs_of(finished.warehouse, cluster)
    newest = standing_of(runs, None, datetime.now(UTC))
    if newest is None:
        raise NoRunError(f"cluster {cluster} has no finished run yet; run `kraft-audit run` first{_last_failure(runs)}")
    standing = standing_of(runs, run_id, newest.now)
    if standing is None:
        name = visible(run_id or "", 80)
        removed = removed_parts(finished.warehouse, cluster, run_id or "")
        if JUDGED in removed:
            raise UsageError(removed_text(run_id or "", JUDGED, removed[JUDGED]))
        raise UsageError(f"cluster {cluster} has no finished run {name}; see `kraft-audit history`")
    wanted = standing.run.run_id
    mine = {"cluster": cluster, "run_id": wanted, "report": PRESENT}
    rows = finished.warehouse.rows(RUNS, ["report", "table_versions", "walks", "beside", "kept"], mine)
    found = next(records(rows, RUNS), None)
    if found is None:
        raise UsageError(f"cluster {cluster} has no report of run {visible(wanted, 80)}; see `kraft-audit history`")
    versions = dict(found["table_versions"] or {})
    walks = tuple(found["walks"] or (wanted,))
    report = from_json(found["report"])
    beside = Beside(finished.thresholds) if found["beside"] is None else read_beside(found["beside"])
    chain = Chain() if found["kept"] is None else read(wanted, found["kept"]).chain
    return PastRun(finished.warehouse, cluster, wanted, report, versions, walks, standing, beside, chain)


class NoRunError(UsageError):
    """The cluster has no finished run."""


def runs_of(warehouse: Reader, cluster: str) -> list[FleetRun]:
    """All runs of a cluster, oldest first, failed ones and those that died among them."""
    return sorted(fleet_runs(warehouse, most=None, cluster=cluster), key=lambda run: run.order)


def nothing_newer(finished: Finished) -> list[str]:
    """A line if what all finished runs have read is not the present state: the newest run failed, or is old; otherwise none."""
    standing = standing_of(runs_of(finished.warehouse, finished.cluster), None, datetime.now(UTC))
    return [] if standing is None else newer_line(standing, finished.stale_after_hours)


def newer_line(standing: RunStanding, stale_after_hours: float) -> list[str]:
    """The same of a run that was chosen as the newest finished one."""
    problem = standing.problem(stale_after_hours)
    return [f"Nothing newer is known: {problem}"] if problem else []


def _last_failure(runs: Sequence[FleetRun]) -> str:
    return f" (the last one failed: {visible(runs[-1].failure, 300)})" if runs else ""
