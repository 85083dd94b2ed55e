"""Gold divergences as an aligned table, or as report.json spells a row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from transforms.report.printable import ABSENT, key_text, value_text, visible
from transforms.report.table import fitted

# Columns of gold `divergences` that are shown.
COLUMNS = (
    "fingerprint",
    "class",
    "severity",
    "entity",
    "key",
    "column",
    "kind",
    "zk_value",
    "kraft_value",
    "zk_path",
    "zk_mzxid",
    "kraft_offset",
    "first_seen_run",
    "status",
    "explanation",
)
_CELL = 60
_HEAD = (
    "class",
    "severity",
    "entity",
    "key",
    "column",
    "ZooKeeper",
    "KRaft",
    "zxid",
    "offset",
    "status",
    "fingerprint",
)


def as_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of COLUMNS with key and values as JSON values, named as in report.json."""
    return {name: json.loads(row[name]) if name in ("key", "zk_value", "kraft_value") else row[name] for name in row}


def as_table(rows: Sequence[Mapping[str, Any]], width: int | None = None) -> list[str]:
    """Rows of COLUMNS as lines under a heading, or as blocks if `width` is too small; without rows no line at all.

    A value of more than _CELL characters is shortened in the middle, with the number of characters left out; then a last line
    names the option for whole values.
    """
    if not rows:
        return []
    cells = [_cells(as_record(row)) for row in rows]
    lines = fitted([_HEAD, *cells], frozenset({7, 8}), width)
    if any("more characters]" in cell for row in cells for cell in row):
        lines.append("(long values are cut here; --format jsonl has them whole)")
    return lines


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        visible(row["class"], _CELL),
        row["severity"],
        row["entity"],
        key_text(row["entity"], row["key"]),
        "-" if row["column"] is None else visible(row["column"], _CELL),
        _side(row, "zk_value", "kraft_only"),
        _side(row, "kraft_value", "zk_only"),
        "-" if row["zk_mzxid"] is None else f"{row['zk_mzxid']:#x}",
        "-" if row["kraft_offset"] is None else str(row["kraft_offset"]),
        row["status"] or "-",
        row["fingerprint"],
    )


def _side(row: Mapping[str, Any], name: str, lacking: str) -> str:
    return ABSENT if row["kind"] == lacking else value_text(row[name], _CELL)
