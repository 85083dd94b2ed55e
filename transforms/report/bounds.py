"""Shortens long texts for a report: a value of ten megabytes would make a page that no browser can open."""

from __future__ import annotations

from typing import Any

LONGEST_TEXT = 10_000


def shortened(document: Any) -> tuple[Any, int]:
    """A JSON document with every text of more than LONGEST_TEXT characters cut, and how many were cut.

    The tables hold the whole text.
    """
    if isinstance(document, str):
        if len(document) <= LONGEST_TEXT:
            return document, 0
        return f"{document[:LONGEST_TEXT]}… ({len(document):,} characters)", 1
    if isinstance(document, list):
        items = [shortened(each) for each in document]
        return [each for each, _ in items], sum(cut for _, cut in items)
    if isinstance(document, dict):
        values = {name: shortened(each) for name, each in document.items()}
        return {name: each for name, (each, _) in values.items()}, sum(cut for _, cut in values.values())
    return document, 0
