"""The fleet's page and terminal view: the worst first, nothing left out, the old shown as old, hostile names as text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from schemas.report import Divergences
from tests.report.fleets import NOW, failed, large_fleet, run_of, small_fleet
from tests.report.samples import HOSTILE, defective, finalised, healthy, lagging, uncompared
from tests.report.test_html import Page, attributes
from transforms.report.fleet_model import FleetRun, Verified, fleet, fleet_columns, fleet_run, without_retired
from transforms.report.fleet_page import MOST_ROWS, banner, fleet_facts, render_fleet
from transforms.report.fleet_text import fleet_objects, fleet_text

PLACES = {"losing": "losing/report.html", "fine": "fine/report.html"}


def test_the_worst_come_first_and_each_is_in_its_group() -> None:
    standing = small_fleet()
    assert [(cluster.name, cluster.group) for cluster in standing.clusters] == [
        ("gone", "failed"),
        ("losing", "errors"),
        ("forgotten", "stale"),
        ("late", "warnings"),
        ("waiting", "warnings"),
        ("done", "clean"),
        ("fine", "clean"),
    ]


def test_a_cluster_that_was_not_compared_has_no_number_of_defects() -> None:
    standing = fleet([run_of(uncompared(), "blind"), run_of(defective(), "losing")], NOW, 48)
    [blind] = [each for each in fleet_objects(standing) if each["cluster"] == "blind"]
    assert blind["defects"] is None
    lines = fleet_text(standing, {})
    assert [line for line in lines if line.startswith("blind") and " not compared " in line]
    assert [line.split(maxsplit=1)[1] for line in lines if line.startswith("Defects ")] == [
        "5 in 1 cluster; 1 cluster not compared"
    ]
    assert 'data-label="Defects" class="num"><b>not compared</b>' in render_fleet(standing, {})


def test_lag_that_is_unknown_is_not_none() -> None:
    """As of a log that ends before the offset in /migration: `fleet` said "Behind: none" of it."""
    runs = [run_of(healthy(), "unmeasured", lag_records=None), run_of(finalised(), "done", lag_records=None)]
    page, (_, *facts) = fleet(runs, NOW, 48), fleet_facts(fleet(runs, NOW, 48))
    assert ("Behind", "none; unknown of 1 cluster") in facts
    cells = [line for line in fleet_text(page, {}) if line.startswith(("unmeasured ", "done "))]
    assert [("unknown" in line.split(), " - " in line) for line in cells] == [(False, True), (True, False)]
    late = [*runs, run_of(lagging(), "late")]
    assert ("Behind", "1 cluster, at most 11 records; unknown of 1 cluster") in fleet_facts(fleet(late, NOW, 48))


def test_that_all_are_retired_is_not_that_there_is_none() -> None:
    gone = without_retired(fleet([run_of(healthy(), "old", 200)], NOW, 48), ["old"])
    assert fleet_text(gone, {})[0] == "NOTHING: Every cluster of this warehouse is retired"


def test_new_defects_are_counted_beyond_the_rows_that_a_report_lists() -> None:
    """Of eight defects two are listed, both new: five are new, three persist, and four are gone."""
    listed = defective().divergences.rows[:2]
    statuses = {"new": 5, "persisting": 3, "resolved": 4}
    found = Divergences(8, {"lost_write": 8}, {}, {**statuses, "new": 9}, listed, defects_by_status=statuses)
    standing = fleet([run_of(replace(defective(), divergences=found), "losing")], NOW, 48)
    assert fleet_objects(standing)[0]["defects_by_status"] == statuses
    assert "8 (5 new, 3 persisting, 4 resolved)" in "\n".join(fleet_text(standing, {}))


@pytest.mark.parametrize(
    ("stored", "said"),
    [(12, "(12 runs, all that are stored)"), (30, "or earlier (at least 30 runs)"), (199, "at least 30")],
)
def test_as_many_runs_are_told_as_are_known(stored: int, said: str) -> None:
    runs = [run_of(defective(), "losing", number) for number in range(1, min(stored, 30) + 1)]
    assert said in render_fleet(fleet(runs, NOW, 48), {})


def test_more_defects_come_first_then_more_lag() -> None:
    runs = [
        run_of(defective(), "two", defects=2),
        run_of(defective(), "nine", defects=9),
        run_of(defective(), "behind", defects=2, lag_records=50),
    ]
    assert [cluster.name for cluster in fleet(runs, NOW, 48).clusters] == ["nine", "behind", "two"]


def test_the_page_says_who_needs_what_and_leads_to_the_reports() -> None:
    html = render_fleet(small_fleet(), PLACES)
    words = Page(html).words
    assert "2 of 7 clusters need repair" in words
    assert "1 could not be audited, 1 with errors, 1 with no audit in the last 48 h" in words
    assert '<a href="losing/report.html">' in html
    assert html.count("<a href=") == 2 + len(re.findall(r'<a href="#', html))
    assert words.index("gone") < words.index("Errors 1") < words.index("No recent audit 1") < words.index("Clean 2")
    assert "Do first: Set or remove the same quota" in words
    assert "8.3 days ago" in words


def test_a_failed_cluster_shows_why_and_what_was_last_known() -> None:
    words = Page(render_fleet(small_fleet(), {})).words
    assert "there is no folder /nowhere" in words
    assert "This row shows the last finished run, of 2026-11-21 00:00 UTC." in words


def test_an_old_clean_cluster_is_not_called_clean() -> None:
    (cluster,) = fleet([run_of(healthy(), "forgotten", 49)], NOW, 48).clusters
    assert (cluster.group, cluster.stale) == ("stale", True)
    (cluster,) = fleet([run_of(healthy(), "seen", 47)], NOW, 48).clusters
    assert (cluster.group, cluster.stale) == ("clean", False)
    assert "All" not in Page(render_fleet(fleet([run_of(healthy(), "a", 49)], NOW, 48), {})).words


@pytest.mark.parametrize(
    "run", [run_of(defective(), "c", 480), run_of(lagging(), "c", 480), failed("c", hours_ago=480)]
)
def test_an_old_run_is_no_recent_audit_whatever_it_found(run: FleetRun) -> None:
    standing = fleet([run, run_of(healthy(), "fine")], NOW, 48)
    assert fleet_objects(standing)[0]["group"] == "stale"
    words = Page(render_fleet(standing, {})).words
    assert "No recent audit" in words
    assert "1 with no audit in the last 48 h" in words
    told = banner(standing)
    if run.verdict == "warnings":
        assert (told.tone, told.title) == ("warn", "1 of 2 clusters needs a look")
    else:
        assert (told.tone, told.title) == ("bad", "1 of 2 clusters needs repair")
        assert "(1 of them with errors or failed in the last one)" in words


def test_one_cluster_reads_well() -> None:
    words = Page(render_fleet(fleet([run_of(healthy(), "only")], NOW, 48), {})).words
    assert "The cluster is clean" in words
    assert "dual write GO" in words


def test_no_script_no_fetch_and_hostile_names_are_text() -> None:
    html = render_fleet(
        fleet([run_of(defective(), HOSTILE, headline=HOSTILE, to_do=HOSTILE), failed("gone", HOSTILE)], NOW, 48),
        {HOSTILE: "x/report.html"},
    )
    page = Page(html)
    assert "<script" not in html
    assert not {"script", "img", "iframe", "link", "form"} & {tag for tag, _ in page.tags}
    for _, attribute, value in attributes(page):
        assert not attribute.startswith("on")
        if attribute == "href":
            assert value.startswith("#") or value == "x/report.html"
    assert "default-src 'none'" in html


def test_every_anchor_leads_somewhere() -> None:
    page = Page(render_fleet(small_fleet(), {}))
    ids = [value for _, attribute, value in attributes(page) if attribute == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for _, attribute, value in attributes(page) if attribute == "href"} <= set(ids)


def test_five_hundred_clusters_that_turn_at_every_run_fit_into_a_page() -> None:
    html = render_fleet(large_fleet(MOST_ROWS), {})
    assert len(html.encode()) < 2_000_000
    assert html.count('class="lead name"') == MOST_ROWS


def test_what_is_not_listed_is_counted() -> None:
    many = fleet([run_of(healthy(), f"c{n:04}") for n in range(MOST_ROWS + 7)], NOW, 48)
    html = render_fleet(many, {})
    assert html.count('class="lead name"') == MOST_ROWS
    assert "7 more:" in html
    assert f"All {MOST_ROWS + 7:,} clusters are clean" in html


def test_runs_of_an_earlier_release_are_shown_by_what_they_stored() -> None:
    row = dict.fromkeys((*fleet_columns(healthy()), "failure", "lag_seconds", "lag_records"))
    stored = fleet_run(
        row
        | {
            "cluster": "old",
            "run_id": "r",
            "started_at": NOW,
            "finished_at": NOW,
            "verdict": "errors",
            "kafka_version": "3.9",
            "defects": 2,
            "divergences": 3,
        }
    )
    words = Page(render_fleet(fleet([stored], NOW, 48), {})).words
    assert "Errors" in words
    assert "unknown" in words


def test_defects_by_status_count_defects_only() -> None:
    assert fleet_columns(lagging())["statuses"] == {}
    assert fleet_columns(defective())["statuses"] == {"new": 3, "persisting": 2}


def test_the_strip_tells_what_it_draws() -> None:
    html = render_fleet(small_fleet(), {})
    assert "Last 2 runs. verdict: errors in the last 1." in html


def test_the_terminal_has_every_cluster_in_the_same_order() -> None:
    standing = small_fleet()
    lines = fleet_text(standing, PLACES)
    first = next(index for index, line in enumerate(lines) if line.startswith("cluster "))
    names = [line.split()[0] for line in lines[first + 1 : first + 8]]
    assert names == [cluster.name for cluster in standing.clusters]
    assert "8.3 days ago  OLD" in "\n".join(lines)
    assert lines[-1].strip() == "losing/report.html"


def test_objects_for_automation_are_json() -> None:
    said = [json.loads(json.dumps(each)) for each in fleet_objects(small_fleet())]
    assert [each["group"] for each in said] == ["failed", "errors", "stale", "warnings", "warnings", "clean", "clean"]
    assert said[0]["failure"] == "there is no folder /nowhere"
    assert said[0]["judged_run_id"] == "gone-7"
    assert said[1]["gates"]["rollback"] == "no_go"


@pytest.mark.parametrize("label", ["", "Errors"])
def test_the_terminal_is_not_driven_by_a_name(label: str) -> None:
    run = replace(run_of(defective(), HOSTILE), label=label, headline=HOSTILE, kafka_version=HOSTILE, phase=HOSTILE)
    text = "\n".join(fleet_text(fleet([run], NOW, 48), {}))
    assert not any(character in text for character in "\x1b\u202e\r")


def test_the_newest_run_is_the_last_one_counted_whatever_its_clock_said() -> None:
    future = run_of(healthy(), "c", -9 * 8766, sequence=1)
    losing = run_of(defective(), "c", 1, sequence=2)
    old_row = run_of(healthy(), "c", 0.5)
    (cluster,) = fleet([losing, old_row, future], NOW, 48).clusters
    assert [run.sequence for run in cluster.runs] == [None, 1, 2]
    assert cluster.group == "errors"
    assert not cluster.stale


def test_a_run_from_the_future_has_no_age_and_is_not_clean() -> None:
    (cluster,) = fleet([run_of(healthy(), "c", -2)], NOW, 48).clusters
    assert cluster.stale
    assert cluster.group == "stale"
    (skewed,) = fleet([run_of(healthy(), "c", -0.05)], NOW, 48).clusters
    assert skewed.group == "clean"


def test_a_failed_cluster_says_of_which_run_its_gates_are() -> None:
    again = replace(failed("c"), run_id="second", finished_at=NOW - timedelta(minutes=1))
    standing = fleet([run_of(healthy(), "c", 7), failed("c"), again], NOW, 48)
    assert standing.clusters[0].failures_since == 2
    line = next(line for line in fleet_text(standing, {}) if line.startswith("c "))
    assert line.endswith("(gates: of run c-7, 2026-11-21 00:00 UTC; 2 runs failed since)")
    (said,) = fleet_objects(standing)
    assert (said["judged_run_id"], said["failures_since"]) == ("c-7", 2)


def test_a_retired_cluster_is_left_out_and_named() -> None:
    standing = without_retired(small_fleet(), ["forgotten", "no-such-cluster"])
    assert "forgotten" not in {cluster.name for cluster in standing.clusters}
    assert standing.retired == ("forgotten",)
    words = Page(render_fleet(standing, {})).words
    assert "No recent audit" not in words
    assert "Retired, left out forgotten" in words
    assert any(line.split() == ["Retired,", "left", "out", "forgotten"] for line in fleet_text(standing, {}))
    assert "Retired" not in Page(render_fleet(small_fleet(), {})).words


def test_a_retired_cluster_that_is_audited_all_the_same_is_shown() -> None:
    """Whoever says so of the wrong one, or brings it back, is not led to believe that all is well."""
    standing = without_retired(small_fleet(), ["losing", "gone"])
    assert standing.clusters == small_fleet().clusters
    assert standing.retired == ()


WRONG = Verified("run-7", NOW, "does NOT match its evidence: 2 rows of silver.topics")


def test_a_cluster_whose_tables_are_not_what_the_evidence_gives_is_not_clean() -> None:
    runs = [run_of(healthy(), "changed"), run_of(healthy(), "fine")]
    standing = fleet(runs, NOW, 48, {"changed": WRONG, "fine": Verified("run-7", NOW)})
    assert [(cluster.name, cluster.group) for cluster in standing.clusters] == [
        ("changed", "warnings"),
        ("fine", "clean"),
    ]
    words = Page(render_fleet(standing, {})).words
    assert words.count(WRONG.words) == 1
    assert "Differ from their evidence changed" in words
    assert any(WRONG.words in line for line in fleet_text(standing, {}))
    changed, fine = fleet_objects(standing)
    assert (changed["verified_run_id"], changed["verified_problem"]) == ("run-7", WRONG.problem)
    assert fine["verified_problem"] is None
    assert "verified_at" not in fleet_objects(fleet(runs, NOW, 48))[0]


def test_reports_that_a_terminal_does_not_list_are_counted() -> None:
    many = fleet([failed(f"c{number:02}") for number in range(13)], NOW, 48)
    lines = fleet_text(many, {cluster.name: f"{cluster.name}.html" for cluster in many.clusters})
    assert lines[-2:] == ["  c09.html", "  ... 3 more"]
