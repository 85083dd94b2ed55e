"""Keys that one side has more than once: which of their rows is compared is arbitrary, so the comparison proves nothing
about them."""

from __future__ import annotations

from typing import Any

import polars as pl

_LISTED = 20


def duplicated(differing: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of `differing_rows` whose key is on a side more than once, in one row: total, texts (a few); none without any."""
    text = pl.format("{} {}: {} rows in ZooKeeper, {} in KRaft", "entity", "key", "zk_rows", "kraft_rows")
    texts = differing.filter((pl.col("zk_rows") > 1) | (pl.col("kraft_rows") > 1)).select(text).to_series().sort()
    return [{"total": len(texts), "texts": texts.head(_LISTED).to_list()}] if len(texts) else []
