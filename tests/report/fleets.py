"""Runs of made-up clusters as gold `runs` holds them, some of them of the sample reports."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from schemas.report import Report
from tests.report.samples import defective, finalised, healthy, lagging, not_ready
from transforms.reconcile.judge import summary
from transforms.report.fleet_model import Fleet, FleetRun, fleet, fleet_columns, fleet_run

NOW = datetime(2026, 11, 21, 7, 0, tzinfo=UTC)


def run_of(report: Report, cluster: str, hours_ago: float = 1.0, **changes: Any) -> FleetRun:
    """The row of a run that ended so long ago, read as a run reads it."""
    ended = NOW - timedelta(hours=hours_ago)
    row = {
        "cluster": cluster,
        "run_id": f"{cluster}-{hours_ago:g}",
        "started_at": ended - timedelta(seconds=40),
        "finished_at": ended,
        "verdict": report.verdict,
        "failure": None,
        "kafka_version": report.kafka_version,
        "defects": summary.defects(report.divergences),
        "divergences": report.divergences.total,
        "lag_records": report.lag.records,
        "lag_seconds": report.lag.seconds,
        **fleet_columns(report),
    }
    return replace(fleet_run(row), **changes)


def failed(cluster: str, why: str = "there is no folder /nowhere", hours_ago: float = 1.0) -> FleetRun:
    ended = NOW - timedelta(hours=hours_ago)
    return FleetRun(cluster, f"{cluster}-{hours_ago:g}", ended, ended, "failed", why)


def small_fleet() -> Fleet:
    """A cluster of every kind, two runs of each that has a past."""
    runs = [
        run_of(healthy(), "fine"),
        run_of(finalised(), "done"),
        run_of(healthy(), "losing", 7),
        run_of(defective(), "losing"),
        run_of(lagging(), "late"),
        run_of(not_ready(), "waiting", verdict="clean", label="Not ready"),
        run_of(healthy(), "forgotten", 200),
        run_of(healthy(), "gone", 7),
        failed("gone"),
    ]
    return fleet(runs, NOW, 48)


def large_fleet(number: int) -> Fleet:
    """Clusters whose gates turn at every run: the most that a page has to draw."""
    makers = (healthy, lagging, finalised, defective)
    reports = [make() for make in makers]
    runs = [
        run_of(reports[(index + place) % len(reports)], f"cluster-{index:03}", 1 + place)
        for index in range(number)
        for place in range(30)
    ]
    return fleet(runs, NOW, 48)
