"""A report and the command beside it never differ: `downgrade`, `features` and `diff --as-of END`, for every packed capture."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jobs.cli import main
from jobs.commands.downgrade import settings_of, state_of
from jobs.evidence.as_of import divergences_as_of
from jobs.evidence.opening import Finished
from jobs.evidence.past_cluster import past_cluster
from jobs.evidence.past_run import PastRun, past_run
from jobs.run.run import Failure
from schemas.gold import DIVERGENCES, RUNS
from schemas.report import DowngradeReadiness
from tests.captures import KRAFT_VERSIONS, VERSIONS, capture, stages
from tests.pipeline.audits import Audit, Content, Preparation, in_fleet, settings_content
from tests.pipeline.conftest import CAPTURES
from transforms.downgrade.readiness import LineOutcome, floor_of, readiness, targets
from transforms.features.levels import release_name, release_tuple
from transforms.features.matrix import matrix
from transforms.reconcile.compare.divergences import LOCATED
from transforms.reconcile.judge.summary import may_compare

pytestmark = pytest.mark.slow
IMPATIENT = "impatient"
SHARED = {(version, capture(version, stage).name): f"{version}-{stage}" for version, stage in CAPTURES}
CLUSTERS = {
    SHARED.get((version, stage), f"{version}-{stage}"): (version, stage)
    for version in (*VERSIONS, *KRAFT_VERSIONS)
    for stage in stages(version)
}


def _prepared(version: str, stage: str) -> Preparation:
    return lambda folder: settings_content(capture(version, stage), folder)


for _name in CLUSTERS.keys() - set(SHARED.values()):
    in_fleet(_name)(_prepared(*CLUSTERS[_name]))


def _by_folder(version: str, stage: str) -> Preparation:
    """A capture whose ZooKeeper is read from its data folder: the transactions tell between which of them a write was lost."""
    return lambda folder: settings_content(capture(version, stage), folder, data_folder=True)


FOLDERS = {
    f"{version}-{stage}-by-folder": (version, stage) for version, stage in (("3.9.1", "quota-removal"), ("3.5.2", "5"))
}
for _name, _capture in FOLDERS.items():
    in_fleet(_name)(_by_folder(*_capture))


@in_fleet(IMPATIENT)
def _impatient(folder: Path) -> Content:
    """A cluster whose lag is late at once."""
    return settings_content(capture("3.9.1", "8"), folder, thresholds={"lag_seconds": 0})


def _with_files(version: str, stage: str, kind: str, ids: range, lines: str) -> Preparation:
    """A capture with a property file of each node of a kind, which holds a secret beside what is asked of it."""

    def prepare(folder: Path) -> Content:
        files = []
        for node in ids:
            path = folder / f"{node}.properties"
            path.write_text(f"node.id={node}\n{lines}\nssl.key.password={HUSH}\n")
            files.append(str(path))
        return settings_content(capture(version, stage), folder, kafka_version=version[:3], properties={kind: files})

    return prepare


HUSH = "hush-hush"
FORMATS = "inter.broker.protocol.version=3.4\nlog.message.format.version=2.8"
VOTERS = "controller.quorum.voters=3000@a:1,3001@a:2,3005@a:3"
OF_FILES = {
    "protocols-of-brokers": _with_files("3.9.1", "3", "brokers", range(3), FORMATS),
    "protocols-before-kraft": _with_files("3.9.1", "1", "brokers", range(2), FORMATS),
    "voters-of-controllers": _with_files("4.3.1-kraft", "upgrade-1-before", "controllers", range(3000, 3003), VOTERS),
}
for _name, _preparation in OF_FILES.items():
    in_fleet(_name)(_preparation)


@pytest.fixture(params=[*CLUSTERS, *FOLDERS, *OF_FILES])
def told(request: pytest.FixtureRequest, fleet: Mapping[str, Audit | Failure]) -> tuple[Audit, PastRun]:
    audit = fleet[request.param]
    assert isinstance(audit, Audit), audit
    return audit, past_run(Finished(audit.warehouse, audit.cluster), audit.run_id)


def test_commands_say_what_the_report_says(told: tuple[Audit, PastRun]) -> None:
    audit, past = told
    assert differences(audit, past) == []


def differences(audit: Audit, past: PastRun) -> list[str]:
    """Names of the commands that say something else than the report, with what they say."""
    known = past_cluster(past)
    state = state_of(known)
    found = []
    report = audit.report.downgrade
    if report is None or _downgrades(state) != _told(report):
        found.append(f"downgrade: {_downgrades(state)} in place of {report}")
    if report is None or settings_of(past, state) != [f"  setting  {text}" for text in report.settings]:
        found.append(f"downgrade: {settings_of(past, state)} in place of {report and report.settings}")
    listed = {
        (line.feature, line.node_kind, line.node_id, line.min_level, line.max_level, line.finalised_level, line.gap)
        for line in audit.report.features
    }
    if known.views.active is None:
        assert known.views.release is None or not audit.report.features
    else:
        cells = matrix(known.active.nodes, known.active.finalised)
        matrix_rows = {
            (cell.feature, cell.node.kind, cell.node.node_id, cell.lowest, cell.highest, cell.finalised, cell.gap)
            for cell in cells
        }
        if matrix_rows != listed:
            found.append(f"features: {sorted(matrix_rows ^ listed, key=str)}")
    return [*found, *_differing_rows(audit, past, may_compare(known.views.facts))]


def _downgrades(state: Any) -> tuple[Any, ...]:
    judged = [(release_name(release), readiness(state, release)) for release in targets(state)]
    floor = floor_of(state)
    reasons = {
        name: (
            each.verdict.value,
            [
                (line.outcome.value, line.what, line.evidence)
                for line in each.lines
                if line.outcome is not LineOutcome.SAFE
            ]
            or [(line.outcome.value, line.what, line.evidence) for line in each.lines],
        )
        for name, each in judged
    }
    return state.mode.value, None if floor is None else release_name(floor), reasons


def _told(report: DowngradeReadiness) -> tuple[Any, ...]:
    reasons = {
        target.release: (target.verdict, [(each.outcome, each.reason, each.evidence) for each in target.reasons])
        for target in report.targets
    }
    assert all(release_name(release_tuple(name)) == name for name in reasons)
    return report.mode, report.floor, reasons


def _differing_rows(audit: Audit, past: PastRun, compared: bool) -> list[str]:
    end = audit.report.migration.committed_end_offset
    stored = past.rows(DIVERGENCES, [*LOCATED, "status"]).filter(pl.col("status") != "resolved")
    recorded = _told_rows(stored.select(*LOCATED).to_dicts())
    if not compared or end is None:
        return [f"diff: {recorded} where nothing was compared"] if recorded else []
    again = _told_rows(divergences_as_of(past, end).select(*LOCATED).toArrow().to_pylist())
    return [] if again == recorded else [f"diff: {sorted(again ^ recorded)[:6]} of {len(recorded)} rows"]


def _told_rows(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Rows as gold divergences holds them, but for what only the run itself knows."""
    return {json.dumps(row, sort_keys=True, default=str) for row in rows}


def test_diff_as_of_goes_by_the_configured_thresholds(
    fleet: Mapping[str, Audit | Failure], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = fleet[IMPATIENT]
    assert isinstance(audit, Audit), audit
    conf = tmp_path / "impatient.yml"
    warehouse = Path(audit.warehouse.root)
    limits = {"lag_seconds": 0}
    content = settings_content(capture("3.9.1", "8"), warehouse, cluster=IMPATIENT, thresholds=limits)
    conf.write_text(json.dumps(content))

    def said(*argv: str) -> list[tuple[Any, ...]]:
        capsys.readouterr()
        assert main(["diff", "--conf", str(conf), "--format", "jsonl", "--limit", "0", *argv]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return sorted((row["fingerprint"], row["class"], row["severity"]) for row in rows)

    end = audit.report.migration.committed_end_offset
    assert "warning" in {row[2] for row in said()}, "late rows are warnings"
    assert said("--as-of", str(end)) == said()


@pytest.mark.parametrize("name", ["protocols-of-brokers", "protocols-before-kraft"])
def test_property_files_decide_what_the_command_says_as_they_decide_the_report(
    fleet: Mapping[str, Audit | Failure], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = fleet[name]
    assert isinstance(audit, Audit), audit
    known = past_cluster(past_run(Finished(audit.warehouse, audit.cluster), audit.run_id))
    without = replace(state_of(known), configurations=None)
    assert audit.report.downgrade is not None
    assert _downgrades(without) != _told(audit.report.downgrade), "the files tell nothing"
    said = _said(capsys, audit, "downgrade", "--to", "3.3")
    assert "[broker 0's property file]" in said
    assert "3.4" in said


def test_voters_that_the_files_name_are_asked_by_the_report_and_by_the_command(
    fleet: Mapping[str, Audit | Failure], capsys: pytest.CaptureFixture[str]
) -> None:
    """In a dynamic quorum `controller.quorum.voters` of the files are all that Kafka asks registrations of."""
    audit = fleet["voters-of-controllers"]
    assert isinstance(audit, Audit), audit
    words = "controller 3005 has not registered, and may not support this feature"
    assert words in audit.report.gates["upgrade"].explanation
    assert words in _said(capsys, audit, "features", "upgrade", "--feature", "metadata.version=30")


def test_no_secret_of_a_property_file_is_kept(fleet: Mapping[str, Audit | Failure]) -> None:
    audit = fleet["voters-of-controllers"]
    assert isinstance(audit, Audit), audit
    rows = audit.rows(RUNS)
    assert json.loads(rows[0]["beside"])["controllers"], "nothing is kept"
    assert HUSH not in json.dumps(rows, default=str)


def _said(capsys: pytest.CaptureFixture[str], audit: Audit, *argv: str) -> str:
    capsys.readouterr()
    assert main([*argv, "--warehouse", audit.warehouse.root, "--cluster", audit.cluster]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", FOLDERS)
def test_lost_writes_of_a_data_folder_are_told_with_their_transactions(
    fleet: Mapping[str, Audit | Failure], name: str
) -> None:
    """Else nothing was compared with the command that the transaction logs alone tell."""
    audit = fleet[name]
    assert isinstance(audit, Audit), audit
    assert audit.rows(DIVERGENCES, "class = 'lost_write' AND lost_until_zxid IS NOT NULL")
