"""A log replayed as the rules take it: the rest after what was kept is the whole, and nothing is kept of a log with faults."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from schemas.entities import ENTITIES
from schemas.gold import ISR_CHANGE
from tests.kernel.logs import ONE, AnyLog, RandomLog, Row, batch, parsed
from tests.kernel.plain import Plain
from tests.kernel.test_captures import MASKING, Copy
from tests.kernel.test_findings import acl_removal, change, clear, made, removal, row, topic
from transforms.examination.stories import Stories
from transforms.kernel.versions import VERSIONS
from transforms.kraft.decode.rows import Origin
from transforms.kraft.decode.segments import decode_checkpoint
from transforms.kraft.replayed import (
    NOTHING,
    TABLES,
    Keeping,
    Records,
    Replayed,
    replaying,
    state_at,
    versions_of,
    versions_since,
)
from transforms.kraft.side import (
    FEATURE_LEVEL,
    STATE,
    KraftSide,
    LogKept,
    Milestone,
    checkpoints_to_verify,
    keep_at,
    kraft_side,
    milestones,
    versions_from,
)

LENGTH = 400
SEEDS = range(6)
# Seeds of logs as a controller writes them that break no rule.
SOUND = (0, 3, 4, 5)


@dataclass(frozen=True)
class Whole(Replayed):
    """What a log came to, with all changes of its partitions."""

    isr_changes: Sequence[pa.RecordBatch] = ()


def replayed(*asked: Any, **more: Any) -> Whole:
    """`replaying` to its end."""
    changes: list[pa.RecordBatch] = []
    steps = replaying(*asked, **more)
    while True:
        try:
            changes.append(next(steps))
        except StopIteration as end:
            return Whole(**vars(end.value), isr_changes=changes)


def copy_row(end: int, start: int = 0, checkpoints: Sequence[int] = ()) -> Row:
    """A row of bronze kraft_log_copies: the only voter's log."""
    files = [
        {"file": f"{at:020}-0000000001.checkpoint", "offset": at, "epoch": 1, "complete": True} for at in checkpoints
    ]
    row: Row = {
        "controller_id": 1,
        "location": "/1",
        "cluster_id": "c",
        "log_start_offset": start,
        "log_end_offset": end,
    }
    row |= {"last_epoch": 1, "last_append_time": 1, "epoch_starts": [{"epoch": 1, "start_offset": 0}]}
    return {
        **row,
        "checkpoints": files,
        "voters": [1],
        "quorum_leader_id": 1,
        "quorum_leader_epoch": 1,
        "problem": None,
        "producer_snapshot_offset": None,
    }


def side_of(rows: Sequence[Row], kept: LogKept | None = None, committed: int | None = None, **copy: Any) -> KraftSide:
    end = copy.pop("end", len(rows))
    side = kraft_side(copies_of(end, committed, **copy), milestones(batch(rows)), None, kept)
    assert side is not None
    return side


def copies_of(end: int, committed: int | None, **copy: Any) -> list[Row]:
    """The only voter's copy; with a `committed` end, the longest one of three voters' and one that reaches up to there."""
    if committed is None:
        return [copy_row(end, **copy)]
    voters = {"voters": [1, 2, 3]}
    return [
        {**copy_row(end, **copy), **voters},
        {**copy_row(committed, **copy), **voters, "controller_id": 2, "location": "/2"},
    ]


def kept_of(keeping: Keeping | None, run_id: str = "r1") -> LogKept:
    assert keeping is not None
    assert keeping.last_epoch is not None
    assert keeping.last_append_time is not None
    return LogKept(
        run_id,
        keeping.offset,
        keeping.last_epoch,
        keeping.last_append_time,
        tuple(keeping.milestones),
        keeping.base_run,
    )


def at_once(rows: Sequence[Row], migration_offset: int | None = None, **more: Any) -> Whole:
    """A whole log in one batch."""
    return replayed(ONE, side_of(rows, **more), [batch(rows)], {}, migration_offset, keep_every=1)


def everything(found: Whole, since: int = 0) -> dict[str, list[str]]:
    """All that is told, in an order of its own; of the history what is not below `since`."""
    frames = {**found.tables, "versions": found.row_versions, "findings": found.findings}
    told = {name: rows.to_dicts() for name, rows in frames.items()}
    told["history"] = [each for rows in found.isr_changes for each in rows.to_pylist() if each["offset"] >= since]
    return {name: sorted(json.dumps(each, sort_keys=True) for each in rows) for name, rows in told.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_versions_and_history_are_what_the_rules_for_one_record_say(seed: int) -> None:
    rows, committed, migration = AnyLog(seed, LENGTH).rows, 350, 250
    found = at_once(rows, migration, committed=committed)
    assert {*found.tables} == {entity.name for entity in ENTITIES} - {"migration"}
    plain, until = Plain().read(rows), Plain().read(rows[:committed])
    state = until.state()
    for name, table in found.tables.items():
        assert table.schema == TABLES[name]
        mine = [without_null({**each, "source": None}) for each in table.to_dicts()]
        assert sorted(map(str, map(sorted_row, mine))) == sorted(map(str, map(sorted_row, state.get(name, [])))), name
        assert table["source"].unique().to_list() in ([], ["kraft"])
    versions = [parsed(each) for each in found.row_versions.to_dicts()]
    assert spelled(versions) == spelled(plain.versions(migration + 1))
    changes = [each for rows in found.isr_changes for each in rows.to_pylist()]
    assert spelled(changes) == spelled(until.history)
    assert [each["offset"] for each in changes] == sorted(each["offset"] for each in changes)
    assert all(rows.schema.names == ISR_CHANGE.fieldNames()[1:] for rows in found.isr_changes)


def without_null(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


def sorted_row(row: Row) -> Row:
    return dict(sorted(row.items()))


def spelled(rows: Sequence[Row]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in rows)


@pytest.mark.parametrize("seed", SOUND)
def test_the_rest_after_what_was_kept_is_the_whole(seed: int) -> None:
    """Between runs the state is all that is left of what was below it."""
    chance = random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
    rows = RandomLog(seed, LENGTH).rows
    for _ in range(4):
        cut = chance.randint(1, 200)
        after = chance.randint(cut, LENGTH)
        keeping = at_once(rows[:cut]).keeping
        assert keeping is not None
        assert keeping.offset == cut
        kept = kept_of(keeping)
        side = side_of(rows[cut - 1 :], kept, end=LENGTH)
        assert side.extent().start == cut
        # The record before the offset comes along: by it the log is known again.
        rest = replayed(ONE, side, [batch(rows[cut - 1 :])], {}, after - 1, keeping.state, keep_every=1)
        whole = at_once(rows, after - 1)
        assert everything(rest) == everything(whole, since=cut)
        # What is kept next is the same to the byte, whatever way it came about.
        assert rest.keeping is not None
        assert whole.keeping is not None
        assert (rest.keeping.state, rest.keeping.offset) == (whole.keeping.state, whole.keeping.offset)
        assert rest.keeping.base_run == (None if rest.keeping == NOTHING else "r1")


GOOD = [topic("a", "A"), made("A"), change("A"), topic("b", "B")]


def placed(rows: Sequence[Row]) -> list[Row]:
    return [{**each, "offset": place} for place, each in enumerate(rows)]


def state(code: int) -> Row:
    return row(STATE, {"zkMigrationState": code})


def level(number: int, name: str = "metadata.version") -> Row:
    return row(FEATURE_LEVEL, {"name": name, "featureLevel": number})


def test_what_is_kept_names_the_record_before_it_and_the_milestones_below() -> None:
    rows = placed([level(14), *GOOD, state(1), topic("c", "C")])
    found = at_once(rows, 4).keeping
    assert found is not None
    assert (found.offset, found.last_epoch, found.last_append_time, found.base_run) == (5, 1, 5, None)
    assert [milestone["type"] for milestone in found.milestones] == [FEATURE_LEVEL]
    assert found.state


@pytest.mark.parametrize("fault", [removal("X"), acl_removal("x"), made("X"), clear("none"), change("A", 7)])
def test_nothing_is_kept_of_a_log_with_findings(fault: Row) -> None:
    assert at_once(placed([*GOOD, fault])).keeping == NOTHING


def test_nothing_is_said_while_the_load_waits_or_little_is_new() -> None:
    waiting = placed([*GOOD, state(2)])
    assert at_once(waiting).keeping is None
    rows = placed(GOOD)
    side = side_of(rows)
    assert [keep_at(side, 4, every) for every in (1, 4, 5)] == [4, 4, None]
    assert keep_at(side_of(rows, LogKept("r", 3, 1, 5, ())), 4, 2) is None
    assert replayed(ONE, side, [batch(rows)], {}, None).keeping is None


def test_the_state_is_kept_before_a_transaction_that_is_open() -> None:
    rows = placed([*GOOD, row("BEGIN_TRANSACTION_RECORD", {"name": "x"}), topic("c", "C")])
    found = at_once(rows)
    assert found.keeping is not None
    assert found.keeping.offset == 4
    assert found.tables["topics"]["topic"].sort().to_list() == ["a", "b"]


def begin(name: str = "x") -> Row:
    return row("BEGIN_TRANSACTION_RECORD", {"name": name})


END = row("END_TRANSACTION_RECORD", {})
ABORTED = row("ABORT_TRANSACTION_RECORD", {"reason": "Controller failover"})
HALF = [level(21), topic("a", "A"), made("A"), begin(), topic("b", "B"), made("B"), topic("c", "C"), made("C")]


@pytest.mark.parametrize("last", [END, ABORTED, topic("d", "D")])
@pytest.mark.parametrize("committed", [4, 5, 6, 8])
def test_nothing_of_a_transaction_counts_where_its_end_is_not_committed(committed: int, last: Row) -> None:
    """Copies taken one after the other: the majority ends inside the transaction, the leader's copy after it."""
    rows = placed([*HALF, last, row("NO_OP_RECORD")])
    side = side_of(rows, committed=committed)
    found = replayed(ONE, side, [batch(rows)], {}, None, keep_every=1)
    assert side.committed.end_exclusive == 3
    assert found.tables["topics"]["topic"].to_list() == ["a"]
    assert found.tables["partitions"]["topic"].to_list() == ["a"]
    assert {each["topic_id"] for rows in found.isr_changes for each in rows.to_pylist()} <= {"A"}
    assert found.keeping is not None
    assert found.keeping.offset == 3
    assert side.committed.explanation == (
        f"2 of 3 voters' copies hold every record below {committed}, but the transaction x, which begins at offset 3, "
        "has not ended there: none of it is in effect"
    )


def test_a_transaction_counts_once_its_end_is_committed() -> None:
    rows = placed([*HALF, END, row("NO_OP_RECORD")])
    side = side_of(rows, committed=9)
    found = replayed(ONE, side, [batch(rows)], {}, None, keep_every=1)
    assert side.committed.end_exclusive == 9
    assert found.tables["topics"]["topic"].sort().to_list() == ["a", "b", "c"]


def test_a_transaction_whose_lost_end_was_an_abort_leaves_nothing_in_what_was_kept() -> None:
    """The tail is truncated, and the next leader aborts the transaction."""
    rows = placed([*HALF, END])
    first = at_once(rows, committed=6)
    kept = kept_of(first.keeping)
    then = placed([*HALF[:6], ABORTED, topic("d", "D")])
    rest = replayed(
        ONE,
        side_of(then[kept.offset - 1 :], kept, end=len(then)),
        [batch(then[kept.offset - 1 :])],
        {},
        None,
        first.keeping.state if first.keeping else None,
        keep_every=1,
    )
    assert rest.tables["topics"]["topic"].sort().to_list() == ["a", "d"]
    assert everything(rest) == everything(at_once(then), since=kept.offset)


def test_no_state_is_kept_inside_a_transaction() -> None:
    """With `/migration` at an offset inside of it, too."""
    rows = placed([*HALF, END, topic("d", "D")])
    side = side_of(rows)
    assert [keep_at(side, after, 1) for after in (2, 3, 4, 8, 9, 10)] == [2, 3, 3, 3, 9, 10]


def test_the_load_waits_while_its_end_is_not_committed() -> None:
    rows = placed([level(21), state(2), begin("ZK Migration"), topic("a", "A"), made("A"), state(1), END])
    assert side_of(rows, committed=4).states() == [(1, 2)]
    assert keep_at(side_of(rows, committed=4), 2, 1) is None
    assert side_of(rows, committed=7).states() == [(1, 2), (5, 1)]
    aborted = placed([level(21), state(2), begin("ZK Migration"), state(1), ABORTED, topic("a", "A")])
    assert side_of(aborted).states() == [(1, 2)]


def test_a_level_of_a_transaction_that_came_to_nothing_is_not_the_finalised_one() -> None:
    elr = "eligible.leader.replicas.version"
    aborted = placed([level(19), begin(), level(21), level(1, elr), ABORTED, topic("a", "A")])
    assert (side_of(aborted).metadata_version(6), side_of(aborted).has_elr(6)) == (19, False)
    ended = placed([level(19), begin(), level(21), level(1, elr), END, topic("a", "A")])
    side = side_of(ended)
    assert [side.metadata_version(offset) for offset in (1, 3, 4, 5, 6)] == [19, 19, 19, 21, 21]
    assert [side.has_elr(offset) for offset in (4, 5)] == [False, True]
    waiting = side_of(placed([level(19), begin(), level(21)]))
    assert waiting.metadata_version(3) == 19


def test_a_checkpoint_after_an_aborted_transaction_is_compared_by_the_level_in_effect() -> None:
    """Without the feature a checkpoint has no ELR lists, and the replay need not agree with it in them (CAP-08)."""
    on = level(1, "eligible.leader.replicas.version")
    log = placed([level(26), topic("a", "A"), made("A", eligible_leader_replicas=[2]), begin(), on, ABORTED])
    theirs = [level(26), topic("a", "A"), made("A")]
    side = kraft_side([copy_row(6, 0, (6,))], milestones(batch(log)), None)
    assert side is not None
    assert replayed(ONE, side, [batch(log)], {6: held_at(theirs)}, None).findings.is_empty()


def test_versions_begin_past_migration_and_with_the_tail() -> None:
    assert [versions_from(100, seen) for seen in (None, -1, 0, 50, 99, 100, 200)] == [100, 100, 1, 51, 100, 100, 100]


def test_a_plan_needs_a_log() -> None:
    empty = {**copy_row(0), "last_epoch": None, "log_end_offset": None}
    assert kraft_side([empty], [], None) is None


def test_milestones_are_the_few_records_that_say_how_to_read_the_others() -> None:
    rows = placed([level(14), *GOOD, state(1), {**state(3), "problem": "trailing bytes"}])
    found = milestones(batch(rows))
    assert [each["offset"] for each in found] == [0, 5]
    side = side_of(rows)
    assert (side.states(), side.dual_write(), side.metadata_version(1), side.metadata_version(0)) == (
        [(5, 1)],
        (5, None),
        14,
        None,
    )
    assert not side.has_elr(6)
    assert side_of(placed([level(1, "eligible.leader.replicas.version")])).has_elr(1)


def held_at(rows: Sequence[Row]) -> Records:
    return lambda: [batch(placed(rows))]


def test_a_log_that_begins_at_a_checkpoint_is_compared_with_the_later_ones() -> None:
    base = [level(20), topic("a", "A"), made("A")]
    log = [{**each, "offset": 10 + place} for place, each in enumerate([topic("b", "B"), made("B"), topic("c", "C")])]
    rows = [*log]
    found = [{**each, "checkpoint_offset": 10} for each in milestones(batch(placed(base)))]
    side = kraft_side([copy_row(13, 10, (10, 12, 13))], found, None)
    assert side is not None
    assert (side.base, side.metadata_version(10), checkpoints_to_verify(side)) == (10, 20, [12, 13])
    later = [*base, topic("b", "B"), made("B")]
    checkpoints = {10: held_at(base), 12: held_at(later), 13: held_at(later)}
    told = replayed(ONE, side, [batch(rows)], checkpoints, None, keep_every=1)
    assert told.findings.select("source", "code", "subject", "place").rows() == [
        ("kraft", "CAP-08", 'topics ["C"]', "checkpoint 13")
    ]
    assert told.keeping == NOTHING
    # What is not given is not compared.
    assert replayed(ONE, side, [batch(rows)], {10: held_at(base)}, None).findings.is_empty()
    # With /migration before the log begins, what the checkpoint holds is a version, too.
    early = replayed(ONE, side, [batch(rows)], {10: held_at(base)}, 3).row_versions
    assert {(each["entity"], each["from_offset"]) for each in early.to_dicts()} == {
        ("topics", 9), ("partitions", 9), ("topics", 10), ("partitions", 11), ("topics", 12)
    }  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_the_state_at_an_offset_is_that_of_a_log_which_ends_there(seed: int) -> None:
    rows = AnyLog(seed, LENGTH).rows
    side = side_of(rows)
    found = state_at(ONE, side, side.whole(None, 123), [batch(rows)], {}, 100)
    expected = at_once(rows[:123], 99)
    assert everything(Whole(**vars(found))) == {**everything(expected), "history": []}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_story_of_some_rows_has_every_record_on_them(seed: int) -> None:
    rows, until = AnyLog(seed, LENGTH).rows, 320
    side = side_of(rows)
    every = Plain().read(rows[: until + 1]).versions(0)
    chance = random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
    keys = sorted({(each["entity"], compact(each["key"])) for each in every})
    asked = chance.sample(keys, min(6, len(keys)))
    found = versions_of(side, side.whole(None), [batch(rows)], {}, asked, until)
    assert spelled([parsed(each) for each in found.to_dicts()]) == spelled(
        [each for each in every if (each["entity"], compact(each["key"])) in asked]
    )
    assert {*found.select("entity", "key").rows()} == {*asked}


@pytest.mark.parametrize("seed", SOUND)
def test_stories_that_are_remembered_and_continued_are_those_of_the_whole_log(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
    rows = RandomLog(seed, LENGTH).rows
    every = Plain().read(rows).versions(0)
    keys = sorted({(each["entity"], compact(each["key"])) for each in every})
    whole_side = side_of(rows)
    continued_ones = 0
    for _ in range(6):
        cut = chance.randint(1, 200)
        then = chance.randint(cut - 1, LENGTH)
        now = chance.randint(then, LENGTH)
        # Of some rows the log had nothing then.
        asked = chance.sample(keys, 12)
        remembered = Stories.of(
            asked, versions_of(whole_side, whole_side.whole(None), [batch(rows)], {}, asked, then), then
        )
        assert remembered.reach(asked, cut)
        keeping = at_once(rows[:cut]).keeping
        side = side_of(rows[cut - 1 :], kept_of(keeping), end=LENGTH)
        assert keeping is not None
        since = versions_since(side, [batch(rows[cut - 1 :])], keeping.state, asked, now)
        wanted = versions_of(whole_side, whole_side.whole(None), [batch(rows)], {}, asked, now)
        assert spelled(remembered.continued(asked, since, cut, now).to_dicts()) == spelled(wanted.to_dicts())
        continued_ones += sum(each["from_offset"] >= cut for each in wanted.to_dicts())
    assert continued_ones > 10


def test_stories_reach_as_far_as_each_row_was_looked_at() -> None:
    one, other = ("topics", '{"topic":"a"}'), ("topics", '{"topic":"b"}')
    stories = Stories.of([one], pl.DataFrame(schema=VERSIONS), 9)
    assert [stories.reach([one], offset) for offset in (0, 9, 10, 11)] == [True, True, True, False]
    assert not stories.reach([one, other], 10)
    assert not Stories().reach([one], 0)
    assert Stories().reach([], 10)


def compact(key: Row) -> str:
    return json.dumps(key, separators=(",", ":"))


def test_the_story_of_a_row_begins_with_the_checkpoint() -> None:
    base = [topic("a", "A"), made("A"), topic("z", "Z"), made("Z"), row("CONFIG_RECORD", config("a", "1"))]
    log = [{**each, "offset": 10 + n} for n, each in enumerate([change("A"), removal("A"), topic("a", "A2")])]
    side = kraft_side([copy_row(13, 10, (10,))], [], None)
    assert side is not None
    asked = [
        ("partitions", '{"topic":"a","partition":0}'),
        ("partitions", '{"topic":"z","partition":0}'),
        ("topics", '{"topic":"a"}'),
        ("configs", '{"resource_type":"TOPIC","resource_name":"a","config":"retention.ms"}'),
        ("configs", '{"resource_type":"TOPIC","resource_name":"b","config":"retention.ms"}'),
    ]
    found = versions_of(side, side.whole(10), [batch(log)], {10: held_at(base)}, asked, 12)
    told = [(each["entity"], each["from_offset"], each["removed"]) for each in found.to_dicts()]
    assert sorted(told) == [
        ("configs", 9, False),
        ("configs", 11, True),
        ("partitions", 9, False),
        ("partitions", 9, False),
        ("partitions", 10, False),
        ("partitions", 11, True),
        ("topics", 9, False),
        ("topics", 11, True),
        ("topics", 12, False),
    ]
    below = versions_of(side, side.whole(10), [batch(log)], {10: held_at(base)}, asked, 10)
    assert max(below["from_offset"].to_list()) == 10


def config(name: str, value: str) -> Row:
    return {"resourceType": 2, "resourceName": name, "name": "retention.ms", "value": value}


@pytest.mark.parametrize("part", [0.2, 0.7])
def test_a_real_migration_cut_in_two(part: float) -> None:
    copy = Copy("3.9.1", "12-finalized", "3001")
    rows = pa.Table.from_batches(copy.batches)
    [records] = rows.combine_chunks().to_batches()
    found = milestones(records)
    cut = int(copy.end * part)
    checkpoints: dict[int, Records] = {
        at: lambda path=path, at=at: decode_checkpoint(path.read_bytes(), Origin(1, path.name, at), MASKING)  # type: ignore[misc]
        for at, path in copy.checkpoints.items()
    }

    def side(end: int, known: Sequence[Milestone], kept: LogKept | None = None) -> KraftSide:
        planned = kraft_side([copy_row(end, 0, sorted(at for at in checkpoints if at <= end))], known, None, kept)
        assert planned is not None
        return planned

    before = [each for each in found if each["offset"] < cut]
    # A load that waits is judged whole: this part of the log is one that says it is under way no more.
    first = side(cut, [each for each in before if each["type"] != STATE])
    first = replace(first, milestones=[each for each in first.milestones if each["type"] != STATE])
    keeping = replayed(ONE, first, [records.slice(0, cut)], checkpoints, None, keep_every=1).keeping
    kept = replace(
        kept_of(keeping), milestones=tuple(each for each in before if each["offset"] < kept_of(keeping).offset)
    )
    assert keeping is not None
    rest_side = side(copy.end, [each for each in found if each["offset"] >= kept.offset], kept)
    rest = replayed(ONE, rest_side, [records.slice(kept.offset)], checkpoints, kept.offset, keeping.state)
    whole = replayed(ONE, side(copy.end, found), copy.batches, checkpoints, kept.offset)
    assert everything(rest) == everything(whole, since=kept.offset)
    assert whole.findings.is_empty()
    assert whole.tables["partitions"].height > 50
    assert not whole.row_versions.filter(pl.col("entity") == "partitions").is_empty()


@pytest.mark.parametrize(
    ("checkpoints", "found"), [(((2,), (2,)), []), (((2,), ()), ["CLEAR-REMOVED"]), (((1, 2), (1,)), ["CLEAR-REMOVED"])]
)
def test_a_node_replays_what_follows_its_own_newest_checkpoint(
    checkpoints: tuple[tuple[int, ...], ...], found: list[str]
) -> None:
    """`KafkaRaftClient.latestSnapshot`: another node's checkpoint does not help it."""
    rows = placed([topic("other", "O"), topic("a", "A"), removal("A"), clear()])
    copies = [
        {**copy_row(len(rows), checkpoints=mine), "controller_id": node, "location": f"/{node}", "voters": [1, 2]}
        for node, mine in enumerate(checkpoints, 1)
    ]
    side = kraft_side(copies, milestones(batch(rows)), None)
    assert side is not None
    assert replayed("c", side, [batch(rows)], {}, None).findings["code"].to_list() == found
