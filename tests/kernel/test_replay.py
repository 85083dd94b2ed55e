"""Random logs, cut anywhere, in any number of shards, continued from anywhere: always what the plain rules say."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.kernel.logs import AnyLog, Outcome, Row, batch, cut, in_shards, plan, run
from tests.kernel.plain import Plain, without_nothing
from transforms.isr.history import ChangeKind
from transforms.kernel.shards import Shard

LENGTH = 400
SEEDS = range(12)
FAULTY = range(100, 112)


def log(seed: int, *, faults: bool = False) -> AnyLog:
    return AnyLog(seed, LENGTH, faults=faults)


def applied(rows: list[Row], end: int, discarded: tuple[tuple[int, int | None], ...] = ()) -> Iterator[Row]:
    for row in rows:
        offset = row["offset"]
        if offset < end and not any(begin <= offset and (last is None or offset <= last) for begin, last in discarded):
            yield row


def assert_is(found: Outcome, expected: Plain, end: int) -> None:
    history = [{name: value for name, value in row.items() if name != "cluster"} for row in found.history]
    key = lambda row: (row["offset"], row["topic_id"], row["partition"])  # noqa: E731
    assert history == sorted(expected.history, key=key)
    assert_state(found, expected, end)


def assert_state(found: Outcome, expected: Plain, end: int) -> None:
    wanted = expected.state()
    told = {name: without_nothing(rows) for name, rows in found.states[end].items()}
    assert {name for name, rows in told.items() if rows} == {name for name, rows in wanted.items() if rows}
    assert {name: told[name] for name in wanted} == wanted


@pytest.mark.parametrize("seed", SEEDS)
def test_any_log_is_what_the_rules_for_one_record_say(seed: int) -> None:
    mine = log(seed)
    found = run(plan(LENGTH), [batch(mine.rows)])
    assert_is(found, Plain().read(mine.rows), LENGTH)
    assert not found.findings or {row["code"] for row in found.findings} <= {
        "DIRECTORIES",
        "CLEAR-REMOVED",
        "BROKER-REPLACED",
        "CONFIG-ALONE",
    }


def test_random_logs_hold_what_they_are_for() -> None:
    outcomes = [run(plan(LENGTH), [batch(log(seed).rows)]) for seed in SEEDS]
    kinds = {kind for found in outcomes for row in found.history for kind in row["kinds"]}
    assert kinds == {*ChangeKind}
    faulty = [run(plan(LENGTH), [batch(log(seed, faults=True).rows)]) for seed in FAULTY]
    codes = {row["code"] for found in faulty for row in found.findings}
    assert codes >= {"PARTITION-UNKNOWN", "TOPIC-UNKNOWN", "REMOVAL-UNKNOWN", "CLEAR-UNKNOWN", "DUR-08", "DUR-15"}
    versions = [row for seed in SEEDS for row in run(plan(LENGTH, versions_from=200), [batch(log(seed).rows)]).versions]
    told = {(row["entity"], row["removed"]) for row in versions}
    assert told >= {(name, gone) for name in ("topics", "partitions", "configs", "acls") for gone in (False, True)}


def texts(versions: list[Row]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in versions)


@pytest.mark.parametrize("seed", SEEDS)
def test_versions_are_those_of_the_rows_that_are_touched_and_removals(seed: int) -> None:
    mine, chance = log(seed), random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
    plain = Plain().read(mine.rows)
    for since in (0, *chance.sample(range(1, LENGTH), 5), LENGTH):
        found = run(plan(LENGTH, versions_from=since), cut(batch(mine.rows), chance)).versions
        assert texts(found) == texts(plain.versions(since)), since


@pytest.mark.parametrize("seed", SEEDS)
def test_versions_go_beyond_the_committed_end(seed: int) -> None:
    rows = batch(log(seed).rows)
    whole = run(plan(LENGTH, versions_from=150), [rows])
    part = run(plan(LENGTH, versions_from=150, committed=200), [rows])
    assert part.versions == whole.versions
    assert part.history == [row for row in whole.history if row["offset"] < 200]
    assert run(plan(LENGTH, versions_from=250, committed=200), [rows]).history == part.history


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_discarded_has_no_effect(seed: int) -> None:
    mine = log(seed)
    discarded = mine.discarded()
    expected = Plain().read(applied(mine.rows, LENGTH, discarded))
    assert_is(run(plan(LENGTH, discarded=discarded), [batch(mine.rows)]), expected, LENGTH)


@pytest.mark.parametrize("seed", FAULTY)
def test_a_damaged_log_is_told_in_shards_and_batches_as_in_one(seed: int) -> None:
    rows = batch(log(seed, faults=True).rows)
    whole = run(plan(LENGTH, states_at=[150]), [rows])
    assert whole.findings
    chance = random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
    assert run(plan(LENGTH, states_at=[150]), cut(rows, chance)) == whole
    for number in (2, 3, 5):
        assert in_shards(plan(LENGTH, states_at=[150]), rows, number) == whole


@pytest.mark.parametrize("seed", SEEDS)
def test_versions_are_told_in_shards_as_in_one(seed: int) -> None:
    rows = batch(log(seed).rows)
    whole = run(plan(LENGTH, versions_from=150), [rows])
    assert in_shards(plan(LENGTH, versions_from=150), rows, 3) == whole


@pytest.mark.parametrize("seed", SEEDS)
def test_stops_tell_the_state_there(seed: int) -> None:
    mine, chance = log(seed), random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
    stops = sorted(chance.sample(range(1, LENGTH), 4))
    found = run(plan(LENGTH, states_at=stops), cut(batch(mine.rows), chance))
    assert [*found.states] == [*stops, LENGTH]
    for stop in (*stops, LENGTH):
        assert_state(found, Plain().read(applied(mine.rows, stop)), stop)


@pytest.mark.parametrize("faults", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_going_on_from_anywhere_is_the_whole(seed: int, faults: bool) -> None:
    mine, chance = log(seed, faults=faults), random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
    rows = batch(mine.rows)
    first, second = sorted(chance.sample(range(LENGTH + 1), 2))
    whole = run(plan(LENGTH, keep_at=second, versions_from=second), [rows])
    at_first = run(plan(first, keep_at=first), [rows.slice(0, first)]).kept[first]
    # Records below the offset may come along; nothing is read but those after it.
    rest = run(plan(LENGTH, keep_at=second, versions_from=second), cut(rows, chance), at_first)
    assert rest.since(first) == whole.since(first)
    # The state is the same to the byte, so that it can be continued from again and again.
    assert rest.kept == whole.kept
    again = run(plan(LENGTH, versions_from=second), [rows.slice(second)], rest.kept[second])
    assert again.since(second) == whole.since(second)


@pytest.mark.parametrize("seed", [1, 104])
def test_each_shard_goes_on_from_its_own(seed: int) -> None:
    rows = batch(log(seed, faults=seed > 100).rows)
    whole = run(plan(LENGTH), [rows])
    told = Outcome()
    for number in range(3):
        kept = run(plan(200, keep_at=200, shard=Shard(number, 3)), [rows]).kept[200]
        part = run(plan(LENGTH, shard=Shard(number, 3)), [rows], kept)
        told.history += part.history
        told.findings += part.findings
    assert sorted(map(str, told.history)) == sorted(map(str, whole.since(200).history))
    assert sorted(map(str, told.findings)) == sorted(map(str, whole.findings))


def test_a_history_ends_where_it_is_to_end() -> None:
    rows = batch(log(3).rows)
    whole, until = run(plan(LENGTH), [rows]), run(plan(LENGTH, committed=200), [rows])
    assert until.history == [row for row in whole.history if row["offset"] < 200]
    assert until.states == whole.states


def test_records_of_damaged_bytes_and_control_records_are_passed_over() -> None:
    rows = log(4).rows
    damaged = {**rows[50], "problem": "trailing bytes"}
    control = {**rows[60], "control": True}
    odd = [*rows[:50], damaged, *rows[51:60], control, *rows[61:]]
    left = [*rows[:50], *rows[51:60], *rows[61:]]
    assert run(plan(LENGTH), [batch(odd)]) == run(plan(LENGTH), [batch(left)])


def test_records_that_are_not_in_order_are_refused() -> None:
    rows = batch(log(5).rows)
    with pytest.raises(ValueError, match="offset 10 of the log comes after offset 19"):
        run(plan(LENGTH), [rows.slice(0, 20), rows.slice(10)])
    mixed = pa.Table.from_batches([rows.slice(3, 1), rows.slice(2, 1)]).combine_chunks().to_batches()
    with pytest.raises(ValueError, match="offset 2 of the log comes after offset 3"):
        run(plan(LENGTH), mixed)


def test_a_cluster_without_records_has_an_empty_state() -> None:
    found = run(plan(0), [])
    assert (found.history, found.findings) == ([], [])
    assert {name: rows for name, rows in found.states[0].items() if rows} == {}
    assert {*found.states[0]} >= {"topics", "partitions", "brokers", "configs", "acls"}
