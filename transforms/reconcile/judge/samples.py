"""Violations added up as they are found: exact totals, and the first examples of each check's code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

# Examples of each code.
SAMPLE = 20


class Samples:
    """Exact totals and the SAMPLE first texts of each code, in the order of their UTF-8 bytes; one without text is first."""

    def __init__(self, violations: Iterable[pl.DataFrame] = ()) -> None:
        self._found: dict[str, tuple[int, list[str | None]]] = {}
        for each in violations:
            self.add(each)

    def add(self, violations: pl.DataFrame) -> None:
        """Count violations: columns VIOLATIONS (`transforms.reconcile.judge.rules`)."""
        if violations.is_empty():
            return
        first = pl.col("text").sort(nulls_last=False).head(SAMPLE)
        for code, total, texts in violations.group_by("code").agg(pl.len(), first).iter_rows():
            self._merge(code, total, texts)

    def merge(self, other: Samples) -> None:
        """Count what another has counted."""
        for code, (total, texts) in other._found.items():
            self._merge(code, total, texts)

    def total(self, *codes: str) -> int:
        """Violations of these codes."""
        return sum(self._found[code][0] for code in codes if code in self._found)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each example: code, total (of its code), text, number (from 1 in each code)."""
        return [
            {"code": code, "total": total, "text": text, "number": number}
            for code, (total, texts) in sorted(self._found.items())
            for number, text in enumerate(texts, 1)
        ]

    def _merge(self, code: str, total: int, texts: Iterable[str | None]) -> None:
        before, known = self._found.get(code, (0, []))
        ordered = sorted([*known, *texts], key=lambda text: (text is not None, text or ""))
        self._found[code] = (before + total, ordered[:SAMPLE])


def samples(*violations: pl.DataFrame) -> list[dict[str, Any]]:
    """The totals and examples of some frames of violations, as rows of an answer."""
    return Samples(violations).rows()
