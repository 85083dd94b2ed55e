"""Views of a catalog: the state as of each run, for people who read the tables with SQL.

A table in a folder has no place for a view; the same query for it is in docs/tables.md.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from pyspark.errors import PySparkException

from jobs.sinks.delta import Warehouse
from jobs.sinks.shape import quoted
from schemas.entities import ENTITIES
from schemas.entities.entity import CHAIN_COLUMNS
from schemas.gold import RUNS
from schemas.table import Table

LOG = logging.getLogger("kraft-audit")
_RUN = "as_of_run"
_OF_CHAINS = [each.name for each in CHAIN_COLUMNS]


def store_views(warehouse: Warehouse, *, again: bool = False) -> None:
    """Create the views that are missing in a catalog, with `again` all of them: a later release's tables have more columns.

    Does nothing in a folder. No run depends on a view: one that cannot be created is a line in the log.
    """
    if not warehouse.catalog:
        return
    schema = ".".join(quoted(part) for part in warehouse.root.split("."))
    try:
        rows = warehouse.spark.sql(f"SHOW TABLES IN {schema}").collect()
        there = {f"{warehouse.root}.{row['tableName']}" for row in rows}
        for table in [each.table for each in ENTITIES if warehouse.location(each.table) in there]:
            view = replace(table, name=f"{table.name}_as_of")
            if again or warehouse.location(view) not in there:
                warehouse.spark.sql(_statement(warehouse, table, view))
    except PySparkException as error:
        LOG.warning("views of %s could not be created: %s", warehouse.root, str(error).splitlines()[0])


def _statement(warehouse: Warehouse, table: Table, view: Table) -> str:
    columns = ", ".join(quoted(name) for name in table.column_names if name not in _OF_CHAINS)
    comment = f"State as of each run ({_RUN}): the rows of {table.full_name} that count for it."
    return f"""
        CREATE OR REPLACE VIEW {warehouse.identifier(view)} COMMENT '{comment}' AS
        WITH placed AS (
          SELECT runs.run_id AS {_RUN}, array_position(runs.state_runs, rows.run_id) AS place, rows.*
          FROM {warehouse.identifier(RUNS)} AS runs JOIN {warehouse.identifier(table)} AS rows
          ON rows.cluster = runs.cluster AND array_contains(runs.state_runs, rows.run_id)
        ),
        newest AS (SELECT *, max(place) OVER (PARTITION BY cluster, {_RUN}, row_key) AS newest FROM placed)
        SELECT {_RUN}, {columns} FROM newest WHERE place = newest AND gone IS NULL
    """  # noqa: S608 - names are declared or quoted
