"""The trend over runs as inline SVG: lag above, differences below, one step per run.

Pure text; colours are CSS classes, so the page's light and dark themes apply. A run without a figure leaves a gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup, escape

from schemas.report import LagPoint, RunPoint
from transforms.report.printable import visible

MOST_RUNS = 60
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 14.0, 16.0, 22.0


@dataclass(frozen=True)
class _Frame:
    """The plotting area in SVG units and the scale of its axes."""

    width: float
    height: float
    runs: int
    top_value: float

    def x(self, index: float) -> float:
        inner = self.width - _LEFT - _RIGHT
        return _LEFT + inner / 2 if self.runs == 1 else _LEFT + inner * index / (self.runs - 1)

    def y(self, value: float) -> float:
        inner = self.height - _TOP - _BOTTOM
        return self.height - _BOTTOM - inner * value / self.top_value


def lag_chart(history: Sequence[RunPoint], width: int) -> Markup:
    """Draw records behind over the last runs (oldest left) as an SVG element `width` units wide."""
    points = list(history)[-MOST_RUNS:]
    return _line_chart(points, [point.lag_records for point in points], width, "Records behind, by run")


def divergence_chart(history: Sequence[RunPoint], width: int) -> Markup:
    """Draw every run's differences as bars, the defects among them marked, as an SVG element."""
    points = list(history)[-MOST_RUNS:]
    frame = _Frame(width, 150.0, len(points), nice_top([point.divergences for point in points]))
    return _svg(frame, _grid(frame) + _dates(frame, points) + _bars(frame, points), "Differences and defects, by run")


def series_chart(points: Sequence[LagPoint], width: int) -> Markup:
    """Draw how long changes waited for ZooKeeper, by the time of the barriers (oldest left); nothing without any."""
    if not points:
        return Markup("")
    frame = _Frame(width, 150.0, max(2, len(points)), nice_top([point.seconds for point in points]))
    first, last = points[0].time, points[-1].time
    spread = max(1, last - first)
    places = [
        (frame.x((frame.runs - 1) * (point.time - first) / spread), frame.y(point.seconds), point) for point in points
    ]
    line = _element("polyline", css="line", points=" ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places))
    worst = max(places, key=lambda place: place[2].seconds)
    dots = "".join(_series_dot(x, y, point) for x, y, point in dict.fromkeys((worst, places[-1])))
    base = frame.height - 6
    dates = _label(_LEFT, base, "start", compact_time(moment(first)))
    dates += _label(frame.width - _RIGHT, base, "end", compact_time(moment(last)))
    return _svg(frame, _grid(frame) + dates + line + dots, "Seconds that changes waited for ZooKeeper, by barrier")


def _series_dot(x: float, y: float, point: LagPoint) -> str:
    hint = f"transaction {point.zxid:#x}, {moment(point.time)}: {point.records:,} records, {point.seconds:,.1f} s"
    return _element("circle", f"<title>{escape(hint)}</title>", css="dot", cx=x, cy=y, r=3.0)


def moment(milliseconds: int) -> str:
    """A time in milliseconds since the epoch in ISO 8601, UTC, to the second."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def nice_top(values: Sequence[float | None]) -> float:
    """Round the largest value up to an even number that halves well (20, 40, 60…); 4 when all are zero or missing."""
    largest = max((value for value in values if value is not None), default=0.0)
    if largest <= 4:
        return 4.0
    magnitude = 10.0 ** (len(str(int(largest))) - 1)
    return next(m * magnitude for m in (1.0, 2.0, 4.0, 6.0, 8.0, 10.0) if m * magnitude >= largest)


def compact_number(value: float) -> str:
    """Write an axis label: `0`, `40`, `1.5k`, `2M`."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{suffix}"
    return f"{value:g}"


def compact_time(timestamp: str) -> str:
    """Cut an ISO time to `MM-DD HH:MM`; any other text is shown as it is, shortened."""
    if len(timestamp) >= 16 and timestamp[4:5] == "-" and timestamp[10:11] in "T ":
        return visible(f"{timestamp[5:10]} {timestamp[11:16]}", 20)
    return visible(timestamp, 16)


def _line_chart(points: list[RunPoint], values: list[int | None], width: int, title: str) -> Markup:
    frame = _Frame(width, 150.0, len(points), nice_top(values))
    shapes = [_area(frame, run) + _line(frame, run) for run in _unbroken(values)]
    dots = [_dot(frame, i, value, points[i]) for i, value in enumerate(values) if value is not None]
    return _svg(frame, _grid(frame) + _dates(frame, points) + "".join(shapes) + "".join(dots), title)


def _unbroken(values: list[int | None]) -> list[list[tuple[int, int]]]:
    runs: list[list[tuple[int, int]]] = [[]]
    for index, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((index, value))
    return [run for run in runs if len(run) > 1]


def _path(frame: _Frame, run: list[tuple[int, int]]) -> str:
    return " ".join(f"{frame.x(index):.1f},{frame.y(value):.1f}" for index, value in run)


def _line(frame: _Frame, run: list[tuple[int, int]]) -> str:
    return _element("polyline", css="line", points=_path(frame, run))


def _area(frame: _Frame, run: list[tuple[int, int]]) -> str:
    first, last, base = frame.x(run[0][0]), frame.x(run[-1][0]), frame.y(0)
    return _element("polygon", css="area", points=f"{first:.1f},{base:.1f} {_path(frame, run)} {last:.1f},{base:.1f}")


def _dot(frame: _Frame, index: int, value: int, point: RunPoint) -> str:
    tone = {"errors": "bad", "warnings": "warn"}.get(point.verdict, "good")
    hint = _hint(point, f"{value:,} records behind")
    last = index == frame.runs - 1
    x, y = frame.x(index), frame.y(value)
    dot = _element("circle", hint, css=f"dot {tone}", cx=x, cy=y, r=4.0 if last else 2.4)
    return dot + (_now(frame, x, y, value) if last else "")


def _now(frame: _Frame, x: float, y: float, value: int) -> str:
    alone = frame.runs == 1
    # The newest figure is written out beside its dot, inside the frame.
    return _label(x if alone else x + 4, max(y - 8, 11), "middle" if alone else "end", f"{value:,}", css="now")


def _bars(frame: _Frame, points: Sequence[RunPoint]) -> str:
    step = (frame.width - _LEFT - _RIGHT) / max(frame.runs, 1)
    width = max(2.0, min(18.0, step * 0.7))
    drawn: list[str] = []
    for index, point in enumerate(points):
        x = _LEFT + step * (index + 0.5) - width / 2
        drawn.append(
            _bar(frame, (x, width), point.divergences, ("bar", _hint(point, f"{point.divergences:,} differences")))
        )
        drawn.append(_bar(frame, (x, width), point.defects, ("bar defect", _hint(point, f"{point.defects:,} defects"))))
    return "".join(drawn)


def _bar(frame: _Frame, place: tuple[float, float], value: int, look: tuple[str, str]) -> str:
    if not value:
        return ""
    # A single defect among thousands of differences must still be seen.
    y = min(frame.y(value), frame.y(0) - 2)
    x, width = place
    css, hint = look
    return _element("rect", hint, css=css, x=x, y=y, width=width, height=frame.y(0) - y, rx=1.0)


def _grid(frame: _Frame) -> str:
    drawn: list[str] = []
    for part in (0.0, 0.5, 1.0):
        y = frame.y(frame.top_value * part)
        drawn.append(_element("line", css="grid", x1=_LEFT, x2=frame.width - _RIGHT, y1=y, y2=y))
        drawn.append(_label(_LEFT - 6, y + 3.5, "end", compact_number(frame.top_value * part)))
    return "".join(drawn)


def _dates(frame: _Frame, points: list[RunPoint]) -> str:
    y = frame.height - 6
    if not points:
        return ""
    if len(points) == 1:
        return _label(frame.x(0), y, "middle", compact_time(points[0].started_at))
    first = _label(_LEFT, y, "start", compact_time(points[0].started_at))
    return first + _label(frame.width - _RIGHT, y, "end", compact_time(points[-1].started_at))


def _label(x: float, y: float, anchor: str, text: str, css: str = "tick") -> str:
    return _element("text", str(escape(text)), css=css, x=x, y=y, text_anchor=anchor)


def _element(tag: str, inside: str = "", *, css: str, **attributes: str | float) -> str:
    written = "".join(
        f' {name.replace("_", "-")}="{value if isinstance(value, str) else format(value, ".1f")}"'
        for name, value in attributes.items()
    )
    return f'<{tag} class="{css}"{written}>{inside}</{tag}>'


def _hint(point: RunPoint, what: str) -> str:
    return f"<title>{escape(compact_time(point.started_at))}: {escape(what)}</title>"


def _svg(frame: _Frame, inside: str, title: str) -> Markup:
    box = f"0 0 {frame.width:g} {frame.height:g}"
    # Everything inside is either a number formatted here or went through escape().
    return Markup(f'<svg class="chart" viewBox="{box}" role="img" aria-label="{escape(title)}">{inside}</svg>')  # noqa: S704
