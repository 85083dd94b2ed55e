"""The metrics of a run: for each cluster that has them configured, to the configured places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from jobs.exit import AuditError, UsageError
from jobs.settings import MetricsSettings, Settings
from jobs.sinks.metrics import push, write_textfile
from transforms.report.fleet_model import FleetRun, of_this_run
from transforms.report.metrics import MetricSample, samples_of


def write_metrics(settings: Mapping[str, Settings], runs: Sequence[FleetRun], started_at: datetime) -> list[str]:
    """Write or push the metrics of the run begun at `started_at` (UTC). Returns one line for each problem.

    `settings` are the run's, by cluster; `runs` are rows of gold `runs`, this run's among them. The clusters of one run
    share a file; a gateway that does not take one cluster is not tried with the others.
    """
    folders: dict[Path, dict[str, list[MetricSample]]] = {}
    gateways: dict[MetricsSettings, dict[str, list[MetricSample]]] = {}
    for name, each in sorted(settings.items()):
        now, before = of_this_run(runs, name, started_at)
        if each.metrics is None or now is None:
            continue
        samples = samples_of(now, next((run for run in (now, *reversed(before)) if not run.failed), None))
        if each.metrics.textfile is not None:
            folders.setdefault(each.metrics.textfile.absolute(), {})[name] = samples
        if each.metrics.push_gateway is not None:
            gateways.setdefault(each.metrics, {})[name] = samples
    retired = {name for each in settings.values() for name in each.report.retired}
    parts = [
        *(partial(write_textfile, folder, mine, retired) for folder, mine in folders.items()),
        *(partial(push, gateway, mine) for gateway, mine in gateways.items()),
    ]
    return [problem for problem in map(_attempt, parts) if problem]


def _attempt(part: Callable[[], None]) -> str:
    try:
        part()
    except (AuditError, UsageError) as error:
        return str(error)
    return ""
