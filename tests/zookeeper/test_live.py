"""Live walks of a real ZooKeeper server."""

from __future__ import annotations

from typing import Any

from jobs.demo.zookeeper_server import zookeeper_server
from jobs.sources.zookeeper_live import read_live
from jobs.sources.zookeeper_walk import LiveSettings, WalkSummary
from schemas.zookeeper.paths import NEVER_READ
from tests.captures import capture
from tests.zookeeper.trees import REDACTOR, dump_batches

STAGE = ("3.9.1", "5-dual-write-changed")


def rows(batches: list[Any]) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for batch in batches for row in batch.to_pylist()}


def test_a_walk_equals_the_dump_of_the_same_tree() -> None:
    summary = WalkSummary()
    with zookeeper_server(capture(*STAGE) / "zookeeper") as server:
        walked = rows(list(read_live(LiveSettings(server.address), REDACTOR, summary, batch_rows=100)))
    dumped = rows(dump_batches(*STAGE))
    unneeded = {path for path in dumped if path == "/" or path.startswith(NEVER_READ)}
    assert walked == {path: row for path, row in dumped.items() if path not in unneeded}
    newest = max(row["pzxid"] for row in dumped.values())
    assert summary.znodes == len(walked)
    assert summary.first_zxid == summary.last_zxid >= newest
    assert (summary.denied, summary.vanished, summary.reconnects, summary.read_only) == (0, 0, 0, False)
