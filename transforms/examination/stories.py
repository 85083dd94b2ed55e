"""Stories of rows that seem lost: all their versions up to `/migration`'s offset, remembered for the next run.

What seems lost is judged by every value that KRaft ever gave the row. A run that resumes a kept state has the newest part of the log only.
With the stories it needs the whole log just for rows that did not seem lost before.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import polars as pl

from transforms.kernel.versions import VERSIONS

_KEY = pl.Schema({"entity": pl.String, "key": pl.String})
TOLD = pl.Schema({"entity": pl.String, "key": pl.String, "until": pl.Int64})


@dataclass(frozen=True)
class Stories:
    """`told` are the rows (entity, canonical key) whose stories are known up to the offset `until` (inclusive), also
    rows without any record in the log; `versions` their versions (`transforms.kernel.versions.VERSIONS`), sorted by row
    and offset.
    """

    told: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=TOLD))
    versions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=VERSIONS))

    @staticmethod
    def of(keys: Collection[tuple[str, str]], versions: pl.DataFrame, until: int) -> Stories:
        """What was found of these rows, up to `until` (inclusive)."""
        told = _frame(keys).with_columns(pl.lit(until, pl.Int64).alias("until"))
        return Stories(told, versions.select(VERSIONS.names()).sort("entity", "key", "from_offset"))

    def reach(self, keys: Collection[tuple[str, str]], offset: int) -> bool:
        """Whether the stories of all these rows are known below `offset` (exclusive)."""
        known = self.told.filter(pl.col("until") >= offset - 1)
        return _frame(keys).join(known, on=_KEY.names(), how="anti").is_empty()

    def continued(
        self, keys: Collection[tuple[str, str]], since: pl.DataFrame, offset: int, until: int
    ) -> pl.DataFrame:
        """The rows' versions up to `until` (inclusive): the remembered ones below `offset`, and those `since` then."""
        before = self.versions.join(_frame(keys), on=_KEY.names(), how="semi", maintain_order="left")
        both = [before.filter(pl.col("from_offset") < offset), since.filter(pl.col("from_offset") >= offset)]
        return pl.concat(both).filter(pl.col("from_offset") <= until)


def _frame(keys: Collection[tuple[str, str]]) -> pl.DataFrame:
    return pl.DataFrame(sorted(set(keys)), schema=_KEY, orient="row")
