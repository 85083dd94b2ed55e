"""Alerts and panels as Prometheus evaluates them, by its own promtool, over the metrics of runs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.report.fleets import failed, run_of
from tests.report.samples import defective, finalised, healthy, lagging
from transforms.report.fleet_model import FleetRun
from transforms.report.metrics import MetricSample, merged, samples_of

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool on PATH")

CONF = Path(__file__).parents[2] / "conf" / "metrics"
DASHBOARD: dict[str, Any] = json.loads((CONF / "dashboard.json").read_text())
PANELS = {
    f"{panel['title']} {target['refId']}": target["expr"]
    for panel in DASHBOARD["panels"]
    for target in panel["targets"]
}
# Scraped so often, as node_exporter is: Prometheus takes a sample for gone after five minutes.
_MINUTES = 5
_EACH_HOUR = 60 // _MINUTES
# promtool's clock begins here.
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
# What a machine tells in an hour; None when it tells nothing.
Told = Sequence[MetricSample] | None


def history(runs: Mapping[int, FleetRun], hours: int, gone_after: int | None = None) -> list[Told]:
    """What the machine tells hour by hour, of runs by the hour of their end; after `gone_after` it is not scraped."""
    told: list[MetricSample] = []
    good: FleetRun | None = None
    found: list[Told] = []
    for hour in range(hours):
        if hour in runs:
            ended = _BEGIN + timedelta(hours=hour)
            run = replace(runs[hour], started_at=ended - timedelta(seconds=40), finished_at=ended)
            good = good if run.failed else run
            told = merged(told, {run.cluster: samples_of(run, good)})
        found.append(told if gone_after is None or hour <= gone_after else None)
    return found


def series(told: Sequence[Told]) -> list[dict[str, str]]:
    """The same in promtool's notation."""
    by_hour = [{(each.name, each.labels): each.value for each in hour or ()} for hour in told]
    return [
        {
            "series": name + "{" + ",".join(f'{key}="{value}"' for key, value in labels) + "}",
            "values": " ".join(
                f"{hour[name, labels]:g}+0x{_EACH_HOUR - 1}" if (name, labels) in hour else f"_x{_EACH_HOUR}"
                for hour in by_hour
            ),
        }
        for name, labels in sorted({key for hour in by_hour for key in hour})
    ]


def holds(folder: Path, told: Sequence[Told], queries: Sequence[dict[str, Any]]) -> None:
    """Let promtool ask these queries of Prometheus, with the rules loaded, and compare what it answers."""
    asked = {"interval": f"{_MINUTES}m", "input_series": series(told), "promql_expr_test": [*queries]}
    content = {"rule_files": [str(CONF / "rules.yml")], "evaluation_interval": f"{_MINUTES}m", "tests": [asked]}
    file = folder / "asked.yml"
    file.write_text(yaml.safe_dump(content))
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def firing(folder: Path, told: Sequence[Told], hours: float, *alerts: str) -> None:
    """At that time these alerts fire, NAME or NAME/GATE, and no others."""
    samples = []
    for alert in alerts:
        name, _, gate = alert.partition("/")
        of_gate = f', gate="{gate}"' if gate else ""
        # Of no cluster at all when nothing has ever been told.
        of_cluster = ', cluster="a"' if any(told) else ""
        samples.append({"labels": f'{{alertname="{name}"{of_cluster}{of_gate}}}', "value": 1})
    query = 'max by (alertname, cluster, gate) (ALERTS{alertstate="firing"})'
    holds(folder, told, [{"expr": query, "eval_time": f"{hours * 60:g}m", "exp_samples": samples}])


def shut(run: FleetRun) -> list[str]:
    """The gates that a healthy migration has open and this run has not."""
    return [gate for gate, verdict in run_of(healthy(), "a").gates.items() if verdict == "go" != run.gates[gate]]


def test_nothing_fires_of_healthy_runs_day_by_day(tmp_path: Path) -> None:
    runs = {hour: run_of(healthy(), "a") for hour in (0, 24, 48, 72)}
    for hours in (0.5, 24.5, 47.5, 72.5):
        firing(tmp_path, history(runs, 74), hours)


def test_a_run_that_finds_defects_fires_of_them_of_the_verdict_and_of_every_gate_that_it_shut(tmp_path: Path) -> None:
    told = history({0: run_of(healthy(), "a"), 24: run_of(defective(), "a")}, 30)
    closed = [f"KraftAuditGateClosed/{gate}" for gate in shut(run_of(defective(), "a"))]
    assert len(closed) > 1
    firing(tmp_path, told, 24.5, "KraftAuditDefectNew", "KraftAuditErrors", *closed)


def test_a_failed_run_fires_and_what_the_last_good_one_said_is_not_forgotten(tmp_path: Path) -> None:
    told = history({0: run_of(healthy(), "a"), 24: failed("a"), 26: run_of(healthy(), "a")}, 30)
    firing(tmp_path, told, 24.5, "KraftAuditRunFailed")
    firing(tmp_path, told, 26.5)


def test_audits_that_stop_fire_after_two_days(tmp_path: Path) -> None:
    told = history({0: run_of(healthy(), "a")}, 60)
    firing(tmp_path, told, 47.5)
    firing(tmp_path, told, 48.5, "KraftAuditNotAuditedLately")


def test_a_machine_that_tells_nothing_any_more_fires_by_its_clusters_name(tmp_path: Path) -> None:
    told = history({0: run_of(healthy(), "a")}, 20, gone_after=9)
    firing(tmp_path, told, 9.5)
    firing(tmp_path, told, 10.5, "KraftAuditMetricsMissing")


@pytest.mark.parametrize("other", [False, True])
def test_a_cluster_of_which_no_run_ever_finished_is_missed_too(tmp_path: Path, other: bool) -> None:
    """Its metrics are those of a failed run alone, and with them the alert on that run goes away."""
    mine = history({0: failed("a")}, 20, gone_after=9)
    others = history({0: run_of(healthy(), "b")}, 20) if other else [None] * 20
    told = [[*(here or ()), *(there or ())] or None for here, there in zip(mine, others, strict=True)]
    firing(tmp_path, told, 9.5, "KraftAuditRunFailed")
    firing(tmp_path, told, 10.5, "KraftAuditMetricsMissing")


def test_where_there_have_never_been_metrics_that_fires_too(tmp_path: Path) -> None:
    firing(tmp_path, [None] * 4, 1.0, "KraftAuditMetricsMissing")


def test_finalising_fires_nothing(tmp_path: Path) -> None:
    firing(tmp_path, history({0: run_of(healthy(), "a"), 24: run_of(finalised(), "a")}, 30), 24.5)


def test_another_cluster_that_is_finalised_hides_no_way_back_that_closes(tmp_path: Path) -> None:
    fine = run_of(healthy(), "a")
    assert fine.gates["rollback"] == "go"
    worse = replace(fine, gates={**fine.gates, "rollback": "no_go"})
    mine = history({0: fine, 24: worse}, 30)
    others = history({0: run_of(finalised(), "b")}, 30)
    told = [[*(here or ()), *(there or ())] for here, there in zip(mine, others, strict=True)]
    firing(tmp_path, told, 24.5, "KraftAuditGateClosed/rollback")


def test_a_gate_that_stays_shut_fires_until_it_opens(tmp_path: Path) -> None:
    fine = run_of(healthy(), "a")
    worse = replace(fine, gates={**fine.gates, "dual_write": "no_go"})
    unsure = replace(fine, gates={**fine.gates, "dual_write": "unknown"})
    days = {0: fine, 24: worse} | {24 * day: unsure for day in range(2, 20)} | {24 * 20: fine}
    told = history(days, 24 * 21)
    # Nothing is told for two days.
    told[24 * 10 : 24 * 12] = [None] * 48
    for day in (1.5, 9.5, 12.5, 19.5):
        firing(tmp_path, told, 24 * day, "KraftAuditGateClosed/dual_write")
    firing(tmp_path, told, 24 * 20.5)


def test_a_gate_that_never_opened_fires_nothing(tmp_path: Path) -> None:
    fine = run_of(healthy(), "a")
    early = replace(fine, gates={**fine.gates, "dual_write": "no_go"})
    firing(tmp_path, history({0: early, 24: early}, 30), 24.5)


@pytest.mark.parametrize("panel", PANELS)
def test_every_panel_of_the_dashboard_has_a_line_for_each_cluster(tmp_path: Path, panel: str) -> None:
    """Or one for each of its gates."""
    runs = [
        replace(run_of(lagging(), name), finished_at=_BEGIN, started_at=_BEGIN - timedelta(seconds=40)) for name in "ab"
    ]
    told = [[sample for run in runs for sample in samples_of(run, run)]]
    lines = {run.cluster: len(run.gates) if panel.startswith("Gates") else 1 for run in runs}
    query = f"count by (cluster) ({PANELS[panel].replace('$cluster', '.*')})"
    samples = [{"labels": f'{{cluster="{name}"}}', "value": number} for name, number in lines.items()]
    holds(tmp_path, told, [{"expr": query, "eval_time": "30m", "exp_samples": samples}])
