"""Report, fleet page and mail in a real browser: valid, accessible, silent on the network, and of bounded size."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import html5lib
import pytest

from schemas.report import DivergenceRow, Divergences, Report
from tests.report.browser import dumped, evaluated, needs_browser, network
from tests.report.fleets import NOW, large_fleet, run_of, small_fleet
from tests.report.samples import defective, finalised, healthy, lagging, not_ready
from tests.report.test_mail import body
from transforms.report.fleet_mail import MailEntry, render_fleet_mail
from transforms.report.fleet_page import render_fleet
from transforms.report.follow_up import TablePlace
from transforms.report.html import render_html
from transforms.report.mail import render_mail
from transforms.report.mail_policy import Decision


def fleet_mail() -> str:
    changed = Decision("change", ("Verdict: clean → errors.",))
    told = [MailEntry(run_of(report, name), report, changed, "https://x.example/r.html") for name, report in _MAILED]
    return body(render_fleet_mail(told, [run_of(healthy(), "fine")], NOW, "https://x.example/fleet.html"), "html")


def catalogued() -> Report:
    """The sample, each of its checks once, as the catalogue has them."""
    report = defective()
    return replace(report, checks=list({check.id: check for check in report.checks}.values()))


_MAILED = (("losing", defective()), ("late", lagging()))
PAGES: dict[str, Callable[[], str]] = {
    "report healthy": lambda: render_html(healthy()),
    "report lagging": lambda: render_html(lagging()),
    "report defective": lambda: render_html(catalogued(), TablePlace("/srv/tables")),
    "report not ready": lambda: render_html(not_ready()),
    "report finalised": lambda: render_html(finalised()),
    "fleet": lambda: render_fleet(small_fleet(), {"losing": "losing/report.html"}),
    "fleet of forty": lambda: render_fleet(large_fleet(40), {}),
    "mail": lambda: body(
        render_mail(defective(), "/srv/r.html", Decision("change", ("Verdict: clean → errors.",))), "html"
    ),
    "mail of a fleet": fleet_mail,
}
SIZES = {"wide": "--window-size=1280,900", "phone": "--window-size=500,900"}
DARK = "--blink-settings=preferredColorScheme=0"
_RULES = "runOnly: {type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}"


@pytest.mark.parametrize("name", PAGES)
def test_html_is_valid(name: str) -> None:
    """A parser after the WHATWG's rules finds no error."""
    parser = html5lib.HTMLParser(strict=False)
    parser.parse(PAGES[name]())
    assert [(place, code) for place, code, _ in parser.errors] == []


@pytest.fixture(scope="module")
def axe() -> str:
    return (importlib.resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_accessible_in_light_and_dark_wide_and_on_a_phone(axe: str, tmp_path: Path, name: str) -> None:
    page = PAGES[name]()
    script = f"""{axe}
    window.told = axe.run(document, {{ {_RULES}, resultTypes: ["violations"] }}).then(found => JSON.stringify({{
      violations: found.violations.map(each => [each.id, each.nodes.length, each.nodes[0].html.slice(0, 200)]),
      passes: found.passes.length }}));"""
    for number, options in enumerate(([SIZES["wide"]], [SIZES["phone"], DARK])):
        folder = tmp_path / str(number)
        folder.mkdir()
        told = json.loads(evaluated(page, script, folder, *options))
        # Mails are tables for the sake of mail clients, which keep no landmarks.
        wanted = [found for found in told["violations"] if not (name.startswith("mail") and found[0] in _OF_MAILS)]
        assert wanted == []
        assert told["passes"] > 5, "axe looked at the page"


_OF_MAILS = ("region", "landmark-one-main", "page-has-heading-one", "empty-heading")


@needs_browser
@pytest.mark.slow
def test_nothing_is_wider_than_a_phone(tmp_path: Path) -> None:
    script = "window.told = `${document.documentElement.scrollWidth} ${innerWidth}`;"
    for number, name in enumerate(("report defective", "fleet", "mail of a fleet")):
        folder = tmp_path / str(number)
        folder.mkdir()
        content, window = map(int, evaluated(PAGES[name](), script, folder, SIZES["phone"]).split())
        assert content <= window, name


@needs_browser
@pytest.mark.slow
def test_no_request_leaves_a_page(tmp_path: Path) -> None:
    """Everything a browser asks of the network goes through a proxy, which sees what a page with a picture asks."""
    with network() as (option, asked):
        probe = tmp_path / "probe"
        probe.mkdir()
        dumped('<!doctype html><title>x</title><img src="http://probe.example/p.png">', probe, option)
        assert any("probe.example" in target for target in asked), "the proxy sees requests"
        # What a browser asks for itself, whatever it shows, is nothing of a page's.
        own = {target.split("?")[0] for target in asked}
        for number, name in enumerate(("report defective", "report lagging", "fleet")):
            asked.clear()
            folder = tmp_path / str(number)
            folder.mkdir()
            assert "</html>" in dumped(PAGES[name](), folder, option)
            assert {target.split("?")[0] for target in asked} <= own - {"http://probe.example/p.png"}, name


def test_a_million_differences_fit_into_two_megabytes() -> None:
    rows = [
        DivergenceRow(
            "configs",
            {"resource_type": "TOPIC", "resource_name": f"topic-{number:07}" * 8, "config": "retention.ms"},
            "value",
            "differs",
            "x" * 4000,
            "y" * 4000,
            "lost_write",
            "error",
            f"/config/topics/topic-{number:07}",
            number,
            number,
            explanation=f"Record {number} was passed by /migration and is not in ZooKeeper. " * 5,
        )
        for number in range(1000)
    ]
    report = replace(
        defective(),
        divergences=Divergences(
            1_000_000, {"lost_write": 1_000_000}, {"configs": {"lost_write": 1_000_000}}, rows=rows
        ),
    )
    html = render_html(report, TablePlace("/srv/tables"))
    assert len(html.encode()) < 2_000_000
    assert "999,800 more" in html
