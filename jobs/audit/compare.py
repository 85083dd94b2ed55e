"""Compare the two sides of each cluster: the differing rows with their classes, as tables, samples and counts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.facts import ClusterFacts
from jobs.audit.homes import classified
from jobs.audit.run import Run
from jobs.audit.versions_of import versions_of_rows
from jobs.audit.walks import compared_tree, moved_znodes
from jobs.settings import Settings
from jobs.steps.materialize import State
from schemas.checks import Phase
from schemas.classes import CLASSES
from schemas.entities import MIRRORED
from schemas.gold import DIVERGENCES
from schemas.report import DivergenceRow, Divergences
from schemas.silver import BARRIERS
from transforms.clusters import CLUSTER, by_cluster, of_clusters
from transforms.reconcile.compare.between import located
from transforms.reconcile.compare.canonical import canonical
from transforms.reconcile.compare.context import CLOCK_MARGIN_MS, Context
from transforms.reconcile.compare.difference import Ends, differing_rows, without_moved
from transforms.reconcile.compare.divergences import followed, listed
from transforms.reconcile.compare.duplicates import duplicated
from transforms.reconcile.compare.release_limits import limits
from transforms.reconcile.compare.suppressions import MARK, SuppressionRule, counted_matches, in_force, marked
from transforms.reconcile.compare.suppressions import notes as suppression_notes
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.facts import Facts, Sample
from transforms.reconcile.judge.gates import judge_gates, run_checks
from transforms.reconcile.judge.liveness import clocks
from transforms.reconcile.judge.load import history_from, load_claim, load_range
from transforms.reconcile.judge.queries import as_facts
from transforms.report.printable import key_text, value_text
from transforms.unions import union_all

_SAMPLE = 20


@dataclass(frozen=True)
class Comparison:
    """One cluster's differing rows as the report lists them; empty when its sides were not compared."""

    compared: bool
    summary: Divergences
    resolved: list[DivergenceRow]
    samples: dict[str, Sample]
    duplicated: Sample | None = None
    notes: list[str] = field(default_factory=list)
    unsuppressed_verdict: str = ""


NOTHING = Comparison(False, Divergences(), [], {})


@dataclass(frozen=True)
class Compared:
    """The comparison of each cluster, and the rows of gold divergences it was made of (None: nothing was compared)."""

    rows: DataFrame | None
    comparisons: Mapping[str, Comparison]

    def of(self, cluster: str) -> Comparison:
        """One cluster's comparison."""
        return self.comparisons.get(cluster, NOTHING)


def compare(run: Run, state: State, gathered: Mapping[str, ClusterFacts], previous: Mapping[str, str]) -> Compared:
    """Compare the sides of the clusters that can be compared (`may_compare`), and write the differences to gold.

    `previous` are the ids of the clusters' runs before this one.
    """
    chosen = {name: each for name, each in gathered.items() if summary.may_compare(each.facts)}
    if not chosen:
        return Compared(None, {})
    mine = of_clusters(chosen)
    both = union_all([canonical(entity, run.rows(entity.table).where(mine)) for entity in MIRRORED])
    contexts = {name: _context(each) for name, each in chosen.items()}
    ends = {name: Ends(contexts[name].committed_end, _log_end(each.facts)) for name, each in chosen.items()}
    differing = differing_rows(both, state.row_versions.where(mine), ends)
    # Held: it is judged twice when something that ZooKeeper lacks has to be looked for.
    still = run.cache_now(without_moved(differing, moved_znodes(run)))
    current = classified(compared_tree(run).where(mine), still, contexts, run.cache_now, versions_of_rows(run, state))
    current = located(current, _barriers(run, contexts))
    rows = followed(current.where("class <> 'not_comparable'"), _history(run, previous), run.run_id)
    stored = keep_differences(run, rows)
    limits = {name: run.clusters[name].settings.report.rows for name in chosen}
    found: dict[str, dict[str, list[Any]]] = {"row": {}, "twice": {}}
    answers = {"row": listed(stored, limits), "twice": duplicated(still)}
    for row in as_facts(answers).collect():
        found[row["fact"]].setdefault(row[CLUSTER], []).append(json.loads(row["row"]))
    return Compared(
        stored,
        {
            name: replace(
                _summarised(found["row"].get(name, ()), limits[name]), duplicated=_twice(found["twice"].get(name, ()))
            )
            for name in chosen
        },
    )


def keep_differences(run: Run, rows: DataFrame) -> DataFrame:
    """Make `rows` (without run_id), some of which tell of those of earlier runs, the run's rows of gold divergences.

    They are made before they are written: a write that reads its own table is refused when another run, of whatever
    cluster, writes there meanwhile.
    """
    return run.keep(DIVERGENCES, rows if run.small else run.cache_now(rows), hold=True)


def _barriers(run: Run, contexts: Mapping[str, Context]) -> DataFrame | None:
    """Barriers of the present migrations of these clusters; None when no data folder was read."""
    loaded = {
        name: context.load_time_ms - CLOCK_MARGIN_MS
        for name, context in contexts.items()
        if context.load_time_ms is not None
        and (source := run.clusters[name].settings.zookeeper) is not None
        and source.folder is not None
    }
    return run.rows(BARRIERS).where(F.col("time") >= by_cluster(loaded, "bigint")) if loaded else None


def _twice(rows: Sequence[Mapping[str, Any]]) -> Sample:
    return Sample(rows[0]["total"], tuple(rows[0]["texts"])) if rows else Sample()


def _log_end(facts: Facts) -> int | None:
    return None if facts.plan is None else facts.plan.leading.end


def _history(run: Run, previous: Mapping[str, str]) -> DataFrame:
    """Divergences of each cluster's run before this one."""
    if not previous:
        return run.warehouse.empty(DIVERGENCES)
    rows = run.warehouse.read(DIVERGENCES)
    return rows.where(F.col("run_id") == by_cluster(previous, "string"))


def _context(gathered: ClusterFacts) -> Context:
    facts = gathered.facts
    if facts.committed is None or facts.compared_offset is None:
        raise ValueError("rows are compared only when the log and /migration are there; see may_compare")
    zookeeper = facts.compared_znodes or {}
    claim = zookeeper.get("controller_czxid") if zookeeper.get("controller_persistent") else None
    load = load_range([(state.offset, facts.name_of(state)) for state in facts.states], facts.transactions)
    return Context(
        frozen=facts.phase is Phase.FINALIZED,
        migration_offset=facts.compared_offset if facts.mirrored_offset is None else facts.mirrored_offset,
        migration_mzxid=zookeeper.get("migration_mzxid"),
        committed_end=facts.committed.end_exclusive,
        load_time_ms=facts.load_time_ms,
        newest_append_time_ms=facts.newest_append_time_ms,
        pending_deletes=gathered.pending_deletes,
        foreign_zxids=frozenset(zxid for zxid, _ in gathered.foreign_writes),
        foreign_paths=frozenset(path for _, path in gathered.foreign_writes),
        claim_zxid=claim,
        limits=limits(facts.kafka_version),
        load=load,
        load_claim=load_claim(zookeeper, facts.plan, load),
        history_from=history_from(facts.plan),
        transactions_known=claim in gathered.claims,
        clocks=clocks(facts),
        lag_limit_ms=round(facts.lag_limit * 1000),
    )


def _summarised(rows: Sequence[Any], limit: int) -> Comparison:
    """Counts and lists from a cluster's rows of `listed`: every group's total is on each of its rows."""
    totals = {(row["class"], row["entity"], row["status"]): row["total"] for row in rows}
    by_class: dict[str, int] = defaultdict(int)
    by_entity: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    by_status: dict[str, int] = defaultdict(int)
    for (class_, entity, status), total in sorted(totals.items()):
        by_status[status] += total
        if status != "resolved":
            by_class[class_] += total
            by_entity[entity][class_] += total
    shown, gone = _in_order(rows, limit, resolved=False), _in_order(rows, limit, resolved=True)
    return Comparison(
        True,
        Divergences(
            total=sum(by_class.values()),
            by_class=dict(by_class),
            by_entity={entity: dict(classes) for entity, classes in by_entity.items()},
            by_status=dict(by_status),
            rows=shown,
        ),
        gone,
        _samples(shown, by_class),
    )


def _in_order(rows: Sequence[Any], limit: int, *, resolved: bool) -> list[DivergenceRow]:
    mine = [row for row in rows if (row["status"] == "resolved") is resolved and row["place"] <= limit]
    return [divergence_row(row) for row in sorted(mine, key=lambda row: int(row["place"]))]


def _samples(rows: Sequence[DivergenceRow], by_class: dict[str, int]) -> dict[str, Sample]:
    texts: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if len(texts[row.class_]) < _SAMPLE:
            texts[row.class_].append(_one_line(row))
    return {name: Sample(total, tuple(texts[name])) for name, total in by_class.items()}


def _one_line(row: DivergenceRow) -> str:
    what = key_text(row.entity, row.key) + (f" {row.column}" if row.column else "")
    return (
        f"{row.class_}: {row.entity} {what}: ZooKeeper {value_text(row.zk_value)}, KRaft {value_text(row.kraft_value)}"
    )


def divergence_row(row: Any) -> DivergenceRow:
    """A row of gold divergences as the report holds it."""
    return DivergenceRow(
        entity=row["entity"],
        key=json.loads(row["key"]),
        column=row["column"],
        kind=row["kind"],
        zk_value=json.loads(row["zk_value"]),
        kraft_value=json.loads(row["kraft_value"]),
        class_=row["class"],
        severity=row["severity"],
        zk_path=row["zk_path"],
        zk_mzxid=row["zk_mzxid"],
        kraft_offset=row["kraft_offset"],
        status=row["status"],
        explanation=row["explanation"],
        lost_after_zxid=row["lost_after_zxid"],
        lost_until_zxid=row["lost_until_zxid"],
        fingerprint=row["fingerprint"],
        remedy=CLASSES[row["class"]].remedy,
    )


def shown(run: Run, compared: Compared, facts: Mapping[str, Facts]) -> dict[str, Comparison]:
    """The comparisons as the reports list them: suppressed rows marked and last, every count as it is.

    Checks and gates are judged before this: a suppression changes none of them.
    """
    today = run.started_at.date()
    in_use = {name: in_force(run.clusters[name].suppressions, today) for name in facts}
    rules = {name: mine for name, mine in in_use.items() if mine and compared.of(name).compared}
    result = {}
    for name in facts:
        if name not in rules:
            notes = suppression_notes(run.clusters[name].suppressions, today, None)
            result[name] = replace(compared.of(name), notes=notes)
    if rules and compared.rows is not None:
        result |= _with_suppressions(run, compared, facts, rules)
    return result


def _with_suppressions(
    run: Run, compared: Compared, facts: Mapping[str, Facts], rules: Mapping[str, Sequence[SuppressionRule]]
) -> dict[str, Comparison]:
    if compared.rows is None:
        return {}
    rows = marked(compared.rows.where(of_clusters(rules)), rules)
    current = rows.where("status <> 'resolved'")
    counts: dict[str, list[Any]] = {name: [] for name in rules}
    for row in counted_matches(current, rules).collect():
        counts[row[CLUSTER]].append(row)
    limits = {name: run.clusters[name].settings.report.rows for name in rules}
    others: dict[str, list[Any]] = {name: [] for name in rules}
    hidden: dict[str, list[Any]] = {name: [] for name in rules}
    for row in listed(rows.where(F.col(MARK).isNull()), limits).collect():
        others[row[CLUSTER]].append(row)
    for row in listed(current.where(F.col(MARK).isNotNull()), limits).collect():
        hidden[row[CLUSTER]].append(row)
    today = run.started_at.date()
    result = {}
    for name, mine in rules.items():
        matched = {position for row in counts[name] for position in row["matched"]}
        notes = suppression_notes(run.clusters[name].suppressions, today, matched)
        by_class = {row["class"]: row["suppressed"] for row in counts[name] if row["suppressed"]}
        result[name] = replace(compared.of(name), notes=notes)
        if by_class:
            rest = _summarised(others[name], limits[name])
            vouched = [
                replace(divergence_row(row), suppressed=mine[row[MARK]].suppression)
                for row in sorted(hidden[name], key=lambda row: int(row["place"]))
            ]
            result[name] = replace(
                result[name],
                summary=replace(
                    compared.of(name).summary,
                    rows=[*rest.summary.rows, *vouched][: limits[name]],
                    suppressed=sum(by_class.values()),
                    suppressed_by_class=by_class,
                ),
                unsuppressed_verdict=_verdict_of(run.clusters[name].settings, facts[name], rest),
            )
    return result


def _verdict_of(settings: Settings, facts: Facts, rest: Comparison) -> str:
    without = replace(facts, divergences=rest.samples, defect_rows=tuple(rest.summary.rows))
    checks = run_checks(without)
    gates = judge_gates(checks, without)
    return summary.verdict(
        rest.summary, checks, gates, without.phase, settings.gate, allow_unknown=settings.allow_unknown
    )
