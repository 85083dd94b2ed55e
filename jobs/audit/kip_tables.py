"""What a run tells of KIP-497, KIP-584 and KIP-384: the rows of gold isr_audit, feature_matrix and downgrade_readiness.

The questions go with those of `jobs.audit.facts`; pure functions judge the answers of each cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.isr_history import recent_changes
from jobs.audit.kraft_side import KraftSide
from jobs.audit.run import Run
from schemas.checks import KRAFT, START_PHASES, ZOOKEEPER, Phase
from schemas.kraft.metadata_versions import FEATURE_NAME
from schemas.report import DowngradeReadiness, DowngradeReason, DowngradeTarget, FeatureLine, IsrHistory, IsrLine
from transforms.clusters import CLUSTER
from transforms.downgrade import frames as formats
from transforms.downgrade.evidence import FEATURE_PATH, MESSAGE_FORMAT, TRACES, document_of, feature_znode
from transforms.downgrade.ledger import OF_KRAFT, FeatureZnode, shown
from transforms.downgrade.ordering import Configurations, violations
from transforms.downgrade.readiness import Mode, Outcome, State, floor_of, readiness, targets, with_kraft
from transforms.features.levels import UnknownLevelError, release_tuple
from transforms.features.matrix import Node, matrix, node_of
from transforms.isr.audit import LINE, isr_audit
from transforms.reconcile.judge.cluster import cluster_of
from transforms.reconcile.judge.facts import Facts

ISR_HOURS = 24
# Rows of each subject of isr_audit that a run keeps, topics whose own message format is looked at.
_WORST = 100
_TOPICS = 200
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def questions(
    run: Run,
    silver: Mapping[str, DataFrame],
    isr_changes: DataFrame,
    sides: Mapping[str, KraftSide],
    znodes: DataFrame | None,
) -> dict[str, DataFrame]:
    """Questions for the second joint query, by the names that `tables` asks for.

    `silver` are this run's rows by entity, `isr_changes` those of `State`, `znodes` the judged walk where there is one.
    """
    topic_formats = silver["configs"].where((F.col("resource_type") == "TOPIC") & (F.col("config") == MESSAGE_FORMAT))
    asked = {
        "topic_formats": topic_formats.groupBy(CLUSTER).agg(
            F.slice(F.array_sort(F.collect_set(F.struct("resource_name", "value"))), 1, _TOPICS).alias("topics")
        )
    }
    if znodes is not None:
        asked["formats"] = formats.formats_of_tree(znodes)
        asked["feature_znode"] = znodes.where(F.col("path") == FEATURE_PATH).select(CLUSTER, "data")
    if sides:
        partitions, configs = (silver[name].where(F.col("source") == KRAFT) for name in ("partitions", "configs"))
        ends = {name: end for name, side in sides.items() if (end := side.plan.leading.last_append_time) is not None}
        changes = recent_changes(run, isr_changes, sides, ends, ISR_HOURS)
        asked["isr_audit"] = isr_audit(changes, partitions, configs, ends, ISR_HOURS, _WORST)
        asked["kraft_formats"] = formats.formats_of_partitions(partitions)
    return asked


def isr_history(answers: Rows, facts: Facts) -> IsrHistory | None:
    """What the partitions' history adds up to; None without a log."""
    if KRAFT not in facts.collected:
        return None
    rows = sorted(
        answers.get("isr_audit", ()), key=lambda row: (row["subject"] != "partition", row["subject"], row["place"])
    )
    totals = {row["subject"]: row["total"] for row in rows}
    # Texts of JSON leave null out: what is not said of a line is 0, or nothing.
    lines = [IsrLine(**{name: row[name] for name in (*LINE, "place") if row.get(name) is not None}) for row in rows]
    return IsrHistory(ISR_HOURS, totals, lines)


def features(answers: Rows, facts: Facts) -> list[FeatureLine]:
    """The matrix of the nodes that the deciding controllers know: KRaft's, and ZooKeeper's before there is a load."""
    source = ZOOKEEPER if _by_zookeeper(facts) else KRAFT
    return [
        FeatureLine(
            feature=cell.feature,
            node_kind=cell.node.kind,
            node_id=cell.node.node_id,
            min_level=cell.lowest,
            max_level=cell.highest,
            finalised_level=cell.finalised,
            gap=cell.gap,
            fenced=cell.node.fenced,
            migrating_zk=cell.node.migrating_zk,
        )
        for cell in matrix(_nodes(facts, source), _finalised(answers, facts, source))
    ]


def _by_zookeeper(facts: Facts) -> bool:
    return facts.phase in (*START_PHASES, Phase.ROLLED_BACK)


def _nodes(facts: Facts, source: str) -> list[Node]:
    brokers = facts.brokers_in_zookeeper if source == ZOOKEEPER else facts.brokers_in_kraft
    controllers = [row for row in facts.controllers if row["source"] == source]
    return [node_of({**row, "features": row.get("features")}) for row in (*brokers, *controllers)]


def _finalised(answers: Rows, facts: Facts, source: str) -> Mapping[str, int]:
    if source == KRAFT:
        return cluster_of(facts, (0, 0)).finalised
    return {row["feature"]: row["level"] for row in answers.get("features", ()) if row["source"] == source}


def downgrade(answers: Rows, facts: Facts, side: KraftSide | None) -> DowngradeReadiness:
    """May the cluster go back to each older release, by what its trees, its log and its property files show."""
    state = _state(answers, facts, side)
    found = []
    for release in targets(state):
        judged = readiness(state, release)
        lines = [line for line in judged.lines if line.outcome is not Outcome.SAFE] or list(judged.lines)
        reasons = [DowngradeReason(line.outcome.value, line.what, line.evidence) for line in lines]
        found.append(DowngradeTarget(shown(release), judged.verdict.value, reasons))
    floor = floor_of(state)
    topics = [each for row in answers.get("topic_formats", ()) for each in row["topics"]]
    of_topics = {each["resource_name"]: each["value"] for each in topics if each.get("value") is not None}
    settings = violations(_configurations(facts), of_topics)
    return DowngradeReadiness(state.mode.value, None if floor is None else shown(floor), found, settings)


def _state(answers: Rows, facts: Facts, side: KraftSide | None) -> State:
    mode = Mode.ZOOKEEPER if _by_zookeeper(facts) else Mode.DUAL_WRITE
    mode = mode if facts.phase in (*START_PHASES, Phase.ROLLED_BACK, Phase.DUAL_WRITE) else Mode.KRAFT
    in_tree = ZOOKEEPER in facts.collected
    seen = formats.seen(_first(answers, "formats"), tuple(TRACES)) if in_tree else {}
    if side is not None:
        seen |= formats.seen(_first(answers, "kraft_formats"), OF_KRAFT)
    state = State(
        mode,
        _release(facts.kafka_version),
        seen,
        _feature_znode(answers),
        _znode_versions(facts) if in_tree else None,
        configurations=_configurations(facts),
        unread=facts.damaged_log.total,
    )
    if side is None or mode is Mode.ZOOKEEPER:
        return state
    dual = mode is Mode.DUAL_WRITE
    cluster = cluster_of(facts, state.release or (0, 0))
    migrated = facts.states[-1].offset if facts.states and (dual or facts.phase is Phase.FINALIZED) else None
    levels = [
        row["kraft_offset"]
        for row in answers.get("features", ())
        if row["source"] == KRAFT and row["feature"] == FEATURE_NAME
    ]
    return with_kraft(state, cluster, migrated, next(iter(levels), None), migrating=dual)


def _first(answers: Rows, name: str) -> Mapping[str, Any] | None:
    return next(iter(answers.get(name, ())), None)


def _release(text: str | None) -> tuple[int, int] | None:
    try:
        return None if text is None else release_tuple(text)
    except UnknownLevelError:
        return None


def _feature_znode(answers: Rows) -> FeatureZnode | None:
    row = _first(answers, "feature_znode")
    document = None if row is None else document_of(row.get("data"))
    return None if document is None else feature_znode(document)


def _znode_versions(facts: Facts) -> dict[int, int]:
    return {row["broker_id"]: row.get("znode_version") or 0 for row in facts.brokers_in_zookeeper}


def _configurations(facts: Facts) -> Configurations | None:
    files = facts.properties.brokers
    return {file.node_id: file.settings.formats for file in files if file.node_id is not None} or None
