"""What to do with a finding: the SQL that lists it whole, and the command that explains a row, ready to copy."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.gold import CHECKS, DIVERGENCES, RUNS
from schemas.report import DivergenceRow, Report
from schemas.table import Table

# A longer key would be cut by the eye before it is by a shell.
_MOST_KEY = 400


@dataclass(frozen=True)
class TablePlace:
    """Where a report's tables are: the folder, URI or `catalog.schema` of the warehouse; without one, a name to fill in."""

    warehouse: str = ""
    catalog: bool = False

    def in_sql(self, table: Table) -> str:
        """Name of a table in SQL."""
        if self.catalog:
            names = [*self.warehouse.split("."), f"{table.layer.value}_{table.name}"]
            return ".".join(f"`{name.replace('`', '``')}`" for name in names)
        location = f"{(self.warehouse or 'WAREHOUSE').rstrip('/')}/{table.layer.value}/{table.name}"
        return f"delta.`{location.replace('`', '``')}`"

    @property
    def option(self) -> str:
        """The option by which commands find the warehouse; a catalog is found by a configuration."""
        if self.catalog:
            return "--conf FILE"
        return f"--warehouse {shlex.quote(self.warehouse or 'WAREHOUSE')}"


def of_class(report: Report, tables: TablePlace, class_: str) -> str:
    """SQL for all differences of a class, listed or not."""
    wanted = [_mine(report), f"class = {_text(class_)}", "status <> 'resolved'"]
    return _select("*", tables.in_sql(DIVERGENCES), wanted, "entity, key")


def of_checks(report: Report, tables: TablePlace) -> str:
    """SQL for the checks that are open, over all finished runs of the cluster: since when they have been."""
    wanted = [
        f"cluster = {_text(report.cluster)}",
        "runs.verdict <> 'failed'",
        "checks.verdict IN ('fail', 'warn', 'unknown')",
    ]
    joined = f"{tables.in_sql(CHECKS)} AS checks JOIN {tables.in_sql(RUNS)} AS runs USING (cluster, run_id)"
    columns = "check_id, checks.verdict, violations, run_id, evidence"
    return _select(columns, joined, wanted, "check_id, sequence")


def explain(report: Report, tables: TablePlace, row: DivergenceRow) -> str:
    """The command that shows what happened to a row; empty if its key is too long to type."""
    key = json.dumps(row.key, default=str)
    if len(key) > _MOST_KEY:
        return ""
    # A configuration names its cluster itself.
    cluster = "" if tables.catalog else f" --cluster {shlex.quote(report.cluster)}"
    return (
        f"kraft-audit explain {shlex.quote(row.entity)} {shlex.quote(key)} {tables.option}{cluster} "
        f"--run {shlex.quote(report.run_id)}"
    )


def explanations(report: Report, tables: TablePlace, rows: Sequence[DivergenceRow]) -> list[str]:
    """The commands for several rows, each once."""
    commands = (explain(report, tables, row) for row in rows)
    return list(dict.fromkeys(command for command in commands if command))


def _select(columns: str, table: str, conditions: Sequence[str], order: str) -> str:
    """Text for people to copy; nothing here runs it, and every value in it is quoted."""
    return " ".join(["SELECT", columns, "FROM", table, "WHERE", " AND ".join(conditions), "ORDER BY", order])


def _mine(report: Report) -> str:
    return f"cluster = {_text(report.cluster)} AND run_id = {_text(report.run_id)}"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
