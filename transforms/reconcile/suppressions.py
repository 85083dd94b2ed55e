"""Which divergences somebody vouches for. That decides where they are shown and changes no count, check, gate or exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.report import Suppression

# Column that `marked` adds: position of the first rule that matches, null for none.
MARK = "suppression"


@dataclass(frozen=True)
class Rule:
    """One entry of the file: what it matches (None matches anything), and whose word it is. `number` counts from 1."""

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

    def matches(self) -> Column:
        """The condition on rows of gold `divergences`."""
        wanted = {
            "fingerprint": self.fingerprint,
            "entity": self.entity,
            "key": self.key,
            "column": self.column,
            "class": self.class_,
        }
        return reduce(and_, [F.col(name).eqNullSafe(F.lit(v)) for name, v in wanted.items() if v is not None])


def in_force(rules: Iterable[Rule], today: date) -> list[Rule]:
    """Rules whose last day is not over."""
    return [rule for rule in rules if date.fromisoformat(rule.suppression.until) >= today]


def marked(rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Rows of gold `divergences` with MARK; `rules` are at least one."""
    return rows.withColumn(MARK, F.coalesce(*[F.when(rule.matches(), F.lit(i)) for i, rule in enumerate(rules)]))


def counted_matches(rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Exact counts of `marked` rows: class, suppressed, and `rule_<position>`: how many that rule alone matches."""
    each = [F.count_if(rule.matches()).alias(f"rule_{i}") for i, rule in enumerate(rules)]
    return rows.groupBy("class").agg(F.count(MARK).alias("suppressed"), *each)


def notes(rules: Sequence[Rule], today: date, matched: Mapping[int, int] | None) -> list[str]:
    """Notes on the file: entries that are over, and those in force that match nothing.

    `matched` are the rows by position in `in_force`; None when nothing was compared, and nothing can be said.
    """
    current = in_force(rules, today)
    said = [
        f"{rule.name} of {rule.suppression.who} was over on {rule.suppression.until}: its rows are shown like all others"
        for rule in rules
        if rule not in current
    ]
    if matched is not None:
        said += [
            f"{r.name} of {r.suppression.who} matches nothing: remove it"
            for i, r in enumerate(current)
            if not matched[i]
        ]
    return said


def matches_by_rule(counts: Sequence[Mapping[str, Any]], rules: Sequence[Rule]) -> dict[int, int]:
    """Rows each rule matches, from collected `counted_matches`."""
    return {i: sum(row[f"rule_{i}"] for row in counts) for i in range(len(rules))}
