"""Rules that single rows of a table break, as column expressions: one pass over the table judges all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transforms.clusters import CLUSTER


@dataclass(frozen=True)
class RowRule:
    """A row that meets `condition` violates the check `code`; `text` says which row and how."""

    code: str
    condition: Column
    text: Column


def broken(rows: DataFrame, rules: Sequence[RowRule]) -> DataFrame:
    """Rows that break a rule, once for each rule: (cluster, code, text)."""
    met = [F.when(r.condition, F.struct(F.lit(r.code).alias("code"), r.text.alias("text"))) for r in rules]
    # Of many rows few break a rule: only those go on to be spelled.
    violating = rows.where(reduce(or_, [rule.condition for rule in rules]))
    return violating.select(CLUSTER, F.explode(F.array_compact(F.array(*met))).alias("found")).select(
        CLUSTER, "found.*"
    )
