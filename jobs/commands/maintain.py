"""`kraft-audit maintain`: remove rows that are older than the retention, merge small files, remove files that no table needs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from jobs.evidence.opening import open_settings, settings_of_folder
from jobs.exit import CRASH, OK, AuditError, UsageError
from jobs.run.run import shared
from jobs.runtime.output import terminal_width
from jobs.settings import MaintainSettings, Settings, add_files_argument, load_settings
from jobs.sinks.delta import Warehouse
from jobs.steps.maintenance.clock import OPTION, why_doubted
from jobs.steps.maintenance.left_behind import Left, left_behind, sweep
from jobs.steps.maintenance.maintain import maintain, rules_of, stored_rules
from jobs.steps.maintenance.upkeep import Tended, Upkeep
from transforms.nearest import suggestion
from transforms.report.printable import size_text, visible
from transforms.report.table import fitted
from transforms.retention import Retention


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit maintain`."""
    where = parser.add_mutually_exclusive_group(required=True)
    add_files_argument(
        where,
        "configuration files (YAML): old rows of their clusters are removed, according to their sections `maintain` and `hold`",
    )
    where.add_argument(
        "--warehouse",
        metavar="DIR",
        help="folder of the tables: old rows of all its clusters are removed, each as its newest run was configured",
    )
    parser.add_argument("--cluster", metavar="NAME", help="with --warehouse: rows of this cluster alone")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be removed, table by table")
    parser.add_argument(
        OPTION,
        action="store_true",
        help="remove rows although no run began for a long time, as if the machine's clock had leapt",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object for each table, and with --dry-run for each leftover"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Maintain and print a line for each table. Returns 0, or 1 if a table could not be maintained or the clock is doubted."""
    several = _settings(arguments)
    now = datetime.now(UTC)
    with open_settings(shared(several) if len(several) > 1 else several[0]) as warehouse:
        doubt = "" if arguments.clock_is_right else why_doubted(warehouse, now)
        if doubt and not arguments.dry_run:
            raise AuditError(doubt)
        rules = _rules(arguments, several, warehouse)
        hours = max((each.maintain or MaintainSettings()).vacuum_hours for each in several)
        found = maintain(warehouse, Upkeep(rules, now, hours, dry_run=arguments.dry_run))
    own = several if arguments.conf else []
    left, problems = left_behind(own, now) if arguments.dry_run else ([], sweep(own, now))
    for line in _objects([*found, *left]) if arguments.json else _table(found, left, dry_run=arguments.dry_run):
        print(line)
    problems += [*([doubt] if doubt else []), *(f"{each.table}: {each.problem}" for each in found if each.problem)]
    for problem in problems:
        print(f"kraft-audit: {visible(problem, 1000)}", file=sys.stderr)
    return CRASH if problems else OK


def _settings(arguments: argparse.Namespace) -> list[Settings]:
    if arguments.conf is None:
        return [settings_of_folder(arguments.warehouse)]
    if arguments.cluster is not None:
        raise UsageError("--cluster needs --warehouse: a configuration names its own cluster")
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


def _objects(found: Sequence[Tended | Left]) -> list[str]:
    return [json.dumps(asdict(each)) for each in found]


_HEAD = ("table", "rows removed", "of", "files", "after", "old files", "bytes")
_ABOUT = "rows' bytes"


def _table(found: Sequence[Tended], left: Sequence[Left], *, dry_run: bool) -> list[str]:
    head = [*_HEAD, _ABOUT] if dry_run else [*_HEAD]
    cells = [_cells(each)[: len(head)] for each in found if not each.idle]
    lines = fitted([head, *cells], frozenset(range(1, len(head))), terminal_width()) if cells else []
    leftovers = [f"left by a killed run: {visible(each.left, 300)} ({_size(each.bytes)})" for each in left]
    return [*lines, *leftovers, _summary(found, left, dry_run=dry_run)]


def _cells(each: Tended) -> list[str]:
    return [
        each.table,
        f"{each.rows:,}",
        f"{each.of_rows:,}",
        f"{each.files:,}",
        f"{each.files_after:,}",
        "?" if each.removed_files is None else f"{each.removed_files:,}",
        _size(each.removed_bytes),
        f"about {_size(each.about_row_bytes)}" if each.rows else "",
    ]


def _summary(found: Sequence[Tended], left: Sequence[Left], *, dry_run: bool) -> str:
    files = _size(sum(each.removed_bytes or 0 for each in found))
    rows = f"{sum(each.rows for each in found):,} rows"
    looked = f"{len(found)} tables checked"
    if not dry_run:
        return f"{looked}: {rows} and {files} of old files were removed"
    about = _size(sum(each.about_row_bytes for each in found))
    leftovers = f" and {_size(sum(each.bytes for each in left))} that killed runs left" if left else ""
    return f"{looked}: {rows} (about {about}), {files} of old files{leftovers} would be removed; nothing was changed"


def _size(number: int | None) -> str:
    return "?" if number is None else size_text(number)
