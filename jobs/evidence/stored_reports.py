"""The reports that runs have stored in gold `runs`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from jobs.sinks.conditions import PRESENT, Where
from jobs.sinks.reader import Reader
from schemas.gold import RUNS
from transforms.clusters import CLUSTER

_AT_ONCE = 10


def stored_reports(warehouse: Reader, runs: Sequence[str], where: Where) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The reports of these runs, as (cluster, run id, report), in no order: of each cluster that meets the conditions.

    They may be large, so a few are read at a time. Raises WarehouseError.
    """
    for first in range(0, len(runs), _AT_ONCE):
        wanted = {**where, "run_id": runs[first : first + _AT_ONCE], "report": PRESENT}
        for name, run_id, report in warehouse.rows(RUNS, [CLUSTER, "run_id", "report"], wanted).iter_rows():
            yield name, run_id, json.loads(report)
