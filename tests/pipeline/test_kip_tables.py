"""Gold isr_history, isr_audit, feature_matrix and downgrade_readiness of real clusters, against what Kafka's tools said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.gold import DOWNGRADE_READINESS, FEATURE_MATRIX, ISR_AUDIT, ISR_HISTORY
from tests.captures import capture
from tests.isr.logs import Stories, log_records, partition_records
from tests.isr.plain import churn, flapping
from tests.pipeline import expected
from tests.pipeline.audits import Audit, Content, in_fleet, settings_content
from transforms.isr.history import HOUR, LOSSY, ClassifiedChange, step_of, steps

pytestmark = pytest.mark.slow
KRAFT = "4.3.1-kraft"


@in_fleet("kips-kraft-12")
def _drained(folder: Path) -> Content:
    return settings_content(capture(KRAFT, "12"), folder)


@in_fleet("kips-kraft-ghost")
def _ghost(folder: Path) -> Content:
    return settings_content(capture(KRAFT, "upgrade-2-blocked-by-ghost"), folder)


CAPTURES = {
    "3.9.1-6": ("3.9.1", "6"),
    "3.9.1-7": ("3.9.1", "7"),
    "3.6.2-7": ("3.6.2", "7"),
    "kips-kraft-12": (KRAFT, "12"),
}


def told(name: str) -> dict[tuple[str, str, int, int], ClassifiedChange]:
    """Steps of every partition there ever was by topic, topic id, partition and offset, from Kafka's dump."""
    folder = capture(*CAPTURES[name])
    end = expected.load(folder)["end_offset"]
    records = log_records(folder, 3001)
    topics = {(r.data or {})["topicId"]: (r.data or {})["name"] for r in records if r.type == "TOPIC_RECORD"}
    gone: Stories = {}
    stories = partition_records(records, gone)
    return {
        (topics[topic_id], topic_id, partition, step.offset): step
        for (topic_id, partition), story in (stories | gone).items()
        for step in steps(story)
        if step.offset < end
    }


@pytest.mark.parametrize("name", CAPTURES)
def test_the_recorded_history_is_what_the_dump_says_epoch_by_epoch(audited: Callable[[str], Audit], name: str) -> None:
    rows = audited(name).rows(ISR_HISTORY)
    found = {(row["topic"], row["topic_id"], row["partition"], row["offset"]): step_of(row) for row in rows}
    assert len(found) == len(rows)
    assert found == told(name)


@pytest.mark.parametrize("name", CAPTURES)
def test_the_audit_of_the_history_is_what_the_same_rules_say_in_python(
    audited: Callable[[str], Audit], name: str
) -> None:
    """Churn and flapping by partition, broker and hour; what is kept is the worst of it."""
    histories: dict[str, list[ClassifiedChange]] = {}
    for (topic, topic_id, partition, _), step in sorted(told(name).items(), key=lambda item: item[0][3]):
        histories.setdefault(f"{topic}/{topic_id}/{partition}", []).append(step)
    wanted = {(row.subject, row.hour): (row.shrinks, row.expansions) for row in churn(histories)}
    rows = [row for row in audited(name).rows(ISR_AUDIT) if row["hour"] is not None]
    brokers = {row["broker_id"]: row for row in rows if row["subject"] == "broker"}
    for number, row in brokers.items():
        assert (row["shrinks"], row["expansions"]) == wanted.get((f"broker {number}", row["hour"]), (0, 0))
    by_partition = {f"{row['topic']}-{row['partition']}": row for row in rows if row["subject"] == "partition"}
    compared = 0
    for key, history in histories.items():
        topic, _, partition = key.split("/")
        row = by_partition.get(f"{topic}-{partition}")
        # Of a topic that was made again there are rows of both lives.
        if row is None or len({each.split("/")[1] for each in histories if each.startswith(f"{topic}/")}) > 1:
            continue
        compared += 1
        lossy = [step for step in history if step.election in LOSSY and step.time - step.time % HOUR == row["hour"]]
        assert row["lossy_elections"] == len(lossy)
        assert row["flaps"] == max(flapping(history, 1).values(), default=0)
        assert (row["shrinks"], row["expansions"]) == wanted.get((key, row["hour"]), (0, 0))
    assert compared > 20
    places = [row["place"] for row in audited(name).rows(ISR_AUDIT) if row["subject"] == "partition"]
    assert sorted(places) == list(range(1, len(places) + 1))


def test_the_worst_partition_is_the_one_without_a_leader_longest(audited: Callable[[str], Audit]) -> None:
    """`solo-2` had one replica on a broker that was killed, and an election that can have lost data."""
    lines = audited("kips-kraft-12").report.isr_history
    assert lines is not None
    worst = lines.lines[0]
    assert (worst.topic, worst.partition, worst.lossy_elections) == ("solo", 2, 1)
    assert worst.leaderless_ms > 60_000
    assert lines.totals["partition"] >= len([line for line in lines.lines if line.subject == "partition"])


def test_a_broker_that_leads_less_than_it_is_preferred_for_is_told(audited: Callable[[str], Audit]) -> None:
    wanted = expected.partitions(expected.load(capture("3.9.1", "6"))["state"]).values()
    rows = {row["broker_id"]: row for row in audited("3.9.1-6").rows(ISR_AUDIT) if row["subject"] == "leadership"}
    for broker, row in rows.items():
        assert row["leads"] == sum(value["leader"] == broker for value in wanted)
        assert row["preferred"] == sum(value["replicas"][0] == broker for value in wanted)
    assert 2 in rows


_RANGE = re.compile(
    r"([a-z.]+)=(?:Finalized|Supported)VersionRange\[min_version(?:_level)?:(\d+), max_version(?:_level)?:(\d+)\]"
)


def admin_features(version: str, stage: str) -> tuple[dict[str, int], dict[str, tuple[int, int]]]:
    """Finalised and supported levels as the Admin API told them."""
    said = json.loads((capture(version, stage) / "admin-api.json").read_text())["features"]
    finalised, _, supported = said.partition(" epoch=")
    return (
        {name: int(highest) for name, _, highest in _RANGE.findall(finalised)},
        {name: (int(lowest), int(highest)) for name, lowest, highest in _RANGE.findall(supported)},
    )


@pytest.mark.parametrize(
    ("name", "version", "stage"),
    [
        ("3.9.1-12", "3.9.1", "12"),
        ("kips-kraft-12", KRAFT, "12"),
        ("kips-kraft-ghost", KRAFT, "upgrade-2-blocked-by-ghost"),
    ],
)
def test_the_feature_matrix_is_what_the_admin_api_says(
    audited: Callable[[str], Audit], name: str, version: str, stage: str
) -> None:
    finalised, supported = admin_features(version, stage)
    rows = audited(name).rows(FEATURE_MATRIX)
    assert {row["feature"]: row["finalised_level"] for row in rows if row["finalised_level"]} == finalised
    brokers = [row for row in rows if row["node_kind"] == "broker" and not row["fenced"]]
    assert brokers
    for row in brokers:
        assert (row["min_level"], row["max_level"]) == supported[row["feature"]]
    assert {row["feature"] for row in brokers} == set(supported)


def test_every_registered_controller_is_in_the_matrix_with_its_own_levels(audited: Callable[[str], Audit]) -> None:
    """One of an older release, no voter, blocks every upgrade: in the capture from offset 755 on."""
    audit = audited("kips-kraft-ghost")
    end = audit.report.migration.committed_end_offset
    assert end is not None
    registered = {
        body["controllerId"]: {
            each["name"]: (each["minSupportedVersion"], each["maxSupportedVersion"]) for each in body["features"]
        }
        for record in log_records(capture(KRAFT, "upgrade-2-blocked-by-ghost"), 3001)
        if record.type == "REGISTER_CONTROLLER_RECORD" and record.offset <= end
        for body in [record.data or {}]
    }
    rows = [row for row in audit.rows(FEATURE_MATRIX) if row["node_kind"] == "controller"]
    assert {row["node_id"] for row in rows} == set(registered)
    for row in rows:
        assert (row["min_level"], row["max_level"]) == registered[row["node_id"]].get(row["feature"], (0, 0))


def verdicts(audit: Audit) -> dict[str, tuple[str, set[str]]]:
    found: dict[str, tuple[str, set[str]]] = {}
    for row in audit.rows(DOWNGRADE_READINESS):
        found.setdefault(row["release"], (row["verdict"], set()))[1].add(f"{row['outcome']}: {row['evidence']}")
    return found


def has(reasons: set[str], text: str) -> bool:
    return any(text in reason for reason in reasons)


def test_the_way_back_in_dual_write_is_blocked_by_records_and_registrations(audited: Callable[[str], Audit]) -> None:
    found = verdicts(audited("3.9.1-6"))
    for release in ("3.6", "3.3", "2.7", "2.3"):
        verdict, reasons = found[release]
        assert verdict == "blocked"
        assert has(reasons, "broker 0's registration")
    assert has(found["3.6"][1], "FEATURE_LEVEL_RECORD, offset 2")
    assert has(found["3.3"][1], "ZK_MIGRATION_STATE_RECORD, offset ")
    assert has(found["2.7"][1], "/delegation_token/tokens/")


def test_the_way_back_after_finalising_ends_where_metadata_would_be_lost(audited: Callable[[str], Audit]) -> None:
    """`BootstrapDirectory.read` of 3.7.2 throws on these controllers' bootstrap.checkpoint, which 3.9.1 made; that of 3.8.1 does not."""
    found = verdicts(audited("3.9.1-12"))
    assert found["3.8"][0] == "safe"
    assert found["3.7"] == ("blocked", {"blocked: bootstrap.checkpoint"})
    assert found["3.6"][0] == found["3.3"][0] == "blocked"
    assert has(found["3.6"][1], "loses: FEATURE_LEVEL_RECORD, offset 2")
    assert "2.7" not in found


def test_the_way_back_of_a_rolled_back_cluster_is_told_by_its_tree(audited: Callable[[str], Audit]) -> None:
    found = verdicts(audited("3.9.1-rolled-back"))
    assert found["3.6"][0] == "unknown"
    assert has(found["3.6"][1], "give the brokers' property files")
    assert found["2.7"][0] == found["2.3"][0] == "blocked"
    assert has(found["2.7"][1], "/feature has version 2")


def test_rows_and_report_tell_the_same(audited: Callable[[str], Audit]) -> None:
    audit = audited("kips-kraft-12")
    report: Any = audit.report
    assert len(audit.rows(FEATURE_MATRIX)) == len(report.features) > 0
    assert {row["release"] for row in audit.rows(DOWNGRADE_READINESS)} == {
        each.release for each in report.downgrade.targets
    }
    assert len(audit.rows(ISR_AUDIT)) == len(report.isr_history.lines)
