"""Step 3: the one pass over each cluster: its log replayed into state, its znodes parsed, both compared, all questions answered."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from jobs.exit import UsageError
from jobs.run import kept
from jobs.run.capture import captured_at, reading_ms
from jobs.run.earlier_runs import earlier_run, log_end_before, previous_runs
from jobs.run.examine import Examined, examined, store_rows
from jobs.run.opening import Opened, opened
from jobs.run.run import ClusterRun, Run
from jobs.run.steps import step_main
from jobs.settings import claim_of, limits_of
from transforms.chain.chain import Chain
from transforms.examination.task import ClusterTask
from transforms.kraft.coverage import planned_log
from transforms.reconcile.compare.suppressions import in_force
from transforms.reconcile.judge.given import Given


def run_step(run: Run) -> tuple[dict[str, Given], dict[str, Examined]]:
    """Examine what the run has read and fill the tables; the known facts of each cluster, and the results."""
    run.finish_writes()
    found = opened(run)
    given = given_of(run, found)
    if not run.going:
        return given, {}
    made = examined(run, {name: asked_of(run, given[name]) for name in run.going})
    store_rows(run, made)
    return given, made


def given_of(run: Run, found: Mapping[str, Opened]) -> dict[str, Given]:
    """The facts of each cluster that are known before it is examined; a cluster whose property files cannot be read fails."""
    previous = previous_runs(run)
    given = {}
    for name, each in found.items():
        cluster, before = run.clusters[name], previous.get(name, ())
        try:
            given[name] = _given(run, cluster, each, before)
        except UsageError as error:
            run.fail(name, error)
    return given


def _given(run: Run, cluster: ClusterRun, found: Opened, before: Sequence[Any]) -> Given:
    settings = cluster.settings
    return Given(
        name=cluster.name,
        kafka_version=settings.kafka_version,
        has_zookeeper=settings.zookeeper is not None,
        has_kraft=settings.kraft is not None,
        reads_data_folder=settings.zookeeper is not None and settings.zookeeper.folder is not None,
        walks=len(cluster.walks),
        captured_at_ms=captured_at(cluster),
        reading_ms=reading_ms(cluster),
        thresholds=limits_of(settings),
        copies=found.copies,
        side=found.side,
        zookeeper=found.zookeeper,
        compared=found.compared,
        report_rows=settings.report.rows,
        static_min_isr=cluster.property_files.static_min_isr(),
        previous_end=log_end_before(before),
        earlier=earlier_run(before),
        claim=claim_of(settings, run.started_at, datetime.now(UTC)),
    )


def asked_of(run: Run, given: Given) -> ClusterTask:
    """The task of the pass over a cluster."""
    cluster = run.clusters[given.name]
    kraft = cluster.settings.kraft
    return ClusterTask(
        given,
        run.run_id,
        planned=planned_log(given.copies) if given.has_kraft else None,
        keep_every=kraft.keep_state_every if kraft else None,
        suppressions=tuple(in_force(cluster.suppressions, run.started_at.date())),
        alone=len(run.clusters) == 1,
        recorded=run.recorded_changes.get(given.name),
        chain=run.kept[given.name].chain if given.name in run.kept else Chain(),
    )


def _alone(run: Run) -> None:
    """The step alone."""
    kept.look_up(run, kept.bases(run))
    run_step(run)


def main(argv: list[str] | None = None) -> int:
    """Entry point of the step alone."""
    return step_main("materialize", _alone, argv)


if __name__ == "__main__":
    sys.exit(main())
