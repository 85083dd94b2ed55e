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
    nothing = pl.DataFrame(schema=VIOLATIONS)
    if rows.is_empty() or not rules:
        return nothing
    # All at once, because few rules are broken at all, and few rows break one: only those are spelled.
    names = [f"rule {number}" for number in range(len(rules))]
    met = rows.with_columns(rule.condition.alias(name) for rule, name in zip(rules, names, strict=True))
    some = met.select(pl.col(names).any()).row(0)
    found = [
        met.filter(name).select(pl.lit(rule.code).alias("code"), rule.text.cast(pl.String).alias("text"))
        for rule, name, is_met in zip(rules, names, some, strict=True)
        if is_met
    ]
    return pl.concat([nothing, *found])


def said(template: str, *columns: pl.Expr | str) -> pl.Expr:
    """A text with columns at its `{}`; what a row does not have is spelled `null`."""
    texts = [pl.col(each) if isinstance(each, str) else each for each in columns]
    return pl.format(template, *(each.cast(pl.String).fill_null("null") for each in texts))
