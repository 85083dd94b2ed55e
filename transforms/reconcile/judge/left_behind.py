"""What KRaft had, or had removed, when a cluster was rolled back and ZooKeeper never got (S§7.5)."""

from __future__ import annotations

import json
from collections.abc import Mapping

import polars as pl

from schemas.entities.partitions import PARTITIONS
from transforms.reconcile.compare.canonical import key_json, row_json
from transforms.reconcile.compare.difference import Sides, sides_of
from transforms.reconcile.judge.rules import VIOLATIONS


def left_behind(tables: Mapping[str, pl.DataFrame], versions: pl.DataFrame, migration_offset: int) -> pl.DataFrame:
    """Rows that KRaft made or changed after `/migration`'s offset and ZooKeeper lacks, and those that it removed and ZooKeeper
    has: VIOLATIONS.

    `tables` are silver rows of both sides by entity, `versions` ROW_VERSION rows. Of partitions only those that ZooKeeper does not have at
    all: after a rollback their leaders and replicas are ZooKeeper's to change, and they are removed with their topic.
    """
    found = [pl.DataFrame(schema=VIOLATIONS)]
    removals = versions.filter(pl.col("removed") & (pl.col("from_offset") > migration_offset))
    for sides in sides_of(tables):
        found.append(_made(sides, migration_offset))
        if sides.entity is not PARTITIONS:
            found.append(_removed(sides, removals.filter(pl.col("entity") == sides.entity.name)))
    return pl.concat(found)


def _made(sides: Sides, migration_offset: int) -> pl.DataFrame:
    entity = sides.entity
    key, row = key_json(entity).alias("key"), row_json(entity).alias("row")
    late = sides.kraft.filter(pl.col("kraft_offset") > migration_offset).with_columns(key, row)
    # Of many rows few came late: only those are spelled on ZooKeeper's side too.
    there = sides.zk.with_columns(key).join(late, on="key", how="semi").with_columns(row)
    same = ["key"] if entity is PARTITIONS else ["key", "row"]
    text = pl.format(f"{entity.name} {{}}, of offset {{}}", "key", "kraft_offset").alias("text")
    return late.join(there, on=same, how="anti").select(pl.lit("RB-13").alias("code"), text)


def _removed(sides: Sides, removals: pl.DataFrame) -> pl.DataFrame:
    """A row with another content was made in ZooKeeper since, by whoever made it."""
    entity = sides.entity
    key = key_json(entity).alias("key")
    newest = removals.sort("from_offset").unique("key", keep="last")
    gone = newest.join(sides.kraft.select(key), on="key", how="anti")
    there = sides.zk.with_columns(key).join(gone.select("key", "from_offset", was="row"), on="key")
    rows = there.select("key", "from_offset", "was", row_json(entity).alias("row")).sort("key").iter_rows()
    text = f"{entity.name} {{}}, removed at offset {{}}"
    found = [text.format(key, offset) for key, offset, was, now in rows if json.loads(was) == json.loads(now)]
    return pl.DataFrame({"code": ["RB-13"] * len(found), "text": found}, schema=VIOLATIONS)
