"""Divergences that somebody has accepted until a given day. This decides where they are shown, and changes no count,
check, gate or exit code."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import polars as pl

from schemas.report import Suppression

# Column that `marked` adds: position of the first rule that matches, null for none.
MARK = "suppression"


@dataclass(frozen=True)
class SuppressionRule:
    """One entry of the file: what it matches (None matches anything), and its owner. `number` counts from 1."""

    number: int
    suppression: Suppression
    fingerprint: str | None = None
    entity: str | None = None
    key: str | None = None
    column: str | None = None
    class_: str | None = None

    @property
    def name(self) -> str:
        """How notes name the entry."""
        parts = (self.fingerprint, self.entity, self.key, self.column, self.class_)
        return f"suppression {self.number} ({' '.join(part for part in parts if part is not None)})"

    def matches(self) -> pl.Expr:
        """The condition on rows of gold `divergences`."""
        wanted = {
            "fingerprint": self.fingerprint,
            "entity": self.entity,
            "key": self.key,
            "column": self.column,
            "class": self.class_,
        }
        return pl.all_horizontal(pl.col(name).eq_missing(pl.lit(v)) for name, v in wanted.items() if v is not None)


def in_force(rules: Iterable[SuppressionRule], today: date) -> list[SuppressionRule]:
    """Rules whose last day is not over."""
    return [rule for rule in rules if date.fromisoformat(rule.suppression.until) >= today]


def marked(rows: pl.DataFrame, rules: Sequence[SuppressionRule]) -> pl.DataFrame:
    """Rows of gold `divergences` with MARK; `rules` are those in force, at least one."""
    marks = [pl.when(rule.matches()).then(pl.lit(i, pl.Int32)) for i, rule in enumerate(rules)]
    return rows.with_columns(pl.coalesce(marks).alias(MARK))


def counted_matches(rows: pl.DataFrame, rules: Sequence[SuppressionRule]) -> list[dict[str, Any]]:
    """Exact counts of `marked` rows by class: class, suppressed, and `matched`: positions of all rules that match one."""
    hits = [rule.matches().any().alias(str(i)) for i, rule in enumerate(rules)]
    found = rows.filter(pl.col(MARK).is_not_null()).group_by("class").agg(pl.len().alias("suppressed"), *hits)
    return [
        {
            "class": row["class"],
            "suppressed": row["suppressed"],
            "matched": [i for i in range(len(rules)) if row[str(i)]],
        }
        for row in found.sort("class").iter_rows(named=True)
    ]


def notes(rules: Sequence[SuppressionRule], today: date, matched: Collection[int] | None) -> list[str]:
    """Notes about the file: expired entries, and those in force that match nothing.

    `matched` are positions in `in_force` of those that match a row; None if nothing was compared.
    """
    current = in_force(rules, today)
    said = [
        f"{rule.name} of {rule.suppression.who} expired on {rule.suppression.until}: its rows are shown like all others"
        for rule in rules
        if rule not in current
    ]
    if matched is not None:
        said += [
            f"{r.name} of {r.suppression.who} matches nothing: remove it"
            for i, r in enumerate(current)
            if i not in matched
        ]
    return said
