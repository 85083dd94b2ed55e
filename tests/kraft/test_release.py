"""Which release wrote a log: evidence first, never a guess that would turn the state's meaning around (S§2.6)."""

from __future__ import annotations

from typing import Any

from transforms.kraft.release import before, infer_release, is_migrating, outside_migration


def node(name: str, number: int, level: int) -> dict[str, Any]:
    return {name: number, "features": [{"name": "metadata.version", "min_level": 1, "max_level": level}]}


def test_what_is_configured_wins() -> None:
    assert infer_release("3.6.1", [node("controller_id", 1, 21)], [], 21).version == "3.6.1"


def test_the_newest_level_a_node_supports_tells() -> None:
    found = infer_release(None, [node("controller_id", 3000, 21)], [node("broker_id", 0, 14)], 14)
    assert found.version == "3.9"
    assert "controller 3000" in found.evidence
    assert "3.9-IV0" in found.evidence


def test_without_controllers_the_brokers_and_the_finalised_level_tell() -> None:
    assert infer_release(None, [], [node("broker_id", 0, 14)], 8).version == "3.6"
    assert infer_release(None, [], [], 11).version == "3.5"
    assert infer_release(None, [], [], None).version is None


def test_a_state_that_3_4_never_writes_tells_a_later_release_at_an_old_level() -> None:
    assert infer_release(None, [], [node("broker_id", 0, 8)], 8, frozenset({1})).version == "3.4"
    for codes in ({2, 1}, {0}, {3}):
        assert infer_release(None, [], [node("broker_id", 0, 8)], 8, frozenset(codes)).version == "3.5"


def test_a_state_in_a_checkpoint_tells_a_later_release_too() -> None:
    """Checkpoints of 3.4 hold no migration state; state 1 in one is MIGRATION, not the beginning of a load."""
    found = infer_release(None, [], [node("broker_id", 0, 8)], 8, frozenset({1}), state_in_checkpoint=True)
    assert found.version == "3.5"


def test_an_offset_that_moved_without_a_load_tells_a_later_release_too() -> None:
    found = infer_release(None, [], [node("broker_id", 0, 8)], 8, frozenset({1}), offset_moved=True)
    assert found.version == "3.5"
    assert infer_release(None, [], [node("broker_id", 0, 14)], 8, frozenset({1}), offset_moved=True).version == "3.6"


def test_before_knows_releases() -> None:
    assert before("3.4.1", 3, 5)
    assert not before("3.10", 3, 5)
    assert not before(None, 3, 5)


def of_zookeeper(number: int, level: int) -> dict[str, Any]:
    levels = [{"name": "metadata.version", "min_level": level, "max_level": level}]
    return {"broker_id": number, "is_migrating_zk_broker": True, "features": levels}


def test_one_node_of_kafka_4_turns_no_migration_into_a_cluster_that_does_not_migrate() -> None:
    controllers = [node("controller_id", 3000, 21), node("controller_id", 3001, 21), node("controller_id", 3002, 25)]
    found = infer_release(None, controllers, [node("broker_id", 0, 25)], 21, frozenset({2, 1}), migrating=True)
    assert found.version == "3.9"
    assert infer_release(None, controllers, [node("broker_id", 0, 25)], 21).version == "3.9", "the majority tells"


def test_while_a_migration_runs_even_a_majority_of_kafka_4_does_not_end_it() -> None:
    controllers = [node("controller_id", number, 25) for number in (3000, 3001, 3002)]
    assert infer_release(None, controllers, [], 21, frozenset({2, 1}), migrating=True).version == "3.9"
    assert infer_release(None, controllers, [], 21, frozenset({2, 1, 3})).version == "4.0"


def test_a_cluster_that_went_on_to_kafka_4_is_one() -> None:
    assert infer_release(None, [node("controller_id", 1, 27)], [node("broker_id", 0, 27)], 27).version == "4.1"


def test_a_newer_broker_of_zookeeper_mode_tells_a_newer_release_than_a_rolled_one_of_the_same() -> None:
    assert infer_release(
        None, [], [of_zookeeper(0, 14), of_zookeeper(1, 14), node("broker_id", 2, 14)], 14
    ).version == ("3.6")
    assert (
        infer_release(None, [], [of_zookeeper(0, 8), node("broker_id", 1, 14)], 8, frozenset({2, 1})).version == "3.6"
    )


def test_what_runs_is_told_by_the_states_or_by_who_writes_migration() -> None:
    assert is_migrating([2, 1], 1, None)
    assert is_migrating([2], 1, None)
    assert not is_migrating([2, 1, 3], 4, {"kraft_controller_epoch": 4})
    assert not is_migrating([0], 4, {"kraft_controller_epoch": 4})
    assert is_migrating([], 4, {"kraft_controller_epoch": 4}), "only a migrating leader writes /migration"
    assert not is_migrating([], 9, {"kraft_controller_epoch": 4}), "what a migration of long ago left"
    assert not is_migrating([], None, None)


def test_nodes_that_can_not_be_part_of_a_migration_are_named() -> None:
    assert outside_migration("broker 7", node("broker_id", 7, 21)) is None
    assert outside_migration("broker 7", {"broker_id": 7, "features": None}) is None
    newer, older = node("broker_id", 7, 25), of_zookeeper(7, 7)
    assert "broker 7 supports metadata.version up to 4.0-IV3: Kafka 4" in str(outside_migration("broker 7", newer))
    assert "older than Kafka 3.4" in str(outside_migration("broker 7", older))
