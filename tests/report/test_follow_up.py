"""What a report offers to copy does what it says: the command explains that row, the SQL finds those rows."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import replace
from html import unescape

import pytest

from jobs.cli import COMMANDS, parser_of
from schemas.report import DivergenceRow
from tests.report.samples import HOSTILE, HUGE, SAMPLES, defective, healthy, lagging
from tests.report.test_html import Page, attributes
from transforms.explain.keys import parse_key
from transforms.report.follow_up import TablePlace, explain, of_checks, of_class
from transforms.report.html import render_html

EXPLAIN = next(command for command in COMMANDS if command.name == "explain")


def parsed(command: str) -> argparse.Namespace:
    words = shlex.split(command)
    assert words[:2] == ["kraft-audit", "explain"]
    return parser_of(EXPLAIN).parse_args(words[2:])


@pytest.mark.parametrize("row", lagging().divergences.rows, ids=lambda row: row.entity)
def test_the_command_asks_for_that_row_of_that_run(row: DivergenceRow) -> None:
    report = lagging()
    arguments = parsed(explain(report, TablePlace("/srv/my tables"), row))
    assert parse_key(arguments.entity, arguments.key).report == row.key
    assert (arguments.warehouse, arguments.cluster) == ("/srv/my tables", report.cluster)
    assert arguments.run_id == report.run_id


def test_a_catalog_is_found_by_its_configuration() -> None:
    command = explain(lagging(), TablePlace("main.kafka", catalog=True), lagging().divergences.rows[0])
    assert parsed(command).conf is not None
    assert "FROM `main`.`kafka`.`gold_divergences` WHERE" in of_class(lagging(), TablePlace("main.kafka", True), "lag")


def test_a_hostile_name_stays_one_argument() -> None:
    row = DivergenceRow("topics", {"topic": HOSTILE + "'; rm -rf /; '"}, None, "zk_only", 1, None, "lag", "warn")
    arguments = parsed(explain(replace(healthy(), cluster="a b; c"), TablePlace("w"), row))
    assert parse_key("topics", arguments.key).key == {"topic": HOSTILE + "'; rm -rf /; '"}
    assert arguments.cluster == "a b; c"


def test_sql_quotes_what_it_names() -> None:
    sql = of_class(replace(healthy(), cluster="a'b\\"), TablePlace("/w`x"), "lag")
    assert "cluster = 'a\\'b\\\\'" in sql
    assert "delta.`/w``x/gold/divergences`" in sql
    assert "verdict IN ('fail', 'warn', 'unknown')" in of_checks(healthy(), TablePlace())


def test_a_key_nobody_could_type_has_no_command() -> None:
    row = DivergenceRow("topics", {"topic": HUGE}, None, "zk_only", 1, None, "lag", "warn")
    assert explain(healthy(), TablePlace(), row) == ""


def test_the_report_shows_them_ready_to_copy() -> None:
    html = render_html(defective(), TablePlace("/srv/tables"))
    shown = [unescape(text) for text in re.findall(r"<code>(.*?)</code>", html)]
    assert sum(text.startswith("kraft-audit explain client_quotas ") for text in shown) == 2
    assert sum(text.startswith("SELECT * FROM delta.`/srv/tables/gold/divergences`") for text in shown) == 3


@pytest.mark.parametrize("name", SAMPLES)
def test_every_section_has_an_anchor_and_every_link_leads_to_one(name: str) -> None:
    page = Page(render_html(SAMPLES[name]()))
    ids = [value for _, attribute, value in attributes(page) if attribute == "id"]
    # Samples repeat a check; the catalogue does not.
    single = [name for name in ids if not name.startswith("check-")]
    assert len(single) == len(set(single))
    assert {"verdict", "gates", "differences", "checks", "brokers", "trend", "counts", "copies", "known"} <= set(ids)
    targets = {value[1:] for _, attribute, value in attributes(page) if attribute == "href" and value.startswith("#")}
    listed = {f"check-{check.id}" for check in SAMPLES[name]().checks}
    assert (
        targets - set(ids)
        <= {f"check-{id}" for gate in SAMPLES[name]().gates.values() for id in gate.blocking} - listed
    )
    sections = [found for tag, found in page.tags if tag == "section"]
    assert [found for found in sections if "id" not in found and "card" not in str(found.get("class"))] == []
