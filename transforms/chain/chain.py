"""Which runs' rows make up a state, and how its rows are chosen among theirs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import polars as pl

from schemas.entities import ENTITIES

# More would cost a reader more than a base costs now and then.
MOST_PARTS = 32


@dataclass(frozen=True)
class StoredPart:
    """What one run of a chain has stored: rows by table (`layer.name`), and the SHA-256 of each piece of its index, in order."""

    run_id: str
    rows: Mapping[str, int]
    digests: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many rows in all."""
        return sum(self.rows.values())


@dataclass(frozen=True)
class Chain:
    """The runs whose rows make up a state: the base, which stored all of them, then those that stored what had changed."""

    parts: tuple[StoredPart, ...] = ()

    @property
    def runs(self) -> tuple[str, ...]:
        """Ids of the runs, the base's first."""
        return tuple(part.run_id for part in self.parts)

    def takes(self, rows: int) -> bool:
        """Whether so many changed rows may follow: not where reading them would cost more than a new base."""
        if not rows:
            return True
        later = sum(part.count for part in self.parts[1:])
        return len(self.parts) < MOST_PARTS and later + rows <= self.parts[0].count

    def followed_by(self, part: StoredPart) -> Chain:
        """The chain of a run that stored this; the same chain where nothing had changed."""
        return Chain((*self.parts, part)) if part.count or not self.parts else self

    def only(self, table: str) -> Chain:
        """The chain as that of one table."""
        rows = [(part, {name: count for name, count in part.rows.items() if name == table}) for part in self.parts]
        return Chain(tuple(StoredPart(part.run_id, mine) for part, mine in rows))

    def rows_gone(self, there: Mapping[tuple[str, str], int]) -> str | None:
        """Where not as many rows are there (by run and table) as were stored, in a few words; None where all are."""
        for part in self.parts:
            for table, rows in sorted(part.rows.items()):
                found = there.get((part.run_id, table), 0)
                if found != rows:
                    return f"{found} of {rows} rows of run {part.run_id} are in {table}"
        return None

    def said(self) -> list[dict[str, Any]]:
        """As JSON can spell it."""
        return [asdict(part) for part in self.parts]


def chain_of(said: Sequence[Mapping[str, Any]]) -> Chain:
    """Read the output of `Chain.said`."""
    return Chain(tuple(StoredPart(each["run_id"], dict(each["rows"]), tuple(each["digests"])) for each in said))


@cache
def layout() -> str:
    """Changes whenever rows of another release would be other rows, or have other keys."""
    declared = [(entity.name, entity.key, [each.jsonValue() for each in entity.row_columns]) for entity in ENTITIES]
    plain = json.dumps(declared, default=str).encode()
    return hashlib.sha256(plain).hexdigest()[:16]


def newest_rows(rows: pl.LazyFrame, runs: Sequence[str]) -> pl.LazyFrame:
    """Of one cluster's rows in a chained table, those of the state that these runs make up, the base's first."""
    of_runs = rows.filter(pl.col("run_id").is_in([*runs]))
    if len(runs) > 1:
        places = pl.col("run_id").replace_strict(
            {run_id: place for place, run_id in enumerate(runs)}, return_dtype=pl.Int32
        )
        of_runs = of_runs.filter(places == places.max().over("row_key"))
    return of_runs.filter(pl.col("gone").is_null())
