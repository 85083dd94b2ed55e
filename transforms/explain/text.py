"""What happened to a row, for a terminal: aligned, nothing that matters shortened, hostile characters escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.report import DivergenceRow
from transforms.explain.keys import RowKey
from transforms.explain.timeline import TimelineLine
from transforms.report.printable import value_text, visible
from transforms.report.table import aligned
from transforms.times import utc_time

_INDENT = "    "


@dataclass(frozen=True)
class Side:
    """One side's row now: its text, and where it stands (znode and zxid, or offset)."""

    name: str
    value: str
    place: str


@dataclass(frozen=True)
class Explanation:
    """Everything that is shown about a row. `as_of` is the side at the requested offset, with the offset.

    `uncompared` is a sentence that says why the two sides were not compared; empty if they were.
    """

    row: RowKey
    cluster: str
    run_id: str
    sides: Sequence[Side]
    differences: Sequence[DivergenceRow]
    steps: Sequence[TimelineLine]
    notes: Sequence[str]
    as_of: Side | None = None
    uncompared: str = ""


def render(explanation: Explanation) -> str:
    """The whole text; every line ends in a newline."""
    name = explanation.row.entity.name.replace("_", " ")
    blocks = [
        [f"{name}  {explanation.row.shown}", f"Cluster {explanation.cluster}, run {explanation.run_id}"],
        [] if explanation.as_of is None else _sides([explanation.as_of]),
        _sides(explanation.sides),
        _differences(explanation),
        _steps(explanation.steps),
        list(explanation.notes),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _sides(sides: Sequence[Side]) -> list[str]:
    rows = [line for side in sides for line in ((side.name, side.value), ("", side.place)) if any(line)]
    return aligned(rows)


def _differences(explanation: Explanation) -> list[str]:
    if not explanation.row.entity.mirrored:
        return [f"{explanation.row.entity.name} are not compared: each side has its own"]
    if not explanation.differences:
        return [explanation.uncompared or "No difference in this run"]
    lines = ["Differences of this run"]
    for row in explanation.differences:
        where = "whole row" if row.column is None else visible(row.column)
        lines.append(f"  {row.class_}  {where}: {visible(row.explanation)} ({row.severity}, {row.status})")
        if row.column is not None:
            lines.append(f"{_INDENT}ZooKeeper {value_text(row.zk_value)}, KRaft {value_text(row.kraft_value)}")
    return lines


def _steps(steps: Sequence[TimelineLine]) -> list[str]:
    if not steps:
        return []
    heads = aligned([(utc_time(step.time), step.place, step.who, step.what) for step in steps])
    lines = ["What happened, oldest first (times are UTC; an offset is inclusive: the row is shown with it applied)"]
    for head, step in zip(heads, steps, strict=True):
        lines.append(f"  {head}")
        if step.after:
            lines.append(f"  {_INDENT}{step.after}")
    return lines
