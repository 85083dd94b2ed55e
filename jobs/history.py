"""`kraft-audit history` and `kraft-audit gates`: what earlier runs found, from the gold tables."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from jobs.exit import ERRORS, OK, UsageError
from jobs.report import stored_report
from jobs.run import Run, open_run
from jobs.settings import load_settings
from schemas.gold import RUNS
from transforms.report.printable import visible

_COLUMNS = ("run_id", "verdict", "state", "defects", "divergences", "lag_records", "exit_code")


def add_history_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit history`."""
    parser.add_argument("--conf", type=Path, required=True, help="configuration file (YAML)")
    parser.add_argument("--last", type=int, default=20, metavar="N", help="how many runs (default 20)")
    parser.add_argument("--format", choices=("table", "jsonl"), default="table")


def execute_history(arguments: argparse.Namespace) -> int:
    """Print the cluster's last runs, newest first."""
    with open_run(load_settings(arguments.conf)) as run:
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
    parser.add_argument("--conf", type=Path, required=True, help="configuration file (YAML)")
    parser.add_argument("--run", dest="run_id", help="run to show (default: the newest)")
    parser.add_argument("--gate", choices=("start", "dual_write", "finalize", "rollback"), help="only this gate")


def execute_gates(arguments: argparse.Namespace) -> int:
    """Print the gates with what blocks them; 20 when the gate asked for is no-go."""
    with open_run(load_settings(arguments.conf)) as run:
        run_id = arguments.run_id or _newest(run)
        report = stored_report(run, run_id)
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


def _newest(run: Run) -> str:
    rows = last_runs(run, 1)
    if not rows:
        raise UsageError(f"cluster {run.cluster} has no finished run yet; run `kraft-audit run` first")
    return str(rows[0]["run_id"])
