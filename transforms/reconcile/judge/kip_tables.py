"""A run's results about KIP-497, KIP-584 and KIP-384: the rows of gold isr_audit, feature_matrix and downgrade_readiness.

The questions go with those of the second look (`transforms.reconcile.judge.queries`); the answers of a cluster are judged here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from schemas.checks import BY_ZOOKEEPER, KRAFT, ZOOKEEPER, Phase
from schemas.kraft.metadata_versions import FEATURE_NAME
from schemas.report import DowngradeReadiness, DowngradeReason, DowngradeTarget, FeatureLine, IsrHistory, IsrLine
from transforms.downgrade import evidence
from transforms.downgrade.ledger import OF_KRAFT, FeatureZnode
from transforms.downgrade.ordering import Configurations, violations
from transforms.downgrade.readiness import (
    KnownCluster,
    LineOutcome,
    MetadataMode,
    floor_of,
    readiness,
    targets,
    with_kraft,
)
from transforms.features.levels import UnknownLevelError, release_name, release_tuple
from transforms.features.matrix import KRAFT_VERSION, Node, matrix, node_of
from transforms.isr.audit import LINE, isr_audit
from transforms.kraft.quorum import replayed_from
from transforms.kraft.side import KraftSide
from transforms.properties import PropertyFiles
from transforms.reconcile.judge.cluster import cluster_of
from transforms.reconcile.judge.facts import Facts
from transforms.reconcile.judge.given import Answers

ISR_HOURS = 24
# Rows of each subject of isr_audit that a run keeps, topics whose own message format is looked at: some of each format.
_WORST = 100
_TOPICS = 200
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def questions(
    tables: Mapping[str, pl.DataFrame],
    findings: pl.DataFrame,
    recent: pl.DataFrame,
    side: KraftSide | None,
    *,
    capped_min_isr: bool,
) -> dict[str, list[dict[str, Any]]]:
    """Answers by the names that the functions below ask for, but for `formats` and `feature_znode`, which znodes give.

    `tables` are silver rows of both sides by entity, `findings` those of silver, `recent` the partitions' changes of the log's last
    ISR_HOURS (`transforms.isr.audit.recent_of`). Without a log (`side`) there are none. `capped_min_isr` as in
    `transforms.isr.audit.isr_audit`.
    """
    answers = {"topic_formats": _topic_formats(tables["configs"])}
    if side is not None:
        partitions, configs, acls = (
            tables[name].filter(pl.col("source") == KRAFT) for name in ("partitions", "configs", "acls")
        )
        end = side.plan.leading.last_append_time
        if end is not None:
            answers["isr_audit"] = isr_audit(recent, partitions, configs, end, _WORST, capped_min_isr=capped_min_isr)
        answers["kraft_formats"] = evidence.formats_of_log(partitions, configs, acls, findings)
    return answers


def _topic_formats(configs: pl.DataFrame) -> list[dict[str, Any]]:
    """The message formats that topics have of their own, for each format the first ones by name; no row where none has."""
    own = configs.filter((pl.col("resource_type") == "TOPIC") & (pl.col("config") == evidence.MESSAGE_FORMAT))
    topics = own.select("resource_name", "value").unique().sort("resource_name", "value")
    of_each = topics.sort(pl.int_range(pl.len()).over("value"), maintain_order=True).head(_TOPICS)
    return [{"topics": of_each.sort("resource_name", "value").to_dicts()}] if topics.height else []


class FeatureLook:
    """Reads `/feature` out of a tree's znodes, some of them at a time."""

    def __init__(self) -> None:
        """Nothing was read yet."""
        self._found: list[dict[str, Any]] = []

    def add(self, znodes: pl.DataFrame) -> None:
        """Look at rows of bronze zk_znodes; of their columns `path` and `data` count."""
        self._found += znodes.filter(pl.col("path") == evidence.FEATURE_PATH).select("data").to_dicts()

    def answers(self) -> dict[str, list[dict[str, Any]]]:
        """The answer `feature_znode`: a row with the znode's data, where there is one."""
        return {"feature_znode": self._found}


def isr_history(answers: Rows, facts: Facts) -> IsrHistory | None:
    """What the partitions' history adds up to; None without a log."""
    if KRAFT not in facts.collected:
        return None
    rows = sorted(
        Answers(answers).of("isr_audit"), key=lambda row: (row["subject"] != "partition", row["subject"], row["place"])
    )
    totals = {row["subject"]: row["total"] for row in rows}
    # JSON texts leave out null: a missing field is 0, or empty.
    lines = [IsrLine(**{name: row[name] for name in (*LINE, "place") if row.get(name) is not None}) for row in rows]
    return IsrHistory(ISR_HOURS, totals, lines)


def features(answers: Rows, facts: Facts) -> list[FeatureLine]:
    """The matrix of the nodes that are registered with the deciding controllers: KRaft's, and ZooKeeper's before there is a load."""
    source = ZOOKEEPER if facts.phase in BY_ZOOKEEPER else KRAFT
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


def _nodes(facts: Facts, source: str) -> list[Node]:
    brokers = facts.brokers_in_zookeeper if source == ZOOKEEPER else facts.brokers_in_kraft
    controllers = [row for row in facts.controllers if row["source"] == source]
    return [node_of({**row, "features": row.get("features")}) for row in (*brokers, *controllers)]


def _finalised(answers: Rows, facts: Facts, source: str) -> Mapping[str, int]:
    if source == KRAFT:
        return cluster_of(facts, (0, 0)).finalised
    return {row["feature"]: row["level"] for row in Answers(answers).of("features") if row["source"] == source}


def downgrade(answers: Rows, facts: Facts, side: KraftSide | None) -> DowngradeReadiness:
    """Whether the cluster can go back to each older release, judged by its trees, its log and its property files."""
    state = state_of(answers, facts, side, _release(facts.kafka_version), configurations_of(facts.properties))
    found = []
    for release in targets(state):
        judged = readiness(state, release)
        lines = [line for line in judged.lines if line.outcome is not LineOutcome.SAFE] or list(judged.lines)
        reasons = [DowngradeReason(line.outcome.value, line.what, line.evidence) for line in lines]
        found.append(DowngradeTarget(release_name(release), judged.verdict.value, reasons))
    floor = floor_of(state)
    topics = [each for row in Answers(answers).of("topic_formats") for each in row["topics"]]
    of_topics = {each["resource_name"]: each["value"] for each in topics if each.get("value") is not None}
    return DowngradeReadiness(
        state.mode.value, None if floor is None else release_name(floor), found, settings_of(state, of_topics)
    )


def settings_of(state: KnownCluster, topic_formats: Mapping[str, str]) -> list[str]:
    """What breaks the order of format settings, by property files and topics' own formats; nothing in KRaft mode, where brokers do
    not read inter.broker.protocol.version."""
    return [] if state.mode is MetadataMode.KRAFT else violations(state.configurations, topic_formats)


def state_of(
    answers: Rows,
    facts: Facts,
    side: KraftSide | None,
    release: tuple[int, int] | None,
    configurations: Configurations | None,
) -> KnownCluster:
    """The cluster as input of a downgrade's judgement, with nodes of `release` and these property files."""
    by_kraft = MetadataMode.DUAL_WRITE if facts.phase is Phase.DUAL_WRITE else MetadataMode.KRAFT
    mode = MetadataMode.ZOOKEEPER if facts.phase in BY_ZOOKEEPER else by_kraft
    in_tree = ZOOKEEPER in facts.collected
    seen = evidence.seen(Answers(answers).first("formats"), tuple(evidence.TRACES)) if in_tree else {}
    if side is not None:
        seen |= evidence.seen(Answers(answers).first("kraft_formats"), OF_KRAFT)
    state = KnownCluster(
        mode,
        release,
        seen,
        feature_znode_of(answers),
        _znode_versions(facts) if in_tree else None,
        configurations=configurations,
        replayed=_replayed(facts),
        bootstrap={copy.who: copy.bootstrap_level for copy in facts.copies if copy.bootstrap_level is not None},
        unread=facts.damaged_log.total,
        unknown_records=facts.unknown_records.total > 0,
    )
    if side is None or mode is MetadataMode.ZOOKEEPER:
        return state
    dual = mode is MetadataMode.DUAL_WRITE
    cluster = cluster_of(facts, state.release or (0, 0))
    migrated = facts.states[-1].offset if facts.states and (dual or facts.phase is Phase.FINALIZED) else None
    levels = [
        row["kraft_offset"]
        for row in Answers(answers).of("features")
        if row["source"] == KRAFT and row["feature"] == FEATURE_NAME
    ]
    return with_kraft(state, cluster, migrated, next(iter(levels), None), migrating=dual)


def _replayed(facts: Facts) -> dict[str, tuple[int, int]]:
    """By feature the highest level that some node replays when it starts, and the offset of the feature's newest record.

    A node replays its newest checkpoint, which has the level in force there, and the records after it. Those of kraft.version were never
    in force (KAFKA-18979).
    """
    first, found = replayed_from(facts.copies), dict[str, tuple[int, int]]()
    changes = (each for each in (*facts.levels, *facts.other_levels) if each.feature != KRAFT_VERSION)
    for change in sorted(changes, key=lambda each: each.offset):
        highest = found.get(change.feature, (0, 0))[0] if change.offset >= first else 0
        found[change.feature] = max(highest, change.level), change.offset
    return found


def _release(text: str | None) -> tuple[int, int] | None:
    try:
        return None if text is None else release_tuple(text)
    except UnknownLevelError:
        return None


def feature_znode_of(answers: Rows) -> FeatureZnode | None:
    """The tree's `/feature`; None without a readable one."""
    row = Answers(answers).first("feature_znode")
    document = None if row is None else evidence.document_of(row.get("data"))
    return None if document is None else evidence.feature_znode(document)


def _znode_versions(facts: Facts) -> dict[int, int]:
    """Of each broker; 0 is unknown, as that of a broker that has replicas and is down."""
    running = {row["broker_id"]: row.get("znode_version") or 0 for row in facts.brokers_in_zookeeper}
    return {use.broker_id: 0 for use in facts.replicas} | running


def configurations_of(properties: PropertyFiles) -> Configurations | None:
    """The format settings in brokers' property files, by broker; None without any."""
    return {file.node_id: file.settings.formats for file in properties.brokers if file.node_id is not None} or None
