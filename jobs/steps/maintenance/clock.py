"""Whether this machine's clock can be trusted with the age of rows: one that is years ahead would remove nearly all of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

from jobs.evidence.removed import FILES, ROWS
from jobs.sinks.reader import Reader
from schemas.gold import MAINTENANCE, RUNS

# Who audits once a quarter has no longer pause between two runs.
_LONGEST_PAUSE = timedelta(days=100)
OPTION = "--clock-is-right"


def why_doubted(warehouse: Reader, now: datetime) -> str:
    """Why the clock may be wrong, in one line, empty if nothing says so: a long time without a run since the last maintenance (UTC).

    A clock that leaps shows as such a time, however many runs come after the leap. A maintenance that was done is trusted.
    """
    began = warehouse.rows(RUNS, ["started_at"])["started_at"].drop_nulls().to_list()
    ends = warehouse.rows(MAINTENANCE, ["done_at"], {"run_id": None, "what": [ROWS, FILES]})["done_at"].to_list()
    done = max((each for each in ends if each <= now), default=None)
    times = sorted({each for each in (*began, *ends) if each <= now and (done is None or each >= done)} | {now})
    gap = next(((one, other) for one, other in pairwise(times) if other - one > _LONGEST_PAUSE), None)
    if gap is None:
        return ""
    days = (gap[1] - gap[0]).days
    return (
        f"no row is removed, because this machine's clock may be wrong: from {gap[0]:%Y-%m-%d} to {gap[1]:%Y-%m-%d}, {days:,} days, "
        f"no run began; if that is right, give `kraft-audit maintain {OPTION}` once"
    )
