"""Facts to the part of a report about a KRaft cluster's state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.checks import KRAFT, Phase
from schemas.kraft.metadata_versions import FEATURE_NAME, level_name
from schemas.report import KraftHealth, QuorumMember
from transforms.features.matrix import node_of
from transforms.reconcile.judge.facts import Facts, PartitionCounts, Voter

_IN_KRAFT = (Phase.DUAL_WRITE, Phase.FINALIZED, Phase.KRAFT)


def kraft_health(facts: Facts) -> KraftHealth | None:
    """The cluster by its metadata log; None where ZooKeeper decides, or without a log."""
    if facts.phase not in _IN_KRAFT or facts.plan is None:
        return None
    counts = (facts.partition_counts or {}).get(KRAFT, PartitionCounts())
    brokers = facts.brokers_in_kraft
    level = facts.level
    return KraftHealth(
        metadata_version="none" if level is None else f"{level_name(level)} ({level})",
        kraft_version=0 if facts.quorum is None else facts.quorum.kraft_version,
        features=dict(sorted(facts.features.items())),
        quorum=_quorum(facts),
        partitions=counts.partitions,
        leaderless=counts.leaderless,
        under_replicated=counts.short,
        recovering=counts.recovering,
        not_preferred=counts.moved,
        brokers=len(brokers),
        at_work=sum(not (row["fenced"] or row["in_controlled_shutdown"]) for row in brokers),
    )


def _quorum(facts: Facts) -> list[QuorumMember]:
    voters = {voter.voter_id: voter for voter in (facts.quorum.voters if facts.quorum else ())}
    registered = {row["controller_id"]: row for row in facts.controllers}
    leader = None if facts.leader is None else facts.leader.leader_id
    return [
        _member(node, node in facts.voters, node == leader, voters.get(node), registered.get(node))
        for node in sorted({*facts.voters, *registered})
    ]


def _member(node: int, votes: bool, leads: bool, voter: Voter | None, row: Mapping[str, Any] | None) -> QuorumMember:
    supports = (0, 0) if row is None else node_of(row).supports(FEATURE_NAME)
    return QuorumMember(
        controller_id=node,
        voter=votes,
        leader=leads,
        registered=row is not None,
        directory_id=None if voter is None else voter.directory_id,
        endpoint=_endpoint(voter, row),
        metadata_versions=f"{level_name(supports[0])} to {level_name(supports[1])}" if supports[1] else "",
    )


def _endpoint(voter: Voter | None, row: Mapping[str, Any] | None) -> str:
    if voter is not None and voter.endpoints:
        return f"{voter.endpoints[0][1]}:{voter.endpoints[0][2]}"
    listed = (row or {}).get("endpoints") or ()
    return f"{listed[0]['host']}:{listed[0]['port']}" if listed else ""
