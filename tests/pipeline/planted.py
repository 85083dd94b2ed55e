"""Faults planted in a tree, with the divergence that each must be found as."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from schemas.report import DivergenceRow, Report
from tests.pipeline.trees import Tree


@dataclass(frozen=True)
class Row:
    """What is asserted of a divergence; values as report.json has them."""

    entity: str
    key: dict[str, Any]
    column: str | None
    kind: str
    zk_value: Any
    kraft_value: Any
    class_: str
    severity: str

    @property
    def text(self) -> str:
        """The row in one line: equal rows have equal text."""
        return json.dumps(vars(self), sort_keys=True)


@dataclass(frozen=True)
class Fault:
    """One fault: how it is planted, and every row it must show; none for what is no fault."""

    name: str
    plant: Callable[[Tree], object]
    rows: tuple[Row, ...]


def found(report: Report) -> Counter[str]:
    """The divergences of a report, each as its text, with how often."""
    return Counter(_row(row).text for row in report.divergences.rows)


def expected(faults: list[Fault]) -> Counter[str]:
    """The divergences that faults must show."""
    return Counter(row.text for fault in faults for row in fault.rows)


def _row(row: DivergenceRow) -> Row:
    zk, kraft = _hidden(row.zk_value), _hidden(row.kraft_value)
    return Row(row.entity, row.key, row.column, row.kind, zk, kraft, row.class_, row.severity)


def _hidden(value: Any) -> Any:
    """A credential's keys are fingerprints by a key of the warehouse's own: that they are is all that can be said."""
    if not isinstance(value, dict):
        return value
    return {name: "hidden" if str(part).startswith("hmac:") else part for name, part in value.items()}


def assert_shown(report: Report, fault: Fault) -> None:
    """A fault's rows are all there, each once."""
    shown = found(report)
    about = [text for text in shown if any(json.dumps(row.key, sort_keys=True) in text for row in fault.rows)]
    assert [row.text for row in fault.rows if shown[row.text] != 1] == [], f"shown of these rows: {about}"


def assert_nothing_else(report: Report, faults: list[Fault]) -> None:
    """The divergences are those of the faults, and no other."""
    assert found(report) - expected(faults) == Counter()
    assert report.divergences.total == sum(expected(faults).values())
