"""Controllers that were formatted and began again have the cluster's id and another log: no copy of it may count for the first one.

Seen in real clusters of 3.8.1 and 4.4.0, of which two of three controllers were formatted: the audit read the third one's old log and
called the cluster clean.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.steps import ingest_kraft
from jobs.steps.ingest_kraft import find_copies
from tests.captures import capture
from tests.kraft.test_quorum import copy as copy_of
from transforms.kraft.other_logs import (
    CLOCKS_APART_MS,
    Place,
    common_offset,
    differs_at,
    lost_checkpoint,
    younger_than_later,
)
from transforms.kraft.quorum import Checkpoint, LogCopy

# A second attempt at a migration, with controllers that were formatted again, and the first one.
AGAIN, BEFORE = capture("3.9.1", "retry-after-join"), capture("3.9.1", "rolled-back")


def beside(tmp_path: Path, stages: dict[int, Path]) -> Path:
    for node, folder in stages.items():
        shutil.copytree(folder / "kraft" / str(node), tmp_path / str(node))
    return tmp_path


@pytest.mark.parametrize("formatted", [{3001, 3002}, {3002}], ids=["the majority", "one"])
def test_a_log_that_began_again_does_not_count(tmp_path: Path, formatted: set[int]) -> None:
    stages = {node: AGAIN if node in formatted else BEFORE for node in (3000, 3001, 3002)}
    found = find_copies([str(beside(tmp_path, stages))])
    marked = {copy.controller_id for copy in found.copies if copy.other_log}
    assert found.plan is not None
    kept = formatted if found.plan.leading.controller_id in formatted else {3000, 3001, 3002} - formatted
    assert marked == {3000, 3001, 3002} - kept


@pytest.mark.parametrize("stage", ["7", "10", "rolled-back"])
def test_copies_of_one_log_are_of_one_log(stage: str) -> None:
    """Also those of a controller that was away, or whose log begins at a checkpoint."""
    found = find_copies([str(capture("3.9.1", stage) / "kraft")])
    assert [copy.problem for copy in found.copies] == [None, None, None]


def test_a_leading_log_that_begins_later_is_joined_by_one_that_reaches_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next stage of that cluster: the controller that leads fetched the old log's checkpoint after the stray one had ended."""
    [real, *_] = find_copies([str(capture("3.9.1", "5") / "kraft")]).copies
    parts = {
        1: {"log_start_offset": 832, "log_end_offset": 867, "last_epoch": 16, "epoch_starts": ((15, 832), (16, 866))},
        2: {"log_start_offset": 493, "log_end_offset": 866, "last_epoch": 15, "epoch_starts": ((13, 493), (15, 832))},
        3: {
            "log_start_offset": 0,
            "log_end_offset": 77,
            "last_epoch": 2,
            "epoch_starts": ((1, 0), (2, 3)),
            "last_append_time": 500_000,
        },
    }
    begun = {1: Place(832, 15, 510_000), 2: Place(493, 13, 360_000)}
    same = Place(865, 15, 520_000)
    monkeypatch.setattr(ingest_kraft, "batch_place", lambda copy, at: same if at == 865 else begun[copy.controller_id])
    scanned = tuple(
        replace(real, controller_id=node, location=f"/logs/{node}", checkpoints=(), **values)
        for node, values in parts.items()
    )
    marked = ingest_kraft._marked(scanned)
    assert [copy.problem and copy.problem.partition(",")[0] for copy in marked] == [
        None,
        None,
        "another log: it ends at offset 76 in epoch 2 and was written until 1970-01-01 00:08:20.000",
    ]
    assert [copy.row()["other_log"] for copy in marked] == [False, False, True]
    assert [LogCopy.from_row(copy.row()).other_log for copy in marked] == [False, False, True]


def test_what_tells_two_logs_apart() -> None:
    old = copy_of(3000, 500, 900, ((13, 500),))
    new = replace(copy_of(3001, 0, 45, ((1, 0), (2, 4))), last_append_time=2_000_000)
    assert common_offset(new, old) is None
    begun = Place(500, 13, 2_000_000 - CLOCKS_APART_MS - 1)
    assert younger_than_later(new, begun, old) is not None
    assert younger_than_later(new, replace(begun, append_time=begun.append_time + 1), old) is None, "an old copy"
    assert younger_than_later(new, replace(begun, epoch=1), old) is None

    same = copy_of(3002, 0, 600, ((2, 0), (13, 400)))
    assert common_offset(same, old) == 599
    assert differs_at(Place(599, 13, 7), Place(599, 13, 7), old) is None
    assert "of epoch 13, 1970-01-01 00:00:00.008, that of controller 3000" in str(
        differs_at(Place(599, 13, 8), Place(599, 13, 7), old)
    )
    assert differs_at(None, Place(599, 13, 7), old) is None, "damage there is CAP-02's"


@pytest.mark.parametrize(
    ("offset", "epoch", "other"),
    [(600, 13, False), (450, 2, False), (600, 12, True), (950, 12, True), (950, 13, False)],
    ids=["same", "before the start", "another epoch", "longer in an older epoch", "the other copy is older"],
)
def test_a_checkpoint_holds_what_no_later_leader_lacks(offset: int, epoch: int, *, other: bool) -> None:
    leading = copy_of(3000, 500, 900, ((13, 500),))
    checked = copy_of(3001, 0, 1000, ((epoch, 0),), (Checkpoint("c", offset, epoch, True),))
    assert (lost_checkpoint(checked, leading) is not None) == other
