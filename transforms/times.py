"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc_time(milliseconds: int | None) -> str:
    """A time of the log as `2026-11-20 10:00:00.123`, UTC; `-` for None and for what no calendar holds."""
    if milliseconds is None:
        return "-"
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03}"


def from_micros(micros: int) -> datetime:
    """A time in microseconds since the epoch, in UTC."""
    return _EPOCH + timedelta(microseconds=micros)
