"""A cluster audited again and again: stale copies, another cluster's log and a wrong clock are said, and hide nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.cli import main
from jobs.evidence.fleet_runs import fleet_runs
from jobs.evidence.opening import Finished
from jobs.evidence.past_run import past_run, runs_of
from jobs.pipeline import run_all
from jobs.run.run import open_run
from jobs.settings import TABLES_FOLDER, validated
from jobs.sinks.delta import Warehouse
from jobs.steps.fleet import fleet_of
from schemas.gold import CHECKS as GOLD_CHECKS
from schemas.gold import RUNS
from schemas.report import Report
from tests.captures import capture
from tests.pipeline.audits import settings_content

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]
RUN_CHECKS = ("CAP-11", "RUN-01", "RUN-02", "RUN-03", "RUN-04", "RUN-05")
EARLY, LATE = capture("4.3.1-kraft", "7-elr-cleared"), capture("4.3.1-kraft", "8-unclean")
OTHER = capture("4.3.1-kraft", "static-1-quorum")


@dataclass
class Told:
    """The reports of a cluster's runs, in order, and where they are."""

    reports: list[Report]
    warehouse: Warehouse

    def found(self, number: int) -> dict[str, str]:
        """What the checks between runs say of a run, where that is not a pass."""
        checks = self.reports[number].checks
        return {c.id: c.verdict for c in checks if c.id in RUN_CHECKS and c.verdict not in ("pass", "not_applicable")}


def audited(folder: Path, warehouse: Path, begun: datetime | None = None, **more: Any) -> tuple[Report, Warehouse]:
    settings = validated(dict(settings_content(folder, warehouse, **more)), "test")
    with open_run(settings) as run:
        if begun is not None:
            run.started_at = begun
        report = run_all(run)["test"].report
        assert report is not None
        return report, run.warehouse


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """LATE by a clock ten years ahead, an older copy, that again, another cluster's, copies of both, LATE days later."""
    place = tmp_path_factory.mktemp("between")
    now = datetime.now(UTC)
    both = {"kraft": {"folders": [str(LATE / "kraft"), str(OTHER / "kraft")]}}
    steps: list[tuple[Path, datetime | None, dict[str, Any]]] = [
        (LATE, now + timedelta(days=3650), {}),
        (EARLY, None, {}),
        (EARLY, None, {}),
        (OTHER, None, {}),
        (LATE, None, both),
        (LATE, now, {}),
        (LATE, now + timedelta(hours=49), {}),
    ]
    made = [audited(folder, place, begun, **more) for folder, begun, more in steps]
    return Told([report for report, _ in made], made[0][1])


def test_a_first_run_is_held_against_nothing(told: Told) -> None:
    assert told.found(0) == {}


@pytest.mark.parametrize("number", [1, 2])
def test_a_copy_that_is_older_is_said_every_time(told: Told, number: int) -> None:
    assert told.found(number) == {"RUN-02": "fail"}
    assert told.reports[number].verdict == "errors"
    assert "RUN-02" in told.reports[number].gates["upgrade"].blocking


def test_another_clusters_log_is_said(told: Told) -> None:
    assert told.found(3) == {"RUN-01": "fail"}


def test_copies_of_two_clusters_are_not_judged_together(told: Told) -> None:
    report = told.reports[4]
    assert told.found(4)["CAP-11"] == "fail"
    assert report.verdict == "errors"
    assert report.migration.committed_end_offset is None
    assert all(gate.verdict != "go" for gate in report.gates.values())


def test_the_right_log_is_right_again(told: Told) -> None:
    assert told.found(5) == {}


def test_a_log_that_stands_still_for_days_is_said(told: Told) -> None:
    assert told.found(6) == {"RUN-04": "fail"}


def test_a_run_from_the_future_hides_no_later_one(told: Told) -> None:
    rows = {row["run_id"]: row for row in told.warehouse.read(RUNS).collect()}
    assert [rows[report.run_id]["sequence"] for report in told.reports] == [1, 2, 3, 4, 5, 6, 7]
    assert [rows[report.run_id]["goes_on"] for report in told.reports] == [True, False, False, False, False, True, True]
    past = past_run(Finished(told.warehouse, "test"))
    assert past.run_id == told.reports[-1].run_id
    assert any("the clock was set back" in note for note in told.reports[1].notes)
    standing = fleet_of(fleet_runs(told.warehouse), 48)
    assert standing.clusters[0].newest.run_id == told.reports[-1].run_id


def test_the_reports_history_is_in_the_order_of_the_runs(told: Told) -> None:
    assert [point.run_id for point in told.reports[-1].history] == [report.run_id for report in told.reports]


def test_an_audit_of_files_once_is_held_against_no_earlier_run(spark: SparkSession, tmp_path: Path) -> None:
    for folder in (LATE, EARLY):
        assert main(["check", "--kraft", str(folder / "kraft"), "--out", str(tmp_path), "--quiet"]) in (0, 10, 20)
    rows = Warehouse(spark, str(tmp_path / TABLES_FOLDER)).read(GOLD_CHECKS).where("check_id LIKE 'RUN-%'").collect()
    assert len(rows) == 10
    assert {row["verdict"] for row in rows} == {"not_applicable"}


Gates = Callable[..., tuple[int, str]]


@pytest.fixture
def gates(told: Told, capsys: pytest.CaptureFixture[str]) -> Gates:
    def ask(*argv: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(["gates", "--warehouse", told.warehouse.root, "--cluster", "test", *argv])
        said = capsys.readouterr()
        return code, said.out + said.err

    return ask


def test_gates_say_of_which_run_they_speak_and_what_came_since(told: Told, gates: Gates) -> None:
    code, out = gates()
    assert code == 0
    assert out.startswith(f"Run {told.reports[-1].run_id}")
    code, out = gates("--gate", "dual_write")
    assert (code, "gate dual_write is NOT-APPLICABLE" in out) == (20, True)
    # A gate of another phase may pass, but not beside a finding that would close it.
    code, out = gates("--gate", "dual_write", "--allow-unknown")
    assert (code, "RUN-04 failed" in out) == (20, True)
    code, out = gates("--gate", "dual_write", "--allow-unknown", "--run", told.reports[5].run_id)
    assert (code, "since then 1 run finished" in out) == (0, True)
    assert gates("--gate", "upgrade")[0] == 20


REQUEST = ["--topic", "orders", "--partition", "0", "--leader-epoch", "0", "--partition-epoch", "0", "--isr", "0"]


@pytest.mark.parametrize(
    "command",
    [
        ["downgrade", "--to", "3.6"],
        ["features", "describe"],
        ["features", "upgrade", "--feature", "metadata.version=4.0-IV3"],
        ["isr", "validate", *REQUEST],
        ["isr", "orders/0", "--run"],
        ["explain", "topics", "orders"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_a_command_that_answers_from_one_run_says_which_and_what_came_since(
    told: Told, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--warehouse", told.warehouse.root, "--cluster", "test"]
    for report, since in ((told.reports[-1], False), (told.reports[5], True)):
        run = ["--run", report.run_id]
        argv = [word for word in command if word != "--run"]
        capsys.readouterr()
        assert main([*argv, *where, *(run if since or "--run" in command else [])]) == 0
        said = capsys.readouterr().out
        assert f"Run {report.run_id} of cluster test, finished " in said
        assert ("since then 1 run finished: this is not the newest" in said) is since


def test_a_newest_run_that_failed_shuts_an_asked_gate(told: Told, gates: Gates, tmp_path: Path) -> None:
    before = runs_of(told.warehouse, "test")
    conf = tmp_path / "conf.yml"
    conf.write_text(
        f"cluster: test\nwarehouse: {told.warehouse.root}\nkraft: {{folders: [/nowhere]}}\nreport: {{folder: '{tmp_path}'}}\n"
    )
    assert main(["run", "--conf", str(conf), "--quiet"]) == 2
    failed = runs_of(told.warehouse, "test")
    assert len(failed) == len(before) + 1
    assert failed[-1].failure.endswith("there is no folder /nowhere")
    assert failed[-1].sequence == 8
    code, out = gates("--gate", "dual_write", "--allow-unknown")
    assert code == 20
    assert "failed" in out.splitlines()[1]
    assert "there is no folder /nowhere" in out
