"""kraft.version is what the control records say, whatever a FeatureLevelRecord says (KAFKA-18979)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.reconcile.kraft_clusters import NODES, kraft
from transforms.kraft.replay.entities import READERS
from transforms.kraft.replay.entities.event import DELETE, UPSERT
from transforms.reconcile.judge.cluster import cluster_of, finalised_of
from transforms.reconcile.judge.facts import Quorum
from transforms.reconcile.judge.kraft_summary import kraft_health


@pytest.mark.parametrize("level", [0, 1])
def test_a_record_of_kraft_version_sets_nothing(level: int) -> None:
    """From 4.0.1 on replay passes over it, so that no later snapshot has it: nor may the replay that it is compared with."""
    assert list(READERS["FEATURE_LEVEL_RECORD"]({"name": "kraft.version", "featureLevel": level})) == []
    others = [READERS["FEATURE_LEVEL_RECORD"]({"name": "x", "featureLevel": level})]
    assert [event.op for events in others for event in events] == [UPSERT if level else DELETE]


def test_an_unregistered_controller_is_removed() -> None:
    [event] = READERS["UNREGISTER_CONTROLLER_RECORD"]({"controllerId": 3003})
    assert (event.entity, event.key, event.op) == ("controllers", (3003,), DELETE)


def test_a_static_quorum_is_at_no_kraft_version() -> None:
    assert finalised_of({"metadata.version": 21, "kraft.version": 1}, 0) == {"metadata.version": 21}
    assert finalised_of({"metadata.version": 21}, 1) == {"metadata.version": 21, "kraft.version": 1}
    ghost = kraft(features={**kraft().features, "kraft.version": 1}, quorum=Quorum())
    assert "kraft.version" not in cluster_of(ghost, (4, 3)).finalised


def test_the_quorum_is_the_same_to_the_judge_and_in_the_report() -> None:
    """The voters are those of the newest KRaftVoters record; the LeaderChange of the epoch may name earlier ones."""
    facts = kraft()
    facts = replace(facts, epochs=[replace(facts.epochs[-1], voters=(1, 2, 3))])
    asked = cluster_of(facts, (4, 3))
    assert asked.voters == frozenset(NODES)
    assert asked.directory_ids == frozenset(NODES)
    health = kraft_health(facts)
    assert health is not None
    assert {member.controller_id for member in health.quorum if member.voter} == asked.voters
    assert [member.controller_id for member in health.quorum if member.leader] == [asked.local]
