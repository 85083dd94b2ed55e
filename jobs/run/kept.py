"""The kept state that a finished run leaves to the next one: where its bytes are, which run they continue, and whether they are unchanged.

The bytes are rows of silver `examined`, their description is in the run's row of gold `runs` (column `kept`): a run does not count
before it has that row. Bytes that are missing or changed are ignored, and so is the state of the log if another release or fingerprint
key has made it: then the whole log is read, and the report gives the reason. The same applies to the chain of runs whose rows make up a
state (`transforms.chain`): if its index was changed, or its rows are missing, this run stores all rows, and the report gives the reason.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.evidence.finished import finished_runs, of_finished
from jobs.evidence.kept_bytes import DIGESTS, Piece, digested, placed
from jobs.evidence.kept_state import FOLD, MEMORY, STATE, Bytes, Kept, read
from jobs.evidence.opening import spark_tables
from jobs.evidence.past_run import PastRun
from jobs.exit import AuditError
from jobs.run.earlier_runs import previous_runs, run_before
from jobs.run.opening import log_copies
from jobs.run.run import Run
from jobs.runtime.workers import WorkerRows
from jobs.sinks.delta import Warehouse, in_parallel
from jobs.sinks.delta_errors import UnreadableError, readable
from schemas.examined import EXAMINED, FEED
from schemas.gold import ISR_HISTORY, RUNS
from schemas.silver import STATE_TABLES
from transforms.chain.chain import Chain, StoredPart, chain_of, layout
from transforms.clusters import CLUSTER, of_clusters
from transforms.examination.answers import CHAIN
from transforms.examination.made import INDEX
from transforms.examination.task import Recorded

if TYPE_CHECKING:
    from jobs.run.examine import Examined

# Rises whenever what a release kept must not be continued by the next one.
FORMAT = 2
# Of these only the state of the log must not be: format 1 has as many directories of a partition as it once had replicas.
_OTHER_REPLAY = (1,)
# Pieces of an index come in the chain's order; of one run there are fewer than these.
_PIECES = 1 << 20
_KEY_PROBE = "kraft-audit"
_OTHER_FORM = "another release stored it in another format"
_OTHER_RULES = "another release replayed the log by other rules"
_OTHER_KEY = "its secrets were masked with another key"
_FILE_GONE = f"a file of {EXAMINED.full_name} is gone or damaged"
_OTHER_ROWS = "another release stored them, with other columns"


@dataclass(frozen=True)
class Found:
    """The kept states that can be resumed, and for other clusters the reason why not.

    `unfollowed` is, for clusters that continue, why their chain cannot be followed.
    """

    kept: dict[str, Kept] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    unfollowed: dict[str, str] = field(default_factory=dict)


def said(run: Run, kept: Kept, recorded: Mapping[str, Any] | None) -> str:
    """The JSON text of column `kept` in gold `runs`; `recorded`: up to where changes of partitions are recorded."""
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
        STATE: {"layout": kept.layout, "chain": kept.chain.said()},
    }
    return json.dumps(document)


def look_up(run: Run, bases: Mapping[str, str | None] | None = None) -> None:
    """Set `Run.kept` to the state that each cluster's previous run has kept, if it can be resumed.

    That is the newest run whose log was the cluster's own; with `bases` the one that an earlier step of this run continued
    from. Raises AuditError if that run's row can no longer be read.
    """
    left: dict[str, tuple[str, str | None]] = {}
    for name, rows in previous_runs(run).items():
        before = run_before(rows)
        chosen = (bases or {}).get(name) or before["run_id"]
        left[name] = chosen, next((row["kept"] for row in (*rows, before) if row["run_id"] == chosen), None)
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
        for name, problem in [*found.problems.items(), *found.unfollowed.items()]:
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
        if document["format"] not in (FORMAT, *_OTHER_REPLAY):
            problems[name] = _refusal(run_id, _OTHER_FORM)
            continue
        kept[name] = read(run_id, text)
        if document["fingerprint"] != probe or document["format"] in _OTHER_REPLAY:
            # Of the log alone: the differences that were known stay known.
            kept[name] = kept[name].without_fold
            problems[name] = _refusal(run_id, _OTHER_KEY if document["fingerprint"] != probe else _OTHER_RULES)
    broken = _broken(run.warehouse, kept)
    good = {name: each for name, each in kept.items() if name not in broken.kept}
    unfollowed = _unfollowed(run.warehouse, good, broken.index)
    # A run that reads everything again does not use earlier rows for its state.
    anew = {name for name in good if getattr(run.clusters[name].settings.kraft, "full", False)} | unfollowed.keys()
    return Found(
        {name: replace(each, chain=Chain()) if name in anew else each for name, each in good.items()},
        problems | {name: _refusal(kept[name].run_id, why) for name, why in broken.kept.items()},
        {
            name: f"all rows of the state were stored: the rows of run {good[name].run_id} can't be reused ({why})"
            for name, why in unfollowed.items()
        },
    )


def _unfollowed(warehouse: Warehouse, kept: Mapping[str, Kept], broken: Mapping[str, str]) -> dict[str, str]:
    """Clusters whose chain can't be followed, and why: those with a `broken` index among them."""
    found = {name: why for name, why in broken.items() if name in kept}
    found |= {name: _OTHER_ROWS for name, each in kept.items() if each.chain.parts and each.layout != layout()}
    chains = {name: each.chain for name, each in kept.items() if name not in found and each.chain.parts}
    return found | _short(warehouse, chains)


def _short(warehouse: Warehouse, chains: Mapping[str, Chain]) -> dict[str, str]:
    """Clusters whose chain's rows are not all there, and why."""
    stored = {name for chain in chains.values() for part in chain.parts for name in part.rows}
    tables = [table for table in STATE_TABLES if table.full_name in stored]
    mine = {CLUSTER: sorted(chains), "run_id": sorted({run_id for chain in chains.values() for run_id in chain.runs})}
    try:
        counted = in_parallel([lambda table=table: warehouse.counts(table, mine) for table in tables])  # type: ignore[misc]
    except AuditError as error:
        if len(chains) == 1:
            return dict.fromkeys(chains, str(error))
        # A damaged file fails its own cluster only.
        return {name: why for each, chain in chains.items() for name, why in _short(warehouse, {each: chain}).items()}
    there: dict[str, dict[tuple[str, str], int]] = {name: {} for name in chains}
    for table, counts in zip(tables, counted, strict=True):
        for (name, run_id), rows in counts.items():
            there[name][run_id, table.full_name] = rows
    short = {name: chain.rows_gone(there[name]) for name, chain in chains.items()}
    return {name: why for name, why in short.items() if why is not None}


def _refusal(run_id: str, why: str) -> str:
    return f"the whole log was read: the state that run {run_id} kept can't be resumed ({why})"


@dataclass(frozen=True)
class KeptBytes:
    """The state of the bytes that a finished run has kept: their fault, None without one, and what is `forgotten`."""

    problem: str | None = None
    forgotten: tuple[str, ...] = ()


def kept_bytes_of(past: PastRun) -> KeptBytes:
    """Whether the bytes that a finished run has kept are as they were written.

    Retention keeps what only an older run continues from for the newest one alone: what is gone as a whole of another run is
    forgotten there, and nothing is wrong.
    """
    mine = of_clusters([past.cluster]) & (F.col("run_id") == past.run_id) & F.col("kept").isNotNull()
    warehouse = spark_tables(past.warehouse)
    with readable():
        found = warehouse.read(RUNS).where(mine).select("kept").first()
    if found is None:
        return KeptBytes()
    # Of an older run's chain the index may be forgotten: its rows are looked at one by one.
    kept = replace(read(past.run_id, found["kept"]), chain=Chain())
    try:
        there = _digests(warehouse, {past.cluster: kept})
    except UnreadableError:
        return KeptBytes(_FILE_GONE)
    problem, forgotten = None, []
    for kind, wanted in _pieces(kept):
        stored = there.get((past.cluster, wanted.run_id, kind), {})
        if not stored and wanted.run_id != past.run_id and _is_older(past):
            forgotten.append(f"the {kind} that run {wanted.run_id} kept was removed by retention")
        else:
            problem = problem or _unlike(stored, wanted)
    return KeptBytes(problem, tuple(forgotten))


def _is_older(past: PastRun) -> bool:
    return any(not run.failed for run in past.standing.later)


@dataclass(frozen=True)
class _Broken:
    """Clusters whose bytes are not those that were written, and why; and those of which the `index` alone is not."""

    kept: dict[str, str] = field(default_factory=dict)
    index: dict[str, str] = field(default_factory=dict)


def _broken(warehouse: Warehouse, kept: Mapping[str, Kept]) -> _Broken:
    if not kept:
        return _Broken()
    try:
        there = _digests(warehouse, kept)
    except UnreadableError:
        if len(kept) == 1:
            return _Broken(dict.fromkeys(kept, _FILE_GONE))
        # A damaged file fails its own cluster only.
        alone = [_broken(warehouse, {name: each}) for name, each in kept.items()]
        return _Broken(
            {name: why for each in alone for name, why in each.kept.items()},
            {name: why for each in alone for name, why in each.index.items()},
        )
    broken = _Broken()
    for name, each in kept.items():
        for kind, wanted in _pieces(each):
            why = _unlike(there.get((name, wanted.run_id, kind), {}), wanted)
            if why is not None:
                (broken.index if kind == INDEX else broken.kept)[name] = why
    return broken


def _digests(warehouse: Warehouse, kept: Mapping[str, Kept]) -> dict[tuple[str, str, str], dict[int, str]]:
    """Digests of the bytes that are there, in pieces, by cluster, run and kind. Raises UnreadableError."""
    there: dict[tuple[str, str, str], dict[int, str]] = defaultdict(dict)
    with readable():
        for row in _stored(warehouse, kept).then(digested(_places(kept)), DIGESTS).rows.collect():
            there[row[CLUSTER], row["run_id"], row["kind"]][row["part"]] = row["digest"]
    return there


def _unlike(found: Mapping[int, str], wanted: Bytes) -> str | None:
    """Why digests by piece differ from those that were written; None if they do not."""
    if len(found) != len(wanted.digests):
        return f"{len(found)} of its {len(wanted.digests)} pieces are in {EXAMINED.full_name}"
    if tuple(found[place] for place in sorted(found)) != wanted.digests:
        return f"its bytes in {EXAMINED.full_name} have changed since they were written"
    return None


def _pieces(kept: Kept) -> list[tuple[str, Bytes]]:
    """All bytes that the next run is fed, by kind; those of a chain in its order."""
    return [*kept.bytes_of.items(), *((INDEX, Bytes(part.run_id, part.digests)) for part in kept.chain.parts)]


def fed(run: Run, kept: Mapping[str, Kept]) -> DataFrame:
    """The bytes as rows of `schemas.examined.FEED`."""
    return _stored(run.warehouse, kept).then(placed(_places(kept)), FEED).rows


def _places(kept: Mapping[str, Kept]) -> dict[Piece, int]:
    """The place that the first piece of a cluster's bytes, by run and kind, has among those of its kind."""
    return {
        (name, each.run_id, kind): place * _PIECES
        for name, mine in kept.items()
        for place, (kind, each) in enumerate(_pieces(mine))
    }


def _stored(warehouse: Warehouse, kept: Mapping[str, Kept]) -> WorkerRows:
    """Rows of silver `examined` that hold the bytes, and perhaps others of these runs."""
    names, runs, kinds = (sorted({*each}) for each in zip(*_places(kept), strict=True))
    return warehouse.in_workers(EXAMINED, {CLUSTER: names, "run_id": runs, "kind": kinds}, runs)


def needed_runs(kept: Iterable[Kept]) -> set[str]:
    """Runs whose bytes must not be forgotten."""
    return {each.run_id for mine in kept for _, each in _pieces(mine)}


def bases(run: Run) -> dict[str, str | None]:
    """The runs that an earlier step of this run continued from, by cluster."""
    found: dict[str, str | None] = {}
    for name, rows in log_copies(run).items():
        found[name] = next((row["base_run"] for row in rows if row["base_run"] is not None), None)
    return found


def left(run: Run, name: str, found: Examined) -> Kept:
    """What this run's pass over a cluster has kept for the next run, and what it leaves as it was."""
    answers = found.answers
    digests, keeping, before = answers["digests"], answers["keeping"], run.kept.get(name)
    mine = Kept(run.run_id, Bytes(run.run_id, tuple(digests[MEMORY])))
    if keeping is None and before is not None:
        # Too little is new: the next run continues from where this one did.
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
    return replace(mine, chain=chain_left(run.run_id, found), layout=layout())


def chain_left(run_id: str, found: Examined) -> Chain:
    """The runs whose rows make up the cluster's state, this one among them where anything had changed."""
    chained = [table.full_name for table in STATE_TABLES if table.chained]
    stored = {name: found.rows[name] for name in chained if found.rows.get(name)}
    own = StoredPart(run_id, stored, tuple(found.answers["digests"].get(INDEX, ())))
    return chain_of(found.answers[CHAIN]).followed_by(own)
