"""Rules that single rows of a table break, as expressions over its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

VIOLATIONS = pl.Schema({"code": pl.String, "text": pl.String})


@dataclass(frozen=True)
class RowRule:
    """A row that meets `condition` violates the check `code`; `text` names the row and the fault."""

    code: str
    condition: pl.Expr
    text: pl.Expr


def broken(rows: pl.DataFrame, rules: Sequence[RowRule]) -> pl.DataFrame:
    """Rows that break a rule, once for each rule: columns VIOLATIONS. A condition that is null is not met."""
    found = [
        # Of many rows few break a rule: only those are spelled.
        rows.filter(rule.condition).select(pl.lit(rule.code).alias("code"), rule.text.cast(pl.String).alias("text"))
        for rule in rules
    ]
    return pl.concat([pl.DataFrame(schema=VIOLATIONS), *found])


def said(template: str, *columns: pl.Expr | str) -> pl.Expr:
    """A text with columns at its `{}`; what a row does not have is spelled `null`."""
    texts = [pl.col(each) if isinstance(each, str) else each for each in columns]
    return pl.format(template, *(each.cast(pl.String).fill_null("null") for each in texts))
