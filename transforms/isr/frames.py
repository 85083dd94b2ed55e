"""Rows of gold isr_history as steps of a partition's history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transforms.isr.history import ChangeKind, ClassifiedChange
from transforms.isr.partition import LISTS, PartitionState

_NUMBERS = ("leader", "leader_recovery_state", "leader_epoch", "partition_epoch")


def step_of(row: Mapping[str, Any]) -> ClassifiedChange:
    """A collected row of the history as a step."""
    after = _state(row, "")
    if after is None:
        raise ValueError("a row of the history has a state after it")
    return ClassifiedChange(
        row["offset"], row["append_time"], _state(row, "_before"), after, tuple(map(ChangeKind, row["kinds"]))
    )


def _state(row: Mapping[str, Any], suffix: str) -> PartitionState | None:
    if row[f"leader{suffix}"] is None:
        return None
    values: dict[str, Any] = {name: tuple(row[column + suffix]) for column, name in LISTS.items()}
    return PartitionState(**values, **{name: row[name + suffix] for name in _NUMBERS})
