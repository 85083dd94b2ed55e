"""Which run an answer is about, how old it is, and which later runs failed. Decides whether a gate may rely on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from schemas.report import Report
from transforms.reconcile.judge.requested_gate import why_shut
from transforms.report.banner import duration
from transforms.report.fleet_model import CLOCKS_DIFFER_SECONDS, FleetRun
from transforms.report.printable import counted, visible


@dataclass(frozen=True)
class RunStanding:
    """A finished run, and the later runs of its cluster, oldest first. `now` is the present time (UTC)."""

    run: FleetRun
    later: tuple[FleetRun, ...]
    now: datetime

    @property
    def age_seconds(self) -> float:
        """Seconds since its end by this machine's clock; below 0 for a run that is dated in the future."""
        return (self.now - self.run.finished_at).total_seconds()

    @property
    def failures(self) -> tuple[FleetRun, ...]:
        """The later runs that did not finish."""
        return tuple(run for run in self.later if run.failed)

    def stale(self, after_hours: float) -> bool:
        """True if it is older than that, or if its age is unknown because its clock differed."""
        return self.age_seconds > after_hours * 3600 or self.age_seconds < -CLOCKS_DIFFER_SECONDS

    def lines(self, stale_after_hours: float) -> list[str]:
        """The run, its age, and what came since, a line each."""
        said = [f"Run {self.run.run_id} of cluster {self.run.cluster}, {self._when()}{self._old(stale_after_hours)}"]
        if self.failures:
            last = self.failures[-1]
            said.append(
                f"  since then {counted(len(self.failures), 'run')} failed, the last one at {_moment(last.finished_at)}: "
                f"{visible(last.failure, 300)}"
            )
        finished = len(self.later) - len(self.failures)
        if finished:
            said.append(f"  since then {counted(finished, 'run')} finished: this is not the newest")
        return said

    def problem(self, stale_after_hours: float) -> str:
        """Why no gate may rest on this run; empty when one may."""
        if self.later and self.later[-1].failed:
            return f"the newest run, {self.later[-1].run_id}, failed: {visible(self.later[-1].failure, 300)}"
        if self.age_seconds < -CLOCKS_DIFFER_SECONDS:
            return f"run {self.run.run_id} is dated in the future ({_moment(self.run.finished_at)}): its age is unknown"
        if self.stale(stale_after_hours):
            return f"run {self.run.run_id} is {duration(self.age_seconds)} old, {stale_after_hours:g} h is the limit"
        return ""

    def _when(self) -> str:
        ago = "dated in the future" if self.age_seconds < -CLOCKS_DIFFER_SECONDS else f"{self._age()} ago"
        return f"finished {_moment(self.run.finished_at)} ({ago})"

    def _age(self) -> str:
        return duration(max(0.0, self.age_seconds))

    def _old(self, stale_after_hours: float) -> str:
        return ", OLD" if self.stale(stale_after_hours) else ""


def standing_of(runs: Sequence[FleetRun], run_id: str | None, now: datetime) -> RunStanding | None:
    """Where a cluster's run stands among `runs` (oldest first): the one named, otherwise the newest finished one."""
    for place in reversed(range(len(runs))):
        run = runs[place]
        if not run.failed and run_id in (None, run.run_id):
            return RunStanding(run, tuple(runs[place + 1 :]), now)
    return None


def why_gate_is_shut(
    name: str,
    report: Report | None,
    standing: RunStanding | None,
    stale_after_hours: float,
    *,
    allow_unknown: bool = False,
) -> str:
    """Why a requested gate of a stored run is closed, in one line; empty if it is open. `report` is the run's.

    It is closed if no run has finished, if a newer run failed, and if the run is old.
    """
    problem = "no run has finished" if standing is None else standing.problem(stale_after_hours)
    gate, checks = (None, []) if report is None else (report.gates.get(name), report.checks)
    return why_shut(name, gate, allow_unknown=allow_unknown, evidence_problem=problem, checks=checks)


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
