"""Servers that would keep a walk for ever: each is given up, in time, with one line that says why."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from jobs.sources.zookeeper.walk import RECONNECTS_WITHOUT_PROGRESS, LiveSettings, WalkSummary, ZooKeeperWalkError, walk
from tests.zookeeper.hostile import hostile_server
from tests.zookeeper.trees import REDACTOR

PATIENCE = 1.0

CASES: tuple[tuple[str, dict[str, Any], dict[str, Any], str], ...] = (
    (
        "hang-up",
        {"hangs_up_at": "/brokers"},
        {},
        r"closed the connection \d+ times in a row without a further znode, after \d+|did not come back within 1 s",
    ),
    ("silent", {"silent": True}, {}, r"sent no further znode within 1 s, after 0"),
    (
        "a byte each half second",
        {"drips": 0.5},
        {},
        r"sent no further znode within 1 s, after 0|did not come back within 1 s",
    ),
    ("giant reply", {"claims": 1 << 30}, {}, r"sent an invalid reply: a reply of 1073741824 bytes"),
    ("negative reply", {"claims": -5}, {}, r"sent an invalid reply: a reply of -5 bytes"),
    ("endlessly deep", {"children": 1}, {}, r"the tree is deeper than 32 znodes \(zookeeper.max_depth\)"),
    (
        "endlessly wide",
        {"children": 300},
        {"max_znodes": 50_000},
        r"has more than 50000 znodes \(zookeeper.max_znodes\)",
    ),
    (
        "endlessly long",
        {"children": 2},
        {"max_minutes": 0.02},
        r"was walked for 0.02 minutes and \d+ znodes without reaching the end",
    ),
)


def ended(server: dict[str, Any], settings: dict[str, Any]) -> tuple[float, str, int, int]:
    """Seconds until a walk of such a server was given up, the line, connections and requests that it took."""
    with hostile_server(**server) as hostile:
        live = LiveSettings(hostile.address, **{"patience_seconds": PATIENCE, **settings})
        started = time.monotonic()
        with pytest.raises(ZooKeeperWalkError) as refused:
            for _ in walk(live, REDACTOR, WalkSummary()):
                pass
        return time.monotonic() - started, str(refused.value), hostile.connections, hostile.requests


@pytest.mark.parametrize(("name", "server", "settings", "line"), CASES, ids=[case[0] for case in CASES])
def test_a_walk_of_a_hostile_server_ends(
    name: str, server: dict[str, Any], settings: dict[str, Any], line: str
) -> None:
    seconds, said, connections, _ = ended(server, settings)
    assert "\n" not in said
    assert said.startswith("ZooKeeper at 127.0.0.1:")
    assert re.search(line, said), said
    # The bound is on the server's time; a machine with more to do than this test takes its own.
    assert seconds < 15 * PATIENCE, name
    # kazoo may be a few connections ahead of the walk.
    assert connections <= 5 * RECONNECTS_WITHOUT_PROGRESS


def test_a_walk_that_is_asked_to_be_slow_is_not_taken_for_one_that_stands_still() -> None:
    slow = {"requests_per_second": 2.0, "window": 1, "patience_seconds": 0.5, "max_depth": 1, "roots": ("/brokers",)}
    _, said, _, _ = ended({"children": 1, "pause": 0.03}, slow)
    assert "the tree is deeper than 1 znodes" in said


def test_a_name_that_can_be_no_servers_is_told_at_once_and_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    settings = LiveSettings("zk-1.example.com:2181,zk..example.com:2181/kafka", connect_timeout_seconds=20)
    began = time.monotonic()
    with pytest.raises(ZooKeeperWalkError, match=r"^ZooKeeper at zk-1\..*/kafka: zk\.\.example\.com: no such host$"):
        list(walk(settings, REDACTOR, WalkSummary()))
    assert time.monotonic() - began < 10
    assert "Traceback" not in capfd.readouterr().err
