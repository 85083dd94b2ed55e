"""`kraft-audit diff`: the divergences of a finished run, or of its ZooKeeper tree against KRaft at an offset."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import polars as pl

from jobs.commands.options import add_limit_argument, add_run_argument, add_warehouse_arguments
from jobs.evidence.opening import open_warehouse
from jobs.evidence.past_run import PastRun, past_run
from jobs.evidence.unread import unread
from jobs.exit import OK, UsageError
from jobs.runtime.output import terminal_width
from schemas.checks import Phase
from schemas.classes import CLASSES
from schemas.entities import MIRRORED
from schemas.gold import DIVERGENCES
from transforms.nearest import suggestion
from transforms.reconcile.compare.divergences import first_of
from transforms.report.compared import WHOLE_LOG, WHOLE_TREE, phase_of, was_compared
from transforms.report.divergence_table import COLUMNS, as_record, as_table
from transforms.report.printable import counted

_SHOWN = [name for name in DIVERGENCES.column_names if name in COLUMNS]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit diff`."""
    add_warehouse_arguments(parser)
    add_run_argument(parser)
    parser.add_argument("--entity", metavar="E", help="only this entity, e.g. topics, partitions, configs")
    parser.add_argument("--class", dest="class_", metavar="C", help="only this class, e.g. lost_write, lag")
    parser.add_argument(
        "--as-of",
        type=int,
        metavar="OFFSET",
        help="compare the run's ZooKeeper rows with KRaft's state after this offset (inclusive) instead; nothing is stored",
    )
    parser.add_argument("--format", choices=("table", "jsonl"), default="table")
    add_limit_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the divergences, defects first. Returns 0 even if there are some: the exit code of `run` shows whether a run is clean."""
    _check(arguments)
    with open_warehouse(arguments, in_spark=arguments.as_of is not None) as run:
        past = past_run(run, arguments.run_id)
        first = _first(past, arguments)
        gaps = unread(past, (*WHOLE_LOG, *WHOLE_TREE)) if was_compared(past.report) else []
    found, total = first.select(COLUMNS).to_dicts(), first["total"][0] if first.height else 0
    _print(past, arguments, found, total)
    # Readers of JSON need this as well.
    for line in [*gaps, *past.standing.lines(run.stale_after_hours)]:
        print(line, file=sys.stderr if arguments.format == "jsonl" else sys.stdout)
    return OK


def _check(arguments: argparse.Namespace) -> None:
    entities = [entity.name for entity in MIRRORED]
    for option, word, known in (("--entity", arguments.entity, entities), ("--class", arguments.class_, [*CLASSES])):
        if word is not None and word not in known:
            raise UsageError(f"{option}: there is no `{word}`; {suggestion(word, known)}")


def _first(past: PastRun, arguments: argparse.Namespace) -> pl.DataFrame:
    """The first rows, as many as are wanted, with `total`: how many there are."""
    chosen = {"entity": arguments.entity, "class": arguments.class_}
    where = {name: wanted for name, wanted in chosen.items() if wanted is not None}
    if arguments.as_of is not None:
        from jobs.evidence.as_of import first_as_of  # noqa: PLC0415 - the log is replayed, in Spark

        return first_as_of(past, arguments.as_of, where, arguments.limit)
    rows = past.rows(DIVERGENCES, _SHOWN, where)
    return first_of(rows.filter(pl.col("status") != "resolved"), arguments.limit)


def _print(past: PastRun, arguments: argparse.Namespace, found: Sequence[dict[str, Any]], total: int) -> None:
    # Readers of JSON must not take an empty list for equal sides.
    if arguments.as_of is None and not was_compared(past.report):
        print(
            f"Cluster {past.cluster}, run {past.run_id}: the two sides were not compared ({_why_not(past)}): no difference is known",
            file=sys.stderr if arguments.format == "jsonl" else sys.stdout,
        )
    elif arguments.format == "jsonl":
        for row in found:
            print(json.dumps(as_record(row)))
    else:
        print(_headline(past, arguments, total))
        for line in as_table(found, terminal_width()):
            print(line)
    if total > len(found):
        print(f"{total - len(found):,} more; --limit 0 shows all", file=sys.stderr)


def _why_not(past: PastRun) -> str:
    phase = phase_of(past.report).replace("_", " ") or "unknown"
    return f"phase {phase}, mode {past.report.mode}"


def _number(past: PastRun, arguments: argparse.Namespace, total: int) -> str:
    """How many differences there are; with a filter of how many, so that those left out are not taken for none."""
    only = ", ".join(word for word in (arguments.entity, arguments.class_) if word is not None)
    if not only:
        return counted(total, "difference")
    # Of another offset it is not known how many there are without the filter.
    in_all = counted(past.report.divergences.total, "difference")
    return f"{counted(total, 'difference') if arguments.as_of is not None else f'{total:,} of {in_all}'} (only {only})"


def _headline(past: PastRun, arguments: argparse.Namespace, total: int) -> str:
    migration, as_of = past.report.migration, arguments.as_of
    end = migration.committed_end_offset if as_of is None else as_of
    mirrored = migration.kraft_metadata_offset
    ahead = as_of is not None and mirrored is not None and as_of < mirrored
    # After finalising nothing is on its way any more.
    later = "expected_stale" if phase_of(past.report) == Phase.FINALIZED else "in_flight"
    return (
        f"Cluster {past.cluster}, run {past.run_id}: {_number(past, arguments, total)} between ZooKeeper "
        f"(/migration at {mirrored}) and KRaft after offset {end} (inclusive)"
        + (f"\nZooKeeper is ahead: rows that it has from later records are {later}" if ahead else "")
    )
