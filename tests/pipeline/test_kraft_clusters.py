"""One cluster's life without ZooKeeper, stage by stage: what its README says happened is what the audit tells.

The captures are of Kafka 4.3.1; two more lives are those of a quorum that is upgraded, and of one that becomes dynamic.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.report import CheckResult
from tests.captures import capture
from tests.pipeline.audits import Audit, Content, Preparation, in_fleet, settings_content

RELEASE = "4.3.1-kraft"
STAGES = (
    "1-healthy",
    "2-isr-churn",
    "4-elr-leaderless",
    "5-elr-clean-election",
    "6-elr-member-lost",
    "7-elr-cleared",
    "8-unclean",
    "9-unclean-healed",
    "10-four-voters",
    "11-ghosts",
    "upgrade-2-blocked-by-ghost",
    "upgrade-3-done",
    "static-1-quorum",
    "static-2-to-dynamic",
    "static-3-log-starts-at-snapshot",
)
HEALTHY = ("1-healthy", "9-unclean-healed", "10-four-voters", *(name for name in STAGES if name.startswith("static")))

pytestmark = pytest.mark.slow


def _prepared(stage: str) -> Preparation:
    def prepare(folder: Path) -> Content:
        return settings_content(capture(RELEASE, stage), folder)

    return prepare


for _stage in STAGES:
    in_fleet(f"{RELEASE}-{_stage}")(_prepared(_stage))

Told = Callable[[str], Audit]


@pytest.fixture
def told(audited: Told) -> Told:
    return lambda stage: audited(f"{RELEASE}-{stage}")


def check(audit: Audit, check_id: str) -> CheckResult:
    return next(result for result in audit.report.checks if result.id == check_id)


# No topic of theirs has one replica, or needs all of its replicas.
UNINTERRUPTED = ("static-2-to-dynamic", "static-3-log-starts-at-snapshot")


@pytest.mark.parametrize("stage", UNINTERRUPTED)
def test_a_healthy_cluster_is_clean_and_may_be_upgraded(told: Told, stage: str) -> None:
    report = told(stage).report
    assert (report.verdict, report.exit_code, report.gates["upgrade"].verdict) == ("clean", 0, "go")
    assert [result.id for result in report.checks if result.verdict in ("unknown", "warn", "fail")] == []


@pytest.mark.parametrize("stage", [stage for stage in HEALTHY if stage not in UNINTERRUPTED])
def test_a_healthy_cluster_may_be_upgraded_but_for_what_a_restart_interrupts(told: Told, stage: str) -> None:
    """Its topics with one replica, and those that need all of theirs, are what the operator made them."""
    report = told(stage).report
    gate = report.gates["upgrade"]
    assert (report.verdict, report.exit_code, gate.verdict, gate.blocking) == ("warnings", 10, "no_go", ["UPG-04"])
    assert [result.id for result in report.checks if result.verdict in ("unknown", "warn", "fail")] == ["UPG-04"]
    assert check(told(stage), "UPG-04").evidence[0].endswith("would have no leader while a broker restarts")


def test_churn_is_told_by_broker_and_the_one_that_is_down_is_a_warning(told: Told) -> None:
    churn = check(told("2-isr-churn"), "ISR-08")
    assert (churn.verdict, churn.violations) == ("warn", 1)
    assert churn.evidence[0].startswith("broker 2 left the ISR of")
    assert churn.evidence[0].endswith("is not in sync")
    assert any(text.startswith("broker 1 left") and text.endswith("is back in sync") for text in churn.evidence)


def test_partitions_without_a_leader_are_an_error_and_wait_for_their_eligible_replicas(told: Told) -> None:
    audit = told("4-elr-leaderless")
    offline = check(audit, "ISR-16")
    assert (offline.verdict, offline.violations, audit.report.exit_code) == ("fail", 43, 20)
    assert any("waiting for one of [0, 1]" in text for text in offline.evidence)
    assert audit.report.gates["upgrade"].verdict == "no_go"


def test_a_leader_out_of_the_eligible_replicas_is_no_election_that_can_lose_data(told: Told) -> None:
    assert check(told("5-elr-clean-election"), "ISR-12").verdict == "pass"


def test_last_known_leaders_are_told_with_their_offsets(told: Told) -> None:
    elections = check(told("6-elr-member-lost"), "ISR-12")
    assert (elections.verdict, elections.violations) == ("warn", 6)
    told_offsets = {int(text.partition("at offset ")[2].partition(";")[0]) for text in elections.evidence[:6]}
    assert told_offsets == set(range(1957, 1963))
    assert all("election of the last known leader of broker 0" in text for text in elections.evidence[:6])


def test_partitions_that_nobody_may_lead_any_more_are_told_first(told: Told) -> None:
    offline = check(told("7-elr-cleared"), "ISR-16")
    assert offline.violations == 3
    assert offline.evidence[:2] == [
        "3 of them have no leader for good",
        "elr-t/0: no leader for good, although all its replicas are running: only an unclean election helps",
    ]


def test_unclean_elections_are_open_until_they_are_healed_and_told_afterwards(told: Told) -> None:
    before, after = check(told("8-unclean"), "ISR-12"), check(told("9-unclean-healed"), "ISR-12")
    unclean = [text for text in before.evidence if "unclean election" in text and "healed" not in text]
    assert {text.partition(":")[0] for text in unclean} == {"unclean-t/0", "unclean-t/1", "forced/0", "forced/1"}
    assert {int(text.partition("at offset ")[2].partition(";")[0]) for text in unclean} == {2405, 2406, 2465, 2466}
    assert after.verdict == "pass"
    assert {f"healed since: {text}" for text in unclean} <= set(after.evidence)


def test_ghosts_and_what_is_drained_are_told(told: Told) -> None:
    audit = told("11-ghosts")
    assert check(audit, "QRM-01").evidence[0].startswith("controller 3003 is registered but is not a voter")
    assert check(audit, "QRM-02").evidence[0].startswith("broker 3 is fenced and has no replicas")
    assert check(audit, "ISR-16").evidence[0].startswith("solo/2: no leader")
    assert check(audit, "ISR-12").verdict == "pass", "what was healed at stage 9 stays so"


def test_an_upgrade_is_blocked_in_the_controllers_own_words_and_open_once_the_ghost_was_started(told: Told) -> None:
    blocked = told("upgrade-2-blocked-by-ghost").report
    told_by_kafka = capture(RELEASE, "upgrade-2-blocked-by-ghost") / "operations.jsonl.gz"
    operations = gzip.decompress(told_by_kafka.read_bytes()).decode()
    gate = blocked.gates["upgrade"]
    assert (gate.verdict, gate.blocking, blocked.exit_code) == ("no_go", ["UPG-01", "UPG-04"], 10)
    words = gate.explanation.partition("; ")[0]
    assert words in operations
    assert words.endswith("Controller 3003 only supports versions 1-21")
    assert told("upgrade-3-done").report.gates["upgrade"].blocking == ["UPG-04"]


@pytest.mark.parametrize(
    ("stage", "kraft_version"), [("static-1-quorum", 0), ("static-2-to-dynamic", 1), ("1-healthy", 1)]
)
def test_both_kinds_of_quorum_are_known(told: Told, stage: str, kraft_version: int) -> None:
    health = told(stage).report.kraft
    assert health is not None
    assert health.kraft_version == kraft_version
    assert [(member.controller_id, member.voter) for member in health.quorum] == [
        (node, True) for node in (3000, 3001, 3002)
    ]
    assert all((member.directory_id is not None) == bool(kraft_version) for member in health.quorum)
