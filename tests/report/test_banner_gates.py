"""What the headline says of the gravest moments: metadata gone, dual write silent, stopped, or stopped on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from schemas.report import CheckResult, Report
from tests.report.fleets import run_of
from tests.report.samples import defective, healthy, lagging, not_ready
from transforms.report.banner import banner_of
from transforms.report.mail_policy import is_red

LEFTOVER = CheckResult(
    "START-07",
    "fail",
    2,
    ["/migration holds offset 384"],
    ["start"],
    "critical",
    "No leftover",
    "Stop the controllers.",
)


def emptied() -> Report:
    base = not_ready()
    return replace(
        base,
        migration=replace(base.migration, kraft_metadata_offset=384),
        checks=[LEFTOVER],
        counts=base.counts | {"topics": {"zookeeper": 0, "kraft": 0}},
    )


def test_metadata_that_is_gone_is_said_to_be_gone_and_where_it_is() -> None:
    banner = banner_of(emptied())
    assert banner.title == "The metadata is gone from ZooKeeper"
    assert "nothing is copied yet" not in " ".join(banner.sentences)
    assert "snapshots and transaction logs" in banner.actions[0].what
    assert "earlier controllers" in banner.actions[0].what
    full = replace(emptied(), counts=not_ready().counts)
    assert banner_of(full).title == "Stop the controllers: they would empty ZooKeeper"
    assert banner_of(full).evidence == ["/migration holds offset 384"]
    unread = replace(full, migration=replace(full.migration, kraft_metadata_offset=None))
    assert banner_of(unread).title == "The migration cannot start"


def test_while_a_controller_holds_zookeeper_and_no_load_has_ended_nobody_is_said_to_wait() -> None:
    """All controllers of a real 3.5.1 were killed during the load."""
    claimed = CheckResult(
        "START-22", "unknown", 0, [], ["start"], "error", "No load has broken off", "Search the logs."
    )
    warned = CheckResult("START-17", "warn", 1, ["KAFKA-15098"], ["start"], "warn", "No known defect", "Upgrade.")
    for verdict in ("warnings", "errors"):
        banner = banner_of(replace(not_ready(), verdict=verdict, checks=[claimed, warned]))
        assert banner.title == "The load runs, or has broken off"
        assert "ZooKeeper's brokers have no controller" in banner.sentences[0]
        assert [action.what for action in banner.actions] == ["Search the logs.", "Upgrade."]


def test_of_a_log_that_can_not_be_used_nothing_is_said_to_stand() -> None:
    base = not_ready()
    unusable = CheckResult("CAP-03", "fail", 1, ["starts at 90"], ["start"], "error", "The log starts at 0", "Copy it.")
    migration = replace(base.migration, state="NONE", phase="zookeeper", copy_used=None)
    banner = banner_of(replace(base, migration=migration, checks=[unusable]))
    assert banner.title == "The metadata log cannot be used"
    assert "nothing has been copied yet" not in " ".join(banner.sentences)


def test_a_moment_of_silence_is_not_called_stopped() -> None:
    base = lagging()
    silent = replace(base, lag=replace(base.lag, alive=False, state="silent"))
    assert banner_of(silent).title == "ZooKeeper is 11 records behind KRaft"
    assert "Audit again" in " ".join(banner_of(silent).sentences)
    stopped = replace(base, lag=replace(base.lag, alive=False, state="stopped"))
    assert banner_of(stopped).title == "Dual write has stopped: ZooKeeper is 11 records behind KRaft"


def test_controllers_that_were_stopped_with_everything_mirrored_are_no_fault() -> None:
    base = healthy()
    report = replace(base, verdict="warnings", lag=replace(base.lag, alive=False, state="stopped in order"))
    assert banner_of(report).title == "The controllers are stopped, and ZooKeeper has everything"
    assert "would lose" not in " ".join(banner_of(report).sentences)


def blocked_and_clean() -> Report:
    return replace(not_ready(), verdict="clean", exit_code=0)


@pytest.mark.parametrize(
    ("report", "is_sent"),
    [(healthy, False), (lagging, True), (defective, True), (not_ready, True), (blocked_and_clean, True)],
)
def test_red_is_a_warning_an_error_or_a_start_that_is_blocked(report: Callable[[], Report], is_sent: bool) -> None:
    assert is_red(run_of(report(), "c")) is is_sent
