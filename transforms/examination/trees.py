"""ZooKeeper's trees of a cluster, read once: the parts that are kept in memory, and those that are only examined.

Data are the largest part of a tree. They become state rows and are released batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from schemas.bronze import QUARANTINE, ZK_ZNODES
from schemas.checks import ZOOKEEPER
from transforms.downgrade.evidence import TreeFormats
from transforms.frames import columns_of, from_arrow, shaped
from transforms.reconcile.judge.kip_tables import FeatureLook
from transforms.reconcile.judge.znode_look import ZnodeLook
from transforms.zookeeper.read.state import STATE, state_batches
from transforms.zookeeper.read.tables import admin_operations, findings, tables
from transforms.zookeeper.read.trees import newest

ZNODES: pl.Schema = columns_of(ZK_ZNODES.columns, "cluster", "run_id", "snapshot_id")
HELD: pl.Schema = pl.Schema({name: kind for name, kind in ZNODES.items() if name not in ("data", "data_is_null")})
QUARANTINED: pl.Schema = columns_of(QUARANTINE.columns, "cluster", "run_id")


@dataclass(frozen=True)
class Trees:
    """What was read: ZooKeeper's silver rows (`tables`, `findings`, `admin_operations`), and `znodes` with the columns HELD of both trees.

    The looks have seen all of it; `formats` and `features` have seen the newest tree alone. `unreadable` are rows of bronze quarantine.
    """

    tables: Mapping[str, pl.DataFrame]
    findings: pl.DataFrame
    admin_operations: pl.DataFrame
    znodes: pl.DataFrame
    look: ZnodeLook
    formats: TreeFormats
    features: FeatureLook
    unreadable: pl.DataFrame


def trees_of(batches: Iterable[pa.RecordBatch]) -> Trees:
    """Read the znodes of one walk (bronze zk_znodes)."""
    look, formats, features = ZnodeLook(), TreeFormats(), FeatureLook()
    states: list[pl.DataFrame] = []
    held: list[pl.DataFrame] = []
    for batch in batches:
        znodes = from_arrow(batch, ZNODES)
        look.add(znodes)
        of_newest = znodes.filter(newest())
        formats.add(of_newest)
        features.add(of_newest)
        held.append(znodes.select(HELD.names()))
        states += [from_arrow(rows, STATE) for rows in state_batches([batch])]
    znodes = pl.concat([pl.DataFrame(schema=HELD), *held]).sort("tree", "path")
    state = pl.concat([pl.DataFrame(schema=STATE), *states])
    return Trees(
        tables(state),
        findings(state),
        admin_operations(state),
        znodes,
        look,
        formats,
        features,
        unreadable_znodes(znodes),
    )


def znodes_without_data(batches: Iterable[pa.RecordBatch]) -> pl.DataFrame:
    """Znodes of a walk without their data: columns HELD."""
    held = [from_arrow(batch, ZNODES).select(HELD.names()) for batch in batches]
    return pl.concat([pl.DataFrame(schema=HELD), *held])


def unreadable_znodes(znodes: pl.DataFrame) -> pl.DataFrame:
    """Rows of bronze quarantine for znodes that could not be read whole."""
    rows = znodes.filter(pl.col("problem").is_not_null()).select(
        pl.lit(ZOOKEEPER).alias("source"),
        pl.col("path").alias("file"),
        pl.col("data_length").cast(pl.Int64).alias("length"),
        pl.col("problem").alias("reason"),
    )
    return shaped(rows, QUARANTINED)
