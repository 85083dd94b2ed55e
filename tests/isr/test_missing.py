"""What is said of records and of recorded changes that are not there: in a line, by whose doing, and nothing of what is whole."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import polars as pl

from jobs.commands.changes import heading
from jobs.evidence.all_runs import OneLog
from jobs.evidence.missing import Missing, _is_in, lines
from jobs.evidence.removed import changes_lines
from schemas.gold import MAINTENANCE
from transforms.frames import columns_of
from transforms.isr.history import ClassifiedChange
from transforms.isr.partition import PartitionState

AT = datetime(2027, 1, 2, tzinfo=UTC)


class Marks:
    """Tables in which retention has removed these runs, and nothing else."""

    def __init__(self, *runs: str) -> None:
        self.runs = runs

    def rows(self, table: Any, columns: Any, where: Any) -> pl.DataFrame:
        assert (table, where) == (MAINTENANCE, {"cluster": "c", "what": "judged"})
        rows = [{"run_id": run_id, "done_at": AT} for run_id in self.runs]
        # The end of a maintenance has no run.
        rows.append({"run_id": None, "done_at": datetime(2030, 1, 1, tzinfo=UTC)})
        kinds = {name: kind for name, kind in columns_of(MAINTENANCE.columns).items() if name in columns}
        return pl.DataFrame(rows, schema=kinds)


def state(epoch: int) -> PartitionState:
    return PartitionState(replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=1, partition_epoch=epoch)


def history(*epochs: tuple[int | None, int]) -> list[ClassifiedChange]:
    """Changes from one partition epoch to another."""
    return [
        ClassifiedChange(offset, 0, None if before is None else state(before), state(after), ())
        for offset, (before, after) in enumerate(epochs)
    ]


def said(marks: Marks, **found: list[ClassifiedChange]) -> list[str]:
    histories = {(number, "id"): steps for number, steps in enumerate(found.values())}
    return changes_lines(marks, "c", histories)  # type: ignore[arg-type]


def test_nothing_is_said_of_a_history_that_is_whole() -> None:
    whole = history((None, 0), (0, 1), (1, 2))
    assert said(Marks("r1"), a=whole, b=whole) == []
    # A log that begins with a checkpoint: what was before nobody has read.
    assert said(Marks(), a=history((7, 8), (8, 9))) == []
    assert said(Marks(), a=[]) == []


def test_what_retention_took_is_told_with_when() -> None:
    line = "recorded changes of 2 earlier runs were removed by retention, last on 2027-01-02: changes that only they had are not shown"
    assert said(Marks("r1", "r2"), a=history((7, 8))) == [line]
    assert said(Marks("r1", "r2"), a=history((None, 0), (0, 1), (5, 6))) == [line]


def test_a_hole_that_retention_did_not_make_is_told_with_its_place() -> None:
    [line] = said(Marks(), a=history((None, 0)), b=history((None, 0), (0, 1), (5, 6), (8, 9)))
    assert line.startswith(
        "changes of partition 1 between the partition epochs 1 and 5 are missing, and more in 1 other place: "
    )


def test_changes_that_are_summed_up_by_day_are_not_missing() -> None:
    holed = history((None, 0), (0, 1), (5, 6))
    sums = {(0, "id"): [{"day": "1970-01-01"}]}
    assert changes_lines(Marks(), "c", {(0, "id"): holed}, sums) == []  # type: ignore[arg-type]
    assert changes_lines(Marks("r1"), "c", {(0, "id"): history((5, 6))}, sums) == []  # type: ignore[arg-type]
    for others in ({(0, "id"): [{"day": "1970-01-02"}]}, {(1, "id"): [{"day": "1970-01-01"}]}):
        [line] = changes_lines(Marks(), "c", {(0, "id"): holed}, others)  # type: ignore[arg-type]
        assert line.startswith("changes of partition 0 between the partition epochs 1 and 5 are missing: ")


def test_records_that_are_gone_are_told_by_whose_doing() -> None:
    removed = [Missing("r1", 0, None, AT), Missing("r2", 5, 9, AT)]
    assert lines(removed) == [
        "log records of 2 earlier runs were removed by retention, last on 2027-01-02: changes that only they had are not shown"
    ]
    gone = Missing("r3", 1200, 3330, None)
    [line] = lines([gone])
    assert line.startswith("2,130 of 3,330 log records of run r3 are missing, and retention did not remove them; ")
    [_, both] = lines([*removed, gone, Missing("r4", 0, None, None)])
    assert both.startswith(
        "2,130 of 3,330 log records of run r3 are missing, as are some of 1 other run, and retention"
    )
    assert lines([Missing("r4", 0, None, None)])[0].startswith("the log records of run r4 are missing, and retention")
    assert lines([]) == []


def test_what_a_log_that_is_there_from_its_beginning_holds_is_not_missed() -> None:
    whole = OneLog({"a": (0, 400)}, begun=50)
    gone = Missing("r1", 0, None, AT, newest=100, last=399)
    assert _is_in(gone, [whole])
    assert not _is_in(replace(gone, newest=40), [whole]), "it was of a log before"
    assert not _is_in(replace(gone, newest=None), [whole]), "an earlier release did not say"
    assert not _is_in(replace(gone, last=400), [whole]), (
        "it had read more of the log, as its last run before it was formatted again"
    )
    assert not _is_in(gone, [OneLog({"a": (0, 400)}, [(90, 95)], begun=50)])
    for begun in (90, None):
        assert not _is_in(gone, [whole, OneLog({"b": (20, 90)}, begun=begun)]), "it may be of the log after it"
    assert _is_in(gone, [whole, OneLog({"b": (0, 90)}, begun=120)])
    other = OneLog({"b": (20, 90)}, cluster_id="other")
    assert _is_in(replace(gone, cluster_id="own"), [whole, other]), "another cluster's log"


def test_a_gap_is_not_said_to_be_unread_where_rows_are_gone() -> None:
    log = OneLog({"a": (0, 100), "b": (140, 200)}, [(100, 140)])
    assert "; nobody has read 100 to 139; " in heading(log, None)
    assert "; there is nothing of 100 to 139; " in heading(log, None, whole=False)
