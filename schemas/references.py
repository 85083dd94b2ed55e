"""Where a rule comes from, spelled so that a reader of a report can find it."""

from __future__ import annotations

import re

RULES = "docs/semantics.md"
_CITED = re.compile(r"S§(?=\d)")


def spelled_out(reference: str) -> str:
    """Name the document of a rule: `KIP-866; S§5.2, S§14` becomes `KIP-866; docs/semantics.md §5.2, §14`."""
    return _CITED.sub("§", _CITED.sub(f"{RULES} §", reference, count=1))
