"""Results of `kraft-audit verify` for each cluster's newest run: stored, and read for the fleet's page and the mails."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jobs.sinks.reader import Folder, Reader, records
from schemas.gold import RUNS, VERIFICATIONS
from transforms.clusters import CLUSTER
from transforms.report.fleet_model import Verified
from transforms.report.printable import visible
from transforms.runs import CLEAN, ERRORS, WARNINGS

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
    """The last result of each cluster; none for clusters that were never verified."""
    columns = [CLUSTER, "run_id", "verified_at", "problem"]
    rows = tables.rows(VERIFICATIONS, columns).sort("verified_at").group_by(CLUSTER, maintain_order=True).last()
    return {
        row[CLUSTER]: Verified(row["run_id"], row["verified_at"], row["problem"] or "")
        for row in records(rows.select(columns), VERIFICATIONS)
    }


def newest_in(warehouse: Warehouse) -> dict[str, Verified]:
    """The same; of a local folder without a query."""
    return newest(warehouse if warehouse.folder is None else Folder(warehouse.root))


def longest_ago(tables: Reader, clusters: list[str], number: int) -> set[str]:
    """The `number` clusters with a finished run to verify next: those never verified, then those verified longest ago."""
    finished = {CLUSTER: clusters, "verdict": [CLEAN, WARNINGS, ERRORS]}
    there = tables.rows(RUNS, [CLUSTER], finished)[CLUSTER].unique().to_list()
    last = newest(tables)
    ordered = sorted(there, key=lambda name: (name in last, last[name].at.timestamp() if name in last else 0.0, name))
    return set(ordered[:number])
