"""What a report says of a cluster that has nothing to do with a migration."""

from __future__ import annotations

from dataclasses import replace

from schemas.report import CheckResult, Divergences, Gate, KraftHealth, Lag, QuorumMember, Report
from tests.report.samples import healthy
from transforms.report.banner import banner_of, shown_gates
from transforms.report.html import gate_views, render_html
from transforms.report.json import from_json, to_json
from transforms.report.mail import render_mail
from transforms.report.text import render_text

NOT_ASKED = Gate("not_applicable", [], "this cluster does not migrate")
MIGRATION = dict.fromkeys(("start", "dual_write", "finalize", "rollback"), NOT_ASKED)
REFUSED = "Invalid update version 30 for feature metadata.version. Controller 3003 only supports versions 1-21"
VOTERS = [
    QuorumMember(node, True, node == 3001, True, f"disk-{node}", f"127.0.0.1:{node}") for node in (3000, 3001, 3002)
]
HEALTH = KraftHealth(
    metadata_version="4.3-IV0 (30)",
    kraft_version=1,
    features={"group.version": 1, "metadata.version": 30},
    quorum=VOTERS,
    partitions=97,
    leaderless=0,
    under_replicated=0,
    recovering=0,
    not_preferred=0,
    brokers=3,
    at_work=3,
)


def clean() -> Report:
    base = healthy()
    return replace(
        base,
        mode="kraft_only",
        migration=replace(base.migration, phase="kraft", state="NONE", kraft_metadata_offset=None),
        lag=Lag(None, None, None),
        divergences=Divergences(),
        gates={**MIGRATION, "upgrade": Gate("go", [], "metadata.version is at 4.3-IV0 (30), the newest of Kafka 4.3")},
        checks=[
            CheckResult(
                "ISR-16", "pass", 0, gates=["upgrade"], severity="critical", title="Every partition has a leader"
            )
        ],
        defects=[],
        metrics=[],
        kraft=HEALTH,
    )


def offline() -> Report:
    lost = CheckResult(
        "ISR-16",
        "fail",
        43,
        ["t/0: no leader, waiting for one of [0]"],
        ["upgrade"],
        "critical",
        "Every partition has a leader",
        "Start the brokers.",
    )
    return replace(
        clean(),
        verdict="errors",
        exit_code=20,
        checks=[lost],
        gates={**MIGRATION, "upgrade": Gate("no_go", ["ISR-16"], lost.evidence[0])},
        kraft=replace(HEALTH, leaderless=43, under_replicated=97, at_work=1),
    )


def blocked() -> Report:
    too_old = CheckResult(
        "UPG-01", "fail", 1, [REFUSED], ["upgrade"], "error", "Every node supports it", "Start 3003 once."
    )
    ghost = QuorumMember(3003, False, False, True)
    return replace(
        clean(),
        verdict="warnings",
        exit_code=10,
        checks=[too_old],
        gates={**MIGRATION, "upgrade": Gate("no_go", ["UPG-01"], REFUSED)},
        kraft=replace(HEALTH, quorum=[*VOTERS, ghost], metadata_version="3.9-IV0 (21)"),
    )


def test_a_healthy_cluster_is_told_so_and_that_it_may_be_upgraded() -> None:
    banner = banner_of(clean())
    assert (banner.tone, banner.title) == ("good", "The KRaft cluster is healthy")
    assert banner.sentences[-1] == "It can be upgraded."
    assert banner.actions == []


def test_partitions_without_a_leader_are_the_headline() -> None:
    banner = banner_of(offline())
    assert (banner.tone, banner.title) == ("bad", "43 partitions without a leader")
    assert "1 of 3 brokers running" in banner.sentences[0]
    assert banner.actions[0].what == "Start the brokers."


def test_a_refused_upgrade_is_told_in_kafkas_words_and_is_no_error() -> None:
    banner = banner_of(blocked())
    assert (banner.tone, banner.title) == ("warn", "An upgrade is blocked")
    assert REFUSED in " ".join(render_text(blocked()).split())
    assert "registered but not a voter: 3003" in render_text(blocked())


def test_the_migrations_gates_and_figures_are_left_out() -> None:
    for report in (clean(), offline(), blocked()):
        assert shown_gates(report) == ["upgrade"]
        assert [gate.title for gate in gate_views(report)] == ["Upgrade Kafka"]
        text, html, mail = render_text(report), render_html(report), render_mail(report).as_string()
        assert "finalize" not in text
        for word in ("/migration", "Dual write", "Stay in dual write"):
            assert word not in text
            assert word not in html
            assert word not in mail
    assert 'id="quorum"' in render_html(clean())
    assert "disk-3001" in render_html(clean())


def test_a_migration_has_its_own_gates_and_after_it_the_upgrade_too() -> None:
    base = healthy()
    asked = {**base.gates, "upgrade": Gate("not_applicable")}
    assert shown_gates(replace(base, gates=asked)) == ["start", "dual_write", "finalize", "rollback"]
    done = replace(base, migration=replace(base.migration, phase="finalized"), gates={**asked, "upgrade": Gate("go")})
    assert shown_gates(done)[-1] == "upgrade"
    assert [gate.title for gate in gate_views(base)][-1] == "Roll back"


def test_it_is_read_back_as_it_was_written() -> None:
    assert from_json(to_json(blocked())) == blocked()
