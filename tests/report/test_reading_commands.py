"""What commands that read say of a check that is unknown, of a side that was not read, and of a name that is not there."""

from __future__ import annotations

import argparse
import errno
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deltalake
import pytest

from jobs.cli import main
from jobs.commands import compare, diff, history
from jobs.evidence.opening import Finished
from jobs.evidence.past_cluster import PastCluster
from jobs.evidence.past_run import PastRun, past_run
from jobs.exit import CRASH, OK, USAGE, WARNINGS, AuditError, UsageError
from jobs.sinks.reader import Folder
from schemas.gold import DIVERGENCES
from schemas.report import CheckResult, Gate, RunPoint
from tests.tables import NAMES, NEWEST, STAGES, unpacked

# Of either cluster in the tables NEWEST, oldest first.
RUNS = ("20261125T192054Z-9166cd", "20261125T192141Z-79d1ea")


@pytest.mark.parametrize(("verdict", "advised"), [("fail", True), ("warn", True), ("unknown", False)])
def test_a_remedy_is_for_what_is_broken(verdict: Any, advised: bool, capsys: pytest.CaptureFixture[str]) -> None:
    check = CheckResult(
        id="CAP-02",
        title="The metadata log is intact",
        verdict=verdict,
        violations=1,
        gates=["start"],
        evidence=["the controllers' metadata log was not given"],
        remedy="Stop the controller.",
    )
    history._print_gate("start", Gate("no_go", blocking=["CAP-02"]), [check])
    said = capsys.readouterr().out
    assert "the controllers' metadata log was not given" in said
    assert ("-> Stop the controller." in said) is advised


def test_what_limits_an_open_gate_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """As in the report and after a run: an optional check that could not be judged leaves the gate open."""
    open_question = "not judged: RB-09 (each entry says what to provide)"
    history._print_gate("rollback", Gate("go", explanation=open_question), [])
    assert capsys.readouterr().out == f"rollback    GO  {open_question}\n"
    history._print_gate("start", Gate("not_applicable", explanation="start: the migration has started"), [])
    assert capsys.readouterr().out == "start       NOT-APPLICABLE\n"


def test_more_violations_than_are_shown_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    check = CheckResult(
        id="START-02",
        title="Brokers that hold replicas are registered",
        verdict="fail",
        violations=2_000,
        evidence=[f"broker {number}" for number in range(20)],
    )
    history._print_gate("start", Gate("no_go", blocking=["START-02"]), [check])
    said = capsys.readouterr().out
    assert "  START-02: Brokers that hold replicas are registered (2,000 violations)\n    broker 0\n" in said
    assert "broker 4\n" in said
    assert "broker 5" not in said


@pytest.mark.parametrize(
    ("by_zookeeper", "zookeeper", "said"),
    [
        (True, {"controller_id": 0}, "run r does not know the cluster's release: give --kafka-version"),
        (True, None, "run r did not read ZooKeeper, which has the features in this phase"),
        (False, None, "run r did not read the metadata log, which has the features in this phase"),
    ],
)
def test_why_the_features_are_not_known(by_zookeeper: bool, zookeeper: Any, said: str) -> None:
    views: Any = SimpleNamespace(active=None, by_zookeeper=by_zookeeper, facts=SimpleNamespace(zookeeper=zookeeper))
    past: Any = SimpleNamespace(run_id="r")
    facts: Any = None
    with pytest.raises(UsageError, match=f"^{said}$"):
        assert PastCluster(past, facts, {}, views).active is None


def test_the_second_cluster_to_compare_is_looked_for_as_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = unpacked(NAMES[-1], tmp_path)
    name = next(iter(STAGES))
    for clusters in ((name, f"{name}x"), (f"{name}x", name)):
        named = [word for cluster in clusters for word in ("--cluster", cluster)]
        assert main(["compare", "--warehouse", str(tables), *named]) == USAGE
        said = capsys.readouterr().err
        assert said == f"kraft-audit: --cluster: no finished run of `{name}x`; did you mean `{name}`?\n"


@pytest.mark.parametrize("name", NAMES)
def test_differences_whose_rows_are_gone_are_not_taken_for_none(name: str, tmp_path: Path) -> None:
    """A table that was not restored with the others: `diff` said 0, and `explain` that there is no difference."""
    past = past_run(Finished(Folder(str(unpacked(name, tmp_path))), "migration"))
    assert past.rows(DIVERGENCES).is_empty()
    counting = replace(past, report=replace(past.report, divergences=replace(past.report.divergences, total=2)))
    with pytest.raises(
        AuditError, match=r"^0 of 2 differences of run \S+ are in gold.divergences, and retention did not"
    ):
        counting.rows(DIVERGENCES)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({}, ": 2 differences between"),
        ({"entity": "topics"}, ": 0 of 2 differences (only topics) between"),
        ({"entity": "topics", "class_": "lag"}, ": 0 of 2 differences (only topics, lag) between"),
        ({"class_": "lag", "as_of": 300}, ": 0 differences (only lag) between"),
    ],
)
def test_what_a_filter_leaves_out_is_not_taken_for_none(chosen: dict[str, Any], said: str, tmp_path: Path) -> None:
    past = past_run(Finished(Folder(str(unpacked(NAMES[-1], tmp_path))), "migration"))
    two = replace(past, report=replace(past.report, divergences=replace(past.report.divergences, total=2)))
    arguments = argparse.Namespace(**{"entity": None, "class_": None, "as_of": None, **chosen})
    assert said in diff._headline(two, arguments, 0 if chosen else 2)


@pytest.mark.parametrize("how", ["table", "jsonl"])
def test_the_history_of_a_cluster_without_a_run_is_not_empty(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name with a mistake in a configuration, or a warehouse that is not there: as `gates` and `diff` say it."""
    (tmp_path / "conf.yml").write_text(f"cluster: migraton\nwarehouse: {tmp_path}\nkraft: {{folders: [{tmp_path}]}}\n")
    assert main(["history", "--conf", str(tmp_path / "conf.yml"), "--format", how]) == USAGE
    out, said = capsys.readouterr()
    assert out == ""
    assert said == "kraft-audit: cluster migraton has no run in this warehouse yet; run `kraft-audit run` first\n"


@pytest.mark.parametrize(("phase", "said"), [("dual_write", "unknown"), ("finalized", "-"), (None, "-")])
def test_the_history_says_where_the_lag_is_unknown(phase: str | None, said: str) -> None:
    run = dict.fromkeys((*(each.name for each in fields(RunPoint) if each.name != "not_compared"), *history._COLUMNS))
    row = {**run, "run_id": "r", "verdict": "warnings", "started_at": "", "by_class": {}, "failure": "", "phase": phase}
    for table in (history._table, history._trend):
        head, cells = (line.split() for line in table([row]))
        assert cells[head.index("lag_records")] == said


def test_what_is_compared_or_shown_of_all_runs_may_be_old(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A twin that could not be audited since looked as if it were still equal."""
    named = ["--warehouse", str(unpacked(NEWEST, tmp_path))]
    runs = [word for _ in range(2) for word in ("--run", "20261125T192141Z-79d1ea")]
    twins = ["compare", *named, "--cluster", "kraft", "--cluster", "migration"]
    assert main([*twins, *runs]) == WARNINGS
    assert "Nothing newer" not in capsys.readouterr().out
    assert main(twins) == WARNINGS
    *_, one, other = capsys.readouterr().out.splitlines()
    assert one.startswith("A: Nothing newer is known: run 20261125T192141Z-79d1ea is ")
    assert other == f"B: {one.removeprefix('A: ')}"
    assert main(["isr", "orders", *named, "--cluster", "migration"]) == OK
    assert capsys.readouterr().out.splitlines()[-1].startswith("Nothing newer is known: run 20261125T192141Z-79d1ea ")


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (["--cluster", "kraft", "--cluster", "kraft"], "both are run 20261125T192141Z-79d1ea of kraft"),
        (["--cluster", "kraft", "--run", RUNS[0], "--run", RUNS[0]], f"both are run {RUNS[0]} of kraft"),
    ],
)
def test_a_state_is_not_compared_with_itself(
    chosen: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that was copied and not changed: the cluster was called equal to its twin."""
    assert main(["compare", "--warehouse", str(unpacked(NEWEST, tmp_path)), *chosen]) == USAGE
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"kraft-audit: --cluster, --run: {said}; give two clusters or two runs\n"


def judged_so(check: CheckResult) -> Callable[..., PastRun]:
    """What finds a past run, with this result of its check in the report."""

    def found(*named: Any) -> PastRun:
        past = past_run(*named)
        others = [each for each in past.report.checks if each.id != check.id]
        return replace(past, report=replace(past.report, checks=[*others, check]))

    return found


@pytest.mark.parametrize(
    ("check_id", "verdict", "code"), [("CAP-02", "fail", 10), ("CAP-12", "unknown", 10), ("CAP-12", "pass", 0)]
)
def test_states_of_which_not_all_was_read_are_not_equal(
    check_id: str,
    verdict: Any,
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = CheckResult(check_id, verdict, 1, evidence=["1 record of type 99"])
    monkeypatch.setattr(compare, "past_run", judged_so(check))
    runs = [word for run_id in RUNS for word in ("--run", run_id)]
    place = ["--warehouse", str(unpacked(NEWEST, tmp_path)), "--cluster", "kraft"]
    assert main(["compare", *place, *runs]) == code
    said = f"Rows may be missing or wrong, {check_id}: 1 record of type 99"
    assert capsys.readouterr().out.splitlines()[3:] == ([f"A: {said}", f"B: {said}"] if code else [])


@pytest.mark.parametrize(
    ("check_id", "verdict", "told"),
    [("CAP-07", "fail", True), ("CAP-02", "fail", True), ("CAP-20", "unknown", False), ("CAP-07", "pass", False)],
)
def test_a_difference_with_what_was_not_read_is_not_known(
    check_id: str,
    verdict: Any,
    told: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = CheckResult(check_id, verdict, 3, evidence=["/brokers/topics/wide: not authorised"])
    monkeypatch.setattr(diff, "past_run", judged_so(check))
    assert main(["diff", "--warehouse", str(unpacked(NEWEST, tmp_path)), "--cluster", "migration"]) == OK
    first, *others = capsys.readouterr().out.splitlines()
    assert ": 0 differences between" in first
    said = f"Rows may be missing or wrong, {check_id}: /brokers/topics/wide: not authorised, and 2 more"
    assert (said in others) is told


@pytest.mark.parametrize("hidden", ["gold", "gold/runs", "gold/runs/_delta_log"])
def test_tables_that_may_not_be_read_are_not_empty(
    hidden: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """delta-rs says "not a table" of a folder that this user may not look into, even to root if it is told so."""
    tables = unpacked(NEWEST, tmp_path)
    (tmp_path / "conf.yml").write_text(f"cluster: kraft\nwarehouse: {tables}\nkraft: {{folders: [{tmp_path}]}}\n")

    def listed(place: Any) -> list[str]:
        if Path(place).is_relative_to(tables / hidden):
            raise PermissionError(errno.EACCES, "Permission denied", str(place))
        return [each.name for each in Path(place).iterdir()]

    def opened(place: str, **_: Any) -> deltalake.DeltaTable:
        assert Path(place).is_relative_to(tables / hidden) or Path(place) in (tables / hidden).parents
        raise deltalake.exceptions.TableNotFoundError("not a Delta table")

    monkeypatch.setattr(os, "listdir", listed)
    monkeypatch.setattr(deltalake, "DeltaTable", opened)
    assert main(["history", "--conf", str(tmp_path / "conf.yml")]) == CRASH
    said = capsys.readouterr().err
    assert said.startswith("kraft-audit: table gold.runs can't be read: Permission denied: ")


def test_without_an_output_a_command_has_its_exit_code(tmp_path: Path) -> None:
    """As of a job whose output is closed: `gates` ended with 1, as if the program were broken."""
    asked = ["gates", "--warehouse", str(unpacked(NEWEST, tmp_path)), "--cluster", "kraft", "--gate", "upgrade"]
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "jobs.cli", *asked]
    made = subprocess.run(shell, cwd=Path(__file__).parents[2], stderr=subprocess.PIPE, text=True, check=False)
    assert (made.returncode, made.stderr.partition(":")[0]) == (20, "kraft-audit")
    assert "gate upgrade is closed" in made.stderr
