"""Changes of partitions that a run has stored, beside those that are found when it is examined again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from schemas.gold import ISR_BY_DAY, ISR_HISTORY
from transforms.chain.hashes import row_hashes
from transforms.frames import columns_of, from_arrow
from transforms.isr.days import not_summed

_COLUMNS = columns_of(ISR_HISTORY.columns, "cluster", "run_id")
_DAYS = columns_of(ISR_BY_DAY.columns, "cluster", "run_id")
_NO_ROWS = pl.DataFrame(schema={**_COLUMNS, "number": pl.UInt64()})
_NONE = _NO_ROWS.select("number")


@dataclass(frozen=True)
class OwnChanges:
    """Which changes gold isr_history has to have of a run: those from the offset `since` on that no sum by day has.

    `days` are rows of gold isr_by_day. Runs of releases that did not store `since` (None) have none that could be compared.
    """

    run_id: str
    since: int | None
    days: pl.DataFrame

    @classmethod
    def of(cls, run_id: str, since: int | None, days: Iterable[pa.RecordBatch]) -> OwnChanges:
        """The same of the sums as Arrow's batches."""
        return cls(run_id, since, from_arrow(days, _DAYS))

    def among(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
        """These of rows of gold isr_history, without the run's columns, each with a number for what it holds."""
        for batch in () if self.since is None else batches:
            rows = from_arrow(batch, _COLUMNS).filter(pl.col("offset") >= self.since)
            own = not_summed(rows.with_columns(run_id=pl.lit(self.run_id)), self.days).select(_COLUMNS.names())
            yield own.with_columns(number=pl.Series(row_hashes(own, _COLUMNS), dtype=pl.UInt64))


class ChangesBeside:
    """Compares stored changes with found ones by their numbers: there may be tens of millions, so that few become texts."""

    def __init__(self, own: OwnChanges, stored: Callable[[], Iterable[pa.RecordBatch]], most: int) -> None:
        """`stored` gives the stored rows, as often as they are requested; `most` rows are shown."""
        self._own, self._stored, self._most = own, stored, most
        self._stored_numbers = pl.concat([_NONE, *(rows.select("number") for rows in own.among(stored()))])
        self._found_numbers = [_NONE]
        self._found_only: list[pl.DataFrame] = []

    def find(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Note rows that are found again."""
        for rows in self._own.among(batches):
            self._found_numbers.append(rows.select("number"))
            left = self._most - sum(each.height for each in self._found_only)
            if left:
                self._found_only.append(rows.join(self._stored_numbers, on="number", how="anti").head(left))

    def unlike(self) -> pl.DataFrame:
        """Rows that are not as often `stored` as found `again`, the first ones as JSON (`row`); `total` has their number."""
        counts = [
            numbers.group_by("number").len(name)
            for numbers, name in ((self._stored_numbers, "stored"), (pl.concat(self._found_numbers), "again"))
        ]
        both = counts[0].join(counts[1], on="number", how="full", coalesce=True).fill_null(0)
        odd = both.filter(pl.col("stored") != pl.col("again")).with_columns(total=pl.len())
        texts = pl.concat([_texts(rows) for rows in (*self._odd_ones(odd), *self._found_only, _NO_ROWS)])
        first_ones = texts.unique("number", keep="first", maintain_order=True).head(self._most)
        return first_ones.join(odd, on="number", maintain_order="left").drop("number")

    def _odd_ones(self, odd: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Stored rows that are odd, the first ones of each batch."""
        for rows in self._own.among(self._stored()) if odd.height else ():
            yield rows.join(odd, on="number", how="semi", maintain_order="left").head(self._most)


def _texts(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select("number", pl.struct(_COLUMNS.names()).struct.json_encode().alias("row"))
