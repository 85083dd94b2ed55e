"""A difference in a line, and what each side has of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.report import DivergenceRow
from transforms.report.printable import ABSENT, PRESENT, VALUE_LIMIT, key_text, value_text, visible


def line_of(row: DivergenceRow, limit: int = 80) -> str:
    """`lost_write: client quotas client-id=app-9 · rate: ZooKeeper 11.0, KRaft absent`; values cut at about `limit` characters."""
    column = f" · {visible(row.column, limit)}" if row.column else ""
    name = f"{visible(row.class_, limit)}: {row.entity.replace('_', ' ')} {key_text(row.entity, row.key)}{column}"
    zookeeper, kraft = (
        # A whole row is too much for a line.
        PRESENT if row.column is None and isinstance(value, Mapping) else text(row, limit)
        for value, text in ((row.zk_value, zookeeper_text), (row.kraft_value, kraft_text))
    )
    return f"{name}: ZooKeeper {zookeeper}, KRaft {kraft}"


def zookeeper_text(row: DivergenceRow, limit: int = VALUE_LIMIT) -> str:
    """ZooKeeper's value of a row."""
    return _side(row, row.zk_value, "kraft_only", limit)


def kraft_text(row: DivergenceRow, limit: int = VALUE_LIMIT) -> str:
    """KRaft's value of a row."""
    return _side(row, row.kraft_value, "zk_only", limit)


def _side(row: DivergenceRow, value: Any, lacking: str, limit: int) -> str:
    if row.kind == lacking and row.column is None:
        return ABSENT
    if row.column is None and value in (None, ""):
        return PRESENT
    if row.column is None and isinstance(value, Mapping):
        # A whole row, without its empty columns.
        filled = {name: part for name, part in value.items() if part not in (None, "", [])}
        return value_text(filled, limit) if filled else PRESENT
    return value_text(value, limit)
