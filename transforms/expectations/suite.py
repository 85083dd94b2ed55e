"""A suite of expectations as a user wrote it: about one table, each expectation with its weight."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.table import Table

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Expectation:
    """One expectation. `type` and `kwargs` are Great Expectations' own words.

    `place` is its number in the file, from 1; `severity` what a failure is: error or warning; `why` the user's words.
    """

    place: int
    type: str
    kwargs: Mapping[str, Any]
    severity: str = ERROR
    why: str = ""

    @property
    def column(self) -> str | None:
        """The columns it is about, separated by commas; None when it is about the table."""
        named = self.kwargs.get("column") or self.kwargs.get("column_list") or self.kwargs.get("column_set")
        pair = [self.kwargs[key] for key in ("column_A", "column_B") if key in self.kwargs]
        if isinstance(named, list | tuple):
            return ", ".join(str(name) for name in named)
        return str(named) if named else ", ".join(map(str, pair)) or None


@dataclass(frozen=True)
class Suite:
    """Expectations of one silver or gold table; `where` is Spark SQL that chooses among the rows of a cluster's run.

    Those that are switched off are not in it.
    """

    name: str
    table: Table
    expectations: tuple[Expectation, ...]
    where: str | None = None

    @property
    def identity(self) -> str:
        """Equal for suites with the same content, even if read for different clusters."""
        said = [[each.place, each.type, each.kwargs, each.severity, each.why] for each in self.expectations]
        return json.dumps([self.name, self.table.full_name, self.where, said], sort_keys=True, default=str)
