"""Write the pages of docs/ that are made from the declarations: `python tools/docs.py`, or `make docs`.

docs/tables.md has every table and column, docs/checks.md every check. A test holds both equal to what this makes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pyspark.sql.types import DataType, StructField

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from schemas import bronze, gold, silver  # noqa: E402
from schemas.checks import CHECKS  # noqa: E402
from schemas.checks.check import Check, Phase  # noqa: E402
from schemas.gates import GATES  # noqa: E402
from schemas.table import Layer, Table  # noqa: E402

MADE = "<!-- Made by tools/docs.py from the declarations in schemas/: change those, then `make docs`. -->"
LAYERS: tuple[tuple[Layer, str, tuple[Table, ...]], ...] = (
    (Layer.GOLD, "results; every run adds its rows", gold.TABLES),
    (Layer.SILVER, "the state of both sides; rows of older runs are removed after their retention", silver.TABLES),
    (Layer.BRONZE, "the sources, as they were read; every run adds its rows", bronze.TABLES),
)
# A test runs it (`tests/pipeline/test_chained.py`).
STATE_QUERY = """\
WITH run AS (SELECT cluster, state_runs FROM gold.runs WHERE cluster = 'prod-eu' AND run_id = 'RUN'),
placed AS (
  SELECT t.*, array_position(run.state_runs, t.run_id) AS place
  FROM silver.partitions t JOIN run ON t.cluster = run.cluster AND array_contains(run.state_runs, t.run_id)
),
newest AS (SELECT *, max(place) OVER (PARTITION BY row_key) AS newest FROM placed)
SELECT * EXCEPT (place, newest) FROM newest WHERE place = newest AND gone IS NULL"""
PHASES = {
    Phase.ZOOKEEPER: "before the start",
    Phase.WAITING: "waiting for the brokers",
    Phase.DUAL_WRITE: "dual write",
    Phase.FINALIZED: "after finalising",
    Phase.ROLLED_BACK: "after a rollback",
    Phase.KRAFT: "KRaft",
}
GROUPS = {
    "CAP": "The capture: can this audit be trusted",
    "RUN": "Between runs: is this the same cluster, and does its log continue",
    "START": "Before the start",
    "CONF": "Property files",
    "DUR": "In dual write",
    "FIN": "Before finalising",
    "POST": "After finalising",
    "RB": "Before and after a rollback",
    "SEC": "Security",
    "TXN": "In ZooKeeper's transaction logs",
    "ISR": "In-sync replicas, leaders and elections",
    "FEAT": "Features and metadata.version",
    "UPG": "Before an upgrade or a rolling restart",
    "QRM": "The quorum of controllers",
    "LOG": "The metadata log",
    "ELR": "Eligible leader replicas (KIP-966)",
    "CFG": "Configurations",
    "DIR": "Log directories",
    "BRK": "Brokers and racks",
    "RAS": "Reassignments and throttles",
    "SHR": "Share groups",
}


def tables_page() -> str:
    """The page of tables: each with its columns, their types and meanings."""
    lines = [
        MADE,
        "# Tables and columns",
        "",
        "Every table has the columns `cluster` and `run_id`. In a folder it is `<warehouse>/<layer>/<table>`, in a",
        "catalog `<layer>_<table>`. Descriptions give the unit of times and whether offsets are inclusive; words are used as in",
        "the [glossary](glossary.md). An example:",
        "",
        "```sql",
        "WITH newest AS (",
        "  SELECT cluster, run_id FROM delta.`/var/lib/kraft-audit/gold/runs`",
        "  WHERE cluster = 'prod-eu' AND verdict <> 'failed' ORDER BY sequence DESC, started_at DESC LIMIT 1",
        ")",
        "SELECT gate, verdict, blocking FROM delta.`/var/lib/kraft-audit/gold/gates` JOIN newest USING (cluster, run_id)",
        "```",
        "",
        "Clusters of one run share its `run_id`, so use both columns to join. A run that failed can have rows in all tables; they do",
        "not count. The order of a cluster's runs is that of `sequence`, not of their times.",
        "",
        "[Polars, DuckDB and eight commands](reading.md) read the tables without Spark.",
        "",
        "## The state as of a run",
        "",
        "A run stores only the changes of a cluster's state. The silver tables with a column `row_key` have all rows of a",
        "*base*, the run that stored everything, and from later runs the rows that were added, changed or gone.",
        "`gold.runs.state_runs` lists the runs whose rows make up a run's state, the base first; a run in which nothing changed",
        "is not among them. For each `row_key` the row of the last of these runs counts; if its `gone` is true, the key no longer",
        "has a row. This query returns the state as of a run, for any of these tables:",
        "",
        "```sql",
        *STATE_QUERY.splitlines(),
        "```",
        "",
        "In a catalog, `kraft-audit` creates a view of it for each of these tables:",
        "",
        "```sql",
        "SELECT * FROM silver_partitions_as_of WHERE cluster = 'prod-eu' AND as_of_run = 'RUN'",
        "```",
        "",
        "Earlier releases stored all rows in every run. Their rows have no `row_key` and their runs no `state_runs`: select",
        "those by `run_id`. Ignore rows of a run that is in no list: it was killed, or ran at the same time as another.",
        "",
    ]
    for layer, meaning, tables in LAYERS:
        lines += [f"## {layer.value}", "", f"{meaning[0].upper()}{meaning[1:]}.", ""]
        for table in tables:
            lines += _table(table)
    return "\n".join(lines)


def _table(table: Table) -> list[str]:
    head = [f"### {table.full_name}", "", plain(table.comment), "", "| column | type | what it is |", "|---|---|---|"]
    return [
        *head,
        *(_row(f"`{each.name}`", f"`{type_name(each.dataType)}`", plain(comment(each))) for each in table.columns),
        "",
    ]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def type_name(data_type: DataType) -> str:
    """A column's type as SQL names it."""
    return data_type.simpleString().replace(",", ", ").replace(":", ": ")


def plain(text: str) -> str:
    """A text as Markdown shows it: what stands between angle brackets is not markup, unless it is between backticks."""
    parts = text.split("`")
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))


def comment(column: StructField) -> str:
    """What a column is."""
    return str(column.metadata["comment"])


def checks_page() -> str:
    """The page of checks: what must hold, when it is asked, which gates it can close, what to do."""
    lines = [
        MADE,
        "# Checks",
        "",
        "For each check this page lists what must hold, how severe a violation is, which gates it can close, in which phases it",
        "applies, and what to do if it does not pass. A *warning* never closes a gate; at most, its gates are unknown while the",
        "check cannot be judged. An *optional* check needs one more file, such as a property file; without it, its gates stay as",
        "they are. The [operator's guide](operating.md) shows which checks matter at each step.",
        "",
    ]
    for group in dict.fromkeys(check.id.split("-")[0] for check in CHECKS):
        lines += [f"## {GROUPS[group]} ({group})", ""]
        for check in (each for each in CHECKS if each.id.split("-")[0] == group):
            lines += _check(check)
    return "\n".join(lines)


def _check(check: Check) -> list[str]:
    gates = ", ".join(f"`{gate}`" for gate in _in_order(check.gates)) or "none"
    when = (
        "always"
        if check.phases == frozenset(Phase)
        else ", ".join(PHASES[each] for each in Phase if each in check.phases)
    )
    kind = f"{check.severity}{', optional' if check.optional else ''}"
    return [
        f'<a id="{check.id.lower()}"></a>',
        f"**{check.id}** {plain(check.title)}.",
        f"*{kind}; gates: {gates}; {when}.*",
        "",
        f"What to do: {plain(check.remedy)} *Source: {plain(check.reference)}.*",
        "",
    ]


def _in_order(gates: Sequence[str]) -> Iterable[str]:
    return [*(gate for gate in GATES if gate in gates), *(gate for gate in gates if gate not in GATES)]


PAGES = {"tables.md": tables_page, "checks.md": checks_page}


def main() -> None:
    """Write the pages."""
    for name, page in PAGES.items():
        (ROOT / "docs" / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
