"""Is dual write alive: the one place that decides live, behind or stopped (S§4.4, S§7.3).

A leading controller appends at least every 500 ms and moves `/migration` with it, so silence is a fault from every point of
view. It is measured up to the time of the capture: a quorum that died takes its log's end with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from transforms.reconcile.compare.context import Clocks
from transforms.reconcile.judge.facts import Facts, LagMeasure
from transforms.reconcile.judge.skew import ClockSkew


class LivenessState(StrEnum):
    """`SILENT` is a pause too short to count as stopped; `BEHIND` writes, but old changes."""

    LIVE = "live"
    SILENT = "silent"
    BEHIND = "behind"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Liveness:
    """The state of dual write; `text` describes it with its numbers, in a clause.

    `in_order` is true for a quorum that was stopped cleanly with everything mirrored, which is not a fault.
    """

    state: LivenessState
    text: str
    in_order: bool = False

    @property
    def alive(self) -> bool:
        """True when `/migration` is written now."""
        return self.state in (LivenessState.LIVE, LivenessState.BEHIND)


def liveness(facts: Facts) -> Liveness | None:
    """Decide from the lag, the times and the limits of `facts`; None where the lag can't be measured."""
    lag = facts.lag
    if lag is None:
        return None
    silence = _silence(facts)
    # Records that were appended while the two sides were read, ZooKeeper first, are not lag.
    late = max(0.0, lag.seconds - facts.reading_ms / 1000)
    behind = facts.ends_early or f"ZooKeeper is {lag.records} records and {late:.1f} s behind"
    if silence is not None and silence > facts.lag_limit:
        clean = (
            facts.plan is not None and facts.plan.leading.stopped_cleanly and not lag.changes and not facts.ends_early
        )
        return Liveness(LivenessState.STOPPED, f"{_since(facts, silence)}; {behind}", in_order=clean)
    if late > facts.lag_limit:
        return Liveness(LivenessState.BEHIND, behind)
    if silence is not None and silence > facts.alive_limit:
        return Liveness(LivenessState.SILENT, f"{_since(facts, silence)}; {behind}")
    return Liveness(LivenessState.LIVE, behind)


def captured(facts: Facts) -> int | None:
    """When ZooKeeper was read, in milliseconds, if the audit's clock must provide it; None if the data shows it.

    What is written while it is read was written up to then, whatever clock is wrong.
    """
    return None if facts.written_while_read else facts.captured_at_ms


def log_age(facts: Facts) -> float:
    """How long before the capture the log ends, in seconds: both sides were read after everything they hold was written.

    The capture is not before the newest thing on either side. If nothing else shows it, it is the log's own end.
    """
    end = facts.newest_append_time_ms
    if end is None:
        return 0.0
    moments = [end, captured(facts) or end]
    if facts.newest_znode_time_ms is not None:
        moments.append(facts.newest_znode_time_ms - facts.reading_ms - round(_skew_ms(facts)))
    return (max(moments) - end) / 1000


def ends_long_before(facts: Facts) -> str | None:
    """`Facts.ends_early`, unless both sides were copied within the time that copies may be apart: dual write is judged then."""
    return facts.ends_early if log_age(facts) > facts.capture_skew_limit else None


def _silence(facts: Facts) -> float | None:
    """Seconds between the last write of `/migration` and the capture.

    By the controllers' clock and the audit's, and by ZooKeeper's alone, which needs no other: the longer one counts.
    """
    end, lag = facts.newest_append_time_ms, facts.lag
    if end is None or lag is None or lag.silence is None:
        return None
    written = end - lag.silence * 1000
    # Data that was read after /migration does not show how old /migration was when it was read.
    until = max(end - facts.reading_ms, captured(facts) or 0)
    silence = until - _written(facts, lag, end)
    if facts.newest_znode_time_ms is not None:
        silence = max(silence, facts.newest_znode_time_ms - facts.reading_ms - written)
    return max(0.0, silence / 1000)


def _written(facts: Facts, lag: LagMeasure, end: int) -> float:
    """When `/migration` was last written by the controllers' clock, as far as can be told; milliseconds."""
    written = end - lag.silence * 1000 - _skew_ms(facts) if lag.silence is not None else end
    appended = None if lag.mirrored_age is None else end - lag.mirrored_age * 1000
    # /migration that names a record after the log's end is no clock that is ahead: the copy of the log is the older side.
    ahead = written > end + facts.alive_limit * 1000 and facts.ends_early is None
    if ahead and measured_skew(facts) is None:
        # ZooKeeper's clock is ahead and hides how long ago it was; the log's own clock decides.
        return end - lag.seconds * 1000 if appended is None else appended
    # It was not written before the record that it names: a clock that is behind makes no silence.
    return written if appended is None else max(written, appended)


def clocks(facts: Facts) -> Clocks:
    """ZooKeeper's clock relative to the controllers', as far as the rows show it."""
    skew = measured_skew(facts)
    return Clocks() if skew is None else skew.clocks


def measured_skew(facts: Facts) -> ClockSkew | None:
    """The measured skew, unless ZooKeeper is so far behind that its delay may be what was measured."""
    late = facts.lag is not None and facts.lag.seconds - facts.reading_ms / 1000 > facts.lag_limit
    return None if late else facts.skew


def _skew_ms(facts: Facts) -> float:
    skew = measured_skew(facts)
    return 0.0 if skew is None else skew.median


def _since(facts: Facts, silence: float) -> str:
    age = log_age(facts)
    if age <= facts.alive_limit:
        return f"/migration was last written {silence:.1f} s before the newest record of the log"
    text = f"/migration was last written {silence:.1f} s before the capture, and the log ends {age:.1f} s before it"
    if silence - age > facts.alive_limit:
        return text
    # Both ended together, and ZooKeeper was read later: it is not an old copy of the log, which `/migration` would have passed.
    return f"{text}: the controllers are not running"
