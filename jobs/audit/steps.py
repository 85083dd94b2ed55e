"""Steps as processes of their own: what one leaves to the next is in gold `run_steps`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import functions as F

from jobs.audit.run import Run, open_run
from jobs.exit import OK, UsageError, guarded, worst
from jobs.settings import load_settings
from jobs.steps.gold import write_failures
from schemas.gold import RUN_STEPS
from transforms.clusters import CLUSTER, of_clusters

# Which steps a step builds on, where the configuration has the side it reads.
_NEEDS: dict[str, tuple[str, ...]] = {
    "ingest_zookeeper": (),
    "ingest_kraft": ("ingest_zookeeper",),
    "materialize": ("ingest_zookeeper", "ingest_kraft"),
    "reconcile": ("materialize",),
}
_ENDS = {"ingest_zookeeper": "materialize", "ingest_kraft": "materialize"}


def step_main(name: str, step: Callable[[Run], object], argv: list[str] | None) -> int:
    """`main` of a step: parse `--conf` and `--run-id`, run it, and map what happens to an exit code."""
    parser = argparse.ArgumentParser(prog=f"kraft-audit {name.replace('_', '-')}", description=step.__doc__)
    parser.add_argument("--conf", type=Path, required=True, nargs="+", help="configuration files (YAML)")
    parser.add_argument("--run-id", required=True, help="run the step belongs to; the same for all steps of one run")
    arguments = parser.parse_args(argv)

    def body() -> int:
        settings = [load_settings(path) for path in arguments.conf]
        with open_run(settings, arguments.run_id, keep_failures=True) as run:
            begin(run, name)
            outcome = _done(run, step)
            finish(run, name)
            failures = [cluster.failure for cluster in run.clusters.values() if cluster.failure is not None]
            for failure in failures:
                write_failures(run)
                raise UsageError(failure.reason)
        return worst(outcome.values()) if isinstance(outcome, dict) else OK

    return guarded(body)


def _done(run: Run, step: Callable[[Run], object]) -> object:
    """Do the step; what stops it leaves a row of gold `runs`, as in a whole run."""
    if not run.going:
        return None
    try:
        outcome = step(run)
        run.finish_writes()
    except Exception as error:
        for name in run.going:
            run.fail(name, error)
        write_failures(run)
        raise
    return outcome


def begin(run: Run, step: str) -> None:
    """Take up what earlier steps of the run left. Raises UsageError when the step is not the next one."""
    run.in_steps = True
    rows = run.warehouse.read(RUN_STEPS).where(of_clusters(run.clusters) & (F.col("run_id") == run.run_id)).collect()
    # What the steps before it have read, a process of its own has not seen.
    if not all(row["few_rows"] for row in rows):
        run.expect_many_rows()
    for name, cluster in run.clusters.items():
        mine = sorted((row for row in rows if row[CLUSTER] == name), key=lambda row: row["finished_at"])
        done = {row["step"] for row in mine}
        _check(run.run_id, name, step, done, _given(cluster.settings.zookeeper, cluster.settings.kraft))
        if mine:
            run.started_at = mine[0]["started_at"].astimezone(UTC)
            cluster.notes = list(mine[-1]["notes"] or ())
            cluster.walks = list(mine[-1]["walks"] or ())
            cluster.walked_at_ms, cluster.log_seen_at_ms = mine[-1]["walked_at_ms"], mine[-1]["log_seen_at_ms"]
        run.steps_done |= done
        if step == "materialize" and cluster.settings.bracketed and len(cluster.walks) < 2:
            raise UsageError(
                f"run {run.run_id} of cluster {name} is a bracket and ZooKeeper was walked once: "
                "run `ingest-zookeeper` again, after `ingest-kraft`"
            )


def _given(zookeeper: object, kraft: object) -> frozenset[str]:
    steps = {"materialize", "reconcile"}
    steps |= {"ingest_zookeeper"} if zookeeper is not None else set()
    return frozenset(steps | ({"ingest_kraft"} if kraft is not None else set()))


def _check(run_id: str, cluster: str, step: str, done: set[str], given: frozenset[str]) -> None:
    missing = [needed for needed in _NEEDS[step] if needed in given and needed not in done]
    if missing:
        name = missing[0].replace("_", "-")
        raise UsageError(f"run {run_id} of cluster {cluster} has not been through `{name}` yet; run that step first")
    if _ENDS.get(step) in done:
        raise UsageError(
            f"run {run_id} of cluster {cluster} has been through `{_ENDS[step]}`: what it read can't be read anew; "
            "begin another run"
        )


def finish(run: Run, step: str) -> None:
    """Leave what the next step needs."""
    now = datetime.now(UTC)
    rows = [
        {
            CLUSTER: name,
            "run_id": run.run_id,
            "step": step,
            "started_at": run.started_at,
            "finished_at": now,
            "few_rows": run.small,
            **{
                field: getattr(run.clusters[name], field)
                for field in ("notes", "walks", "walked_at_ms", "log_seen_at_ms")
            },
        }
        for name in run.going
    ]
    if rows:
        run.warehouse.append(
            RUN_STEPS,
            run.spark.createDataFrame(
                [tuple(row[name] for name in RUN_STEPS.column_names) for row in rows], RUN_STEPS.struct
            ),
        )
