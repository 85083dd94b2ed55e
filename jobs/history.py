"""`kraft-audit history` and `kraft-audit gates`: what earlier runs found, from the gold tables."""

from __future__ import annotations

import argparse
import json
from typing import Any

from pyspark.sql import functions as F

from jobs.exit import ERRORS, OK
from jobs.past import add_run_argument, add_warehouse_arguments, open_warehouse, past_run
from jobs.run import Run
from schemas.gold import RUNS
from transforms.report.printable import visible

_COLUMNS = ("run_id", "verdict", "state", "defects", "divergences", "lag_records", "exit_code")


def add_history_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit history`."""
    add_warehouse_arguments(parser)
    parser.add_argument("--last", type=int, default=20, metavar="N", help="how many runs (default 20)")
    parser.add_argument("--format", choices=("table", "jsonl"), default="table")


def execute_history(arguments: argparse.Namespace) -> int:
    """Print the cluster's last runs, newest first."""
    with open_warehouse(arguments) as run:
        rows = last_runs(run, arguments.last)
    if arguments.format == "jsonl":
        for row in rows:
            print(json.dumps(row))
        return OK
    print("  ".join(name.ljust(_width(name)) for name in _COLUMNS))
    for row in rows:
        print("  ".join(("-" if row[name] is None else str(row[name])).ljust(_width(name)) for name in _COLUMNS))
    return OK


def _width(name: str) -> int:
    return {"run_id": 24, "state": 14}.get(name, max(10, len(name)))


def last_runs(run: Run, count: int) -> list[dict[str, Any]]:
    """The cluster's newest finished runs."""
    rows = run.warehouse.read(RUNS).where(F.col("cluster") == run.cluster)
    newest = rows.orderBy(F.col("started_at").desc()).limit(count).select(*_COLUMNS)
    return [row.asDict() for row in newest.collect()]


def add_gates_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit gates`."""
    add_warehouse_arguments(parser)
    add_run_argument(parser)
    parser.add_argument("--gate", choices=("start", "dual_write", "finalize", "rollback"), help="only this gate")


def execute_gates(arguments: argparse.Namespace) -> int:
    """Print the gates with what blocks them; 20 when the gate asked for is no-go."""
    with open_warehouse(arguments) as run:
        report = past_run(run, arguments.run_id).report
    checks = {check.id: check for check in report.checks}
    shut = False
    for name, gate in report.gates.items():
        if arguments.gate not in (None, name):
            continue
        shut = shut or (arguments.gate == name and gate.verdict == "no_go")
        print(f"{name:<11} {gate.verdict.upper().replace('_', '-')}")
        for check_id in gate.blocking:
            check = checks[check_id]
            print(f"  {check_id}: {check.title}")
            for line in check.evidence[:5]:
                print(f"    {visible(line, 160)}")
            print(f"    -> {check.remedy}")
    return ERRORS if shut else OK
