"""The KRaft states of two finished runs, compared with each other."""

from __future__ import annotations

from typing import Any

import polars as pl

from jobs.evidence.past import PastRun
from schemas.checks import KRAFT
from schemas.entities import Entity
from transforms.frames import columns_of, shaped
from transforms.reconcile.compare.states import ComparisonRules, differing_states

_TOLD = ("entity", "key", "zk_row", "kraft_row")


def differing(left: PastRun, right: PastRun, rules: ComparisonRules) -> list[dict[str, Any]]:
    """Rows that are not the same in both runs, by entity and key (`transforms.reconcile.compare.states.differing_states`)."""
    left_state, right_state = (
        {entity.name: _rows(past, entity) for entity in rules.entities} for past in (left, right)
    )
    return differing_states(left_state, right_state, rules).select(_TOLD).to_dicts()


def _rows(past: PastRun, entity: Entity) -> pl.DataFrame:
    """The compared columns of the run's silver rows; the others are null."""
    flag = () if entity.comparable_flag is None else (entity.comparable_flag,)
    rows = past.rows(entity.table, [*entity.key, *entity.compared, *flag], {"source": KRAFT})
    return shaped(rows, columns_of(entity.row_columns))
