"""Where a finished run's cluster stands: who is registered, what is finalised, and who is the quorum."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as F

from jobs.audit.past import PastRun
from jobs.audit.past_state import PastKraft, migration_znodes, past_kraft
from jobs.exit import UsageError
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from schemas.checks import Phase
from schemas.entities.brokers import BROKERS
from schemas.entities.controllers import CONTROLLERS
from schemas.entities.features import FEATURES
from schemas.kraft.control import KRAFT_VERSION as KRAFT_VERSION_RECORD
from schemas.kraft.control import KRAFT_VOTERS, LEADER_CHANGE
from transforms.downgrade.evidence import FEATURE_PATH, document_of, feature_znode
from transforms.downgrade.ledger import FeatureZnode
from transforms.features.levels import UnknownLevelError, release_tuple
from transforms.features.matrix import KRAFT_VERSION, Node, node_of
from transforms.features.update import Cluster

_ZOOKEEPER_PHASES = (Phase.ZOOKEEPER.value, Phase.WAITING.value, Phase.ROLLED_BACK.value)


@dataclass(frozen=True)
class Standing:
    """A finished run's cluster in the terms of the audits of ISR, features and downgrades.

    `kraft` and `zookeeper` are the cluster as each kind of controller knows it, None where that side was not collected;
    `epoch` is the offset (KRaft) up to which the features are told.
    """

    past: PastRun
    phase: str
    release: tuple[int, int] | None
    kraft: Cluster | None
    zookeeper: Cluster | None
    feature_znode: FeatureZnode | None
    log: PastKraft | None

    @property
    def by_zookeeper(self) -> bool:
        """True where a ZooKeeper controller is the one that answers."""
        return self.phase in _ZOOKEEPER_PHASES

    @property
    def asked(self) -> Cluster:
        """The cluster as the controller knows it that would be asked. Raises UsageError when it was not collected."""
        found = self.zookeeper if self.by_zookeeper else self.kraft
        if found is None:
            side = "ZooKeeper" if self.by_zookeeper else "the metadata log"
            raise UsageError(
                f"run {self.past.run_id} did not collect {side}, or its release is not known: give --kafka-version"
            )
        return found


def standing(past: PastRun, kafka_version: str | None = None) -> Standing:
    """Gather what a run knows; `kafka_version` overrides the release that the run was told or inferred."""
    release = _release(kafka_version or past.report.kafka_version)
    znodes = migration_znodes(past)
    log = past_kraft(past, znodes)
    znode = _feature_znode(past)
    return Standing(
        past=past,
        phase=past.report.migration.phase,
        release=release,
        kraft=None if log is None or release is None else _kraft(past, log, release),
        zookeeper=None if znodes is None or release is None else _zookeeper(past, znodes, release, znode),
        feature_znode=znode,
        log=log,
    )


def _release(text: str) -> tuple[int, int] | None:
    if text == "unknown":
        return None
    try:
        return release_tuple(text)
    except UnknownLevelError as error:
        raise UsageError(f"--kafka-version: {error}") from None


def _nodes(past: PastRun, source: str) -> tuple[Node, ...]:
    rows = [
        row
        for entity in (BROKERS, CONTROLLERS)
        for row in past.read(entity.table).where(F.col("source") == source).collect()
    ]
    return tuple(node_of(row.asDict(recursive=True)) for row in rows)


def _levels(past: PastRun, source: str) -> list[dict[str, Any]]:
    return [row.asDict() for row in past.read(FEATURES.table).where(F.col("source") == source).collect()]


def _kraft(past: PastRun, log: PastKraft, release: tuple[int, int]) -> Cluster:
    finalised = {row["feature"]: row["level"] for row in _levels(past, "kraft")}
    newest = _newest_control(past, log)
    if KRAFT_VERSION_RECORD.name in newest:
        finalised[KRAFT_VERSION] = newest[KRAFT_VERSION_RECORD.name]["kRaftVersion"]
    voters, leader = _quorum(past, newest)
    return Cluster(release, finalised, _nodes(past, "kraft"), voters, leader, past.report.migration.state)


def _newest_control(past: PastRun, log: PastKraft) -> dict[str, dict[str, Any]]:
    """The newest control record of each kind that says who the quorum is, those of checkpoints at their end."""
    kinds = [KRAFT_VERSION_RECORD.name, KRAFT_VOTERS.name, LEADER_CHANGE.name]
    columns = ["type", "data", "offset", "checkpoint_offset"]
    own = log.records.where("checkpoint_offset IS NULL").select(*columns)
    checkpoints = past.read(KRAFT_RECORDS).where("checkpoint_offset IS NOT NULL").select(*columns)
    place = F.coalesce(F.col("checkpoint_offset") - 1, F.col("offset"))
    rows = own.unionByName(checkpoints).where(F.col("type").isin(kinds) & F.col("data").isNotNull())
    newest = rows.groupBy("type").agg(F.max_by("data", place).alias("data")).collect()
    return {row["type"]: json.loads(row["data"]) for row in newest}


def _quorum(past: PastRun, newest: Mapping[str, Mapping[str, Any]]) -> tuple[frozenset[int] | None, int | None]:
    """Voters and leader: by the log's own records, else by the copies' quorum-state files."""
    change = newest.get(LEADER_CHANGE.name, {})
    named = newest.get(KRAFT_VOTERS.name) or change
    voters = frozenset(voter["voterId"] for voter in named.get("voters", ()))
    copies = past.read(KRAFT_LOG_COPIES).select("voters", "quorum_leader_id", "quorum_leader_epoch").collect()
    if not voters:
        voters = frozenset(number for row in copies for number in row["voters"] or ())
    leader = change.get("leaderId")
    if leader is None:
        led = [
            (row["quorum_leader_epoch"], row["quorum_leader_id"])
            for row in copies
            if row["quorum_leader_id"] is not None
        ]
        leader = max(led)[1] if led else None
    return voters or None, leader


def _zookeeper(
    past: PastRun, znodes: Mapping[str, Any], release: tuple[int, int], znode: FeatureZnode | None
) -> Cluster:
    rows = _levels(past, "zookeeper")
    return Cluster(
        release,
        {row["feature"]: row["level"] for row in rows},
        _nodes(past, "zookeeper"),
        local=znodes.get("controller_id"),
        zookeeper=True,
        versioning=znode is not None and znode.enabled,
        min_levels={row["feature"]: row["min_level"] for row in rows if row["min_level"] is not None},
    )


def _feature_znode(past: PastRun) -> FeatureZnode | None:
    rows = past.walk().where(F.col("path") == FEATURE_PATH)
    found = rows.select("data").first()
    document = None if found is None else document_of(found["data"])
    return None if document is None else feature_znode(document)
