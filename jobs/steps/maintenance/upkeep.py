"""The work of a maintenance, and what was done to a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from jobs.settings import MaintainSettings
from transforms.retention import Retention

# Tables that are worked on at the same time.
AT_ONCE = 2


@dataclass(frozen=True)
class Upkeep:
    """The work of a maintenance: rows of the clusters with `rules` go by them; with `files` all tables are compacted
    and vacuumed.

    `now` is UTC. `vacuum_hours` is how long files stay that no table needs any more.
    """

    rules: Mapping[str, Retention]
    now: datetime
    vacuum_hours: float = MaintainSettings().vacuum_hours
    files: bool = True
    dry_run: bool = False


@dataclass
class Tended:
    """The work on a table, done or planned: rows removed, and of how many; files before and after merging; files
    that no version needs and that were removed, with their bytes (None if unknown); about how many bytes the rows of a dry run
    take, by their share of the table's; the problem, if any."""

    table: str
    rows: int = 0
    of_rows: int = 0
    files: int = 0
    files_after: int = 0
    removed_files: int | None = 0
    removed_bytes: int | None = 0
    about_row_bytes: int = 0
    problem: str = ""

    @property
    def idle(self) -> bool:
        """True when there was nothing to do."""
        return not (self.rows or self.removed_files or self.problem or self.files != self.files_after)
