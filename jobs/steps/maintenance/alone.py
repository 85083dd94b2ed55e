"""One maintenance of a warehouse at a time."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from jobs.disk import said as words_of
from jobs.evidence.removed import BEGUN, ENDED
from jobs.exit import AuditError
from jobs.run.run import new_run_id
from jobs.sinks.delta import Warehouse
from jobs.sinks.lock import LOCKS, held
from jobs.sinks.reader import records
from jobs.sinks.storage import WarehouseError
from jobs.steps.maintenance.noted import note
from jobs.steps.maintenance.upkeep import Upkeep
from schemas.gold import MAINTENANCE

_LOCK = "maintenance"
# A maintenance that began longer ago and has not ended was killed.
_LONGEST = timedelta(hours=6)


class BusyError(AuditError):
    """Another maintenance of the warehouse is running."""


@contextmanager
def alone(warehouse: Warehouse, upkeep: Upkeep) -> Iterator[None]:
    """One maintenance at a time: of two with different finished runs one could write a day's sums without a run of the other's."""
    if upkeep.dry_run:
        yield
    elif warehouse.folder is None:
        with _announced(warehouse):
            yield
    else:
        with _locked(warehouse, warehouse.folder):
            yield


@contextmanager
def _locked(warehouse: Warehouse, folder: Path) -> Iterator[None]:
    warehouse.prepare()
    path = folder / LOCKS / _LOCK
    lock = held(path, 0)
    try:
        path.parent.mkdir(exist_ok=True)
        lock.__enter__()
    except OSError as error:
        if error.errno != errno.EAGAIN:
            raise WarehouseError(f"the warehouse {warehouse.root} can't be written: {words_of(error)}") from None
        raise BusyError(f"another maintenance of {warehouse.root} is running; nothing was done") from None
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


@contextmanager
def _announced(warehouse: Warehouse) -> Iterator[None]:
    """Where there are no locks: a row in gold `maintenance` before and after the work.

    Commits to a table have an order, so of two that begin at once the second one at least sees the first, and leaves.
    """
    mine = new_run_id(datetime.now(UTC))
    _announce(warehouse, mine, BEGUN)
    try:
        since = _another_since(warehouse, mine)
        if since is not None:
            raise BusyError(
                f"another maintenance of {warehouse.root} has begun at {since:%Y-%m-%d %H:%M} UTC and has not ended; nothing was done. "
                f"If it was killed, start again {_LONGEST // timedelta(hours=1)} hours after that"
            )
        yield
    finally:
        _announce(warehouse, mine, ENDED)


def _announce(warehouse: Warehouse, mine: str, what: str) -> None:
    note(warehouse, datetime.now(UTC), [(None, mine, what)])


def _another_since(warehouse: Warehouse, mine: str) -> datetime | None:
    """When another maintenance began that is running (UTC); None without one."""
    noted = warehouse.rows(MAINTENANCE, ("run_id", "done_at", "what"), {"what": [BEGUN, ENDED]})
    rows = list(records(noted, MAINTENANCE))
    ended = {mine, *(row["run_id"] for row in rows if row["what"] == ENDED)}
    begun = [row["done_at"] for row in rows if row["what"] == BEGUN and row["run_id"] not in ended]
    # A clock may be ahead: one that is dated further in the future is not running either.
    return max([each for each in begun if abs(datetime.now(UTC) - each) < _LONGEST], default=None)
