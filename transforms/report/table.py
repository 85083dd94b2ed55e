"""Rows of text as an aligned table for a terminal, or as blocks where the terminal is too narrow."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Pad every column to its widest cell, two blanks apart; `right` are the columns of numbers.

    Cells must be visible text (`printable.visible`); wide characters take two columns, as terminals draw them.
    """
    widths = [max(map(_width, cells)) for cells in zip(*rows, strict=True)]
    return ["  ".join(_padded(row, widths, right)).rstrip() for row in rows]


def fitted(rows: Sequence[Sequence[str]], right: frozenset[int], width: int | None) -> list[str]:
    """The table, if it is at most `width` wide (None: as wide as it is); else a block of lines for each row, with the names of its cells.

    The first row is the head. Cells are as in `aligned`; those that are empty or `-` are left out of a block.
    """
    lines = aligned(rows, right)
    if width is None or max(map(_width, lines)) <= width:
        return lines
    head, *body = rows
    return [line for row in body for line in _block(head, row, width)]


def broken(line: str, width: int) -> list[str]:
    """A line for a terminal of that width: broken between words, the rest a little further in."""
    further_in = " " * min(len(line) - len(line.lstrip()) + 2, width // 2)
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=further_in,
        expand_tabs=False,
        replace_whitespace=False,
        break_on_hyphens=False,
    )


def _block(head: Sequence[str], row: Sequence[str], width: int) -> list[str]:
    lines = textwrap.wrap(row[0], width) or ["-"]
    room = max(width - 2, 20)
    line = ""
    for name, cell in zip(head[1:], row[1:], strict=True):
        if cell in ("", "-"):
            continue
        piece = f"{name}: {cell}"
        if line and _width(line) + 2 + _width(piece) > room:
            lines += broken(f"  {line}", room + 2)
            line = piece
        else:
            line = f"{line}  {piece}" if line else piece
    return [*lines, *(broken(f"  {line}", room + 2) if line else ())]


def _padded(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> list[str]:
    blanks = [" " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
    return [blanks[i] + cell if i in right else cell + blanks[i] for i, cell in enumerate(row)]


def _width(text: str) -> int:
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
