"""What is read live is read in order: the tree first, then the log, then what moved meanwhile (S§5.5)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jobs.settings import Settings
from jobs.steps import ingest_kraft
from tests.setup.test_live_settings import LIVE, settings


def test_a_live_log_is_left_alone_until_it_is_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet's folders of ZooKeeper need their logs early: those of clusters that are read live must not come along."""
    read: list[str] = []

    def scan(each: Settings) -> tuple[Any, list[str]]:
        read.append(each.warehouse)
        return SimpleNamespace(), [f"read {each.warehouse}"]

    monkeypatch.setattr(ingest_kraft, "_scan", scan)
    asked = {
        "files": settings({"folders": ["/x"]}, warehouse="/files"),
        "live": settings(LIVE, warehouse="/live", zookeeper={"connect": "zk:2181"}),
    }
    run: Any = SimpleNamespace(
        logs={},
        settings_of=lambda: asked,
        clusters={name: SimpleNamespace(notes=[]) for name in asked},
        measure=lambda: None,
    )
    assert list(ingest_kraft.scan_logs(run, ["files"])) == ["files"]
    assert read == ["/files"]
    assert sorted(ingest_kraft.scan_logs(run)) == ["files", "live"]
    assert read == ["/files", "/live"]
    assert run.clusters["live"].notes == ["read /live"]
