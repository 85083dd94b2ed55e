"""The cluster as its active controller knows it: the one answer to who the quorum is and what is finalised.

What judges an update of features and a downgrade asks here; the report keeps it (`KraftHealth`), and the commands that look
at a finished run read it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from schemas.checks import KRAFT
from schemas.kraft.enums import DIRECTORY_MIGRATING
from schemas.kraft.feature_levels import KRAFT_VERSION
from schemas.report import KraftHealth
from transforms.features.matrix import node_of
from transforms.features.update import Cluster
from transforms.kraft.quorum import LogCopy
from transforms.reconcile.judge.facts import Facts


def cluster_of(facts: Facts, release: tuple[int, int]) -> Cluster:
    """The cluster by a run's facts, as a controller of `release` is asked."""
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
    """Ids in `controller.quorum.voters` of the controllers' property files; None where these do not tell."""
    files = facts.properties.controllers
    named = frozenset(number for file in files for number in file.settings.voter_ids)
    dynamic = facts.quorum is not None and facts.quorum.kraft_version > 0
    return named if named or (files and dynamic) else None


def finalised_of(levels: Mapping[str, int], kraft_version: int) -> dict[str, int]:
    """Finalised levels, kraft.version by the control records alone: 0 is a static quorum, and named by nothing."""
    others = {name: level for name, level in levels.items() if name != KRAFT_VERSION}
    return {**others, KRAFT_VERSION: kraft_version} if kraft_version else others


def voters_of(health: KraftHealth) -> frozenset[int] | None:
    """The voters that a report names; None when nothing named them."""
    return frozenset(member.controller_id for member in health.quorum if member.voter) or None


def leader_of(health: KraftHealth) -> int | None:
    """The leader that a report names."""
    return next((member.controller_id for member in health.quorum if member.leader), None)


def with_directory_id(voters: Iterable[tuple[int, str | None]], copies: Iterable[LogCopy]) -> frozenset[int]:
    """Controllers whose directory id the voters' record or the copy's `meta.properties` tells."""
    told = [*voters, *((copy.controller_id, copy.directory_id) for copy in copies)]
    return frozenset(
        number
        for number, directory in told
        if number is not None and directory is not None and directory != DIRECTORY_MIGRATING
    )
