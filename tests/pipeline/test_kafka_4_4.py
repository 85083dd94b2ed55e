"""Clusters of Kafka 4.4.0 without ZooKeeper, and that the command `downgrade` says what the report says."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.commands.downgrade import state_of
from jobs.evidence.opening import Finished
from jobs.evidence.past_cluster import past_cluster
from jobs.evidence.past_run import past_run
from schemas.report import CheckResult
from tests.captures import capture
from tests.kraft.dumps import DumpedRecord, read_dump
from tests.kraft.encoder import batch
from tests.pipeline.audits import Audit, Content, Preparation, in_fleet, settings_content
from tests.pipeline.logs import next_offset, record, writable_copy
from transforms.downgrade.readiness import LineOutcome, floor_of, readiness, targets
from transforms.features.levels import release_name

RELEASE = "4.4.0-kraft"
STAGES = (
    "1-healthy",
    "2-isr-churn",
    "4-elr-leaderless",
    "8-unclean",
    "11-ghosts",
    "12-broker-unregistered",
    "13-controller-unregistered",
    "static-1-quorum",
    "upgrade-1-before",
    "upgrade-2-blocked-by-ghost",
    "upgrade-3-done",
    "upgrade-4-used-and-downgraded",
)
pytestmark = pytest.mark.slow


def _prepared(stage: str) -> Preparation:
    def prepare(folder: Path) -> Content:
        return settings_content(capture(RELEASE, stage), folder)

    return prepare


for _stage in STAGES:
    in_fleet(f"{RELEASE}-{_stage}")(_prepared(_stage))


def _last_offset(file: tuple[str, list[DumpedRecord]]) -> tuple[bool, int]:
    return file[0].endswith(".log"), file[1][-1].offset


@in_fleet("4.3.1-static-misled")
def _kraft_version_by_record(folder: Path) -> Content:
    """A static quorum whose log has what `kafka-features upgrade` on 3.9 and 4.0 wrote (KAFKA-18979)."""
    source = capture("4.3.1-kraft", "static-1-quorum")
    logs = writable_copy(source / "kraft", folder / "kraft")
    said = record("FEATURE_LEVEL_RECORD", name="kraft.version", featureLevel=1)
    for controller in (3000, 3001, 3002):
        name, rows = max(read_dump("4.3.1-kraft", "static-1-quorum", controller).items(), key=_last_offset)
        segment = logs / str(controller) / "__cluster_metadata-0" / name
        data = segment.read_bytes()
        segment.write_bytes(data + batch([said], next_offset(data), rows[-1].epoch, rows[-1].time + 1))
    return settings_content(source, folder, kraft={"folders": [str(logs)]})


Told = Callable[[str], Audit]


@pytest.fixture
def told(audited: Told) -> Told:
    return lambda stage: audited(f"{RELEASE}-{stage}")


def check(audit: Audit, check_id: str) -> CheckResult:
    return next(result for result in audit.report.checks if result.id == check_id)


def operations(stage: str) -> str:
    return gzip.decompress((capture(RELEASE, stage) / "operations.jsonl.gz").read_bytes()).decode()


@pytest.mark.parametrize("stage", STAGES)
def test_the_release_is_known_and_its_own_snapshots_are_replayed(told: Told, stage: str) -> None:
    report = told(stage).report
    assert report.kafka_version == "4.4"
    assert check(told(stage), "CAP-08").verdict in ("pass", "not_applicable")
    assert check(told(stage), "FEAT-03").verdict == "pass"
    assert check(told(stage), "UPG-01").verdict != "unknown"


def test_a_healthy_cluster_may_be_upgraded_but_for_what_a_restart_interrupts(told: Told) -> None:
    assert told("1-healthy").report.gates["upgrade"].blocking == ["UPG-04"]
    newest = check(told("1-healthy"), "UPG-01")
    assert newest.verdict == "pass"
    assert newest.evidence == ["metadata.version is at 4.4-IV2 (33), the newest of Kafka 4.4"]


def test_a_ghost_is_told_with_the_command_that_removes_it(told: Told) -> None:
    ghosts = check(told("11-ghosts"), "QRM-01")
    assert ghosts.verdict == "warn"
    assert ghosts.evidence == [
        "controller 3003 is registered but is not a voter and supports metadata.version up to 4.4-IV2 (33);"
        " kafka-cluster.sh unregister-controller --id 3003 unregisters it once it is stopped"
    ]


def test_an_unregistered_controller_is_gone(told: Told) -> None:
    audit = told("13-controller-unregistered")
    assert check(audit, "QRM-01").verdict == "pass"
    health = audit.report.kraft
    assert health is not None
    assert [member.controller_id for member in health.quorum] == [3000, 3001, 3002]


def test_an_upgrade_is_blocked_in_the_controllers_own_words_and_open_once_the_ghost_was_started(told: Told) -> None:
    gate = told("upgrade-2-blocked-by-ghost").report.gates["upgrade"]
    assert (gate.verdict, gate.blocking) == ("no_go", ["UPG-01", "UPG-04"])
    words = gate.explanation.partition("; ")[0]
    assert words in operations("upgrade-2-blocked-by-ghost")
    assert words.endswith(
        "Invalid update version 33 for feature metadata.version. Controller 3003 only supports versions 1-21"
    )
    done = told("upgrade-3-done").report
    assert done.kraft is not None
    assert done.kraft.metadata_version == "4.4-IV2 (33)"
    assert done.gates["upgrade"].blocking == ["UPG-04"]


def test_there_is_no_way_back_to_4_3(told: Told) -> None:
    for stage in ("upgrade-3-done", "13-controller-unregistered"):
        found = told(stage).report.downgrade
        assert found is not None
        verdicts = {target.release: target for target in found.targets}
        assert verdicts["4.3"].verdict == "blocked"
        assert any(
            "Unsupported metadata.version downgrade from 33 to 30" in line.reason for line in verdicts["4.3"].reasons
        )
        assert found.floor == "4.4"


def test_a_static_quorum_is_at_no_kraft_version_whatever_a_record_says(audited: Told) -> None:
    report = audited("4.3.1-static-misled").report
    assert report.kraft is not None
    assert (report.kraft.kraft_version, "kraft.version" in report.kraft.features) == (0, False)
    assert {line.finalised_level for line in report.features if line.feature == "kraft.version"} == {None}
    assert report.downgrade is not None
    assert not [
        reason.reason
        for target in report.downgrade.targets
        for reason in target.reasons
        if reason.reason.startswith("kraft.version")
    ]


def test_the_command_downgrade_says_what_the_report_says_of_a_misleading_record(audited: Told) -> None:
    """Of all captures as they are, test_commands_agree asks the same."""
    audit = audited("4.3.1-static-misled")
    report = audit.report.downgrade
    assert report is not None
    past = past_run(Finished(audit.warehouse, audit.cluster), audit.run_id)
    state = state_of(past_cluster(past))
    assert [release_name(release) for release in targets(state)] == [target.release for target in report.targets]
    floor = floor_of(state)
    assert (None if floor is None else release_name(floor)) == report.floor
    for release, target in zip(targets(state), report.targets, strict=True):
        judged = readiness(state, release)
        lines = [line for line in judged.lines if line.outcome is not LineOutcome.SAFE] or list(judged.lines)
        assert judged.verdict.value == target.verdict, release
        assert [(line.outcome.value, line.what, line.evidence) for line in lines] == [
            (reason.outcome, reason.reason, reason.evidence) for reason in target.reasons
        ]


@pytest.mark.parametrize("stage", STAGES)
def test_as_many_partitions_lack_a_leader_as_an_independent_replay_says(told: Told, stage: str) -> None:
    state = json.loads((capture(RELEASE, stage) / "expected.json").read_text())["state"]
    leaderless = sum(each["value"]["leader"] == -1 for each in state["partitions"])
    found = check(told(stage), "ISR-16")
    assert (found.verdict, found.violations) == ("fail" if leaderless else "pass", leaderless)
    health = told(stage).report.kraft
    assert health is not None
    assert (health.partitions, health.leaderless) == (len(state["partitions"]), leaderless)
    assert health.brokers == len(state["brokers"])


@pytest.mark.parametrize(
    ("stage", "partitions"),
    [
        ("1-healthy", set()),
        ("4-elr-leaderless", set()),
        ("8-unclean", {"unclean-t/0", "unclean-t/1", "forced/0", "forced/1"}),
        ("12-broker-unregistered", set()),
        ("upgrade-1-before", {"unclean-t/0", "unclean-t/1"}),
    ],
)
def test_elections_that_may_have_lost_data_are_those_that_were_made(
    told: Told, stage: str, partitions: set[str]
) -> None:
    elections = check(told(stage), "ISR-12")
    unhealed = [text for text in elections.evidence if "unclean election" in text and not text.startswith("healed")]
    assert {text.partition(":")[0] for text in unhealed} == partitions
    assert elections.verdict == ("warn" if partitions else "pass")


def test_a_broker_that_is_down_has_left_isrs_and_leaders_wait_for_it(told: Told) -> None:
    churn = check(told("2-isr-churn"), "ISR-08")
    assert churn.evidence[0].startswith("broker 2 left the ISR of")
    assert churn.evidence[0].endswith("is not in sync")
    waiting = check(told("2-isr-churn"), "ELR-03")
    assert waiting.evidence == [
        f"{name}: the ISR is empty, waiting for one of [2]" for name in ("audit.log_v1-raw/1", "solo/2")
    ]


def test_an_unregistered_broker_is_gone_and_the_controller_stays(told: Told) -> None:
    audit = told("12-broker-unregistered")
    assert check(audit, "QRM-02").verdict == "pass"
    assert check(audit, "QRM-01").evidence[0].startswith("controller 3003 is registered but is not a voter")


def test_a_static_quorum_of_4_4_and_a_cluster_at_the_level_before_it(told: Told) -> None:
    static = told("static-1-quorum").report
    assert static.kraft is not None
    assert (static.kraft.kraft_version, "kraft.version" in static.kraft.features) == (0, False)
    assert [result.id for result in static.checks if result.verdict in ("warn", "fail")] == ["UPG-04"]
    level = check(told("upgrade-1-before"), "UPG-01")
    assert level.verdict == "pass"
    assert level.evidence[0] == "metadata.version may be raised from 3.9-IV0 (21) to 4.4-IV2 (33)"
