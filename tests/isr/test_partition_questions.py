"""What is asked of one partition's ISR: its changes by records and as runs recorded them, and the controller that answers."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from transforms.isr.history import ChangeKind
from transforms.isr.partition_questions import at_levels, controller_of, histories, of_topic, recorded
from transforms.isr.validate import ControllerMode
from transforms.kraft.replay.entities import DELETE, UPSERT

LISTS = ("replicas", "isr", "adding_replicas", "removing_replicas", "eligible_leader_replicas", "last_known_elr")
NUMBERS = ("leader", "leader_epoch", "partition_epoch", "leader_recovery_state")
KINDS: dict[str, Any] = {
    **dict.fromkeys(LISTS, pl.List(pl.Int32)),
    **dict.fromkeys(NUMBERS, pl.Int32),
}
SCHEMA = pl.Schema(
    {
        "type": pl.String,
        "offset": pl.Int64,
        "append_time": pl.Int64,
        "data": pl.String,
        "topic_id": pl.String,
        "partition_id": pl.Int32,
        **KINDS,
    }
)
MADE = {"op": UPSERT, "offset": 1, "replay_key": '["id-1"]'}
GONE = {"op": DELETE, "offset": 8, "replay_key": '["id-1"]'}
AGAIN = {"op": UPSERT, "offset": 9, "replay_key": '["id-2"]'}


def records(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([dict.fromkeys(SCHEMA) | {"append_time": 5} | row for row in rows], schema=SCHEMA)


def made(offset: int, topic_id: str = "id-1", partition: int = 0, **values: Any) -> dict[str, Any]:
    row = {"type": "PARTITION_RECORD", "offset": offset, "topic_id": topic_id, "partition_id": partition}
    state = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    return {**row, **state, "leader_recovery_state": 0, **values}


def changed(offset: int, topic_id: str = "id-1", partition: int = 0, **values: Any) -> dict[str, Any]:
    row = {"type": "PARTITION_CHANGE_RECORD", "offset": offset, "topic_id": topic_id, "partition_id": partition}
    return {**row, **values}


def clear(offset: int, topic: str) -> dict[str, Any]:
    return {"type": "CLEAR_ELR_RECORD", "offset": offset, "data": json.dumps({"topicName": topic})}


def test_each_life_of_a_topic_has_its_history() -> None:
    log = records(made(2), changed(3, isr=[1]), made(10, "id-2"), made(4, "other"), made(5, partition=1))
    lives = [MADE, GONE, AGAIN]
    found = histories(log.filter(of_topic(lives)), "t", lives)
    assert {key: [step.offset for step in steps] for key, steps in found.items()} == {
        (0, "id-1"): [2, 3],
        (1, "id-1"): [5],
        (0, "id-2"): [10],
    }
    assert ChangeKind.SHRINK in found[0, "id-1"][1].kinds
    alone = log.filter(of_topic(lives, partition=1))
    assert list(histories(alone, "t", lives)) == [(1, "id-1")]


def test_elr_lists_are_cleared_of_a_topic_by_its_name_or_of_all_while_it_lives() -> None:
    log = records(
        made(2, eligible_leader_replicas=[2], isr=[1]), clear(3, "u"), clear(4, "t"), clear(5, ""), clear(9, "")
    )
    lives = [MADE, GONE]
    [steps] = histories(log.filter(of_topic(lives)), "t", lives).values()
    assert [step.offset for step in steps][:2] == [2, 4]
    assert 9 not in [step.offset for step in steps], "the topic is gone"
    assert steps[1].after.elr == ()


def change(run_id: str, offset: int, cluster: str = "c") -> dict[str, Any]:
    state = {"replicas": [1, 2], "isr": [1], "adding_replicas": [], "removing_replicas": []}
    state |= {"eligible_leader_replicas": [], "last_known_elr": []}
    numbers = {"leader": 1, "leader_epoch": 1, "partition_epoch": 3, "leader_recovery_state": 0}
    after = {**state, **numbers}
    return {
        "cluster": cluster,
        "run_id": run_id,
        "topic_id": "id-1",
        "partition": 0,
        "offset": offset,
        "append_time": 7,
        "kinds": ["shrink"],
        **after,
        **{f"{name}_before": value for name, value in after.items()},
    }


def test_what_two_runs_recorded_counts_once() -> None:
    rows = pl.DataFrame([change("r2", 6), change("r1", 5), change("r2", 5), change("r1", 4)])
    [steps] = recorded(rows).values()
    assert [step.offset for step in steps] == [4, 5, 6]
    assert steps[0].kinds == (ChangeKind.SHRINK,)


BROKERS: list[dict[str, Any]] = [
    {"broker_id": 1, "broker_epoch": 11, "fenced": False, "in_controlled_shutdown": False, "log_dirs": ["d1"]},
    {"broker_id": 2, "broker_epoch": 12, "fenced": True, "in_controlled_shutdown": None, "log_dirs": ["d2"]},
]
ROW = made(0) | {"partition": 0, "directories": ["d1", "lost"]}


def setting(kind: str, name: str, config: str, value: str | None) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, "config": config, "value": value}


def test_the_controller_knows_the_partition_and_the_topics_own_settings_first() -> None:
    configs = [
        setting("TOPIC", "t", "min.insync.replicas", "5"),
        setting("BROKER", "", "min.insync.replicas", "1"),
        setting("BROKER", "", "unclean.leader.election.enable", "true"),
    ]
    found = controller_of(ControllerMode.KRAFT, (4, 0), BROKERS, [ROW], configs, 0)
    assert found is not None
    assert (found.min_isr, found.unclean, found.topic_known) == (2, True, True), "no more than there are replicas"
    assert found.offline == (2,)
    assert (found.brokers[2].fenced, found.brokers[2].in_controlled_shutdown) == (True, False)
    assert at_levels(found, {"eligible.leader.replicas.version": 1}, migrating=False).elr


@pytest.mark.parametrize(
    ("own", "topics", "unclean"),
    [("true", None, True), ("false", None, False), ("true", "false", False), ("false", "true", True)],
)
def test_the_active_controllers_own_setting_counts_before_the_clusters(
    own: str, topics: str | None, unclean: bool
) -> None:
    """`ConfigurationControlManager.currentControllerConfig`: kafka-configs.sh --entity-type brokers --entity-name 3000."""
    name = "unclean.leader.election.enable"
    cluster = "false" if own == "true" else "true"
    configs = [setting("BROKER", "3000", name, own), setting("TOPIC", "t", name, topics)]
    configs.append(setting("BROKER", "", name, cluster))
    found = controller_of(ControllerMode.KRAFT, (4, 0), BROKERS, [ROW], configs, 0)
    assert found is not None
    assert found.unclean is unclean


@pytest.mark.parametrize(
    ("value", "unclean"), [("TRUE", True), ("True", True), ("false", False), ("yes", False), (None, False)]
)
def test_unclean_elections_are_allowed_however_true_is_spelled(value: str | None, unclean: bool) -> None:
    """`Boolean.parseBoolean` (`ConfigurationControlManager.uncleanLeaderElectionEnabledForTopic`)."""
    configs = [setting("TOPIC", "t", "unclean.leader.election.enable", value)]
    found = controller_of(ControllerMode.KRAFT, (4, 0), BROKERS, [ROW], configs, 0)
    assert found is not None
    assert found.unclean is unclean


def test_a_side_without_brokers_answers_nothing_and_an_unknown_partition_is_unknown() -> None:
    assert controller_of(ControllerMode.KRAFT, (4, 0), [], [ROW], [], 0) is None
    other = controller_of(ControllerMode.KRAFT, (4, 0), BROKERS, [ROW], [], 1)
    assert other is not None
    assert (other.partition, other.topic_known) == (None, True)
    none = controller_of(ControllerMode.ZOOKEEPER, (3, 8), BROKERS, [], [], 0)
    assert none is not None
    assert not none.topic_known
