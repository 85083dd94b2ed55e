"""Five captures' reports decide what they decided before: new words break nothing here, another verdict does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from schemas.report import Report
from tests.pipeline.audits import Audit
from tests.pipeline.verdicts import STORED, stored, verdicts
from transforms.report.json import to_json

pytestmark = pytest.mark.slow
NAMES = sorted(path.stem for path in STORED.glob("*.json"))
Audited = Callable[[str], Audit]


def decided(report: Report) -> dict[str, object]:
    found = verdicts(json.loads(to_json(report)))
    return dict(json.loads(json.dumps(found)))


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_is_judged_as_before(audited: Audited, name: str) -> None:
    assert decided(audited(name).report) == stored(name)


def test_five_stories_are_kept() -> None:
    """A start that is blocked, a mirror that is behind, a loss, a migration that is over, and Kafka's own faults."""
    assert NAMES == ["3.5.2-8", "3.9.1-12", "3.9.1-3", "3.9.1-8", "3.9.1-quota-removal"]


def test_new_words_change_nothing_and_a_new_verdict_does(audited: Audited) -> None:
    report = audited("3.9.1-8").report
    known = stored("3.9.1-8")
    reworded = [replace(check, title="another title", evidence=["other words"]) for check in report.checks]
    assert decided(replace(report, checks=reworded, mode_explanation="said anew", run_id="another")) == known
    turned = [replace(report.checks[0], verdict="fail"), *report.checks[1:]]
    assert decided(replace(report, checks=turned)) != known
    assert decided(replace(report, exit_code=0)) != known
    gates = {name: replace(gate, verdict="go") for name, gate in report.gates.items()}
    assert decided(replace(report, gates=gates)) != known
