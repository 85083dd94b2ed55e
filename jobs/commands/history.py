"""`kraft-audit history` and `kraft-audit gates`: what earlier runs found, from the gold tables."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from jobs.commands.options import add_run_argument, add_warehouse_arguments, check_stale_after
from jobs.evidence.journal import died_runs
from jobs.evidence.opening import Finished, open_warehouse
from jobs.evidence.past_run import NoRunError, nothing_newer, past_run
from jobs.evidence.stored_reports import stored_reports
from jobs.exit import ERRORS, OK, UsageError
from jobs.runtime.output import say, terminal_width
from jobs.sinks.reader import records
from schemas.gates import GATES
from schemas.gold import RUNS
from schemas.report import CheckResult, Gate
from transforms.reconcile.judge.requested_gate import GO
from transforms.report.compared import UNKNOWN_LAG, lag_is_unknown
from transforms.report.fleet_model import FleetRun
from transforms.report.printable import counted, visible
from transforms.report.run_standing import why_gate_is_shut
from transforms.report.table import fitted
from transforms.report.trend import run_point, trend_table

_COLUMNS = ("run_id", "verdict", "state", "defects", "divergences", "lag_records", "exit_code")
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def add_history_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit history`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "history              the last runs\n"
        "history ENTITY KEY   every change of one row in KRaft's log, over all runs; keys as `explain` takes them\n"
        "history --topic T    every change of a topic, its configurations and its partitions\n"
        "Records contain no principal: the history shows when and what, never who."
    )
    parser.add_argument("entity", metavar="ENTITY", nargs="?", help="an entity, e.g. configs")
    parser.add_argument("key", metavar="KEY", nargs="?", help="the row, e.g. TOPIC/orders/retention.ms")
    parser.add_argument("--topic", metavar="T", help="a topic and everything that belongs to it")
    add_warehouse_arguments(parser)
    parser.add_argument("--last", type=int, default=20, metavar="N", help="how many runs (default 20)")
    parser.add_argument("--trend", action="store_true", help="show lag and differences instead, one column per class")
    parser.add_argument("--format", choices=("table", "jsonl"), default="table")


def execute_history(arguments: argparse.Namespace) -> int:
    """Print the cluster's last runs, newest first; or what the log changed of a row or a topic, oldest first."""
    if arguments.last < 1:
        raise UsageError(f"--last: {arguments.last} is below 1; give a number of runs")
    if arguments.entity is not None or arguments.topic is not None:
        return _changes(arguments)
    by_class = arguments.trend or arguments.format == "jsonl"
    with open_warehouse(arguments, in_spark=False) as run:
        rows = last_runs(run, arguments.last, by_class=by_class)
    if not rows:
        raise UsageError(f"cluster {run.cluster} has no run in this warehouse yet; run `kraft-audit run` first")
    if arguments.format == "jsonl":
        for row in rows:
            print(json.dumps(row))
        return OK
    for line in _trend(rows) if arguments.trend else _table(rows):
        print(line)
    return OK


def _changes(arguments: argparse.Namespace) -> int:
    if arguments.topic is not None and arguments.entity is not None:
        raise UsageError("--topic: goes without an entity")
    from jobs.commands.changes import changes_of_row, changes_of_topic, heading, lines  # noqa: PLC0415
    from jobs.evidence import missing  # noqa: PLC0415 - they need Spark

    whole_topic = arguments.topic is not None
    with open_warehouse(arguments) as run:
        of_row = None if whole_topic else changes_of_row(run, arguments.entity, arguments.key)
        logs = list(of_row or changes_of_topic(run, arguments.topic))
        gone = missing.lines(missing.of_all_runs(run, [log for log, _ in logs]))
        last = nothing_newer(run)
    if not any(changes for _, changes in logs):
        what = f"topic {arguments.topic}" if whole_topic else f"{arguments.entity} {arguments.key or ''}"
        reason = f"no run of {run.cluster} has read a record of {visible(what, 160).strip()}"
        raise UsageError("; ".join([reason, *gone]))
    beside = sys.stderr if arguments.format == "jsonl" else sys.stdout
    for line in gone:
        print(line, file=beside)
    before = None
    for log, changes in logs:
        if arguments.format == "jsonl":
            for change in changes:
                print(json.dumps(change.record))
            continue
        for line in (heading(log, before, whole=not gone), *lines(changes, named=whole_topic)):
            print(line)
        before = log
    for line in last:
        print(line, file=beside)
    return OK


def _table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    cells = [[*(_cell(row, name) for name in _COLUMNS), _text(row["failure"] or "")] for row in rows]
    return fitted([(*_COLUMNS, "why it failed"), *cells], frozenset({3, 4, 5, 6}), terminal_width())


def _trend(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    points = [run_point(row) for row in reversed(rows)]
    table = trend_table(points, len(points))
    head = ("run_id", "verdict", "lag_records", "divergences", "defects", *table.classes)
    cells = [
        [
            each.run_id,
            each.verdict,
            _cell(row, "lag_records"),
            *map(_text, (each.divergences, each.defects, *each.counts)),
        ]
        for row, each in zip(rows, table.rows, strict=True)
    ]
    return fitted([head, *cells], frozenset(range(2, len(head))), terminal_width())


def _cell(row: Mapping[str, Any], name: str) -> str:
    """A cell; a lag that is unknown is not one that does not exist."""
    unknown = name == "lag_records" and lag_is_unknown(row["phase"], row[name])
    return UNKNOWN_LAG if unknown else _text(row[name])


def _text(value: object) -> str:
    return "-" if value is None else visible(str(value), 80)


def last_runs(run: Finished, count: int, *, by_class: bool = True) -> list[dict[str, Any]]:
    """The cluster's newest runs, newest first: _COLUMNS, the start, the phase, the lag's age, the counts by class, why it failed.

    Failed runs are included, and killed runs that could not record their end. Runs of earlier releases have their counts by class in
    their reports, which are read with `by_class`; otherwise these are empty.
    """
    columns = (*_COLUMNS, "lag_seconds", "failure", "sequence", "started_at", "finished_at", "by_class", "phase")
    rows = run.warehouse.newest_runs(columns, count, {"cluster": run.cluster})
    found = sorted(records(rows, RUNS), key=_place, reverse=True)
    uncounted = [row["run_id"] for row in found if row["by_class"] is None] if by_class else []
    reports = stored_reports(run.warehouse, uncounted, {"cluster": run.cluster})
    counts = {run_id: report["divergences"]["by_class"] for _, run_id, report in reports}
    begun = {row["run_id"]: row["started_at"] for row in found}
    for row in found:
        del row["finished_at"]
        own = counts.get(row["run_id"], {}) if row["by_class"] is None else row["by_class"]
        row |= {"by_class": own, "started_at": f"{row['started_at']:{_TIME}}"}
    return [*_died(run, begun), *found][:count]


def _place(row: Mapping[str, Any]) -> tuple[int, datetime, datetime, str]:
    """A row's place among the cluster's runs, the newest last (`transforms.runs.newest_first`)."""
    return (-1 if row["sequence"] is None else row["sequence"], row["started_at"], row["finished_at"], row["run_id"])


def _died(run: Finished, stored: Mapping[str, datetime]) -> list[dict[str, Any]]:
    """Rows of `last_runs` for runs that have none in gold, because they died."""
    known = [FleetRun(run.cluster, run_id, at, at, "") for run_id, at in stored.items()]
    return [
        {
            **dict.fromkeys((*_COLUMNS, "lag_seconds", "sequence", "phase")),
            "run_id": each.run_id,
            "verdict": each.verdict,
            "failure": each.failure,
            "started_at": f"{each.started_at:{_TIME}}",
            "by_class": {},
        }
        for each in reversed(died_runs(run.warehouse, known, run.cluster))
    ]


def add_gates_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit gates`."""
    add_warehouse_arguments(parser)
    add_run_argument(parser)
    parser.add_argument(
        "--gate", choices=GATES, help="only this gate; exits with 20 unless it is GO in the run that is printed"
    )
    parser.add_argument(
        "--allow-unknown",
        action="store_true",
        help="with --gate: also accept UNKNOWN and n/a (a no-go, a failed newest run and an old one never pass)",
    )
    parser.add_argument(
        "--stale-after",
        type=float,
        metavar="HOURS",
        help="highest age of a run that opens a gate (default: as configured, 48)",
    )


def execute_gates(arguments: argparse.Namespace) -> int:
    """Print the run of the gates and what blocks them. Returns 20 if the requested gate is not open (`why_gate_is_shut`)."""
    check_stale_after(arguments.stale_after)
    if arguments.allow_unknown and arguments.gate is None:
        raise UsageError("--allow-unknown: goes with --gate")
    with open_warehouse(arguments, in_spark=False) as run:
        try:
            past = past_run(run, arguments.run_id)
        except NoRunError as error:
            if arguments.gate is None:
                raise
            print(why_gate_is_shut(arguments.gate, None, None, 1))
            print(f"  {error}")
            return ERRORS
    stale_after = arguments.stale_after or run.stale_after_hours
    for line in past.standing.lines(stale_after):
        say(line)
    for name, gate in past.report.gates.items():
        if arguments.gate in (None, name):
            _print_gate(name, gate, past.report.checks)
    if arguments.gate is None:
        return OK
    shut = why_gate_is_shut(
        arguments.gate, past.report, past.standing, stale_after, allow_unknown=arguments.allow_unknown
    )
    if shut:
        print(f"kraft-audit: {shut}", file=sys.stderr)
    return ERRORS if shut else OK


def _print_gate(name: str, gate: Gate, checks: Sequence[CheckResult]) -> None:
    by_id = {check.id: check for check in checks}
    remark = f"  {gate.explanation}" if gate.verdict == GO and gate.explanation else ""
    say(f"{name:<11} {gate.verdict.upper().replace('_', '-')}{visible(remark, 400)}")
    for check_id in gate.blocking:
        check = by_id[check_id]
        number = f" ({counted(check.violations, 'violation')})" if check.violations else ""
        say(f"  {check_id}: {check.title}{number}")
        for line in check.evidence[:5]:
            say(f"    {visible(line, 160)}")
        # What an unknown check needs is its evidence: nothing is broken that a remedy could repair.
        if check.verdict != "unknown":
            say(f"    -> {check.remedy}")
