"""An unknown word, and the one that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(word: str, known: Iterable[str]) -> str:
    """A hint for an unknown `word`: "did you mean `x`?", or all the known ones if none is similar."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.4)
    return f"did you mean `{close[0]}`?" if close else f"known: {', '.join(sorted(names))}"
