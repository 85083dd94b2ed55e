"""Views of a catalog: the state as of each run, for people who read the tables with SQL.

A table in a folder has no place for a view; the same query for it is in docs/tables.md.
"""

from __future__ import annotations

import logging

from pyspark.errors import PySparkException

from jobs.sinks.delta import Warehouse, quoted
from schemas.entities import ENTITIES
from schemas.gold import RUNS
from schemas.table import Table

LOG = logging.getLogger("kraft-audit")
_SUFFIX = "_as_of"
_RUN = "as_of_run"


def view_name(warehouse: Warehouse, table: Table) -> str:
    """Name of a silver table's view in SQL."""
    parts = [*warehouse.root.split("."), _short(table)]
    return ".".join(quoted(part) for part in parts)


def store_views(warehouse: Warehouse, *, again: bool = False) -> None:
    """Create the views that are missing in a catalog, with `again` all of them: a later release's tables have more columns.

    Nothing is done in a folder. Nobody's run depends on a view, so that one which can't be created is a line in the log.
    """
    if not warehouse.catalog:
        return
    schema = ".".join(quoted(part) for part in warehouse.root.split("."))
    try:
        there = {row["tableName"] for row in warehouse.spark.sql(f"SHOW TABLES IN {schema}").collect()}
        for table in [each.table for each in ENTITIES if f"silver_{each.name}" in there]:
            if again or _short(table) not in there:
                warehouse.spark.sql(_statement(warehouse, table))
    except PySparkException as error:
        LOG.warning("views of %s could not be created: %s", warehouse.root, str(error).splitlines()[0])


def _short(table: Table) -> str:
    return f"{table.layer.value}_{table.name}{_SUFFIX}"


def _statement(warehouse: Warehouse, table: Table) -> str:
    columns = ", ".join(quoted(name) for name in table.column_names if name not in ("row_key", "gone"))
    comment = f"State as of each run ({_RUN}): the rows of {table.full_name} that count for it."
    return f"""
        CREATE OR REPLACE VIEW {view_name(warehouse, table)} COMMENT '{comment}' AS
        WITH placed AS (
          SELECT runs.run_id AS {_RUN}, array_position(runs.state_runs, rows.run_id) AS place, rows.*
          FROM {warehouse.identifier(RUNS)} AS runs JOIN {warehouse.identifier(table)} AS rows
          ON rows.cluster = runs.cluster AND array_contains(runs.state_runs, rows.run_id)
        ),
        newest AS (SELECT *, max(place) OVER (PARTITION BY cluster, {_RUN}, row_key) AS newest FROM placed)
        SELECT {_RUN}, {columns} FROM newest WHERE place = newest AND gone IS NULL
    """  # noqa: S608 - names are declared or quoted
