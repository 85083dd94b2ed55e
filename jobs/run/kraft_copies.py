"""The copies of each cluster's metadata log, as `jobs.steps.ingest_kraft` found them."""

from __future__ import annotations

from typing import Any

from jobs.run.run import Run
from schemas.bronze import KRAFT_LOG_COPIES
from transforms.clusters import CLUSTER


def log_copies(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Rows of bronze kraft_log_copies by cluster; clusters without a KRaft side are not in it."""
    asked = [name for name, settings in run.settings_of().items() if settings.kraft is not None]
    copies: dict[str, list[dict[str, Any]]] = {name: [] for name in asked}
    if run.scanned:
        return {name: run.scanned.get(name, []) for name in asked}
    if asked:
        # A table has no order, and the result of reading equal copies must not depend on one.
        for row in sorted(run.looked_up(KRAFT_LOG_COPIES, ()), key=lambda row: str(row["location"])):
            copies.setdefault(row[CLUSTER], []).append(row)
    return copies
