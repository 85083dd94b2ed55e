"""Is dual writing alive: the one place that decides live, behind or stopped (S§4.4, S§7.3).

A leading controller appends at least every 500 ms and moves `/migration` with it, so silence is a fault wherever the
audit looks from. It is measured up to the time of the capture: a quorum that died takes its log's end with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from transforms.reconcile.judge.facts import Facts


class State(StrEnum):
    """`SILENT` is a pause too short to call it stopped; `BEHIND` writes, but what it writes is old."""

    LIVE = "live"
    SILENT = "silent"
    BEHIND = "behind"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Liveness:
    """What dual writing does; `text` says it with its numbers, in a clause. Seconds are None where nothing tells.

    `in_order` is true of a quorum that was stopped cleanly with everything mirrored: nothing is wrong with that.
    """

    state: State
    silence: float | None
    text: str
    in_order: bool = False

    @property
    def alive(self) -> bool:
        """True when `/migration` is written now."""
        return self.state in (State.LIVE, State.BEHIND)


def liveness(facts: Facts) -> Liveness | None:
    """Decide from the lag, the times and the limits of `facts`; None where the lag can't be measured."""
    lag = facts.lag
    if lag is None:
        return None
    silence = _silence(facts)
    behind = f"ZooKeeper is {lag.records} records and {lag.seconds:.1f} s behind"
    if silence is not None and silence > facts.lag_limit:
        clean = facts.plan is not None and facts.plan.leading.stopped_cleanly and not lag.changes
        return Liveness(State.STOPPED, silence, f"{_since(facts, silence)}; {behind}", in_order=clean)
    if lag.seconds > facts.lag_limit:
        return Liveness(State.BEHIND, silence, behind)
    if silence is not None and silence > facts.alive_limit:
        return Liveness(State.SILENT, silence, f"{_since(facts, silence)}; {behind}")
    return Liveness(State.LIVE, silence, behind)


def log_age(facts: Facts) -> float:
    """How long before the capture the log ends, in seconds: both sides were read after everything they hold was written.

    The capture is not before the newest thing on either side. Where nothing else tells, it is the log's own end.
    """
    end = facts.newest_append_time_ms
    if end is None:
        return 0.0
    moments = [end, facts.captured_at_ms]
    if facts.newest_znode_time_ms is not None:
        moments.append(facts.newest_znode_time_ms - round(_skew_ms(facts)))
    return (max(moment for moment in moments if moment is not None) - end) / 1000


def _silence(facts: Facts) -> float | None:
    """Seconds between the last write of `/migration` and the capture, on the controllers' clock."""
    if facts.lag is None or facts.lag.silence is None:
        return None
    to_the_end = facts.lag.silence + _skew_ms(facts) / 1000
    if facts.skew is None and to_the_end < -facts.alive_limit:
        # Written after the log's end: ZooKeeper's clock is ahead, and hides how long ago it was. The log's own clock tells.
        return facts.lag.seconds
    return max(0.0, to_the_end + log_age(facts))


def _skew_ms(facts: Facts) -> float:
    return 0.0 if facts.skew is None else facts.skew.median


def _since(facts: Facts, silence: float) -> str:
    age = log_age(facts)
    if age <= facts.alive_limit:
        return f"/migration was last written {silence:.1f} s before the newest record of the log"
    text = f"/migration was last written {silence:.1f} s before the capture, and the log ends {age:.1f} s before it"
    if silence - age > facts.alive_limit:
        return text
    # Both ended together, and ZooKeeper was read later: it is no old copy of the log, which `/migration` would have passed.
    return f"{text}: the controllers are not running"
