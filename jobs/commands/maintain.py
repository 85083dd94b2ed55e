"""`kraft-audit maintain`: remove what retention lets go, put small files together, remove files that nothing needs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from jobs.audit.past import open_settings, settings_of_folder
from jobs.audit.run import shared
from jobs.exit import CRASH, OK, UsageError
from jobs.settings import MaintainSettings, Settings, load_settings
from jobs.sinks.delta import Warehouse
from jobs.steps.maintain import Tended, Upkeep, maintain, rules_of, stored_rules, sweep
from transforms.nearest import suggestion
from transforms.report.printable import visible
from transforms.report.table import aligned
from transforms.retention import Retention

_UNITS = (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit maintain`."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--conf",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="configuration files (YAML): old rows of their clusters are removed, according to their sections `maintain` and `hold`",
    )
    where.add_argument(
        "--warehouse",
        metavar="DIR",
        help="folder of the tables: old rows of all its clusters are removed, each as its newest run was configured",
    )
    parser.add_argument("--cluster", metavar="NAME", help="with --warehouse: rows of this cluster alone")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be removed, table by table")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each table")


def execute(arguments: argparse.Namespace) -> int:
    """Do it and tell of it, table by table. 0 when all went well, 1 when a table could not be tended."""
    several = _settings(arguments)
    now = datetime.now(UTC)
    with open_settings(shared(several) if len(several) > 1 else several[0]) as warehouse:
        rules = _rules(arguments, several, warehouse)
        hours = max((each.maintain or MaintainSettings()).vacuum_hours for each in several)
        found = maintain(warehouse, Upkeep(rules, now, hours, dry_run=arguments.dry_run))
    problems = [] if arguments.dry_run else sweep(several if arguments.conf else [], now)
    for line in _objects(found) if arguments.json else _table(found, dry_run=arguments.dry_run):
        print(line)
    problems += [f"{each.table}: {each.problem}" for each in found if each.problem]
    for problem in problems:
        print(f"kraft-audit: {visible(problem, 1000)}", file=sys.stderr)
    return CRASH if problems else OK


def _settings(arguments: argparse.Namespace) -> list[Settings]:
    if arguments.conf is None:
        return [settings_of_folder(arguments.warehouse)]
    if arguments.cluster is not None:
        raise UsageError("--cluster goes with --warehouse; a configuration names its cluster itself")
    return [load_settings(path) for path in arguments.conf]


def _rules(arguments: argparse.Namespace, several: Sequence[Settings], warehouse: Warehouse) -> dict[str, Retention]:
    if arguments.conf is not None:
        return rules_of(several)
    rules = stored_rules(warehouse)
    if arguments.cluster is None:
        return rules
    if arguments.cluster not in rules:
        raise UsageError(f"--cluster: no finished run of `{arguments.cluster}`; {suggestion(arguments.cluster, rules)}")
    return {arguments.cluster: rules[arguments.cluster]}


def _objects(found: Sequence[Tended]) -> list[str]:
    return [json.dumps(asdict(each)) for each in found]


def _table(found: Sequence[Tended], *, dry_run: bool) -> list[str]:
    busy = [each for each in found if not each.idle]
    head = ("table", "rows removed", "of", "files", "after", "old files", "bytes")
    cells = [
        (
            each.table,
            f"{each.rows:,}",
            f"{each.of_rows:,}",
            f"{each.files:,}",
            f"{each.files_after:,}",
            "?" if each.removed_files is None else f"{each.removed_files:,}",
            _size(each.removed_bytes),
        )
        for each in busy
    ]
    total = sum(each.removed_bytes or 0 for each in found)
    rows = sum(each.rows for each in found)
    would = "would go" if dry_run else "went"
    summary = f"{len(found)} tables looked at: {rows:,} rows and {_size(total)} of old files {would}"
    summary += "; nothing was changed" if dry_run else ""
    return [*(aligned([head, *cells], right=frozenset(range(1, len(head)))) if cells else []), summary]


def _size(number: int | None) -> str:
    if number is None:
        return "?"
    return next((f"{number / size:,.1f} {unit}" for unit, size in _UNITS if number >= size), f"{number} bytes")
