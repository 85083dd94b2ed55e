"""Where a finished run's cluster stands: who is registered, what is finalised, and who is the quorum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as F

from jobs.audit.kraft_health import quorum_of
from jobs.audit.past import PastRun
from jobs.audit.past_state import PastKraft, migration_znodes, past_kraft
from jobs.exit import UsageError
from schemas.checks import Phase
from schemas.entities.brokers import BROKERS
from schemas.entities.controllers import CONTROLLERS
from schemas.entities.features import FEATURES
from transforms.downgrade.evidence import FEATURE_PATH, document_of, feature_znode
from transforms.downgrade.ledger import FeatureZnode
from transforms.features.levels import UnknownLevelError, release_tuple
from transforms.features.matrix import Node, node_of
from transforms.features.update import Cluster
from transforms.kraft.quorum import elected_leader, known_voters
from transforms.reconcile.judge.cluster import finalised_of, leader_of, voters_of, with_directory_id

_NO_RELEASE = (0, 0)
_ZOOKEEPER_PHASES = (Phase.ZOOKEEPER.value, Phase.WAITING.value, Phase.ROLLED_BACK.value)


@dataclass(frozen=True)
class Standing:
    """A finished run's cluster in the terms of the audits of ISR, features and downgrades.

    `kraft` and `zookeeper` are the cluster as each kind of controller knows it, None where that side was not collected;
    where `release` is None, `kraft` tells all but what goes by the release;
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
        if found is None or self.release is None:
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
        kraft=None if log is None else _kraft(past, log, release or _NO_RELEASE),
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
    """The cluster as the run judged it: who the quorum is, is said by its report."""
    finalised = {row["feature"]: row["level"] for row in _levels(past, "kraft")}
    health, copies = past.report.kraft, log.side.copies
    if health is None:
        # ZooKeeper decides, or an earlier release wrote the report: the copies tell.
        epoch = log.side.plan.leading.last_epoch
        voters: frozenset[int] | None = frozenset(known_voters(copies, log.side.plan)) or None
        leader = None if epoch is None else elected_leader(copies, epoch)
        quorum = quorum_of(log.side)
        named: list[tuple[int, str | None]] = [(voter.voter_id, voter.directory_id) for voter in quorum.voters]
        version = quorum.kraft_version
    else:
        voters, leader, version = voters_of(health), leader_of(health), health.kraft_version
        named = [(member.controller_id, member.directory_id) for member in health.quorum if member.voter]
    return Cluster(
        release,
        finalised_of(finalised, version),
        _nodes(past, "kraft"),
        voters,
        leader,
        past.report.migration.state,
        directory_ids=with_directory_id(named, copies),
    )


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
