"""The clusters of a warehouse, as gold `runs` has them, worst first. Used by page, terminal and mail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from schemas.classes import DEFECTS
from schemas.gates import GATES
from schemas.report import Report
from transforms.report.banner import banner_of
from transforms.report.compared import counts_of, phase_of
from transforms.runs import CLEAN, ERRORS, FAILED

NOT_READY = "Not ready"
_REPAIR = "Restore the tables, or read the whole log again with `kraft-audit run --full`."
# Clocks of machines that run audits may differ by so much; a run further ahead was, or is, dated wrong.
CLOCKS_DIFFER_SECONDS = 300.0
# Worst first; a cluster without a recent audit is not known to be healthy.
GROUPS = ("failed", "errors", "stale", "warnings", "clean")


@dataclass(frozen=True)
class FleetRun:
    """One run of one cluster, from its row of gold `runs`.

    Times are UTC. A failed run has `failure` and no results; a run of an earlier release has only what it stored, the rest is
    empty. `defects` and `divergences` are None if the run did not compare the two sides. `passed_checks` is None if it is not
    stored.
    """

    cluster: str
    run_id: str
    started_at: datetime
    finished_at: datetime
    verdict: str
    failure: str = ""
    kafka_version: str = ""
    phase: str = ""
    label: str = ""
    headline: str = ""
    to_do: str = ""
    defects: int | None = None
    divergences: int | None = None
    lag_records: int | None = None
    lag_seconds: float | None = None
    gates: Mapping[str, str] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)
    open_checks: tuple[str, ...] = ()
    passed_checks: tuple[str, ...] | None = None
    sequence: int | None = None

    @property
    def order(self) -> tuple[int, datetime, datetime, str]:
        """The sort key of a cluster's runs, the newest last: their number; times only if there is none (`newest_first`)."""
        return (-1 if self.sequence is None else self.sequence, self.started_at, self.finished_at, self.run_id)

    @property
    def failed(self) -> bool:
        """True when the audit did not finish."""
        return self.verdict == FAILED


@dataclass(frozen=True)
class Verified:
    """The last result of `kraft-audit verify` for a cluster: the run, the time (UTC), and the fault, empty if there is none."""

    run_id: str
    at: datetime
    problem: str = ""

    @property
    def words(self) -> str:
        """A sentence about the fault; empty if there is none."""
        when = f"{self.at:%Y-%m-%d %H:%M} UTC"
        return f"Verified {when}: run {self.run_id} {self.problem}. {_REPAIR}" if self.problem else ""


@dataclass(frozen=True)
class FleetCluster:
    """A cluster and its last runs, oldest first. `judged` is the newest run that finished, None without any.

    `stale` is also true if its newest run is dated in the future, because its age is unknown. `verified` is None if no run of it
    was verified.
    """

    name: str
    runs: tuple[FleetRun, ...]
    judged: FleetRun | None
    age_seconds: float
    stale: bool
    verified: Verified | None = None

    @property
    def unverified(self) -> str:
        """The fault in the stored results that `kraft-audit verify` found, in a sentence; empty if none."""
        return "" if self.verified is None else self.verified.words

    @property
    def newest(self) -> FleetRun:
        """The newest run, failed or not."""
        return self.runs[-1]

    @property
    def failures_since(self) -> int:
        """How many runs have failed since the last one that finished."""
        return next((number for number, run in enumerate(reversed(self.runs)) if not run.failed), len(self.runs))

    @property
    def group(self) -> str:
        """Which of GROUPS the cluster is in: what an old run has found is not known to be so now."""
        if self.stale:
            return "stale"
        if self.newest.failed:
            return "failed"
        if self.newest.verdict == ERRORS:
            return "errors"
        calm = self.newest.verdict == CLEAN and self.newest.label != NOT_READY and not self.unverified
        return "clean" if calm else "warnings"


@dataclass(frozen=True)
class Fleet:
    """All clusters, worst first, as of a moment (UTC). `stale_after_hours` is when a run is called old.

    `retired` are the names of clusters that were left out because they are retired.
    """

    as_of: datetime
    stale_after_hours: float
    clusters: tuple[FleetCluster, ...]
    retired: tuple[str, ...] = ()

    def of_group(self, group: str) -> list[FleetCluster]:
        """The clusters of one of GROUPS, worst first."""
        return [cluster for cluster in self.clusters if cluster.group == group]


def fleet(
    runs: Sequence[FleetRun],
    as_of: datetime,
    stale_after_hours: float,
    verified: Mapping[str, Verified] | None = None,
) -> Fleet:
    """Group runs, in any order, by cluster, worst first: by group, then defects, records behind, name.

    `verified` are the last results of `kraft-audit verify`, by cluster.
    """
    by_name: dict[str, list[FleetRun]] = {}
    for run in sorted(runs, key=lambda run: run.order):
        by_name.setdefault(run.cluster, []).append(run)
    said = verified or {}
    clusters = [
        replace(_cluster(name, mine, as_of, stale_after_hours), verified=said.get(name))
        for name, mine in by_name.items()
    ]
    return Fleet(as_of, stale_after_hours, tuple(sorted(clusters, key=_badness)))


def of_this_run(runs: Sequence[FleetRun], cluster: str, started_at: datetime) -> tuple[FleetRun | None, list[FleetRun]]:
    """The cluster's run that began at that moment (UTC; None when it is not among `runs`), and those before it, oldest first."""
    mine = sorted((run for run in runs if run.cluster == cluster), key=lambda run: run.order)
    present = [run for run in mine if run.started_at == started_at]
    if not present:
        return None, []
    now = present[-1]
    return now, [run for run in mine if run not in present and run.order < now.order]


def without_retired(whole: Fleet, retired: Collection[str]) -> Fleet:
    """The fleet without retired clusters. A cluster that was audited recently is not retired, and stays."""
    gone = {cluster.name for cluster in whole.clusters if cluster.name in retired and cluster.stale}
    kept = tuple(cluster for cluster in whole.clusters if cluster.name not in gone)
    return replace(whole, clusters=kept, retired=tuple(sorted(gone)))


def _cluster(name: str, runs: Sequence[FleetRun], as_of: datetime, stale_after_hours: float) -> FleetCluster:
    judged = next((run for run in reversed(runs) if not run.failed), None)
    since = (as_of - runs[-1].finished_at).total_seconds()
    stale = since > stale_after_hours * 3600 or since < -CLOCKS_DIFFER_SECONDS
    return FleetCluster(name, tuple(runs), judged, max(0.0, since), stale)


def _badness(cluster: FleetCluster) -> tuple[int, int, int, str]:
    newest = cluster.newest
    return (GROUPS.index(cluster.group), -(newest.defects or 0), -(newest.lag_records or 0), cluster.name)


def fleet_columns(report: Report) -> dict[str, Any]:
    """What gold `runs` holds of a report for the fleet: columns by name."""
    banner = banner_of(report)
    steps = banner.actions or banner.next_steps
    defects, divergences = counts_of(report)
    return {
        "defects": defects,
        "divergences": divergences,
        "phase": phase_of(report),
        "label": banner.label,
        "headline": banner.title,
        "to_do": steps[0].what if steps else None,
        "gates": {name: gate.verdict for name, gate in report.gates.items()},
        "statuses": defect_statuses(report),
        "open_checks": [check.id for check in report.checks if check.verdict in ("fail", "warn")],
        "passed_checks": [check.id for check in report.checks if check.verdict == "pass"],
    }


def defect_statuses(report: Report) -> dict[str, int]:
    """How many defects are new, persisting, resolved; in reports of earlier releases, of those that are listed."""
    exact = report.divergences.defects_by_status
    if exact is not None:
        return dict(sorted(exact.items()))
    listed = [row.status for row in report.divergences.rows if row.class_ in DEFECTS]
    gone = ["resolved" for row in report.resolved if row.class_ in DEFECTS]
    return dict(sorted(Counter([*listed, *gone]).items()))


def fleet_run(row: Mapping[str, Any]) -> FleetRun:
    """Read a row of gold `runs`, its timestamps with their zone; columns that an older release lacked are null."""
    return FleetRun(
        cluster=row["cluster"],
        run_id=row["run_id"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        verdict=row["verdict"],
        failure=row["failure"] or "",
        kafka_version=row["kafka_version"] or "",
        phase=row["phase"] or "",
        label=row["label"] or "",
        headline=row["headline"] or "",
        to_do=row["to_do"] or "",
        defects=row["defects"],
        divergences=row["divergences"],
        lag_records=row["lag_records"],
        lag_seconds=row["lag_seconds"],
        gates=dict(row["gates"] or {}),
        statuses=dict(row["statuses"] or {}),
        open_checks=tuple(row["open_checks"] or ()),
        # Rows of the tests and of older releases lack these.
        passed_checks=None if row.get("passed_checks") is None else tuple(row["passed_checks"]),
        sequence=row.get("sequence"),
    )


def gates_in_order(names: Sequence[str] | Mapping[str, str]) -> list[str]:
    """Names of gates in the order of a report; unknown ones come last."""
    known = [name for name in GATES if name in names]
    return [*known, *sorted(name for name in names if name not in GATES)]
