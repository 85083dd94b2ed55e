"""`kraft-audit features`: who supports what, and what an upgrade, a downgrade or a deletion would be answered."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from jobs.audit.past import add_run_argument, add_warehouse_arguments, open_warehouse, past_run
from jobs.audit.standing import Standing, standing
from jobs.exit import OK, UsageError
from schemas.kraft.metadata_versions import FEATURE_NAME, level_name
from transforms.features.levels import UnknownLevelError, level_of
from transforms.features.matrix import BROKER, Cell, Node, Range, deprecation, describe, matrix
from transforms.features.update import Cluster, Kind, Update, Verdict, dry_run
from transforms.report.printable import visible

_WHAT = ("describe", "matrix", "upgrade", "downgrade", "delete", "needs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit features`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "describe   the columns that kafka-features prints\n"
        "matrix     every node's levels of every feature beside the finalised one\n"
        "upgrade, downgrade, delete   what the controller would answer to --feature; nothing is changed\n"
        "needs      who still needs a level below --feature F=N"
    )
    parser.add_argument("what", choices=_WHAT)
    parser.add_argument(
        "--feature",
        action="append",
        default=[],
        metavar="F=N",
        help="a level, by number, name or release; can be repeated",
    )
    parser.add_argument("--unsafe", action="store_true", help="ask for an unsafe downgrade")
    parser.add_argument("--kafka-version", metavar="V", help="the controllers' release (default: the run's)")
    add_warehouse_arguments(parser)
    add_run_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print what is asked. 0 whatever the answer is; the last line of a dry run tells Kafka's own exit code."""
    asked = [_parsed(text, delete=arguments.what == "delete") for text in arguments.feature]
    if arguments.what not in ("describe", "matrix") and not asked:
        raise UsageError("--feature: name at least one, as F=N")
    with open_warehouse(arguments) as run:
        known = standing(past_run(run, arguments.run_id), arguments.kafka_version)
        for line in _lines(arguments, known, asked):
            print("\t".join(visible(part, 400) for part in line.split("\t")))
    return OK


def _parsed(text: str, *, delete: bool) -> tuple[str, int]:
    name, given, level = text.partition("=")
    if delete and not given:
        return name, 0
    if not given:
        raise UsageError(f"--feature: {visible(text, 80)} is not of the form F=N")
    try:
        return name, level_of(level) if name == FEATURE_NAME else int(level)
    except (UnknownLevelError, ValueError):
        raise UsageError(f"--feature: {visible(level, 80)} is no level of {visible(name, 80)}") from None


def _lines(arguments: argparse.Namespace, known: Standing, asked: Sequence[tuple[str, int]]) -> list[str]:
    cluster = known.asked
    if arguments.what == "describe":
        return describe(_supported(cluster), cluster.finalised, known.past.report.migration.committed_end_offset)
    if arguments.what == "matrix":
        return [_cell(cell) for cell in matrix(cluster.nodes, cluster.finalised)]
    if arguments.what == "needs":
        return [line for name, level in asked for line in _needs(cluster, name, level)]
    return _dry_run(arguments, cluster, asked)


def _supported(cluster: Cluster) -> dict[str, Range]:
    """What a broker at work says it supports, as the tool is told it; the last registered stands for all."""
    brokers = [node for node in cluster.nodes if node.kind == BROKER and not node.fenced and not node.migrating_zk]
    asked: Sequence[Node] = brokers or cluster.nodes
    return {name: levels for node in asked for name, levels in node.ranges.items()}


def _cell(cell: Cell) -> str:
    def shown(level: int) -> str:
        return level_name(level) if cell.feature == FEATURE_NAME and level else str(level)

    finalised = "not finalised" if cell.finalised is None else f"finalised {shown(cell.finalised)}"
    gap = f"  GAP: {cell.gap}" if cell.gap else ""
    return f"{cell.feature:<34} {cell.node.name:<24} {shown(cell.lowest)} to {shown(cell.highest)}, {finalised}{gap}"


def _needs(cluster: Cluster, name: str, level: int) -> list[str]:
    found = deprecation(cluster.nodes, cluster.finalised, name, level)
    shown = level_name(level) if name == FEATURE_NAME else str(level)
    if not found:
        return [f"Nobody needs a level of {name} below {shown}."]
    return [f"Still in need of a level of {name} below {shown}:", *(f"  {text}" for text in found)]


def _dry_run(arguments: argparse.Namespace, cluster: Cluster, asked: Sequence[tuple[str, int]]) -> list[str]:
    down = Kind.UNSAFE_DOWNGRADE if arguments.unsafe else Kind.SAFE_DOWNGRADE
    kind = Kind.UPGRADE if arguments.what == "upgrade" else down
    operation = "disable" if arguments.what == "delete" else arguments.what
    run = dry_run([Update(name, level, kind) for name, level in asked], cluster, operation)
    lines = [*run.lines]
    for answer in run.answers:
        lines += [f"  in the way: {text}" for text in answer.blocking]
        lines += [f"  lost: {text}" for text in answer.loses if answer.verdict is not Verdict.NO or not answer.blocking]
        lines += [f"  note: {text}" for text in answer.notes]
    code = "is not known" if run.exit_code is None else f"would be {run.exit_code}"
    return [*lines, f"The exit code of kafka-features {code}."]
