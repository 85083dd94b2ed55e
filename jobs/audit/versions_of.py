"""Everything the logs tell of some rows of a run, asked when something seems lost: who wrote what ZooKeeper has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.homes import VersionsOf
from jobs.audit.kraft_side import whole_records
from jobs.audit.run import Run
from jobs.steps.materialize import State
from schemas.kraft.records import CLEAR_ELR
from transforms.kraft.replay.image import Log, versions_of


def versions_of_rows(run: Run, state: State) -> VersionsOf:
    """Answer from the log that this run replayed; where it went on from a kept state, from what earlier runs have read."""

    def ask(asked: DataFrame, until: Mapping[str, int]) -> DataFrame:
        return versions_of(_logs(run, state, until), asked, until)

    return ask


def _logs(run: Run, state: State, clusters: Mapping[str, int]) -> Log:
    read_whole = [name for name in clusters if state.sides[name].kept is None]
    logs = [state.log.of_clusters(read_whole)] if state.log is not None and read_whole else []
    continued = [name for name in clusters if state.sides[name].kept is not None]
    if continued:
        # The run's own records are among those that are read back.
        run.finish_writes()
    for name in continued:
        records, extent = whole_records(run.warehouse, name, run.run_id, state.sides[name])
        # What clears ELRs is rare, and looked for first: with it, every change of a partition would be held in memory.
        clearing = not records.where(F.col("type") == CLEAR_ELR.name).isEmpty()
        logs.append(Log.of(records, {name: extent}, cache=run.cache, clearing=clearing))
    return reduce(Log.union, logs)
