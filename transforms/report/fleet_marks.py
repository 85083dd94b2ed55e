"""A cluster's last runs as a small picture: lag as a line, verdict and gates as a strip. Inline SVG and plain text.

The strip uses height as well as colour: open gates are low marks, unknown ones half high, closed ones full.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from transforms.report.fleet_model import FleetRun, gates_in_order
from transforms.runs import CLEAN, ERRORS, FAILED, WARNINGS

MOST_RUNS = 30
_WIDTH, _HEIGHT = 90.0, 22.0
_CELL, _ROW, _GAP = 4, 7, 2
_BLOCKS = "▁▂▃▄▅▆▇█"
# Verdict of a run or a gate: colour and height of its mark.
_MARKS = {
    "go": ("good", 2),
    CLEAN: ("good", 2),
    "unknown": ("warn", 4),
    WARNINGS: ("warn", 4),
    "no_go": ("bad", 7),
    ERRORS: ("bad", 7),
    FAILED: ("bad", 7),
}
_WORDS = {"no_go": "no-go"}


def sparkline(runs: Sequence[FleetRun]) -> Markup:
    """Draw the records behind of the last runs (oldest left) as a small SVG line; nothing where no run has a figure."""
    values = [run.lag_records for run in runs[-MOST_RUNS:]]
    known = [value for value in values if value is not None]
    if not known:
        return Markup("")
    top, step = max(*known, 1), _WIDTH / max(len(values) - 1, 1)
    points = [
        f"{index * step if len(values) > 1 else _WIDTH:.1f},{_HEIGHT - 2 - (_HEIGHT - 5) * value / top:.1f}"
        for index, value in enumerate(values)
        if value is not None
    ]
    x, y = points[-1].split(",")
    said = escape(f"Records behind, last {len(values)} runs: now {known[-1]:,}, at most {max(known):,}")
    line = f'<polyline class="line" points="{" ".join(points)}"/>' if len(points) > 1 else ""
    dot = f'<circle class="end" cx="{x}" cy="{y}" r="2"/>'
    # Only numbers that were formatted here, and escaped text.
    return Markup(  # noqa: S704
        f'<svg class="spark" viewBox="-1 0 {_WIDTH + 4:g} {_HEIGHT:g}" role="img" aria-label="{said}">{line}{dot}</svg>'
    )


def text_sparkline(runs: Sequence[FleetRun], most: int = 12) -> str:
    """The same for a terminal: a block for each run, a blank where a run has no figure."""
    values = [run.lag_records for run in runs[-most:]]
    top = max((value for value in values if value is not None), default=0)
    if not top:
        return ""
    return "".join(" " if v is None else _BLOCKS[min(len(_BLOCKS) - 1, v * (len(_BLOCKS) - 1) // top)] for v in values)


def gate_strip(runs: Sequence[FleetRun]) -> Markup:
    """Draw verdict (first row) and gates of the last runs as a strip, oldest left; gates that were never judged have no row."""
    shown = list(runs[-MOST_RUNS:])
    asked = {name for run in shown for name, verdict in run.gates.items() if verdict != "not_applicable"}
    rows = [("verdict", [run.verdict for run in shown])]
    rows += [(name, [run.gates.get(name, "") for run in shown]) for name in gates_in_order(sorted(asked))]
    wrong = [run.verdict in (ERRORS, FAILED) for run in shown]
    marks = "".join(_row(verdicts, wrong, index * (_ROW + _GAP)) for index, (_, verdicts) in enumerate(rows))
    height = len(rows) * (_ROW + _GAP)
    said = escape(f"Last {len(shown)} runs. " + " ".join(_said(name, verdicts) for name, verdicts in rows))
    return Markup(  # noqa: S704
        f'<svg class="strip" width="{MOST_RUNS * _CELL}" height="{height}" viewBox="0 0 {MOST_RUNS * _CELL} {height}" '
        f'role="img" aria-label="{said}"><title>{said}</title>{marks}</svg>'
    )


def _row(verdicts: Sequence[str], wrong: Sequence[bool], top: int) -> str:
    """One path for each colour: equal neighbours become one mark, so that a strip stays small.

    A gate closed in a run without errors (`wrong` is false) waits for its turn and does not alarm.
    """
    paths: dict[str, str] = {}
    drawn = list(zip(verdicts, wrong, strict=True))
    first = MOST_RUNS - len(drawn)
    start = 0
    for index in range(1, len(drawn) + 1):
        if index < len(drawn) and drawn[index] == drawn[start]:
            continue
        tone, height = _MARKS.get(verdicts[start], ("quiet", 1))
        tone = "warn" if verdicts[start] == "no_go" and not wrong[start] else tone
        x, width = (first + start) * _CELL, (index - start) * _CELL
        paths[tone] = paths.get(tone, "") + f"M{x} {top + _ROW - height}h{width}v{height}h-{width}z"
        start = index
    return "".join(f'<path class="{tone}" d="{path}"/>' for tone, path in paths.items())


def _said(name: str, verdicts: Sequence[str]) -> str:
    now = verdicts[-1] or "not asked"
    same = 0
    for verdict in reversed(verdicts):
        if verdict != verdicts[-1]:
            break
        same += 1
    held = f" in the last {same}" if same < len(verdicts) else " in all"
    return f"{name}: {_WORDS.get(now, now).replace('_', ' ')}{held}."
