"""The pictures of docs/: `python -m tests.report.pictures AUDIT`, AUDIT being the folder of an audit of 3.9.1's quota-removal.

`kraft-audit check --zookeeper … --kraft … --out AUDIT` makes it, as in the README; here nothing is audited. Needs a browser.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from PIL import Image

from schemas.report import Report, RunPoint
from tests.report.browser import QUIET, TIMEOUT_SECONDS, browser
from tests.report.fleets import NOW, run_of
from tests.report.samples import finalised, healthy, lagging, not_ready
from tests.report.test_mail import body
from transforms.report.fleet_mail import MailEntry, render_fleet_mail
from transforms.report.fleet_model import FleetRun, fleet
from transforms.report.fleet_page import render_fleet
from transforms.report.html import render_html
from transforms.report.json import from_json
from transforms.report.mail_policy import Decision

DOCS = Path(__file__).parents[2] / "docs"
_CHANGES = ("Verdict: clean → errors.", "Gate dual_write: GO → NO-GO.", "Gate rollback: GO → NO-GO.", "2 new defects.")
# The window has a frame, which takes some of its height.
_FRAME = 120
_ADDRESS = "https://audits.example.com/kafka"


def main(audit: Path) -> None:
    """Write the pictures."""
    (file,) = audit.rglob("report.json")
    losing = _of_the_day(from_json(file.read_text(encoding="utf-8")))
    runs = [*_days(losing, "orders"), *_days(lagging(), "payments"), *_days(finalised(), "users")]
    runs += [run_of(not_ready(), "staging"), run_of(healthy(), "search", 200), *_days(healthy(), "clicks")]
    standing = fleet(runs, NOW, 48)
    entries = [
        MailEntry(run_of(losing, "orders"), losing, Decision("change", _CHANGES), f"{_ADDRESS}/orders/report.html"),
        MailEntry(
            run_of(lagging(), "payments"),
            lagging(),
            Decision("change", ("Verdict: clean → warnings.", "Gate rollback: GO → NO-GO.")),
            f"{_ADDRESS}/payments/report.html",
        ),
    ]
    mail = render_fleet_mail(entries, [run_of(healthy(), "clicks")], NOW, f"{_ADDRESS}/fleet.html")
    _picture(render_html(losing, valid_hours=48), DOCS / "report.png", 1240, 1080)
    _picture(
        render_fleet(standing, {name: f"{name}/report.html" for name in ("orders", "payments")}),
        DOCS / "fleet.png",
        1240,
        1120,
    )
    _picture(body(mail, "html"), DOCS / "mail.png", 740, 1010)


def _of_the_day(report: Report) -> Report:
    """The report as one of a cluster that is audited every day, named as in the documents."""
    earlier = [
        RunPoint(f"day-{day}", f"2026-11-{day}T06:00:00Z", "clean", report.migration.state, 0, 0.0, 0, 0)
        for day in range(12, 21)
    ]
    began, ended = "2026-11-21T06:00:00Z", "2026-11-21T06:00:41Z"
    this = replace(report.history[-1], started_at=began)
    return replace(report, cluster="prod-eu", history=[*earlier, this], started_at=began, finished_at=ended)


def _days(report: Report, cluster: str) -> list[FleetRun]:
    """A run of today after nine healthy ones."""
    return [*(run_of(healthy(), cluster, 24 * day + 1) for day in range(9, 0, -1)), run_of(report, cluster)]


def _picture(page: str, target: Path, width: int, height: int) -> None:
    program = browser()
    if program is None:
        sys.exit("no browser is installed")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(page, encoding="utf-8")
        options = [f"--user-data-dir={folder}/profile", "--hide-scrollbars", f"--window-size={width},{height + _FRAME}"]
        command = [program, *QUIET, *options, f"--screenshot={target}", file.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)
    with Image.open(target) as whole:
        cut = whole.convert("RGB").crop((0, 0, width, height)).quantize(256)
    cut.save(target, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
