"""`kraft-audit diff` of a run without differences: equal sides, or sides that were not compared."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from jobs.commands import diff
from schemas.report import Report
from tests.report.samples import healthy, not_ready, uncompared
from transforms.reconcile.compare.divergences import FOLLOWED


def printed(report: Report, monkeypatch: pytest.MonkeyPatch, **asked: Any) -> None:
    """Run the command on a run that stored this report and no differences."""
    past = SimpleNamespace(
        report=report,
        cluster=report.cluster,
        run_id=report.run_id,
        rows=lambda *_: pl.DataFrame(schema=FOLLOWED),
        standing=SimpleNamespace(lines=lambda _: []),
    )

    @contextmanager
    def opened(*_: Any, **__: Any) -> Iterator[Any]:
        yield SimpleNamespace(stale_after_hours=48)

    monkeypatch.setattr(diff, "open_warehouse", opened)
    monkeypatch.setattr(diff, "past_run", lambda *_: past)
    given = {"entity": None, "class_": None, "limit": 10, "as_of": None, "run_id": None, "format": "table"}
    assert diff.execute(Namespace(**given | asked)) == 0


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (uncompared(), "phase dual write, mode barrier"),
        (not_ready(), "phase waiting, mode single"),
        (replace(healthy(), mode="kraft_only"), "phase dual write, mode kraft_only"),
    ],
)
def test_a_run_that_compared_nothing_is_not_told_as_one_without_differences(
    report: Report, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = f"the two sides were not compared ({why}): no difference is known"
    printed(report, monkeypatch)
    out = capsys.readouterr().out
    assert said in out
    assert "0 differences" not in out
    printed(report, monkeypatch, format="jsonl")
    assert capsys.readouterr() == ("", out)


@pytest.mark.parametrize(("phase", "class_"), [("dual_write", "in_flight"), ("finalized", "expected_stale")])
def test_rows_of_later_records_are_said_to_be_of_the_class_that_they_have(
    phase: str, class_: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = healthy()
    report = replace(report, migration=replace(report.migration, phase=phase))
    monkeypatch.setattr(diff, "_first", lambda *_: pl.DataFrame(schema={**FOLLOWED, "total": pl.Int64}))
    printed(report, monkeypatch, as_of=100)
    assert f"ZooKeeper is ahead: rows that it has from later records are {class_}\n" in capsys.readouterr().out


def test_equal_sides_have_no_differences(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    printed(healthy(), monkeypatch)
    assert "0 differences between ZooKeeper (/migration at 306) and KRaft after offset 306" in capsys.readouterr().out
