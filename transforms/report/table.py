"""Rows of text as an aligned table for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Pad every column to its widest cell, two blanks apart; `right` are the columns of numbers.

    Cells must be visible text (`printable.visible`); wide characters take two columns, as terminals draw them.
    """
    widths = [max(map(_width, cells)) for cells in zip(*rows, strict=True)]
    return ["  ".join(_padded(row, widths, right)).rstrip() for row in rows]


def _padded(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> list[str]:
    blanks = [" " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
    return [blanks[i] + cell if i in right else cell + blanks[i] for i, cell in enumerate(row)]


def _width(text: str) -> int:
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
