"""A report and the command beside it never differ: `downgrade`, `features` and `diff --as-of END`, for every packed capture."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.audit.as_of import divergences_as_of
from jobs.audit.past import Finished, PastRun, past_run
from jobs.audit.run import Failure
from jobs.audit.standing import standing
from jobs.cli import main
from jobs.commands.downgrade import state_of
from schemas.gold import DIVERGENCES
from schemas.report import DowngradeReadiness
from tests.captures import KRAFT_VERSIONS, VERSIONS, capture, stages
from tests.pipeline.audits import Audit, Content, Preparation, in_fleet, settings_content
from tests.pipeline.conftest import CAPTURES
from transforms.downgrade.ledger import shown
from transforms.downgrade.readiness import Outcome, floor_of, readiness, targets
from transforms.features.levels import release_tuple
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


@in_fleet(IMPATIENT)
def _impatient(folder: Path) -> Content:
    """A cluster whose lag is late at once."""
    return settings_content(capture("3.9.1", "8"), folder, thresholds={"lag_seconds": 0})


@pytest.fixture(params=CLUSTERS)
def told(request: pytest.FixtureRequest, fleet: Mapping[str, Audit | Failure]) -> tuple[Audit, PastRun]:
    audit = fleet[request.param]
    assert isinstance(audit, Audit), audit
    return audit, past_run(Finished(audit.warehouse, audit.cluster), audit.run_id)


def test_commands_say_what_the_report_says(told: tuple[Audit, PastRun]) -> None:
    audit, past = told
    assert differences(audit, past) == []


def differences(audit: Audit, past: PastRun) -> list[str]:
    """Names of the commands that say something else than the report, with what they say."""
    known = standing(past)
    state = state_of(known, None)
    found = []
    report = audit.report.downgrade
    if report is None or _downgrades(state) != _told(report):
        found.append(f"downgrade: {_downgrades(state)} in place of {report}")
    listed = {
        (line.feature, line.node_kind, line.node_id, line.min_level, line.max_level, line.finalised_level, line.gap)
        for line in audit.report.features
    }
    if known.standing.asked is None:
        assert known.standing.release is None or not audit.report.features
    else:
        cells = matrix(known.asked.nodes, known.asked.finalised)
        matrix_rows = {
            (cell.feature, cell.node.kind, cell.node.node_id, cell.lowest, cell.highest, cell.finalised, cell.gap)
            for cell in cells
        }
        if matrix_rows != listed:
            found.append(f"features: {sorted(matrix_rows ^ listed, key=str)}")
    return [*found, *_differing_rows(audit, past, may_compare(known.standing.facts))]


def _downgrades(state: Any) -> tuple[Any, ...]:
    judged = [(shown(release), readiness(state, release)) for release in targets(state)]
    floor = floor_of(state)
    reasons = {
        name: (
            each.verdict.value,
            [(line.outcome.value, line.what, line.evidence) for line in each.lines if line.outcome is not Outcome.SAFE]
            or [(line.outcome.value, line.what, line.evidence) for line in each.lines],
        )
        for name, each in judged
    }
    return state.mode.value, None if floor is None else shown(floor), reasons


def _told(report: DowngradeReadiness) -> tuple[Any, ...]:
    reasons = {
        target.release: (target.verdict, [(each.outcome, each.reason, each.evidence) for each in target.reasons])
        for target in report.targets
    }
    assert all(shown(release_tuple(name)) == name for name in reasons)
    return report.mode, report.floor, reasons


def _differing_rows(audit: Audit, past: PastRun, compared: bool) -> list[str]:
    end = audit.report.migration.committed_end_offset
    recorded = _rows(past.read(DIVERGENCES).where("status <> 'resolved'"))
    if not compared or end is None:
        return [f"diff: {recorded} where nothing was compared"] if recorded else []
    again = _rows(divergences_as_of(past, end))
    return [] if again == recorded else [f"diff: {sorted(again ^ recorded)[:6]} of {len(recorded)} rows"]


def _rows(frame: Any) -> set[str]:
    """Rows as gold divergences holds them, but for what only the run itself knows."""
    rows = frame.select(*LOCATED).collect()
    return {json.dumps(row.asDict(recursive=True), sort_keys=True, default=str) for row in rows}


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
