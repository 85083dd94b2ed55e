"""The shortest sequence that still shows a disagreement: steps are left out, on a new controller each time (ddmin)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.live.fire.servers import controller
from tests.live.fire.session import Disagreement, Session

# A controller takes some seconds to come up.
MOST_TRIES = 40
Shows = Callable[[Sequence[int]], bool]


def shortest(steps: Sequence[int], shows: Shows, tries: int = MOST_TRIES) -> list[int]:
    """Leave out ever smaller parts of `steps` while what is left still shows it; after `tries` it is what it is.

    The last step is the one that shows it and stays. Steps before it are tried from none on: a state that a request meets
    is often made by the last few.
    """
    kept, pieces = list(steps), 2
    while len(kept) > 1 and tries > 0:
        size = max(1, (len(kept) - 1) // pieces)
        for start in range(0, len(kept) - 1, size):
            shorter = kept[:start] + kept[min(start + size, len(kept) - 1) :]
            tries -= 1
            if shows(shorter):
                kept, pieces = shorter, max(2, pieces - 1)
                break
            if tries <= 0:
                return kept
        else:
            if size == 1:
                return kept
            pieces = min(2 * pieces, len(kept))
    return kept


def of_release(release: str, seed: int, found: Disagreement, tries: int = MOST_TRIES) -> list[int]:
    """The steps of a session that are needed for a disagreement of its kind and about the same."""

    def shows(steps: Sequence[int]) -> bool:
        with controller(release, seed) as running:
            session = Session.of(running, seed)
            session.run(steps)
            return found.signature in {each.signature for each in session.disagreements}

    return shortest(range(found.step + 1), shows, tries)
