"""Differing rows to gold divergences: classified one by one, followed over runs by a fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import polars as pl

from schemas.classes import IN_FLIGHT, ORDER
from schemas.gold import DIVERGENCES
from transforms.frames import columns_of, frame, shaped
from transforms.reconcile.compare.classify import SEVERITIES, Context, Divergence, classify

# A run's rows of gold divergences, and their columns that do not depend on earlier runs.
FOLLOWED = columns_of(DIVERGENCES.columns, "cluster", "run_id")
LOCATED = columns_of(DIVERGENCES.columns, "cluster", "run_id", "first_seen_run", "status")
DIVERGENCE = pl.Schema({name: kind for name, kind in LOCATED.items() if not name.endswith("_zxid")})


def divergences(differing: pl.DataFrame, context: Context) -> pl.DataFrame:
    """Rows of `differing_rows` to rows of DIVERGENCE (gold divergences without the columns that need earlier runs)."""
    found = (_cells(divergence) for raw in differing.iter_rows(named=True) for divergence in classify(raw, context))
    return frame(found, DIVERGENCE)


def _cells(divergence: Divergence) -> dict[str, str | int | None]:
    key = json.dumps(divergence.key, sort_keys=False, ensure_ascii=False)
    return {
        "fingerprint": fingerprint(divergence.entity, key, divergence.column, divergence.class_),
        "entity": divergence.entity,
        "key": key,
        "column": divergence.column,
        "kind": divergence.kind,
        "zk_value": json.dumps(divergence.zk_value, ensure_ascii=False),
        "kraft_value": json.dumps(divergence.kraft_value, ensure_ascii=False),
        "class": divergence.class_,
        "severity": divergence.severity,
        "explanation": divergence.explanation,
        "zk_path": divergence.zk_path,
        "zk_mzxid": divergence.zk_mzxid,
        "kraft_offset": divergence.kraft_offset,
        "lost_offset": divergence.lost_offset,
    }


def fingerprint(entity: str, key: str, column: str | None, class_: str) -> str:
    """Stable id of a divergence over runs: its entity, key, column and class."""
    text = "\x1f".join((entity, key, column or "", class_))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def followed(current: pl.DataFrame, previous: pl.DataFrame, run_id: str) -> pl.DataFrame:
    """Add first_seen_run and status, and the previous run's rows that are gone, as resolved: columns FOLLOWED.

    `current` are rows of `between.located`.
    `previous` are gold rows of the run before (none on the first run); resolved ones among them are history already.
    """
    before = previous.filter(pl.col("status") != "resolved")
    seen = before.group_by("fingerprint").agg(pl.col("first_seen_run").min())
    first = pl.col("first_seen_run")
    now = current.join(seen, on="fingerprint", how="left", maintain_order="left").with_columns(
        first.fill_null(run_id),
        pl.when(first.is_null()).then(pl.lit("new")).otherwise(pl.lit("persisting")).alias("status"),
    )
    gone = before.join(current, on="fingerprint", how="anti").with_columns(pl.lit("resolved").alias("status"))
    return pl.concat([shaped(now, FOLLOWED), shaped(gone, FOLLOWED)])


def seen_from(rows: pl.DataFrame, offset: int, migration_offset: int) -> pl.DataFrame:
    """Rows of a comparison with the image at an `offset` below /migration's: ZooKeeper already has later records.

    There in_flight is not a pending write but a later one, which the row notes.
    """
    why = f"ZooKeeper is at {migration_offset}: it has what the log did to the row after offset {offset}"
    in_flight = pl.col("class") == IN_FLIGHT
    return rows.with_columns(pl.when(in_flight).then(pl.lit(why)).otherwise("explanation").alias("explanation"))


def ranked(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows in order: defects first, then by severity, entity and key."""
    return rows.sort(
        _place_in(ORDER, "class"), _place_in(SEVERITIES, "severity"), "entity", "key", "column", maintain_order=True
    )


def first_of(rows: pl.DataFrame, limit: int) -> pl.DataFrame:
    """The first rows by `ranked`, as many as the limit (0 for all), with `total`: how many rows there are."""
    placed = ranked(rows).with_columns(pl.lit(len(rows), pl.Int64).alias("total"))
    return placed.head(limit) if limit else placed


def _place_in(order: Sequence[str], name: str) -> pl.Expr:
    """Where a column's value stands in an order; before all of it when it is not there."""
    return pl.col(name).replace_strict({value: i for i, value in enumerate(order)}, default=-1, return_dtype=pl.Int32)


def listed(rows: pl.DataFrame, limit: int) -> pl.DataFrame:
    """The first rows by `ranked`, as many as the limit, and their exact counts.

    Rows of gold divergences, with `total`: how many rows have the same class, entity and status; and `place`, from 1, those
    that are resolved counted apart. Of each of these groups at least the first row is there, so that no count is lost.
    """
    group, gone = ("class", "entity", "status"), pl.col("status") == "resolved"
    placed = ranked(rows).with_columns(
        pl.len().cast(pl.Int64).over(group).alias("total"),
        (pl.int_range(pl.len()).over(group) == 0).alias("first"),
        pl.int_range(1, pl.len() + 1).over(gone).alias("place"),
    )
    return placed.filter(pl.col("first") | (pl.col("place") <= limit)).drop("first")
