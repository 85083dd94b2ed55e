"""The terminal verdict: narrow, complete, and nothing a cluster named can move the cursor."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.report import CheckResult, DivergenceRow, Divergences, Gate, Lag, Report
from tests.report.samples import SAMPLES, TITLES, defective, healthy, lagging, not_ready, uncompared
from transforms.report.banner import banner_of
from transforms.report.printable import key_text, value_text, visible
from transforms.report.text import render_text


@pytest.mark.parametrize("name", SAMPLES)
def test_lines_fit_and_hold_no_control_characters(name: str) -> None:
    text = render_text(SAMPLES[name]())
    assert max(map(len, text.splitlines())) <= 100
    assert not [c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and c != "\n"]
    assert text.rstrip().endswith(f"Exit code {SAMPLES[name]().exit_code}")


def test_a_healthy_verdict() -> None:
    text = render_text(healthy())
    assert text.startswith("CLEAN: Dual write is healthy\n")
    assert "Lag          0 records, alive" in text
    assert "  finalize   NO-GO     FIN-01, FIN-02" in text
    assert "  rollback   GO" in text
    assert "Differences  0, of them 0 defects" in text


def test_a_blocked_start_names_its_check_and_the_remedy() -> None:
    text = render_text(not_ready())
    assert text.startswith("ERRORS: The migration cannot start\n")
    assert "  start      NO-GO     START-02" in text
    assert "  1. Start broker 3 with zookeeper.metadata.migration.enable=true, or move its replicas. (START-02)" in text
    assert "  FAIL     START-02  Every replica's broker is registered for migration (1 violation)" in text


def test_defects_show_both_values_offset_and_zxid() -> None:
    text = render_text(defective())
    assert "  lost_write  client quotas  client-id=app-9 · producer_byte_rate\n" in text
    assert "ZooKeeper: 11.0 | KRaft: absent | zxid 0x32c, offset 318, new\n" in text


def test_stopped_dual_write_is_said_although_lag_reads_zero() -> None:
    report = healthy()
    stopped = replace(report, verdict="errors", exit_code=20, lag=replace(report.lag, alive=False))
    text = render_text(stopped)
    assert text.startswith("ERRORS: Dual write has stopped\n")
    assert "nothing writes to ZooKeeper" in text
    assert "ZooKeeper holds every committed record" not in text


def first_lines(report: Report) -> str:
    """The title and the sentences under it, in one line."""
    return " ".join(render_text(report).split("\n\n", maxsplit=1)[0].split())


@pytest.mark.parametrize(
    ("phase", "start"),
    [
        ("zookeeper", "CLEAN: No migration is in progress The cluster runs on ZooKeeper"),
        ("waiting", "CLEAN: Waiting for the migration to start "),
        ("dual_write", "CLEAN: Dual write is healthy KRaft is in charge"),
        ("finalized", "CLEAN: The migration is finalised "),
        ("rolled_back", "CLEAN: The cluster was rolled back to ZooKeeper A ZooKeeper broker is the controller again"),
        ("kraft", "CLEAN: The cluster runs on KRaft Its log records no migration"),
    ],
)
def test_every_phase_has_its_words(phase: str, start: str) -> None:
    report = healthy()
    report = replace(report, migration=replace(report.migration, phase=phase))
    assert first_lines(report).startswith(start)
    told = "dual_write" if phase == "dual_write" else phase.replace("_", " ")
    assert (
        "State        MIGRATION\n" if phase == "dual_write" else f"State        MIGRATION ({told})\n"
    ) in render_text(report)


def test_a_start_that_is_blocked_is_not_called_clean() -> None:
    report = replace(not_ready(), verdict="clean", exit_code=0)
    assert first_lines(report).startswith(
        "NOT READY: The migration cannot start yet The cluster still runs on ZooKeeper"
    )
    assert "Repair before the load begins: START-02." in first_lines(report)
    assert banner_of(report).tone == "warn"


def test_warnings_outside_dual_write_name_the_phase() -> None:
    report = lagging()
    report = replace(report, lag=Lag(None, None, None), migration=replace(report.migration, phase="rolled_back"))
    assert first_lines(report).startswith("WARNINGS: The cluster was rolled back to ZooKeeper: 1 warning ")


def test_sides_that_were_not_compared_are_not_told_as_equal() -> None:
    text = render_text(uncompared())
    assert "Differences  not compared\n" in text
    assert "0 defects" not in text
    assert "ZooKeeper holds every committed record" not in text
    assert "The two sides could not be compared, so it is unknown whether they differ." in first_lines(uncompared())
    warned = replace(uncompared(), verdict="warnings", exit_code=10)
    assert "No defects" not in first_lines(warned)


def test_dual_write_that_was_not_judged_is_not_called_healthy() -> None:
    report = healthy()
    unjudged = replace(report, mode="kraft_only", gates={**report.gates, "dual_write": Gate("unknown")})
    assert first_lines(unjudged).startswith("CLEAN: Nothing wrong was found, but dual write was not judged")


def test_a_failed_check_of_dual_write_is_said_instead_of_what_should_be() -> None:
    report = healthy()
    owner = CheckResult("DUR-02", "fail", 1, [], ["dual_write", "finalize"], "error", TITLES["DUR-02"], "Look.")
    lines = first_lines(
        replace(
            report,
            verdict="errors",
            exit_code=20,
            checks=[*report.checks, owner],
            gates={**report.gates, "dual_write": Gate("no_go", ["DUR-02"])},
        )
    )
    assert lines.startswith("ERRORS: Dual write is unhealthy This check fails: “/controller is held by")
    assert "writes every change" not in lines


@pytest.mark.parametrize(
    ("blocking", "said"),
    [
        (["CAP-02"], "The sources have faults"),
        (["CAP-02", "CAP-05"], "The sources have faults"),
        (["CAP-02", "DUR-02"], "Dual write is unhealthy"),
    ],
)
def test_a_damaged_copy_is_no_unhealthy_dual_write(blocking: list[str], said: str) -> None:
    """A bit flipped in one controller's copy: the headline sent people to look at dual write."""
    report = healthy()
    failed = [CheckResult(name, "fail", 1, [], ["dual_write"], "error", "It holds", "Look.") for name in blocking]
    others = [check for check in report.checks if check.id not in blocking]
    gates = {**report.gates, "dual_write": Gate("no_go", blocking)}
    lines = first_lines(replace(report, verdict="errors", exit_code=20, checks=[*others, *failed], gates=gates))
    assert lines.startswith(f"ERRORS: {said} This check fails: “It holds”")


def test_a_requested_gate_that_waits_is_named() -> None:
    report = replace(healthy(), verdict="errors", exit_code=20)
    assert first_lines(report).startswith("ERRORS: 1 gate closed: finalise")
    assert "What to do\n  1. Restart brokers 0, 1, 2" in render_text(report)


def test_stopped_dual_write_with_lag_says_both() -> None:
    report = lagging()
    text = render_text(replace(report, lag=replace(report.lag, alive=False)))
    assert text.startswith("WARNINGS: Dual write has stopped: ZooKeeper is 11 records behind KRaft\n")
    assert "11 records of the log not in ZooKeeper yet" in " ".join(text.split())
    assert "a lag of 0" not in text


def test_a_missing_row_shows_what_the_other_side_holds() -> None:
    held = {"replicas": [2, 0], "adding_replicas": [], "leader": 0, "rack": None, "name": ""}
    row = DivergenceRow("partitions", {"topic": "a", "partition": 0}, None, "kraft_only", None, held, "lag", "warning")
    report = replace(healthy(), divergences=Divergences(1, {"lag": 1}, rows=[row, replace(row, kraft_value={})]))
    text = render_text(report)
    assert "ZooKeeper: absent | KRaft: leader=0, replicas=[2, 0] | new" in text
    assert "ZooKeeper: absent | KRaft: present | new" in text


@pytest.mark.parametrize(
    ("entity", "key", "shown"),
    [
        ("topics", {"topic": "orders"}, "orders"),
        ("partitions", {"topic": "orders", "partition": 3}, "orders-3"),
        (
            "configs",
            {"resource_type": "TOPIC", "resource_name": "a", "config": "retention.ms"},
            "TOPIC a · retention.ms",
        ),
        ("configs", {"resource_type": "BROKER", "resource_name": "", "config": "x"}, "BROKER cluster-wide default · x"),
        (
            "client_quotas",
            {"entity": {"user": "a", "client-id": None}, "quota": "r"},
            "user=a, client-id=<default> · r",
        ),
        ("scram_credentials", {"user": "a", "mechanism": "SCRAM-SHA-256"}, "a · SCRAM-SHA-256"),
        ("producer_ids", {}, "next producer id"),
        ("partitions", {"odd": 1}, "odd=1"),
        ("client_quotas", {"entity": None, "quota": "r"}, "entity=absent, quota=r"),
        ("unheard_of", {"b": 1, "a": "x"}, "a=x, b=1"),
    ],
)
def test_keys_read_as_operators_say_them(entity: str, key: dict[str, object], shown: str) -> None:
    assert key_text(entity, key) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "absent"),
        ("", '""'),
        ({}, "present"),
        (11.0, "11.0"),
        (True, "true"),
        ([0, 1, 2], "[0, 1, 2]"),
        ({"b": 1, "a": "x"}, "a=x, b=1"),
        ("a\u202eb\x00c\u200b\ud800\u00a0d", "a\\u202eb\\x00c\\u200b\\ud800\\xa0d"),
        ("Zürich 東京", "Zürich 東京"),
    ],
)
def test_values_are_shown_whole_and_visible(value: object, shown: str) -> None:
    assert value_text(value) == shown


def test_long_text_keeps_both_ends_and_counts_the_rest() -> None:
    assert visible("a" * 1000 + "end", 100) == "a" * 75 + "…[903 more characters]…" + "a" * 22 + "end"


def test_a_text_is_cut_only_if_that_makes_it_shorter() -> None:
    texts = ["a" * length for length in range(1, 400)]
    assert all(len(visible(text, 100)) <= len(text) for text in texts)
    assert all(len(visible(text, 100)) <= 100 + len("…[300 more characters]…") for text in texts)


@settings(max_examples=200)
@given(st.text())
def test_visible_text_has_no_unshowable_character_and_stays_as_it_is(text: str) -> None:
    shown = visible(text, 10_000)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]
    assert visible(shown, 10**6) == shown


def test_nobody_is_told_to_stop_controllers_that_a_rollback_has_stopped() -> None:
    """START-07 only warns then, and its remedy is for controllers that wait."""
    leftover = CheckResult("START-07", "warn", 1, ["offset 326"], ["start"], "critical", remedy="Stop the controllers.")
    removed = CheckResult("RB-05", "warn", 1, ["offset 326"], [], "warning", remedy="Delete /migration.")
    report = lagging()
    rolled_back = replace(report, checks=[leftover, removed], migration=replace(report.migration, phase="rolled_back"))
    assert [action.what for action in banner_of(rolled_back).actions] == ["Delete /migration."]
