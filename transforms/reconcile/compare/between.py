"""Between which two transactions a write was lost: the barriers around its record (S§5.5)."""

from __future__ import annotations

import polars as pl

from transforms.zookeeper.zxids import hexadecimals


def located(divergences: pl.DataFrame, barriers: pl.DataFrame | None) -> pl.DataFrame:
    """DIVERGENCE rows with lost_after_zxid and lost_until_zxid, and the same in the words of their explanation.

    At a barrier ZooKeeper must have everything up to its offset: the last one below a lost record's offset still was right,
    the first one at or above it is wrong. `barriers` are silver barriers of this migration; None where there are no
    transaction logs.
    """
    if barriers is None:
        nothing = pl.lit(None, pl.Int64)
        return divergences.with_columns(lost_after_zxid=nothing, lost_until_zxid=nothing)
    found = divergences.with_columns(_around(divergences["lost_offset"], barriers))
    after, until = pl.col("lost_after_zxid"), pl.col("lost_until_zxid")
    begun = (
        pl.when(after.is_null())
        .then(pl.lit("before transaction"))
        .otherwise(pl.format("between transactions {} and", hexadecimals(after.fill_null(0))))
    )
    words = pl.format(
        "{}; the record at offset {} was lost {} {}",
        "explanation",
        "lost_offset",
        begun,
        hexadecimals(until),
    )
    return found.with_columns(explanation=pl.when(until.is_null()).then(pl.col("explanation")).otherwise(words))


def _around(lost: pl.Series, barriers: pl.DataFrame) -> list[pl.Series]:
    """The barriers below, and at or above, each offset; null where there is none, or no offset."""
    in_order = barriers.sort("kraft_metadata_offset", "zxid").select(
        zxid=pl.col("zxid").cast(pl.Int64), offset=pl.col("kraft_metadata_offset").cast(pl.Int64)
    )
    zxids = pl.concat([pl.Series("zxid", [None], pl.Int64), in_order["zxid"], pl.Series("zxid", [None], pl.Int64)])
    # Of zxids with nothing before the first and after the last, these are the places of the ones below.
    below = in_order["offset"].search_sorted(lost.fill_null(0), side="left")
    return [
        zxids.gather(places).set(lost.is_null(), None).alias(name)
        for name, places in (("lost_after_zxid", below), ("lost_until_zxid", below + 1))
    ]
