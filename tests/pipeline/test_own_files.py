"""Whether a pass writes rows to a file of their table or sends them with its answers: tables and reports are the same, run after run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs.run.cluster_pass import FEW_ROWS, FILE
from jobs.run.examine import TABLES
from jobs.sinks import delta
from schemas.examined import EXAMINED
from schemas.gold import ISR_HISTORY
from schemas.table import Table
from tests.captures import capture
from tests.pipeline.audits import Audit, audit, settings_content
from transforms.report.json import to_json

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]
STAGES = ("5", "8")
# Of these captures' rows some are as large, and none; all of them: tests/examination/test_own_files.py.
SOME, NONE = 4096, 1 << 40
_TIMES = ("started_at", "finished_at")
Ways = dict[int, list[Audit]]


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Ways:
    """Two stages of a cluster audited one after the other, by the size from which rows have a file of their own."""
    found: Ways = {}
    with pytest.MonkeyPatch.context() as patch:
        # The same key, so that masked values compare.
        patch.setenv("OWN_FILES_KEY", "a key of the tests, as long as one")
        for size in (SOME, NONE):
            patch.setattr(delta, "OWN_FILE_BYTES", size)
            place = tmp_path_factory.mktemp(f"from-{size}")
            secrets = {"fingerprint_key_env": "OWN_FILES_KEY"}
            found[size] = [audit(settings_content(capture("3.9.1", stage), place, secrets=secrets)) for stage in STAGES]
    return found


def test_rows_go_the_ways_that_are_meant(ways: Ways) -> None:
    kinds = {size: {row["kind"] for row in audits[-1].rows(EXAMINED)} for size, audits in ways.items()}
    assert {FEW_ROWS, FILE} <= kinds[SOME], "some tables one way, some the other"
    assert FILE not in kinds[NONE]


@pytest.mark.parametrize("run", range(len(STAGES)))
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.full_name)
def test_each_table_has_the_same_rows(ways: Ways, run: int, table: Table) -> None:
    said = {
        size: sorted(json.dumps(compared(audits, row), default=str, sort_keys=True) for row in audits[run].rows(table))
        for size, audits in ways.items()
    }
    assert said[SOME] == said[NONE]
    if table is ISR_HISTORY:
        assert said[SOME], "there is something to compare"


@pytest.mark.parametrize("run", range(len(STAGES)))
def test_each_report_says_the_same(ways: Ways, run: int) -> None:
    said = {size: compared(audits, json.loads(to_json(audits[run].report))) for size, audits in ways.items()}
    assert said[SOME] == said[NONE]


def compared(audits: list[Audit], value: Any) -> Any:
    """A value with the runs' numbers in place of their ids, and without their times."""
    if isinstance(value, dict):
        return {name: compared(audits, each) for name, each in value.items() if name not in _TIMES}
    if isinstance(value, list):
        return [compared(audits, each) for each in value]
    if isinstance(value, str):
        for number, each in enumerate(audits):
            value = value.replace(each.run_id, f"run {number}")
    return value
