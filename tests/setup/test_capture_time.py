"""When a capture was made: a walk's own time, the configuration's word, or what the files themselves tell."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobs.exit import UsageError
from jobs.run.capture import captured_at, reading_ms
from jobs.run.run import ClusterRun
from jobs.settings import validated

CONTENT: dict[str, object] = {"cluster": "c", "warehouse": "w", "zookeeper": {"connect": "zk:2181"}}
MOMENT = datetime(2026, 1, 31, 4, tzinfo=UTC)


def cluster(as_of: object = None, **values: int) -> ClusterRun:
    return ClusterRun(validated(CONTENT | ({} if as_of is None else {"as_of": as_of}), "test"), **values)  # type: ignore[arg-type]


def test_a_live_walk_counts_from_its_begin() -> None:
    """/migration is read first; what the log got until its end was looked up is no lag."""
    walked = cluster(walked_at_ms=1_000, log_seen_at_ms=61_000)
    assert (captured_at(walked), reading_ms(walked)) == (1_000, 60_000)


def test_files_tell_by_what_is_in_them() -> None:
    assert (captured_at(cluster()), reading_ms(cluster())) == (None, 0)


@pytest.mark.parametrize("given", ["2026-01-31T04:00:00Z", "2026-01-31T05:00:00+01:00", MOMENT])
def test_the_configuration_may_say_when(given: object) -> None:
    told = cluster(given, walked_at_ms=1_000, log_seen_at_ms=61_000)
    assert (captured_at(told), reading_ms(told)) == (round(MOMENT.timestamp() * 1000), 0)


def test_a_live_server_may_hold_an_old_tree() -> None:
    replayed = cluster("data", walked_at_ms=1_000, log_seen_at_ms=61_000)
    assert (captured_at(replayed), reading_ms(replayed)) == (None, 0)


@pytest.mark.parametrize("given", ["yesterday", "2026-01-31T04:00:00"])
def test_a_time_without_a_zone_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="`as_of"):
        cluster(given)
