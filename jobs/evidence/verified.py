"""Results of `kraft-audit verify` for each cluster's newest run: stored, and read for the fleet's page and the mails."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import polars as pl

from jobs.sinks.reader import Folder, Reader, records
from schemas.gold import RUNS, VERIFICATIONS
from transforms.clusters import CLUSTER
from transforms.report.fleet_model import Verified
from transforms.report.printable import visible
from transforms.runs import CLEAN, ERRORS, WARNINGS, latest_now

if TYPE_CHECKING:
    from jobs.sinks.delta import Warehouse

EQUAL, DIFFERS, UNKNOWN = "equal", "differs", "unknown"
_LONGEST = 500


def store(warehouse: Warehouse, cluster: str, run_id: str, verdict: str, problem: str = "") -> None:
    """Store the outcome of a verification that ended now. Raises what the warehouse raises."""
    from jobs.sinks.folder_table import arrow_rows  # noqa: PLC0415 - who only looks needs no Spark

    row = {
        CLUSTER: cluster,
        "run_id": run_id,
        "verified_at": datetime.now(UTC),
        "verdict": verdict,
        "problem": visible(problem, _LONGEST) or None,
    }
    warehouse.append(VERIFICATIONS, arrow_rows(VERIFICATIONS, [row]))


def newest(tables: Reader) -> dict[str, Verified]:
    """The last result of each cluster; none for clusters that were never verified.

    One from the future was made with a clock that was ahead: it is as old as its run, or the oldest if that is unknown.
    """
    columns = [CLUSTER, "run_id", "verified_at", "problem"]
    began = (
        pl.col("run_id")
        .str.slice(0, 16)
        .str.to_datetime("%Y%m%dT%H%M%SZ", time_unit="us", time_zone="UTC", strict=False)
    )
    times = [pl.when(time <= latest_now(datetime.now(UTC))).then(time) for time in (pl.col("verified_at"), began)]
    rows = tables.rows(VERIFICATIONS, columns).with_columns(pl.coalesce(times).alias("_at"))
    last = rows.sort("_at", nulls_last=False).group_by(CLUSTER, maintain_order=True).last()
    return {
        row[CLUSTER]: Verified(row["run_id"], row["verified_at"], row["problem"] or "")
        for row in records(last.select(columns), VERIFICATIONS)
    }


def newest_in(warehouse: Warehouse) -> dict[str, Verified]:
    """The same; of a local folder without a query."""
    return newest(warehouse if warehouse.folder is None else Folder(warehouse.root))


def longest_ago(tables: Reader, clusters: list[str], number: int) -> set[str]:
    """The `number` clusters with a finished run to verify next: those never verified, then those verified longest ago."""
    finished = {CLUSTER: clusters, "verdict": [CLEAN, WARNINGS, ERRORS]}
    there = tables.rows(RUNS, [CLUSTER], finished)[CLUSTER].unique().to_list()
    latest = latest_now(datetime.now(UTC))
    # Of one from the future it is unknown how long ago it was.
    last = {name: each.at.timestamp() if each.at <= latest else 0.0 for name, each in newest(tables).items()}
    ordered = sorted(there, key=lambda name: (name in last, last.get(name, 0.0), name))
    return set(ordered[:number])
