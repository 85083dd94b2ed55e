"""The fleet for a terminal, a line for each cluster, worst first, and as objects for automation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transforms.report.banner import duration
from transforms.report.fleet_marks import text_sparkline
from transforms.report.fleet_model import Fleet, FleetCluster, gates_in_order
from transforms.report.fleet_page import (
    banner,
    defects_text,
    first_actions,
    fleet_facts,
    label_of,
    lag_text,
    last_runs,
    phase_name,
    since_words,
)
from transforms.report.printable import counted, visible
from transforms.report.table import fitted

_HEAD = ("cluster", "verdict", "phase", "kafka", "gates", "defects", "behind", "last runs", "last run", "what is so")
_MOST_REPORTS = 10
_MARKS = {"go": "go", "no_go": "NO-GO", "unknown": "?"}


def fleet_text(fleet: Fleet, places: Mapping[str, str], width: int | None = None) -> list[str]:
    """Lines of text: the fleet in a sentence, a table (fit for a terminal of that `width`), what to do first, and where the worst clusters'
    reports are."""
    said = banner(fleet)
    lines = [f"{said.word.upper()}: {said.title}", *([f"  {said.sentence}"] if said.sentence else []), ""]
    lines += fitted([_HEAD, *(_row(cluster) for cluster in fleet.clusters)], frozenset({5, 6}), width)
    lines += ["", *(f"{name:<28}{visible(text, 200)}" for name, text in fleet_facts(fleet))]
    lines += [f"  {visible(f'{each.name}: {each.unverified}', 600)}" for each in fleet.clusters if each.unverified]
    actions = first_actions(fleet)
    lines += ["", "What to do first"] if actions else []
    lines += [f"  {n}. {visible(action.what, 400)} ({action.clusters})" for n, action in enumerate(actions, 1)]
    open_ = [cluster.name for cluster in fleet.clusters if cluster.group != "clean" and cluster.name in places]
    lines += ["", "Reports"] if open_ else []
    lines += [f"  {visible(places[name], 300)}" for name in open_[:_MOST_REPORTS]]
    more = len(open_) - _MOST_REPORTS
    return [*lines, *([f"  ... {more:,} more"] if more > 0 else [])]


def fleet_objects(fleet: Fleet) -> list[dict[str, Any]]:
    """One object for each cluster, worst first: the result of its newest run, or why it failed, and its age.

    `age_seconds` is since the end of the newest run; the results are of the run `judged_run_id`.
    """
    return [_object(cluster) for cluster in fleet.clusters]


def _object(cluster: FleetCluster) -> dict[str, Any]:
    newest, judged = cluster.newest, cluster.judged
    said: dict[str, Any] = {
        "cluster": cluster.name,
        "group": cluster.group,
        "verdict": newest.verdict,
        "run_id": newest.run_id,
        "finished_at": newest.finished_at.isoformat(),
        "age_seconds": round(cluster.age_seconds),
        "stale": cluster.stale,
        "failure": newest.failure or None,
    }
    if cluster.verified is not None:
        checked = cluster.verified
        said |= {
            "verified_run_id": checked.run_id,
            "verified_at": checked.at.isoformat(),
            "verified_problem": checked.problem or None,
        }
    if judged is not None:
        said |= {
            "judged_run_id": judged.run_id,
            "judged_at": judged.finished_at.isoformat(),
            "failures_since": cluster.failures_since,
            "phase": judged.phase,
            "kafka_version": judged.kafka_version,
            "headline": judged.headline,
            "to_do": judged.to_do or None,
            "gates": dict(judged.gates),
            "defects": judged.defects,
            "defects_by_status": dict(judged.statuses),
            "lag_records": judged.lag_records,
            "lag_seconds": judged.lag_seconds,
        }
    return said


def _row(cluster: FleetCluster) -> tuple[str, ...]:
    newest = cluster.newest
    judged = cluster.judged or newest
    finished = [run for run in last_runs(cluster) if not run.failed]
    since = since_words(judged.statuses)
    old = "  OLD" if cluster.stale else ""
    return (
        visible(cluster.name, 60),
        label_of(newest),
        phase_name(judged.phase),
        visible(judged.kafka_version or "-", 12),
        gates_text(judged.gates),
        f"{defects_text(judged)}{f' ({since})' if since else ''}",
        lag_text(judged).replace("n/a", "-"),
        text_sparkline(finished),
        f"{duration(cluster.age_seconds)} ago{old}",
        visible(newest.failure or newest.headline, 80) + _judged_by(cluster),
    )


def _judged_by(cluster: FleetCluster) -> str:
    """The run of the gates, if the newest one failed."""
    judged = cluster.judged
    if judged is None or not cluster.newest.failed:
        return ""
    failed = counted(cluster.failures_since, "run")
    return f" (gates: of run {judged.run_id}, {judged.finished_at:%Y-%m-%d %H:%M} UTC; {failed} failed since)"


def gates_text(verdicts: Mapping[str, str]) -> str:
    """The gates that were judged, each with its verdict: `start:go finalize:NO-GO`; `-` without any."""
    names = [name for name in gates_in_order(verdicts) if verdicts[name] in _MARKS]
    return " ".join(f"{name}:{_MARKS[verdicts[name]]}" for name in names) or "-"
