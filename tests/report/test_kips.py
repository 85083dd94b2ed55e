"""The sections on the partitions' history, the features and the way back: short, escaped, the worst first."""

from __future__ import annotations

from dataclasses import replace

from schemas.report import (
    DowngradeReadiness,
    DowngradeReason,
    DowngradeTarget,
    FeatureLine,
    IsrHistory,
    IsrLine,
    Report,
)
from tests.report.samples import healthy
from transforms.report.gold_rows import rows_of_kips
from transforms.report.html import render_html
from transforms.report.json import from_json, to_json
from transforms.report.kips import MOST_LINES, kips_view

HOSTILE = "<script>alert(1)</script>"


def report() -> Report:
    lines = [
        IsrLine("partition", HOSTILE, 3, hour=None, leaderless_ms=90_000, place=1),
        *[
            IsrLine("partition", "orders", n, hour=3_600_000, shrinks=1, expansions=2, flaps=7, place=n + 2)
            for n in range(40)
        ],
        IsrLine("leadership", broker_id=2, leads=1, preferred=30, place=1),
    ]
    refused = DowngradeReason("blocked", "metadata.version has to go back", "FEATURE_LEVEL_RECORD, offset 4")
    return replace(
        healthy(),
        isr_history=IsrHistory(24, {"partition": 300, "leadership": 1}, lines),
        features=[
            FeatureLine("metadata.version", "broker", 0, 7, 30, 30),
            FeatureLine("metadata.version", "broker", 1, 7, 30, 30, fenced=True),
            FeatureLine("metadata.version", "controller", 3003, 1, 21, 30, "controller 3003 supports less"),
            FeatureLine("group.version", "broker", 0, 0, 1, None),
            FeatureLine("group.version", "controller", 3003, 0, 0, None),
        ],
        downgrade=DowngradeReadiness(
            "kraft",
            "3.7",
            [
                DowngradeTarget("4.2", "safe", [DowngradeReason("safe", "it reads them", "offset 4")]),
                DowngradeTarget("4.1", "blocked", [refused]),
                DowngradeTarget("4.0", "blocked", [refused]),
            ],
            ["broker 1: inter.broker.protocol.version is not set"],
        ),
    )


def test_lines_are_bounded_and_say_how_many_there_are() -> None:
    view = kips_view(report())
    assert (len(view.partitions.shown), view.partitions.total) == (MOST_LINES, 300)
    first, second = view.partitions.shown[:2]
    assert (first.when, first.seen, first.tone) == ("at the end", "90 s without a leader", "bad")
    assert second.seen == "1 shrink, 2 expansions, one broker left or joined 7 times within an hour"
    assert [line.seen for line in view.brokers.shown] == ["leads 1 partition, is the preferred leader of 30"]


def test_settings_and_releases_that_are_left_out_are_counted() -> None:
    releases = [
        DowngradeTarget(f"3.{number}", "loses", [DowngradeReason("loses", f"{number}", "")]) for number in range(9)
    ]
    settings = [f"topic t{number}: message.format.version x is not a version" for number in range(MOST_LINES + 25)]
    page = render_html(replace(report(), downgrade=DowngradeReadiness("zookeeper", None, releases, settings)))
    assert "25 more in report.json" in page
    assert "3.5 loses and 3 more</summary>" in page


def test_features_with_a_gap_come_first_and_like_nodes_stand_together() -> None:
    first, second = kips_view(report()).features
    assert (first.feature, first.finalised) == ("metadata.version", "4.3-IV0")
    assert first.supported == ["brokers 0, 1 (fenced): 3.3-IV3 to 4.3-IV0", "controller 3003: 3.0-IV1 to 3.9-IV0"]
    assert first.gaps.shown == ["controller 3003 supports less"]
    assert (second.finalised, second.supported[1]) == ("not finalised", "controller 3003: not supported")


def test_releases_with_the_same_answer_stand_together() -> None:
    assert [(each.releases, each.verdict) for each in kips_view(report()).downgrade] == [
        ("4.2", "safe"),
        ("4.1 to 4.0", "blocked"),
    ]


def test_each_release_is_shown_with_its_own_steps() -> None:
    """Releases in a row share the evidence, and not the level that metadata.version must be lowered to, nor what is lost."""
    level = "FEATURE_LEVEL_RECORD metadata.version, offset 4"

    def target(release: str, lowered: str, *more: DowngradeReason) -> DowngradeTarget:
        first = DowngradeReason("blocked", f"metadata.version must be lowered to {lowered} first", level)
        return DowngradeTarget(release, "blocked", [first, *more])

    lost = DowngradeReason("loses", "3 SCRAM credentials are lost", "offset 40")
    targets = [target("3.5", "3.5-IV2"), target("3.4", "3.4-IV0", lost), target("3.3", "3.3-IV3", lost)]
    shown = kips_view(replace(report(), downgrade=DowngradeReadiness("kraft", "3.6", targets))).downgrade
    assert [(each.releases, *(reason.reason for reason in each.reasons.shown)) for each in shown] == [
        ("3.5", "metadata.version must be lowered to 3.5-IV2 first"),
        ("3.4", "metadata.version must be lowered to 3.4-IV0 first", "3 SCRAM credentials are lost"),
        ("3.3", "metadata.version must be lowered to 3.3-IV3 first", "3 SCRAM credentials are lost"),
    ]


def test_the_page_shows_them_escaped_and_a_report_without_them_has_no_sections() -> None:
    page = render_html(report())
    assert HOSTILE not in page
    for anchor in ('id="isr"', 'id="features"', 'id="downgrade"'):
        assert anchor in page
        assert anchor not in render_html(healthy())


def test_they_come_back_from_json_and_become_rows() -> None:
    made = report()
    assert from_json(to_json(made)) == made
    rows = {table.name: len(mine) for table, mine in rows_of_kips(made).items()}
    assert rows == {"isr_audit": 42, "feature_matrix": 5, "downgrade_readiness": 4}
    assert rows_of_kips(healthy()) == {}
