"""What KRaft had when a cluster was rolled back and ZooKeeper never got (S§7.5)."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from schemas.entities.partitions import PARTITIONS
from transforms.reconcile.compare.canonical import key_json, row_json
from transforms.reconcile.compare.difference import Sides, sides_of
from transforms.reconcile.judge.rules import VIOLATIONS


def left_behind(tables: Mapping[str, pl.DataFrame], migration_offset: int) -> pl.DataFrame:
    """Rows that KRaft made or changed after `/migration`'s offset and ZooKeeper lacks: VIOLATIONS.

    `tables` are silver rows of both sides by entity. Of partitions only those that ZooKeeper does not have at all: after
    a rollback their leaders and replicas are ZooKeeper's to change.
    """
    found = [_of_entity(sides, migration_offset) for sides in sides_of(tables)]
    return pl.concat([pl.DataFrame(schema=VIOLATIONS), *found])


def _of_entity(sides: Sides, migration_offset: int) -> pl.DataFrame:
    entity = sides.entity
    key, row = key_json(entity).alias("key"), row_json(entity).alias("row")
    late = sides.kraft.filter(pl.col("kraft_offset") > migration_offset).with_columns(key, row)
    # Of many rows few came late: only those are spelled on ZooKeeper's side too.
    there = sides.zk.with_columns(key).join(late, on="key", how="semi").with_columns(row)
    same = ["key"] if entity is PARTITIONS else ["key", "row"]
    text = pl.format(f"{entity.name} {{}}, of offset {{}}", "key", "kraft_offset").alias("text")
    return late.join(there, on=same, how="anti").select(pl.lit("RB-13").alias("code"), text)
