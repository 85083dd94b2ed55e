"""The configured limits above which a number is a warning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class JudgeLimits:
    """The limits that a configuration sets, in seconds, and whether it accepts that a rolling restart interrupts partitions."""

    capture_skew_seconds: float = 60.0
    alive_seconds: float = 5.0
    lag_seconds: float = 60.0
    restart_may_interrupt: bool = False
