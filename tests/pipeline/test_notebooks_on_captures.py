"""Every notebook on the tables of real captures' runs: what it shows is what the reports say and what happened."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.evidence.notebook import Notebook
from schemas.entities.features import FEATURES
from tests.captures import capture
from tests.pipeline import expected
from tests.pipeline.audits import Audit

pytestmark = pytest.mark.slow
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
QUOTA = '{"entity": {"client-id": "app-9"}, "quota": "producer_byte_rate"}'


@pytest.fixture
def execute(audited: Callable[[str], Audit], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Notebook]:
    def run(name: str, cluster: str, **parameters: str) -> Notebook:
        result = audited(cluster)
        asked = {"warehouse": result.warehouse.root, "cluster": cluster, "run_id": result.run_id, **parameters}
        for parameter, value in asked.items():
            monkeypatch.setenv(f"KRAFT_AUDIT_{parameter.upper()}", value)
        notebook = runpy.run_path(str(NOTEBOOKS / name), init_globals={"spark": result.warehouse.spark})["notebook"]
        assert isinstance(notebook, Notebook)
        return notebook

    return run


def rows(notebook: Notebook, title: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in notebook.shown[title].collect()]


def test_no_notebook_is_left_out() -> None:
    tested = Path(__file__).read_text()
    assert [path.name for path in NOTEBOOKS.glob("*.py") if f'"{path.name}"' not in tested] == []


def test_the_fleet(execute: Callable[..., Notebook], audited: Callable[[str], Audit]) -> None:
    notebook = execute("01_fleet.py", "3.9.1-9")
    found = {row["cluster"]: row for row in rows(notebook, "Fleet")}
    for name in ("3.9.1-9", "3.9.1-8", "3.9.1-quota-removal", "3.5.2-8"):
        report = audited(name).report
        row = found[name]
        assert (row["verdict"], row["phase"]) == (report.verdict, report.migration.phase)
        assert row["lag_records"] == report.lag.records
        assert row["gates"] == sorted(f"{gate}:{each.verdict}" for gate, each in report.gates.items())
    order = ["failed", "errors", "warnings", "clean"]
    verdicts = [row["verdict"] for row in rows(notebook, "Fleet")]
    assert verdicts == sorted(verdicts, key=order.index)
    assert notebook.plots.keys() == {"Verdicts", "Lag"}


def test_the_verdict(execute: Callable[..., Notebook], audited: Callable[[str], Audit]) -> None:
    notebook, report = execute("02_verdict.py", "expecting-broken"), audited("expecting-broken").report
    assert {row["gate"]: row["verdict"] for row in rows(notebook, "Gates")} == {
        name: gate.verdict for name, gate in report.gates.items()
    }
    assert rows(notebook, "Checks")[0]["verdict"] == "fail"
    assert {(row["class"], row["count"]) for row in rows(notebook, "Differences by class")} == {("lost_write", 2)}
    assert {row["suite"] for row in rows(notebook, "Expectations")} == {"gold_defects", "gold_gates"}


def test_a_divergence_and_its_story(
    execute: Callable[..., Notebook], audited: Callable[[str], Audit], capsys: pytest.CaptureFixture[str]
) -> None:
    """Set at offset 267, removed at 327, and ZooKeeper kept it: the capture's dump says so."""
    notebook = execute("03_divergence.py", "3.9.1-quota-removal", entity="client_quotas", key=QUOTA, offset="326")
    story = " ".join(capsys.readouterr().out.split())
    assert "offset 267 KRaft, epoch 3 CLIENT_QUOTA_RECORD: made, 11.0" in story
    assert "KRaft removed it at offset 327" in story
    assert "KRaft after offset 326 (inclusive) 11.0" in story
    assert [(row["run_id"], row["status"]) for row in rows(notebook, "Seen by")] == [
        (audited("3.9.1-quota-removal").run_id, "new")
    ]


def test_without_a_key_the_gravest_difference_is_told_and_without_a_difference_none(
    execute: Callable[..., Notebook], capsys: pytest.CaptureFixture[str]
) -> None:
    execute("03_divergence.py", "3.9.1-quota-removal")
    assert "lost_write" in capsys.readouterr().out
    execute("03_divergence.py", "3.9.1-9")
    assert "Nothing differs" in capsys.readouterr().out


def test_time_travel_and_lag(execute: Callable[..., Notebook], audited: Callable[[str], Audit]) -> None:
    notebook = execute("04_time_travel_and_lag.py", "3.9.1-quota-removal", topic="orders", partition="3", offset="327")
    truth = expected.partitions(expected.load(capture("3.9.1", "quota-removal"))["state"])["orders", 3]
    (kraft,) = [row for row in rows(notebook, "Both sides") if row["source"] == "kraft"]
    assert (kraft["isr"], kraft["leader"], kraft["leader_epoch"]) == (
        truth["isr"],
        truth["leader"],
        truth["leader_epoch"],
    )
    assert [row["class"] for row in rows(notebook, "Differences at offset 327")] == ["lost_write"]
    (lag,) = rows(notebook, "Lag over the runs")
    report = audited("3.9.1-quota-removal").report
    assert (lag["records"], lag["committed_end_offset"]) == (report.lag.records, report.migration.committed_end_offset)
    assert notebook.plots.keys() == {"Offsets"}


def test_brokers_and_gates(execute: Callable[..., Notebook], audited: Callable[[str], Audit]) -> None:
    notebook, report = execute("05_brokers_and_gates.py", "3.9.1-10"), audited("3.9.1-10").report
    assert {(row["broker_id"], row["mode"]) for row in rows(notebook, "Brokers")} == {
        (each.broker_id, each.mode) for each in report.broker_presence
    }
    assert {row["gate"]: row["blocking"] for row in rows(notebook, "Gates over the runs")} == {
        name: gate.blocking for name, gate in report.gates.items()
    }
    assert notebook.plots.keys() == {"Gates"}


def test_isr_churn_and_features(execute: Callable[..., Notebook], audited: Callable[[str], Audit]) -> None:
    """A broker went down at stage 6: it left ISRs, and replaying what is shown ends in the state that was replayed."""
    notebook = execute("06_isr_and_features.py", "3.9.1-6")
    state = expected.partitions(expected.load(capture("3.9.1", "6"))["state"])
    last: dict[tuple[str, int], list[int]] = {}
    for row in rows(notebook, "ISR changes"):
        last[row["topic"], row["partition"]] = row["isr"]
    assert last
    assert {key: sorted(isr) for key, isr in last.items() if key in state} == {
        key: sorted(state[key]["isr"]) for key in last if key in state
    }
    assert rows(notebook, "Brokers that leave most")[0]["count"] > 0
    features = rows(notebook, "Features")
    finalised = {row["feature"]: row["finalised_level"] for row in features if row["finalised_level"] is not None}
    known = audited("3.9.1-6").rows
    assert (
        finalised.items() <= {row["feature"]: row["level"] for row in known(FEATURES.table, "source = 'kraft'")}.items()
    )
    assert not any(row["gap"] for row in features)
    assert notebook.plots.keys() == {"ISR churn by the hour"}
