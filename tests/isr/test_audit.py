"""What the history of partitions adds up to, in all its lines, against the same rules spelled for one partition at a time."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from schemas.entities.configs import CONFIGS
from schemas.entities.partitions import PARTITIONS
from tests.isr.random_logs import Row, any_story, record_row
from tests.isr.told import history_of
from transforms.frames import columns_of, frame
from transforms.isr import hourly
from transforms.isr.audit import LINE, isr_audit, recent_of
from transforms.isr.history import HOUR, LOSSY, Record
from transforms.isr.hourly import SO, hourly_sums
from transforms.isr.partition import Change

# The topics' own, and the cluster's default where there is one.
LEAST = {("one", "topic-3"): 3, ("one", ""): 2, ("two", "topic-4"): 2}
TOPICS = {"one": 40, "two": 25}
GONE = ("topic-7", "topic-8")
WINDOW = 8 * HOUR
EVERY = 100_000
Line = dict[str, Any]


def timed(story: Iterable[Record], chance: random.Random) -> list[Record]:
    """Some minutes between the records, sometimes hours; now and then the clock goes back, as with another leader."""
    now, found = chance.randrange(HOUR), []
    for record in story:
        now += chance.choice([0, 1, 60_000, 300_000, 600_000, 1_200_000, HOUR, -900_000])
        found.append(replace(record, time=2400 * HOUR + now))
    return found


@pytest.fixture(scope="module")
def history() -> dict[str, pl.DataFrame]:
    """Every change by cluster."""
    chance = random.Random(5)  # noqa: S311 - the seed makes a failure repeatable
    found: dict[str, list[pl.DataFrame]] = defaultdict(list)
    for cluster, topics in TOPICS.items():
        for number in range(topics):
            story = timed(any_story(number if cluster == "one" else 1000 + number), chance)
            told = history_of([record_row(cluster, f"id-{number}", record) for record in story])
            found[cluster].append(told.with_columns(topic=pl.lit(f"topic-{number}")))
    return {cluster: pl.concat(each) for cluster, each in found.items()}


@pytest.fixture(scope="module")
def changes(history: Mapping[str, pl.DataFrame]) -> dict[tuple[str, str], list[Row]]:
    """Every change by cluster and topic id, in the order of the log."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for cluster, mine in history.items():
        for row in mine.sort("offset").to_dicts():
            found[cluster, row["topic_id"]].append({**row, "cluster": cluster})
    return found


@pytest.fixture(scope="module")
def ends(changes: Mapping[tuple[str, str], list[Row]]) -> dict[str, int]:
    return {
        name: max(row["append_time"] for key, rows in changes.items() if key[0] == name for row in rows)
        for name in TOPICS
    }


def present(changes: Mapping[tuple[str, str], list[Row]]) -> list[Row]:
    """The partitions that are there at the end, as silver has them."""
    last = [{**rows[-1], "kraft_append_time": rows[-1]["append_time"]} for rows in changes.values()]
    return [{**row, "source": "kraft"} for row in last if row["topic"] not in GONE]


Tables = dict[str, tuple[pl.DataFrame, pl.DataFrame]]


@pytest.fixture(scope="module")
def tables(changes: Any) -> Tables:
    """Silver partitions and configs by cluster."""
    configs = [
        {"cluster": cluster, "resource_type": "TOPIC" if topic else "BROKER", "resource_name": topic}
        | {"config": "min.insync.replicas", "value": str(least)}
        for (cluster, topic), least in LEAST.items()
    ]
    columns = [columns_of(entity.row_columns) for entity in (PARTITIONS, CONFIGS)]
    return {
        cluster: (
            frame([row for row in present(changes) if row["cluster"] == cluster], columns[0]),
            frame([row for row in configs if row["cluster"] == cluster], columns[1]),
        )
        for cluster in TOPICS
    }


def audited(
    history: Mapping[str, pl.DataFrame], tables: Tables, ends: Mapping[str, int], most: int, at_a_time: int
) -> list[Line]:
    """The lines of the last hours; most partitions are by themselves where few changes are summed up at a time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hourly, "_STRIDE", at_a_time)
        return [
            {"cluster": name, **line}
            for name, mine in history.items()
            for line in isr_audit(
                recent_of(mine, ends[name], WINDOW // HOUR), *tables[name], ends[name], most, capped_min_isr=True
            )
        ]


@pytest.fixture(scope="module")
def audit(history: Any, tables: Tables, ends: Any) -> dict[int, list[Line]]:
    """All lines; and at most five of each subject."""
    return {
        EVERY: audited(history, tables, ends, EVERY, EVERY),
        5: audited(history, tables, ends, 5, 7),
    }


def test_changes_that_two_runs_recorded_at_once_count_once(
    history: Mapping[str, pl.DataFrame], tables: Tables, ends: Any, audit: dict[int, list[Line]]
) -> None:
    twice = {name: pl.concat([mine, mine]) for name, mine in history.items()}
    found = audited(twice, tables, ends, EVERY, 7)
    assert in_any_order(found) == in_any_order(audit[EVERY])
    assert any(line["flaps"] for line in found)


def in_any_order(lines: list[Line]) -> list[str]:
    return sorted(repr(sorted(line.items())) for line in lines)


def so(row: Row, suffix: str, least: int | None) -> dict[str, bool]:
    if row[f"leader{suffix}"] is None:
        return dict.fromkeys(SO, False)
    replicas, isr = row[f"replicas{suffix}"], row[f"isr{suffix}"]
    return {
        "short": bool({*replicas} - {*row[f"adding_replicas{suffix}"]} - {*isr}),
        "under": least is not None and len(isr) < min(least, len(replicas)),
        "leaderless": row[f"leader{suffix}"] == -1,
    }


NAMES = {"leaderless_ms": "leaderless", "under_min_ms": "under", "out_of_sync_ms": "short"}
Lines = dict[tuple[str, str, Any, Any], dict[str, int]]


def unseen(row: Row, before: Mapping[str, bool]) -> dict[str, int]:
    """Since when a partition has been what it was before a change, as the change itself tells it."""
    return {kind: row["leaderless_since" if kind == "leaderless" else "before_time"] for kind in SO if before[kind]}


def chosen(row: Row) -> int:
    """Whom an election made the leader, or the ISR of a partition whose reassignment was cancelled."""
    return int(row["leader"] if row["leader"] >= 0 else row["joined"][0])


def sum_up(rows: list[Row], since_ms: int, least: int | None, lines: Lines) -> dict[str, int]:
    """Add one partition's changes to the lines; gives since when it is what it is after the last of them.

    What it was before the first of them it had been since its record before that, or longer.
    """
    begun: dict[str, int] = {}
    moves: list[tuple[int, int]] = []
    recent = [row for row in rows if row["append_time"] >= since_ms]
    for row in recent:
        if row["leader_before"] is not None:
            moves += [(broker, row["append_time"]) for broker in (*row["departed"], *row["joined"])]
    for row in recent:
        now, before, time = so(row, "", least), so(row, "_before", least), row["append_time"]
        begun = unseen(row, before) | begun
        if row["leader_before"] is not None:
            cluster, hour = row["cluster"], time - time % HOUR
            of_partition = lines[cluster, "partition", (row["topic"], row["partition"]), hour]
            elected = {chosen(row)} if row["election"] else set()
            for broker in {*row["departed"], *row["joined"], *elected}:
                flaps = sum(each == broker and time - HOUR <= at <= time for each, at in moves)
                line = lines[cluster, "broker", broker, hour]
                for each in (of_partition, line):
                    each["flaps"] = max(each["flaps"], flaps)
                line["shrinks"] += broker in row["departed"]
                line["expansions"] += broker in row["joined"]
                line["elections"] += broker in elected
                line["lossy_elections"] += broker in elected and row["election"] in LOSSY
            of_partition["shrinks"] += bool(row["departed"])
            of_partition["expansions"] += bool(row["joined"])
            of_partition["elections"] += bool(elected)
            of_partition["lossy_elections"] += row["election"] in LOSSY
            for name, kind in NAMES.items():
                if before[kind] and not now[kind]:
                    of_partition[name] += max(0, time - begun[kind])
        begun = {kind: begun[kind] if before[kind] else time for kind in SO if now[kind]}
    return begun


@pytest.fixture(scope="module")
def wanted(changes: Mapping[tuple[str, str], list[Row]], ends: Mapping[str, int]) -> Lines:
    lines: Lines = defaultdict(lambda: defaultdict(int))
    there = {(row["cluster"], row["topic_id"]) for row in present(changes)}
    for key, rows in changes.items():
        cluster, last = key[0], rows[-1]
        least = LEAST.get((cluster, last["topic"]), LEAST.get((cluster, "")))
        since = sum_up(rows, ends[cluster] - WINDOW, least, lines)
        if key in there:
            for name, kind in NAMES.items():
                if so(last, "", least)[kind]:
                    at_end = lines[cluster, "partition", (last["topic"], last["partition"]), None]
                    at_end[name] = max(0, ends[cluster] - since.get(kind, last["append_time"]))
            for place, name in ((last["leader"], "leads"), (last["replicas"][:1], "preferred")):
                for broker in place if isinstance(place, list) else [place]:
                    if broker >= 0:
                        lines[cluster, "leadership", broker, None][name] += 1
    return {key: dict(line) for key, line in lines.items() if tells(key[1], line)}


def tells(subject: str, line: Mapping[str, int]) -> bool:
    return line["leads"] != line["preferred"] if subject == "leadership" else any(line.values())


def key_of(line: Line) -> tuple[str, str, Any, Any]:
    who = (line["topic"], line["partition"]) if line["subject"] == "partition" else line["broker_id"]
    return line["cluster"], line["subject"], who, line["hour"]


NUMBERS = [name for name in LINE if name not in ("subject", "topic", "partition", "broker_id", "hour")]


def numbers(line: Mapping[str, Any]) -> dict[str, int]:
    return {name: line[name] for name in NUMBERS if line.get(name)}


def test_every_line_is_what_the_rules_say(audit: dict[int, list[Line]], wanted: Lines) -> None:
    found = {key_of(line): numbers(line) for line in audit[EVERY]}
    assert len(found) == len(audit[EVERY])
    assert found == {key: numbers(line) for key, line in wanted.items()}
    assert len(found) > 300
    # Something of every kind, at the end of the log too.
    for name in NUMBERS:
        assert any(name in line for line in found.values()), name
    at_end = [line for key, line in found.items() if key[1] == "partition" and key[3] is None]
    assert all(any(name in line for line in at_end) for name in NAMES)


WORST = ("lossy_elections", "leaderless_ms", "under_min_ms", "flaps", "moves", "out_of_sync_ms", "skew")


def badness(line: Line) -> tuple[int, ...]:
    each = {name: line[name] or 0 for name in NUMBERS}
    each |= {"moves": each["shrinks"] + each["expansions"], "skew": abs(each["leads"] - each["preferred"])}
    return tuple(-each[name] for name in WORST)


def test_the_worst_are_kept_and_the_others_counted(audit: dict[int, list[Line]]) -> None:
    for cluster in TOPICS:
        for subject in ("partition", "broker", "leadership"):
            every, few = (
                sorted(
                    (line for line in audit[most] if (line["cluster"], line["subject"]) == (cluster, subject)),
                    key=lambda line: int(line["place"]),
                )
                for most in (EVERY, 5)
            )
            assert few == every[:5]
            assert [line["place"] for line in every] == list(range(1, len(every) + 1))
            assert {line["total"] for line in few} == {len(every)}
            assert [badness(line) for line in every] == sorted(badness(line) for line in every)


def test_no_changes_are_no_lines(history: Mapping[str, pl.DataFrame], tables: Tables) -> None:
    nothing = history["one"].clear()
    partitions, configs = tables["one"]
    assert isr_audit(recent_of(nothing, 0, 1), partitions.clear(), configs.clear(), 0, 5, capped_min_isr=True) == []
    sums = hourly_sums(pl.DataFrame(schema=dict.fromkeys(hourly.READ, pl.Int64)).clear(), 5)
    assert (sums.total, sums.partitions.height, sums.brokers.height, sums.since.height) == (0, 0, 0, 0)


LOG_END = 24_000 * HOUR + HOUR // 2


def lines_of(*told: tuple[float, Change], capped: bool = True) -> list[Line]:
    """What the audit says of a partition whose records came so many hours before the log's end."""
    records = [Record(offset, LOG_END - int(ago * HOUR), change) for offset, (ago, change) in enumerate(told, 1)]
    history = history_of([record_row("one", "id", record) for record in records]).with_columns(topic=pl.lit("topic"))
    now = {**history.to_dicts()[-1], "source": "kraft", "kraft_append_time": records[-1].time}
    least = {"resource_type": "TOPIC", "resource_name": "topic", "config": "min.insync.replicas", "value": "3"}
    partitions, configs = (
        frame([row], columns_of(entity.row_columns)) for row, entity in ((now, PARTITIONS), (least, CONFIGS))
    )
    return isr_audit(recent_of(history, LOG_END, 24), partitions, configs, LOG_END, 10, capped_min_isr=capped)


def times_of(*told: tuple[float, Change]) -> list[tuple[int | None, int | None, int | None]]:
    """The hour (so many before the log's end), under_min_ms and out_of_sync_ms of the partition's lines."""
    found = [
        (
            None if line["hour"] is None else (LOG_END - line["hour"]) // HOUR,
            line["under_min_ms"],
            line["out_of_sync_ms"],
        )
        for line in lines_of(*told)
        if line["subject"] == "partition" and line["out_of_sync_ms"]
    ]
    return sorted(found, key=repr)


MADE = Change(whole=True, replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_recovery_state=0)
ALONE, TWO, ALL = Change(isr=(1,)), Change(isr=(1, 2)), Change(isr=(1, 2, 3))
# It leaves everything that is counted as it is, like a change of directories.
STILL = Change(leader=1)


def test_a_state_that_began_before_the_window_lasts_over_the_records_in_it() -> None:
    """Broker 3 has been out for 30 hours; broker 2 left for an hour, or only directories changed."""
    begun = [(100.0, MADE), (30.0, TWO)]
    out = 30 * HOUR
    assert times_of(*begun) == [(None, out, out)]
    assert times_of(*begun, (2, ALONE), (1, TWO)) == [(None, out, out)]
    assert times_of(*begun, (1 / 60, STILL)) == [(None, out, out)]
    assert times_of(*begun, (20, STILL), (2, ALONE), (1, STILL)) == [(None, out, out)]


def test_the_time_to_heal_begins_before_the_window_too() -> None:
    begun = [(100.0, MADE), (30.0, TWO)]
    healed = 30 * HOUR - HOUR // 2
    assert times_of(*begun, (0.5, ALL)) == [(0, healed, healed)]
    assert times_of(*begun, (2, ALONE), (1, TWO), (0.5, ALL)) == [(0, healed, healed)]
    # What began again in the window began there.
    assert times_of(*begun, (3, ALL), (2, TWO), (1, STILL), (0.5, ALL)) == [
        (0, 3 * HOUR // 2, 3 * HOUR // 2),
        (3, 27 * HOUR, 27 * HOUR),
    ]


def test_of_what_began_earlier_the_last_record_before_the_window_counts() -> None:
    """It is then known for this long at least: records of more than a day ago are not looked at."""
    begun = [(100.0, MADE), (50.0, TWO), (25.0, STILL)]
    assert times_of(*begun) == times_of(*begun, (1, STILL)) == [(None, 25 * HOUR, 25 * HOUR)]


def test_an_election_without_a_leader_is_that_of_the_broker_that_became_the_isr() -> None:
    """A reassignment of 1 and 2 to 3 and 4 is cancelled while 1 and 2 are down: the ISR becomes 1, which cannot lead yet."""
    moving = {"replicas": (3, 4, 1, 2), "adding": (3, 4), "removing": (1, 2)}
    made = replace(MADE, isr=(3,), leader=3, **moving)
    cancelled = Change(replicas=(1, 2), isr=(1,), leader=-1, adding=(), removing=())
    brokers = {
        line["broker_id"]: (line["shrinks"], line["expansions"], line["elections"], line["lossy_elections"])
        for line in lines_of((30, made), (2, cancelled))
        if line["subject"] == "broker"
    }
    assert brokers == {1: (0, 1, 1, 1), 3: (1, 0, 0, 0)}


@pytest.mark.parametrize(("capped", "found"), [(True, {}), (False, {None: 3 * HOUR, 5: 2 * HOUR})])
def test_before_3_7_a_partition_may_need_more_members_than_it_has_replicas(
    capped: bool, found: dict[int | None, int]
) -> None:
    """Two replicas of min.insync.replicas 3, which a reassignment makes three for an hour (`Partition.isUnderMinIsr`)."""
    two = Change(whole=True, replicas=(1, 2), isr=(1, 2), leader=1, leader_recovery_state=0)
    more = Change(replicas=(1, 2, 3), isr=(1, 2, 3))
    lines = lines_of((7.0, two), (5.0, more), (3.0, Change(replicas=(1, 2), isr=(1, 2))), capped=capped)
    ended = [(line["hour"], line["under_min_ms"]) for line in lines if line["subject"] == "partition"]
    hours = {None if hour is None else (LOG_END - hour) // HOUR: ms for hour, ms in ended}
    assert {hour: ms for hour, ms in hours.items() if ms} == found
