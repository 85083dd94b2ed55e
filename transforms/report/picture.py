"""The trend as a PNG, for mail clients, which show no SVG."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Sequence
from typing import Any

from schemas.report import RunPoint
from transforms.report.chart import MOST_RUNS, compact_number, compact_time, nice_top

_INK, _SOFT, _RULE, _LINE, _BAD = "#16202c", "#5a6675", "#dfe3e8", "#0b5cad", "#b3261e"
_BAR = "#b4bbc4"


def can_draw() -> bool:
    """True if matplotlib, an extra, is installed: a mail without a picture has the same content."""
    return importlib.util.find_spec("matplotlib") is not None


def trend_png(history: Sequence[RunPoint]) -> bytes:
    """Draw lag (left) and differences (right) over the last runs, 1011 by 272 pixels: sharp on a dense screen."""
    # Half a second that only a mail needs.
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    points = list(history)[-MOST_RUNS:]
    figure = Figure(figsize=(6.32, 1.7), dpi=160, facecolor="white")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    _draw_lag(left, points)
    _draw_differences(right, points)
    figure.subplots_adjust(left=0.055, right=0.985, top=0.84, bottom=0.16, wspace=0.14)
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _draw_lag(axes: Any, points: list[RunPoint]) -> None:
    values = [float("nan") if point.lag_records is None else float(point.lag_records) for point in points]
    _frame(axes, points, "Records behind", nice_top([point.lag_records for point in points]))
    axes.plot(
        range(len(values)), values, color=_LINE, linewidth=1.2, marker="o", markersize=1.6 + 4 / max(len(values), 1)
    )
    if points and points[-1].lag_records is not None:
        axes.annotate(
            f"{points[-1].lag_records:,}",
            (len(values) - 1, values[-1]),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center" if len(points) == 1 else "right",
            fontsize=7,
            fontweight="bold",
            color=_INK,
        )


def _draw_differences(axes: Any, points: list[RunPoint]) -> None:
    _frame(axes, points, "Differences (red: defects)", nice_top([point.divergences for point in points]))
    places = range(len(points))
    axes.bar(places, [point.divergences for point in points], width=0.7, color=_BAR)
    axes.bar(places, [point.defects for point in points], width=0.7, color=_BAD)


def _frame(axes: Any, points: list[RunPoint], title: str, top: float) -> None:
    axes.set_title(title, fontsize=7.5, color=_SOFT, loc="left", pad=5)
    axes.set_ylim(0, top * 1.12)
    axes.set_xlim(-0.6, max(len(points), 1) - 0.4)
    axes.set_yticks([0, top / 2, top], [compact_number(0), compact_number(top / 2), compact_number(top)])
    ends = sorted({0, len(points) - 1}) if points else []
    axes.set_xticks(ends, [compact_time(points[index].started_at) for index in ends])
    for label, side in zip(axes.get_xticklabels(), ("left", "right"), strict=False):
        # A time may be any text; `$` must not start a formula.
        label.set_parse_math(False)
        label.set_horizontalalignment(side if len(ends) > 1 else "center")
    axes.tick_params(labelsize=6.5, colors=_SOFT, length=0, pad=3)
    axes.grid(axis="y", color=_RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
