"""Which divergences somebody vouches for. That decides where they are shown and changes no count, check, gate or exit code."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.report import Suppression
from transforms.clusters import CLUSTER

# Column that `marked` adds: position of the first rule that matches, null for none.
MARK = "suppression"


@dataclass(frozen=True)
class SuppressionRule:
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


def in_force(rules: Iterable[SuppressionRule], today: date) -> list[SuppressionRule]:
    """Rules whose last day is not over."""
    return [rule for rule in rules if date.fromisoformat(rule.suppression.until) >= today]


def marked(rows: DataFrame, rules: Mapping[str, Sequence[SuppressionRule]]) -> DataFrame:
    """Rows of gold `divergences` with MARK; `rules` are those in force of each cluster, at least one in all."""
    return rows.withColumn(MARK, F.coalesce(*_marks(rules)))


def _marks(rules: Mapping[str, Sequence[SuppressionRule]]) -> list[Column]:
    """For each rule: its position among its cluster's where it matches, else null."""
    return [
        F.when((F.col(CLUSTER) == F.lit(cluster)) & rule.matches(), F.lit(i))
        for cluster, mine in rules.items()
        for i, rule in enumerate(mine)
    ]


def counted_matches(rows: DataFrame, rules: Mapping[str, Sequence[SuppressionRule]]) -> DataFrame:
    """Exact counts of `marked` rows: cluster, class, suppressed, and `matched`: positions of all rules that match one."""
    matching = F.collect_set(F.array_compact(F.array(*_marks(rules))))
    found = rows.where(F.col(MARK).isNotNull()).groupBy(CLUSTER, "class")
    return found.agg(F.count(MARK).alias("suppressed"), F.array_distinct(F.flatten(matching)).alias("matched"))


def notes(rules: Sequence[SuppressionRule], today: date, matched: Collection[int] | None) -> list[str]:
    """What is to be said of the file: entries that are over, and those in force that match nothing.

    `matched` are positions in `in_force` of those that match a row; None when nothing was compared, and nothing can be said.
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
            if i not in matched
        ]
    return said
