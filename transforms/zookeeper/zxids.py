"""Transaction ids as ZooKeeper's own tools and logs spell them: hexadecimal."""

from __future__ import annotations

import polars as pl


def hexadecimal(zxid: int | None) -> str:
    """A zxid as `0x4d7`; `unknown` for None."""
    return "unknown" if zxid is None else f"{zxid:#x}"


def hexadecimals(zxids: pl.Expr) -> pl.Expr:
    """A column of them as texts; null stays null. For the few rows that are shown: it runs in Python, value by value."""
    return zxids.map_elements(hex, return_dtype=pl.String)
