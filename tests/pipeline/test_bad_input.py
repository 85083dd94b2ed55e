"""Damaged and wrong input: a finding and a run that goes on, or one clear line and no harm to what was there."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.exit import USAGE
from jobs.run.run import Failure
from jobs.settings import ZooKeeperSettings
from jobs.sources.zookeeper.client import LiveSettings
from jobs.steps import ingest_zookeeper
from schemas.bronze import QUARANTINE
from schemas.entities.partitions import PARTITIONS
from schemas.entities.topics import TOPICS
from schemas.gold import RUNS
from tests.captures import capture
from tests.kraft.encoder import BY_NAME, data_value, uvarint
from tests.pipeline.audits import Audit, Content, audit_all, in_fleet, settings_content
from tests.pipeline.logs import append, writable_copy

TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
# A second after the last record of the log.
NOW = 1_795_233_160_500

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]


@in_fleet("emptied")
def with_a_tree(tmp_path: Path) -> Content:
    return settings_content(capture("3.9.1", "3"), tmp_path)


def test_a_tree_without_kafka_never_replaces_a_good_one(audited: Callable[[str], Audit], tmp_path: Path) -> None:
    good = audited("emptied")
    empty = tmp_path / "empty.jsonl.gz"
    empty.write_bytes(gzip.compress(b""))
    content = settings_content(capture("3.9.1", "3"), Path(good.warehouse.root), cluster="emptied")
    stored = good.warehouse.version(PARTITIONS.table)
    (failure,) = audit_all([{**content, "zookeeper": {"dump": str(empty)}}]).values()
    assert isinstance(failure, Failure)
    assert "holds no Kafka metadata" in failure.reason
    assert failure.exit_code == USAGE
    assert len(good.rows(TOPICS.table, "source = 'zookeeper'")) == 8
    assert good.warehouse.version(PARTITIONS.table) == stored, (
        "nothing is left to audit, and no table is written without rows"
    )
    runs = good.warehouse.read(RUNS).where("cluster = 'emptied'").orderBy("started_at").collect()
    assert [(row["verdict"], row["failure"]) for row in runs] == [
        (good.report.verdict, None),
        ("failed", failure.reason),
    ]


def test_a_zookeeper_that_does_not_answer_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def impatient(source: ZooKeeperSettings) -> LiveSettings:
        return LiveSettings(str(source.connect), connect_timeout_seconds=0.5)

    monkeypatch.setattr(ingest_zookeeper, "live_settings", impatient)
    content = settings_content(capture("3.9.1", "5"), tmp_path)
    (failure,) = audit_all([{**content, "zookeeper": {"connect": "127.0.0.1:1"}}]).values()
    assert isinstance(failure, Failure)
    assert (failure.exit_code, "127.0.0.1:1 did not answer" in failure.reason) == (USAGE, True)


@in_fleet("damaged-log")
def damaged_log(tmp_path: Path) -> Content:
    folder = writable_copy(capture("3.9.1", "5"), tmp_path / "capture")
    for node in ("3000", "3001", "3002"):
        segment = folder / "kraft" / node / "__cluster_metadata-0" / "00000000000000000000.log"
        content = bytearray(segment.read_bytes())
        content[9_000] ^= 0xFF
        segment.write_bytes(bytes(content))
    return settings_content(folder, tmp_path)


def test_a_damaged_log_is_named_and_the_run_goes_on(audited: Callable[[str], Audit]) -> None:
    result = audited("damaged-log")
    check = next(check for check in result.report.checks if check.id == "CAP-02")
    assert check.verdict == "fail"
    assert any("CRC" in line.upper() for line in check.evidence), "the checksum is named, not only the gap it leaves"
    assert result.report.exit_code == 20
    damaged = result.rows(QUARANTINE, "source = 'kraft'")
    assert damaged
    assert all(row["position"] is not None and row["reason"] for row in damaged)


@in_fleet("newer-records")
def newer_records(tmp_path: Path) -> Content:
    """A healthy log in which a record of a type beyond the tables and one with a tag that no release has are written whole."""
    folder = writable_copy(capture("3.9.1", "5"), tmp_path / "capture")
    topic = data_value(BY_NAME["TOPIC_RECORD"], 0, {"name": "made-later", "topicId": TOPIC_ID}, [(9, b"new")])
    append(folder / "kraft", [(None, uvarint(1) + uvarint(300) + uvarint(0) + b"\0"), (None, topic)], NOW)
    return settings_content(folder, tmp_path)


def test_records_of_a_newer_release_are_unknown_and_no_damage(audited: Callable[[str], Audit]) -> None:
    result = audited("newer-records")
    checks = {check.id: check for check in result.report.checks}
    assert checks["CAP-02"].verdict == "pass"
    assert checks["CAP-12"].verdict == "unknown"
    said = " ".join(checks["CAP-12"].evidence)
    assert "record type 300" in said
    assert "TOPIC_RECORD v0: tag 9" in said
    assert (result.report.verdict, result.report.exit_code) == ("warnings", 10)
    assert {gate.verdict for gate in result.report.gates.values()} <= {"unknown", "not_applicable", "no_go"}
    assert {row["reason"] for row in result.rows(QUARANTINE, "source = 'kraft'")} == {
        "unknown: record type 300",
        "unknown: TOPIC_RECORD v0: tag 9 of 3 bytes, skipped",
    }
    assert result.rows(TOPICS.table, "topic = 'made-later'"), "what is known of a record is read"


@in_fleet("torn-tail")
def torn_tail(tmp_path: Path) -> Content:
    folder = writable_copy(capture("3.9.1", "5"), tmp_path / "capture")
    for node in ("3000", "3001", "3002"):
        segment = folder / "kraft" / node / "__cluster_metadata-0" / "00000000000000000000.log"
        preallocated = bytes(4096)
        segment.write_bytes(segment.read_bytes() + preallocated)
    return settings_content(folder, tmp_path)


def test_a_torn_tail_is_what_a_running_controller_leaves(audited: Callable[[str], Audit]) -> None:
    result = audited("torn-tail")
    assert result.report.exit_code == 0
    assert next(check for check in result.report.checks if check.id == "CAP-02").verdict == "pass"
    assert result.rows(QUARANTINE, "reason LIKE 'zero-filled%'"), "nothing is dropped silently"
