"""One spelling for a row of any entity, so that one engine compares them all: key and compared columns as JSON text."""

from __future__ import annotations

import polars as pl
from pyspark.sql.types import DoubleType

from schemas.entities import Entity
from transforms.frames import json_of

# A partition's row comes from two znodes: its state, and its topic's, which holds the assignment.
ASSIGNMENT_PROVENANCE = ("zk_assignment_mzxid", "zk_assignment_mtime")


def key_json(entity: Entity) -> pl.Expr:
    """The canonical key (S§6) as one JSON object; `{}` for an entity with a single row."""
    return json_of(*entity.key)


def row_json(entity: Entity) -> pl.Expr:
    """The compared columns as one JSON object, sets sorted; equal rows have equal text."""
    text = json_of(*[compared(entity, name) for name in entity.compared])
    for field in entity.columns:
        if field.name in entity.compared and isinstance(field.dataType, DoubleType):
            text = _with_number(text, field.name)
    return text


def _with_number(text: pl.Expr, name: str) -> pl.Expr:
    """JSON has no numbers for NaN and the infinities, and its encoder writes null: they are spelled as texts, as Kafka does."""
    value = pl.col(name)
    spelled = pl.when(value.is_nan()).then(pl.lit("NaN")).when(value > 0).then(pl.lit("Infinity"))
    literal = pl.format('"{}":"{}"', pl.lit(name), spelled.otherwise(pl.lit("-Infinity")))
    odd = value.is_nan() | value.is_infinite()
    return pl.when(odd).then(text.str.replace(f'"{name}":null', literal, literal=True)).otherwise(text)


def compared(entity: Entity, name: str) -> pl.Expr:
    """A compared column in the order in which equal values are equal."""
    return pl.col(name).list.sort(nulls_last=True) if name in entity.unordered else pl.col(name)


def comparable(entity: Entity) -> pl.Expr:
    """False where a row's value is ciphertext."""
    return pl.col(entity.comparable_flag) if entity.comparable_flag else pl.lit(True)
