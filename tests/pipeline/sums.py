"""What changes of partitions add up to by day: by single changes, and by both tables as a reader takes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from jobs.sinks.reader import Folder
from schemas.gold import ISR_BY_DAY, ISR_HISTORY, RUNS
from transforms.isr.days import SUMMED, not_summed

# By cluster, topic id, partition and day.
Sums = dict[tuple[str, str, int, str], Counter[str]]


def day_of(time_ms: int) -> str:
    """The UTC day of a time in milliseconds."""
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d}"


def by_day(rows: Sequence[Mapping[str, Any]], finished: Collection[str]) -> Sums:
    """What the sums of these changes must be: each change of a finished run once."""
    mine = [row for row in rows if row["run_id"] in finished]
    record = ("cluster", "topic_id", "partition", "offset", "append_time")
    found: Sums = {}
    for row in {tuple(row[name] for name in record): row for row in mine}.values():
        place = (row["cluster"], row["topic_id"], row["partition"], day_of(row["append_time"]))
        sums = found.setdefault(place, Counter())
        sums["changes"] += 1
        for name, kinds in SUMMED.items():
            sums[name] += any(kind in kinds for kind in row["kinds"])
    return {place: +sums for place, sums in found.items()}


def told(root: str) -> Sums:
    """The sums by both tables of a warehouse."""
    tables = Folder(root)
    days = tables.rows(ISR_BY_DAY)
    finished = tables.rows(RUNS, ["run_id", "verdict"]).to_dicts()
    ids = {row["run_id"] for row in finished if row["verdict"] != "failed"}
    clusters = set(tables.rows(ISR_HISTORY, ["cluster"])["cluster"])
    found: Sums = {}
    for name in clusters:
        single = tables.rows(ISR_HISTORY, where={"cluster": name})
        found |= by_day(not_summed(single, days.filter(cluster=name)).to_dicts(), ids)
    for row in days.to_dicts():
        sums = found.setdefault((row["cluster"], row["topic_id"], row["partition"], row["day"]), Counter())
        sums.update({name: row[name] for name in ("changes", *SUMMED)})
    return {place: +sums for place, sums in found.items()}
