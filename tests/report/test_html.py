"""The HTML report says the truth first, lets no cluster write into it, fetches nothing and stays small."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.report import CheckResult, DivergenceRow, Divergences, Gate, Report
from tests.report.samples import (
    HOSTILE,
    HUGE,
    SAMPLES,
    defective,
    finalised,
    healthy,
    lagging,
    not_ready,
    runs,
    uncompared,
)
from transforms.report.html import gate_views, prose, render_html

VOID = {"meta", "img", "br", "circle", "link", "input", "hr"}
ALLOWED_PAGES = (
    "https://issues.apache.org/jira/browse/KAFKA-",
    "https://cwiki.apache.org/confluence/",
    "https://github.com/apache/kafka/pull/",
)


class Page(HTMLParser):
    """Tags, attributes and text of a page; fails on tags that do not close in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.style: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID or tag == "circle":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        # p and li are always closed by the template, so order must hold exactly.
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.style if self._open and self._open[-1] == "style" else self.text).append(data)

    @property
    def words(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.text))


def attributes(page: Page) -> Iterator[tuple[str, str, str]]:
    for tag, found in page.tags:
        for name, value in found.items():
            yield tag, name, value or ""


@pytest.mark.parametrize("name", SAMPLES)
def test_no_script_no_fetch_no_unknown_link(name: str) -> None:
    html = render_html(SAMPLES[name]())
    page = Page(html)
    assert not {"script", "img", "iframe", "object", "embed", "link", "form", "base", "video"} & {
        t for t, _ in page.tags
    }
    for tag, attribute, value in attributes(page):
        assert not attribute.startswith("on"), (tag, attribute)
        assert attribute not in ("src", "srcset", "action", "formaction", "xlink:href", "background", "style") or (
            attribute == "style" and "HOSTILE" not in value and "url(" not in value
        )
        if attribute == "href":
            assert value.startswith("#") or value.startswith(ALLOWED_PAGES), value
    assert "url(" not in "".join(page.style)
    assert "@import" not in "".join(page.style)
    assert "default-src 'none'" in html


def test_hostile_names_are_text_and_nothing_else() -> None:
    html = render_html(defective())
    assert html.count("<script") == 0
    assert html.count("</style>") == 1
    assert html.count("</title>") == html.count("<title>")
    assert "onerror=alert(2)&gt;" in html
    # The template language in a name is not evaluated.
    assert "{{7*7}}" in html
    page = Page(html)
    assert "<script>alert(1)</script>" in page.words
    assert not [c for c in html if unicodedata.category(c) in {"Cc", "Cf", "Cs"} and c != "\n"]
    assert "\\u202e" in page.words
    assert "\\x1b[31m" in page.words


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60))
def test_any_name_is_shown_as_text(name: str) -> None:
    row = DivergenceRow(
        "topics", {"topic": name}, "topic_id", "differs", name, name, "lost_write", "error", zk_path=name
    )
    check = CheckResult(name, "fail", 1, [name], [name], name, name, name, name)
    report = replace(healthy(), cluster=name, checks=[check], divergences=Divergences(1, {name: 1}, rows=[row]))
    harmless = Page(render_html(replace(report, cluster="a", checks=[replace(check, id="b")])))
    page = Page(render_html(report))
    tags = [tag for tag, _ in page.tags if tag != "a"]
    assert [tag for tag, _ in harmless.tags if tag != "a"] == tags


@pytest.mark.parametrize(
    ("name", "title", "label"),
    [
        ("healthy", "Dual write is healthy", "Clean"),
        ("lagging", "ZooKeeper is 11 records behind KRaft", "Warnings"),
        ("defective", "ZooKeeper and KRaft disagree: 5 defects", "Errors"),
        ("not_ready", "The migration cannot start", "Errors"),
        ("finalised", "The migration is finalised", "Clean"),
    ],
)
def test_the_verdict_comes_first(name: str, title: str, label: str) -> None:
    words = Page(render_html(SAMPLES[name]())).words
    assert words.index(label) < words.index(title) < words.index("Stay in dual write") < words.index("Differences (")


def test_the_banner_says_what_to_do_gravest_first() -> None:
    words = Page(render_html(defective())).words
    banner = words[: words.index("Stay in dual write")]
    assert banner.index("Set or remove the same quota") < banner.index("Find the writer")
    assert "Repair every row" not in banner, "what to do about each row has been said"
    # Rolling brokers on towards finalising is the last thing to do while writes are being lost.
    assert "Restart brokers 0, 1, 2" not in banner
    assert "A rollback to ZooKeeper now would lose 3 changes." in banner
    assert "ZooKeeper holds every committed record" not in banner


def test_a_clean_run_shows_the_next_step_and_no_alarm() -> None:
    html = render_html(healthy())
    words = Page(html).words
    assert "Nothing to repair. Next, towards finalising" in words
    assert "not yet" in words
    assert 'class="check bad"' not in html
    assert 'class="gate bad"' not in html


def test_after_finalising_the_closed_rollback_gate_is_no_alarm() -> None:
    html = render_html(finalised())
    words = Page(html).words
    assert "The migration is finalised" in words
    assert "there is no way back" in words
    assert "Nothing to repair." in words
    assert "closed RB-01" in words
    assert "Do not roll back" not in words
    assert "not in ZooKeeper yet" not in words
    assert 'class="check bad"' not in html


def test_a_failed_rollback_check_before_finalising_is_an_alarm() -> None:
    report = finalised()
    html = render_html(replace(report, migration=replace(report.migration, state="MIGRATION")))
    assert "FAIL RB-01" in Page(html).words
    assert 'Do not roll back (<span class="nowrap">RB-01</span>).' in html


def test_failing_checks_stand_before_warnings_and_passes_are_folded() -> None:
    html = render_html(defective())
    checks = html[html.index('id="checks"') : html.index('id="brokers"')]
    order = re.findall(r'<div class="check (\w+)"', checks)
    assert order == ["bad", "warn", "warn", "warn", "warn", "good", "good", "good", "good"]
    passed = checks.index("<summary>Passed")
    assert checks.index("DUR-05</b>") < checks.index("FIN-01</b>") < checks.index("CAP-07</b>") < passed
    assert passed < checks.index("CAP-04</b>")


def test_defects_stand_before_lag() -> None:
    html = render_html(defective())
    part = html[html.index('id="differences"') : html.index('id="checks"')]
    classes = re.findall(r'<h3><span class="v">(\w+)</span>', part)
    assert classes == ["lost_write", "foreign_write", "lag"]


def test_a_difference_shows_both_values_and_where_they_stand() -> None:
    words = Page(render_html(lagging())).words
    assert (
        "configs TOPIC orders · retention.ms value 86400000 /config/topics/orders zxid 0x32c 172800000 offset 1213"
        in words
    )
    assert "topics behind-1 whole row absent topic_id=Zf7bq2kFQ0K2oG8j5bqj1w offset 1208 new" in words


def test_shared_advice_is_said_once() -> None:
    html = render_html(replace(defective(), checks=[]))
    differences = html[html.index('id="differences"') :]
    assert differences.count("Set or remove the same quota") == 1


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (healthy(), "None: both sides hold the same metadata."),
        (uncompared(), "The two sides could not be compared, so it is unknown whether they differ."),
        (not_ready(), "Nothing has been copied yet, so there is nothing to compare."),
        (replace(healthy(), mode="kraft_only"), "Only one side was given, so nothing was compared."),
    ],
)
def test_no_differences_has_its_reason(report: Report, sentence: str) -> None:
    assert sentence in Page(render_html(report)).words


@pytest.mark.parametrize("report", [uncompared(), replace(healthy(), mode="zookeeper_only")])
def test_no_number_of_differences_is_told_where_nothing_was_compared(report: Report) -> None:
    html = render_html(report)
    words = Page(html).words
    assert "Differences (not compared)" in words
    assert "Defects not compared " in words
    assert "0 differences" not in words
    assert "topics 8 8 -" in words
    assert "Differences by class None." not in words
    assert "topics 8 8 0" in Page(render_html(healthy())).words


def test_a_version_that_is_unknown_is_not_told_as_free_of_defects() -> None:
    defects = [replace(each, exposed=False, evidence=False) for each in healthy().defects]
    known = replace(healthy(), defects=defects)
    assert "This version has none of the known defects. Not exposed to KAFKA-16222" in Page(render_html(known)).words
    words = Page(render_html(replace(known, kafka_version="unknown"))).words
    assert (
        "The version is unknown, so it is unknown which defects it has: set kafka_version in the configuration."
        in words
    )
    assert "none of the known defects" not in words
    assert "Not exposed to" not in words
    traces = [replace(defects[0], evidence=True), *defects[1:]]
    words = Page(render_html(replace(known, defects=traces, kafka_version="unknown"))).words
    assert "KAFKA-16222 found" in words
    assert "set kafka_version in the configuration" in words


@pytest.mark.parametrize("number", [0, 1, 2, 60, 200])
def test_the_trend_holds_at_most_sixty_runs(number: int) -> None:
    html = render_html(replace(healthy(), history=runs(number, [0, 5, None, 7])))
    widest = html[html.index('id="trend"') : html.index('id="counts"')]
    shown = [index % 4 for index in range(max(number - 60, 0), number)]
    # Two drawings of each chart: for wide screens and for phones.
    assert widest.count("<circle") == 2 * sum(1 for index in shown if index != 2)
    assert widest.count('class="bar"') == 2 * sum(1 for index in shown if index in (1, 3))


def test_the_figures_of_a_run_whose_lag_nobody_knew_say_so() -> None:
    known, unknown, none = runs(3, [7, None, None])
    html = render_html(replace(healthy(), history=[known, replace(unknown, lag_unknown=True), none]))
    figures = html[html.index("The last 3 runs in figures") : html.index('id="counts"')]
    rows = figures.split("<tr>")[2:]
    assert [re.findall(r'<td class="num">([^<]*)</td>', row)[0] for row in rows] == ["-", "unknown", "7"]


def test_points_of_the_trend_lie_inside_the_drawing() -> None:
    html = render_html(replace(healthy(), history=runs(60, [0, 123_456_789])))
    ys = [float(y) for y in re.findall(r'cy="([-.\d]+)"', html)]
    assert ys
    assert min(ys) >= 10
    assert max(ys) <= 130


def test_size_is_bounded_whatever_comes() -> None:
    row = DivergenceRow(
        "topics", {"topic": HOSTILE * 1000}, HUGE, "differs", HUGE, HUGE, "lag", "warn", HUGE, 1, 1, HUGE, HUGE, HUGE
    )
    check = CheckResult("X", "fail", 10**9, [HUGE] * 1000, [HUGE] * 100, "error", HUGE, HUGE, HUGE)
    report = replace(
        defective(),
        divergences=Divergences(10**9, {"lag": 10**9}, rows=[row] * 1000),
        checks=[check] * 80,
        notes=[HUGE] * 1000,
        gates={"start": Gate("no_go", [HUGE] * 1000, HUGE)},
        resolved=[row] * 1000,
    )
    html = render_html(report)
    assert len(html) < 3_000_000
    assert "999,999,800 more: report.json lists the first of them" in html


def test_counts_and_totals_are_exact() -> None:
    words = Page(render_html(defective())).words
    assert "5 of 7 differences" in words
    assert "client quotas 14 12 2" in words
    assert "2 pieces of input that could not be read" in words


def test_a_gate_that_is_open_without_an_optional_check_asks_its_question_and_says_so() -> None:
    without = "judged without RB-09: see there what to give"
    html = render_html(replace(healthy(), gates={"rollback": Gate("go", [], without)}))
    assert f"<p>Can I still return to ZooKeeper? J{without[1:]}.</p>" in html


def test_the_page_says_when_it_was_audited_and_how_long_it_holds() -> None:
    """A run that fails leaves yesterday's page as it is: it has to say itself that it is yesterday's."""
    words = Page(render_html(healthy(), valid_hours=48)).words
    assert "audited 2026-11-21 06:00:41 UTC; valid until 2026-11-23 06:00 UTC, then audit again" in words
    assert "valid until" not in Page(render_html(healthy())).words


@pytest.mark.parametrize("ended", ["", "yesterday", "9999-12-31T23:59:59Z"])
def test_a_time_that_is_none_breaks_no_page(ended: str) -> None:
    assert "valid until" not in Page(render_html(replace(healthy(), finished_at=ended), valid_hours=48)).words


def test_what_is_wrong_since_when_and_what_to_do_stand_in_that_order() -> None:
    words = Page(render_html(defective())).words
    banner = words[: words.index("Stay in dual write")]
    order = (
        "Errors prod-us",
        "5 defects",
        "New in this run",
        "lost_write: client quotas",
        "Do not roll back",
        "What to do",
    )
    places = [banner.index(part) for part in order]
    assert places == sorted(places)
    assert "and 2 more" in banner


def test_a_check_that_could_not_be_judged_says_what_to_give_and_no_repair() -> None:
    """Its remedy is for what it would have found: nobody may restart a broker for that."""
    missing = CheckResult(
        "RB-09", "unknown", 0, ["give the files"], ["rollback"], title="Files are right", remedy="Restart all."
    )
    html = render_html(replace(healthy(), checks=[*healthy().checks, missing]))
    assert "give the files" in html
    assert "Restart all." not in html
    assert "Not judged; no gate depends on these checks: RB-09" in Page(html).words
    waiting = replace(healthy(), checks=[missing], gates={"rollback": Gate("unknown", ["RB-09"], "too little")})
    assert "no gate waits for it" not in Page(render_html(waiting)).words


def test_commands_are_code_and_nothing_else_is() -> None:
    assert prose("run `a<b>` now") == "run <code>a&lt;b&gt;</code> now"
    assert prose("a ` alone, <b>") == "a ` alone, &lt;b&gt;"


def test_a_gate_of_another_phase_says_why_without_its_name() -> None:
    gates = healthy().gates | {"dual_write": Gate("not_applicable", [], "dual write: the metadata is not loaded yet")}
    words = {gate.name: gate.words for gate in gate_views(replace(healthy(), gates=gates))}
    assert words["dual_write"] == "The metadata is not loaded yet."
