"""The cluster as its active controller has it: the only place that determines the quorum and the finalised features.

Updates of features and downgrades are judged by it, in a current run or for a finished one; the report shows it (`KraftHealth`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from schemas.checks import BY_ZOOKEEPER, KRAFT, ZOOKEEPER
from schemas.kraft.enums import DIRECTORY_MIGRATING
from schemas.kraft.feature_levels import KRAFT_VERSION
from transforms.downgrade.ledger import FeatureZnode
from transforms.features.matrix import node_of
from transforms.features.update import Cluster
from transforms.kraft.quorum import LogCopy
from transforms.reconcile.judge.evidence import ClusterFacts
from transforms.reconcile.judge.facts import Facts
from transforms.reconcile.judge.given import Answers

_NO_RELEASE = (0, 0)


@dataclass(frozen=True)
class ClusterViews:
    """A cluster's state, in the terms of the audits of ISR, features and downgrades.

    `kraft` and `zookeeper` are the cluster as each kind of controller has it, None if that side was not read;
    if `release` is None, `kraft` lacks everything that depends on the release, and `zookeeper` is None.
    """

    facts: Facts
    release: tuple[int, int] | None
    kraft: Cluster | None
    zookeeper: Cluster | None

    @property
    def by_zookeeper(self) -> bool:
        """True where a ZooKeeper controller is the one that answers."""
        return self.facts.phase in BY_ZOOKEEPER

    @property
    def active(self) -> Cluster | None:
        """The cluster as its active controller has it; None if it was not read, or its release is unknown."""
        return None if self.release is None else self.zookeeper if self.by_zookeeper else self.kraft


def views_of(
    gathered: ClusterFacts, release: tuple[int, int] | None, feature_znode: FeatureZnode | None
) -> ClusterViews:
    """A cluster by its facts, as controllers of `release` have it."""
    facts = gathered.facts
    kraft = cluster_of(facts, release or _NO_RELEASE) if KRAFT in facts.collected else None
    in_zookeeper = facts.zookeeper is not None and release is not None
    return ClusterViews(
        facts,
        release,
        kraft,
        zookeeper_cluster(gathered, release or _NO_RELEASE, feature_znode) if in_zookeeper else None,
    )


def zookeeper_cluster(gathered: ClusterFacts, release: tuple[int, int], feature_znode: FeatureZnode | None) -> Cluster:
    """The cluster in the view of its ZooKeeper controller of `release`, from the tree as it was read."""
    facts = gathered.facts
    levels = [row for row in Answers(gathered.answers).of("features") if row["source"] == ZOOKEEPER]
    controllers = [row for row in facts.controllers if row["source"] == ZOOKEEPER]
    return Cluster(
        release,
        {row["feature"]: row["level"] for row in levels},
        tuple(node_of(row) for row in (*facts.brokers_in_zookeeper, *controllers)),
        local=(facts.zookeeper or {}).get("controller_id"),
        zookeeper=True,
        versioning=feature_znode is not None and feature_znode.enabled,
        min_levels={row["feature"]: row["min_level"] for row in levels if row["min_level"] is not None},
    )


def cluster_of(facts: Facts, release: tuple[int, int]) -> Cluster:
    """The cluster from a run's facts, in the view of a controller of `release`."""
    rows = [row for row in (*facts.brokers_in_kraft, *facts.controllers) if row.get("source", KRAFT) == KRAFT]
    return Cluster(
        release,
        finalised_of(facts.features, 0 if facts.quorum is None else facts.quorum.kraft_version),
        tuple(node_of({**row, "features": row.get("features")}) for row in rows),
        frozenset(facts.voters) or None,
        None if facts.leader is None else facts.leader.leader_id,
        facts.state_name,
        configured=_configured(facts),
        directory_ids=with_directory_id(
            ((voter.voter_id, voter.directory_id) for voter in (facts.quorum.voters if facts.quorum else ())),
            facts.copies,
        ),
    )


def _configured(facts: Facts) -> frozenset[int] | None:
    """Ids in `controller.quorum.voters` of the controllers' property files; None if they do not name any."""
    files = facts.properties.controllers
    named = frozenset(number for file in files for number in file.settings.voter_ids)
    dynamic = facts.quorum is not None and facts.quorum.kraft_version > 0
    return named if named or (files and dynamic) else None


def finalised_of(levels: Mapping[str, int], kraft_version: int) -> dict[str, int]:
    """Finalised levels, kraft.version by the control records alone: 0 is a static quorum, and named by nothing."""
    others = {name: level for name, level in levels.items() if name != KRAFT_VERSION}
    return {**others, KRAFT_VERSION: kraft_version} if kraft_version else others


def with_directory_id(voters: Iterable[tuple[int, str | None]], copies: Iterable[LogCopy]) -> frozenset[int]:
    """Controllers whose directory id is in the voters' record or in the copy's `meta.properties`."""
    named = [*voters, *((copy.controller_id, copy.directory_id) for copy in copies)]
    return frozenset(
        number
        for number, directory in named
        if number is not None and directory is not None and directory != DIRECTORY_MIGRATING
    )
