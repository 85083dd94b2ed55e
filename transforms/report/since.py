"""Since when a cluster is as it is, by the verdicts of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from transforms.report.printable import counted, visible
from transforms.runs import CLEAN, ERRORS, WARNINGS

UNKNOWN = "First seen: unknown, because no earlier run of this cluster is stored."
# As many runs, this one among them, as a report's history keeps.
HISTORY = 60
_HAD = {CLEAN: "was clean", WARNINGS: "had warnings", ERRORS: "had errors"}


def since_when(verdict: str, earlier: Sequence[tuple[str, str]], *, whole: bool = True) -> str:
    """Since when runs have had this verdict, in a sentence; empty for a clean one.

    `earlier` are (ISO time, verdict) of the cluster's finished runs before this one, the oldest first; not `whole` if more than
    these may be stored.
    """
    if verdict == CLEAN:
        return ""
    if not earlier:
        return UNKNOWN
    same = 0
    for _, before in reversed(earlier):
        if before != verdict:
            break
        same += 1
    if not same:
        when, before = earlier[-1]
        return f"New in this run: the previous one, {minute(when)}, {_HAD.get(before, visible(before, 20))}."
    runs = counted(same + 1, "run")
    first = minute(earlier[-same][0])
    if same == len(earlier) and not whole:
        return f"{verdict.capitalize()} since {first} or earlier (at least {runs})."
    every = ", all that are stored" if same == len(earlier) else ""
    return f"{verdict.capitalize()} since {first} ({runs}{every})."


def minute(when: str) -> str:
    """An ISO time as `YYYY-MM-DD HH:MM UTC`; any other text is shown as it is."""
    try:
        return f"{datetime.fromisoformat(when).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):
        return visible(when, 40)
