"""What a finished run has kept for the next one: where its bytes are, what they continue, and whether they are as they were written.

The bytes are rows of silver `examined`, what is said of them is in the run's row of gold `runs` (column `kept`): nothing of a run
counts before that row. Bytes that are gone or changed, of another release or another fingerprint key are left alone: then the whole log
is read, and the report says why.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.finished import finished_runs, of_finished
from jobs.audit.kept_state import FOLD, MEMORY, Bytes, Kept, read
from jobs.audit.kraft_copies import log_copies
from jobs.audit.past import PastRun, spark_tables
from jobs.audit.run import Run
from jobs.exit import AuditError
from jobs.sinks.delta import UnreadableError, Warehouse, readable
from jobs.steps.gold import previous_runs, run_before
from schemas.examined import EXAMINED
from schemas.gold import ISR_HISTORY, RUNS
from transforms.clusters import CLUSTER, of_clusters
from transforms.examination.asked import Recorded
from transforms.units import UnitKind

# Rises whenever what a release kept must not be continued by the next one.
FORMAT = 1
_KINDS = {FOLD: UnitKind.FOLD, MEMORY: UnitKind.MEMORY}
_KEY_PROBE = "kraft-audit"
_OTHER_FORM = "another release kept it, in another form"
_OTHER_KEY = "secrets were masked with another key then"


@dataclass(frozen=True)
class Found:
    """What can be continued, and of other clusters why what their newest run kept can't be."""

    kept: dict[str, Kept] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def said(run: Run, kept: Kept, recorded: Mapping[str, Any] | None) -> str:
    """What is written of it into gold `runs`, with up to where changes of partitions are `recorded`."""
    document = {
        "recorded": recorded,
        "format": FORMAT,
        "fingerprint": run.fingerprinter.text(_KEY_PROBE),
        **{kind: {"run_id": each.run_id, "digests": each.digests} for kind, each in kept.bytes_of.items()},
        "offset": kept.offset,
        "last_epoch": kept.last_epoch,
        "last_append_time": kept.last_append_time,
        "milestones": [dict(each) for each in kept.milestones],
        "base_run": kept.base_run,
    }
    return json.dumps(document)


def look_up(run: Run, bases: Mapping[str, str | None] | None = None) -> None:
    """Have the run know what each cluster's run before it has kept (`Run.kept`), where that can be continued.

    That is the newest run whose log was the cluster's own; with `bases` the one that an earlier step of this run went on from.
    Raises AuditError when that has left nothing that can be read any more.
    """
    left: dict[str, tuple[str, str | None]] = {}
    for name, rows in previous_runs(run).items():
        chosen = (bases or {}).get(name) or run_before(rows)
        left[name] = chosen, next((row["kept"] for row in rows if row["run_id"] == chosen), None)
    found = newest(run, left)
    documents = {name: json.loads(text) for name, (_, text) in left.items() if text is not None}
    run.recorded_changes = _recorded_before(run, [name for name, (_, text) in left.items() if text is None]) | {
        name: Recorded(**each["recorded"]) for name, each in documents.items() if each.get("recorded") is not None
    }
    for name, base in (bases or {}).items():
        if base is not None and name not in found.kept:
            raise AuditError(
                f"cluster {name}: the state kept by run {base}, which this run resumes, is gone; start another run"
            )
        if base is None and name in found.kept:
            # The step that read the log has read it from its start.
            found.kept[name] = found.kept[name].without_fold
    run.kept = found.kept
    if bases is None:
        for name, problem in found.problems.items():
            run.clusters[name].notes.append(problem)


def _recorded_before(run: Run, clusters: Collection[str]) -> dict[str, Recorded]:
    """Up to where a release that did not say so has recorded changes: up to the newest one of a finished run."""
    if not clusters:
        return {}
    finished = finished_runs(run.warehouse, clusters)
    changes = of_finished(run.warehouse.read(ISR_HISTORY).where(of_clusters(clusters)), finished)
    newest_change = changes.groupBy(CLUSTER).agg(F.max(F.struct("append_time", "offset")).alias("newest"))
    return {
        row[CLUSTER]: Recorded(row["newest"]["offset"] + 1, row["newest"]["append_time"], None)
        for row in newest_change.collect()
    }


def newest(run: Run, left: Mapping[str, tuple[str, str | None]]) -> Found:
    """What these runs (run id, column `kept`) have kept, by cluster."""
    kept, problems = {}, {}
    probe = run.fingerprinter.text(_KEY_PROBE)
    for name, (run_id, text) in left.items():
        if text is None:
            # A release that kept its state in other tables.
            problems[name] = _refusal(run_id, _OTHER_FORM)
            continue
        document = json.loads(text)
        if document["format"] != FORMAT:
            problems[name] = _refusal(run_id, _OTHER_FORM)
        elif document["fingerprint"] != probe:
            problems[name] = _refusal(run_id, _OTHER_KEY)
        else:
            kept[name] = read(run_id, text)
    broken = _broken(run.warehouse, kept)
    return Found(
        {name: each for name, each in kept.items() if name not in broken},
        problems | {name: _refusal(kept[name].run_id, why) for name, why in broken.items()},
    )


def _refusal(run_id: str, why: str) -> str:
    return f"the whole log was read: the state that run {run_id} kept can't be continued ({why})"


def broken_of(past: PastRun) -> str | None:
    """What is wrong with the bytes that a finished run has kept; None where they are as they were written."""
    mine = of_clusters([past.cluster]) & (F.col("run_id") == past.run_id) & F.col("kept").isNotNull()
    warehouse = spark_tables(past.warehouse)
    found = warehouse.read(RUNS).where(mine).select("kept").first()
    if found is None:
        return None
    return _broken(warehouse, {past.cluster: read(past.run_id, found["kept"])}).get(past.cluster)


def _broken(warehouse: Warehouse, kept: Mapping[str, Kept]) -> dict[str, str]:
    """Clusters whose bytes are not those that were written, and why."""
    if not kept:
        return {}
    rows = _rows(warehouse, kept).select(CLUSTER, "run_id", "kind", "part", F.sha2("payload", 256).alias("digest"))
    there: dict[tuple[str, str, str], dict[int, str]] = defaultdict(dict)
    try:
        with readable():
            found_rows = rows.collect()
    except UnreadableError:
        if len(kept) == 1:
            return dict.fromkeys(kept, f"a file of {EXAMINED.full_name} is gone or damaged")
        # One cluster's file is no other one's.
        return {name: why for mine in kept for name, why in _broken(warehouse, {mine: kept[mine]}).items()}
    for row in found_rows:
        there[row[CLUSTER], row["run_id"], row["kind"]][row["part"]] = row["digest"]
    broken = {}
    for name, each in kept.items():
        for kind, wanted in each.bytes_of.items():
            found = there[name, wanted.run_id, kind]
            if len(found) != len(wanted.digests):
                broken[name] = f"{len(found)} of its {len(wanted.digests)} pieces are in {EXAMINED.full_name}"
            elif tuple(found[place] for place in sorted(found)) != wanted.digests:
                broken[name] = f"its bytes in {EXAMINED.full_name} are not those that were written"
    return broken


def fed(run: Run, kept: Mapping[str, Kept]) -> DataFrame:
    """The bytes as rows of `schemas.examined.FEED`."""
    number = F.lit(None).cast("bigint")
    for kind, each in _KINDS.items():
        number = F.when(F.col("kind") == kind, F.lit(int(each)).cast("bigint")).otherwise(number)
    return _rows(run.warehouse, kept).select(CLUSTER, number.alias("kind"), F.col("part").alias("place"), "payload")


def _rows(warehouse: Warehouse, kept: Mapping[str, Kept]) -> DataFrame:
    """Rows of silver `examined` that hold the bytes."""
    wanted = [(name, each.run_id, kind) for name, mine in kept.items() for kind, each in mine.bytes_of.items()]
    asked = warehouse.spark.createDataFrame(wanted, "cluster string, run_id string, kind string")
    rows = warehouse.read(EXAMINED).where(of_clusters(kept))
    return rows.join(F.broadcast(asked), [CLUSTER, "run_id", "kind"], "left_semi")


def needed_runs(kept: Iterable[Kept]) -> set[str]:
    """Runs whose bytes must not be forgotten."""
    return {each.run_id for mine in kept for each in mine.bytes_of.values()}


def bases(run: Run) -> dict[str, str | None]:
    """The runs that an earlier step of this run went on from, by cluster."""
    found: dict[str, str | None] = {}
    for name, rows in log_copies(run).items():
        found[name] = next((row["base_run"] for row in rows if row["base_run"] is not None), None)
    return found


def left(run: Run, name: str, answers: Mapping[str, Any]) -> Kept:
    """What this run's pass over a cluster has kept for the next run, and what it leaves as it was."""
    digests, keeping, before = answers["digests"], answers["keeping"], run.kept.get(name)
    mine = Kept(run.run_id, Bytes(run.run_id, tuple(digests[MEMORY])))
    if keeping is None and before is not None:
        # Too little is new: the next run goes on from where this one did.
        mine = replace(before, run_id=run.run_id, memory=mine.memory)
    elif keeping is not None and keeping["offset"] >= 0:
        mine = replace(
            mine,
            fold=Bytes(run.run_id, tuple(digests[FOLD])),
            offset=keeping["offset"],
            last_epoch=keeping["last_epoch"],
            last_append_time=keeping["last_append_time"],
            milestones=tuple(keeping["milestones"]),
            base_run=keeping["base_run"],
        )
    return mine
