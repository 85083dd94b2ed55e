"""Which release wrote a log: evidence first, never a guess that would turn the state's meaning around (S§2.6)."""

from __future__ import annotations

from typing import Any

from transforms.kraft.release import before, infer_release


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


def test_before_knows_releases() -> None:
    assert before("3.4.1", 3, 5)
    assert not before("3.10", 3, 5)
    assert not before(None, 3, 5)
