"""Which barriers a loss lies between, and how long changes waited at each: from ZooKeeper's transaction logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from schemas.report import LagPoint
from schemas.silver import BARRIERS
from transforms.frames import columns_of, frame
from transforms.reconcile.compare.between import located
from transforms.reconcile.judge.deltas import deltas
from transforms.reconcile.judge.lag_series import lag_series, oldest_brought, points
from transforms.reconcile.judge.zookeeper_writes import at_barrier

Mark = tuple[int, int, int]
MARKS = [(10, 500, 1_000), (20, 510, 2_000), (30, 530, 9_000)]
# The first barrier is of the quorum that was there before.
AFTER_ANOTHER = [(5, 900, 10), (50, 12, 60_000)]
APPENDED = {501: 1_900, 511: 2_500, 512: 2_600}


def barriers(marks: Sequence[Mark]) -> pl.DataFrame:
    rows = [{"zxid": zxid, "time": time, "kraft_metadata_offset": offset} for zxid, offset, time in marks]
    return frame(rows, columns_of(BARRIERS.columns, "cluster", "run_id"))


def located_rows(lost: Sequence[int | None], marks: Sequence[Mark] | None) -> dict[int | None, list[Any]]:
    rows = [(offset, "it is lost") for offset in lost]
    divergences = pl.DataFrame(rows, schema={"lost_offset": pl.Int64, "explanation": pl.String}, orient="row")
    found = located(divergences, None if marks is None else barriers(marks))
    return {offset: rest for offset, *rest in found.iter_rows()}


def test_a_loss_lies_between_the_barriers_around_its_record() -> None:
    found = located_rows([505, 510, 511, 499, 531, None], MARKS)
    assert {offset: tuple(rest[1:]) for offset, rest in found.items()} == {
        505: (10, 20),
        510: (10, 20),  # the barrier at the record's own offset must have it
        511: (20, 30),
        499: (None, 10),
        531: (30, None),
        None: (None, None),
    }
    assert found[505][0] == "it is lost; the record at offset 505 was lost between transactions 0xa and 0x14"
    assert str(found[499][0]).endswith("was lost before transaction 0xa")
    assert found[531][0] == found[None][0] == "it is lost"


def test_without_barriers_nothing_is_said() -> None:
    nothing = ["it is lost", None, None]
    assert located_rows([12, None], None) == located_rows([12, None], []) == {12: nothing, None: nothing}


def test_each_barrier_tells_how_long_the_oldest_record_it_brought_had_waited() -> None:
    assert oldest_brought(barriers(MARKS), 0) == [501, 511]
    series = lag_series(barriers(MARKS), APPENDED, 0)
    assert points(series, 0.0) == [LagPoint(20, 2_000, 510, 10, 0.1), LagPoint(30, 9_000, 530, 20, 6.5)]
    assert points(series, 500.0)[0].seconds == 0.0
    assert points(lag_series(barriers(MARKS), {511: 2_500}, 0), 0.0) == [LagPoint(30, 9_000, 530, 20, 6.5)]


def test_a_barrier_behind_a_hole_is_none_of_the_series() -> None:
    """What it brought may have been brought before: that barrier is in the hole."""
    for zxid, kept in ((11, [30]), (20, [30]), (21, [20]), (31, [20, 30])):
        holes = [{"zxid": zxid}]
        assert [row["zxid"] for row in lag_series(barriers(MARKS), APPENDED, 0, holes)] == kept, zxid
        assert len(oldest_brought(barriers(MARKS), 0, holes)) == len(kept)


def test_a_barrier_of_another_quorum_is_none_of_the_series() -> None:
    both = barriers([*AFTER_ANOTHER, (60, 11, 61_000)])
    assert oldest_brought(both, 100) == []
    assert lag_series(both, {13: 50_000, 901: 40_000}, 100) == [], "its only barrier of this log has none before it"


def test_a_long_series_keeps_its_worst_point_and_its_last() -> None:
    count, worst = 5_000, 3_217
    marks = barriers([(n, n, 1_000 * n) for n in range(1, count + 1)])
    appended = {n: 1_000 * n - (60_000 if n == worst else 5) for n in range(2, count + 1)}
    series = points(lag_series(marks, appended, 0), 0.0)
    assert 100 < len(series) <= 500
    assert series[-1].zxid == count
    assert max(series, key=lambda point: point.seconds).zxid == worst


def test_the_barriers_around_lost_writes() -> None:
    passed = barriers([(n, n, 100_000) for n in (350, 290, 295, 305, 306)])
    asked = [300, 302, 310, 400]
    assert deltas(passed, asked, None) == {300: (295, 305), 302: (295, 305), 310: (306, 350)}
    assert deltas(passed, [289, 290, 295], None) == {295: (290, 295)}, "a barrier at an offset is after it"
    assert deltas(passed, asked, 160_000) == deltas(passed, asked, None)
    assert deltas(passed, asked, 160_001) == {}, "they are of an earlier migration"


def test_the_last_write_of_migration_may_be_a_barrier() -> None:
    assert at_barrier(barriers(MARKS), 20) == [{"zxid": 20}]
    assert at_barrier(barriers(MARKS), 21) == at_barrier(barriers(MARKS), None) == []
