"""`kraft-audit compare`: how the KRaft metadata of two runs differs: drift of a cluster, or a twin that is not alike."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import polars as pl

from jobs.commands.options import add_limit_argument, add_place_arguments
from jobs.evidence.opening import Finished, cluster_named, open_warehouse
from jobs.evidence.past_run import PastRun, newer_line, past_run
from jobs.evidence.unread import unread
from jobs.exit import OK, WARNINGS, UsageError
from jobs.runtime.output import terminal_width
from schemas.checks import KRAFT
from schemas.entities import Entity
from transforms.frames import columns_of, shaped
from transforms.reconcile.compare.states import ComparisonRules, StateDifference, differing_states, state_differences
from transforms.report.compared import WHOLE_LOG
from transforms.report.printable import counted, key_text, value_text, visible
from transforms.report.table import fitted

_TOLD = ("entity", "key", "zk_row", "kraft_row")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit compare`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "--run A --run B           one cluster at two times\n"
        "--cluster X --cluster Y   two clusters, each as its newest run saw it (or the --run of each, in the same order)"
    )
    add_place_arguments(parser)
    parser.add_argument("--cluster", action="append", default=[], metavar="NAME", help="twice for two clusters")
    parser.add_argument("--run", action="append", default=[], metavar="ID", dest="run_ids", help="twice, A and B")
    parser.add_argument(
        "--broker-map",
        metavar="A=B,…",
        default="",
        help="broker ids of the second cluster for those of the first, e.g. 1=11",
    )
    parser.add_argument("--format", choices=("table", "jsonl"), default="table")
    add_limit_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print what differs. 0 when nothing does, 10 when something does or may; 2 when a run has no metadata log."""
    names, runs = _asked(arguments)
    arguments.cluster = names[0] if names else None
    brokers = _broker_map(arguments.broker_map)
    with open_warehouse(arguments, in_spark=False) as first:
        second = first if len(names) < 2 else Finished(first.warehouse, cluster_named(first.warehouse, names[1]))
        left, right = past_run(first, runs[0]), past_run(second, runs[1])
        if (left.cluster, left.run_id) == (right.cluster, right.run_id):
            both = f"both are run {left.run_id} of {visible(left.cluster, 120)}"
            raise UsageError(f"--cluster, --run: {both}; give two clusters or two runs")
        rules = ComparisonRules(left.cluster != right.cluster, brokers)
        if brokers and not rules.twin:
            raise UsageError("--broker-map: goes with two clusters; a cluster keeps its own broker ids")
        for past in (left, right):
            _check_log(past)
        sides = (("A", left, runs[0]), ("B", right, runs[1]))
        gaps = [f"{side}: {text}" for side, past, _ in sides for text in unread(past, WHOLE_LOG)]
        # A run that was named may be as old as it is.
        unnamed = [(side, past) for side, past, named in sides if named is None]
        old = [
            f"{side}: {text}" for side, past in unnamed for text in newer_line(past.standing, first.stale_after_hours)
        ]
        found = list(state_differences(_differing(left, right, rules), rules))
    _print(arguments, left, right, rules, found)
    for line in [*gaps, *old]:
        print(line, file=sys.stderr if arguments.format == "jsonl" else sys.stdout)
    return WARNINGS if found or gaps else OK


def _asked(arguments: argparse.Namespace) -> tuple[list[str], list[str | None]]:
    """The clusters (one or none where the warehouse has one only) and the two runs, None for the newest."""
    names, runs = list(arguments.cluster), list(arguments.run_ids)
    if len(names) > 2 or len(runs) > 2:
        raise UsageError("--cluster, --run: two at most")
    if len(names) == 2 and arguments.conf is not None:
        raise UsageError("--cluster: two clusters are compared in a --warehouse")
    if len(runs) == 1 or (len(names) < 2 and not runs):
        raise UsageError("give --run twice, or --cluster twice")
    return names, [*runs] if runs else [None, None]


def _broker_map(text: str) -> dict[int, int]:
    try:
        pairs = [part.split("=") for part in text.split(",") if part.strip()]
        found = {int(ours): int(theirs) for ours, theirs in pairs}
    except ValueError:
        raise UsageError(f"--broker-map: {visible(text, 80)} is not of the form 1=11,2=12") from None
    if len(set(found.values())) < len(pairs):
        raise UsageError(f"--broker-map: {visible(text, 80)} names a broker twice")
    return found


def _check_log(past: PastRun) -> None:
    if past.report.migration.log_end_offset is None:
        raise UsageError(
            f"run {past.run_id} of {past.cluster} has no metadata log, so there is no KRaft state to compare"
        )


def _differing(left: PastRun, right: PastRun, rules: ComparisonRules) -> list[dict[str, Any]]:
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


def _print(
    arguments: argparse.Namespace,
    left: PastRun,
    right: PastRun,
    rules: ComparisonRules,
    found: Sequence[StateDifference],
) -> None:
    shown = found[: arguments.limit] if arguments.limit else found
    if arguments.format == "jsonl":
        for each in shown:
            print(json.dumps(_record(each)))
    else:
        print(f"A: {_place(left)}\nB: {_place(right)}\n{counted(len(found), 'difference')}. {rules.left_out}")
        if shown:
            rows = [
                (
                    each.entity.replace("_", " "),
                    key_text(each.entity, each.key),
                    each.column or "",
                    value_text(each.left),
                    value_text(each.right),
                )
                for each in shown
            ]
            for line in fitted([("entity", "key", "column", "A", "B"), *rows], frozenset(), terminal_width()):
                print(line)
    if len(found) > len(shown):
        print(f"{len(found) - len(shown):,} more; --limit 0 shows all", file=sys.stderr)


def _place(past: PastRun) -> str:
    end = past.report.migration.committed_end_offset
    return f"cluster {visible(past.cluster, 120)}, run {past.run_id}, after offset {end} (inclusive)"


def _record(each: StateDifference) -> dict[str, Any]:
    return {"entity": each.entity, "key": each.key, "column": each.column, "a": each.left, "b": each.right}
