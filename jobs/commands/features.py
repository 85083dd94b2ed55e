"""`kraft-audit features`: who supports what, and what an upgrade, a downgrade or a deletion would be answered."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from jobs.commands.options import add_release_argument, add_run_argument, add_warehouse_arguments
from jobs.evidence.opening import open_warehouse
from jobs.evidence.past_cluster import PastCluster, past_cluster
from jobs.evidence.past_run import past_run
from jobs.exit import OK, UsageError
from jobs.runtime.output import say
from schemas.kraft.metadata_versions import FEATURE_NAME, level_name
from transforms.features.levels import UnknownLevelError, level_of, level_text
from transforms.features.matrix import BROKER, Cell, Node, Range, deprecation, describe, matrix, unheard
from transforms.features.requests import NEWEST, feature_dependencies, of_release, refused_by_the_tool, version_mapping
from transforms.features.update import Cluster, FeatureVerdict, RequestKind, Update, dry_run
from transforms.report.printable import visible

_WITHOUT_RUN = ("version-mapping", "feature-dependencies")
_BY_RELEASE = ("upgrade", "downgrade", "version-mapping")
_WHAT = ("describe", "matrix", "upgrade", "downgrade", "delete", "update", "needs", *_WITHOUT_RUN)
Asked = Sequence[tuple[str, int]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit features`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "describe   the columns that kafka-features prints\n"
        "matrix     every node's levels of every feature beside the finalised one\n"
        "upgrade, downgrade, delete   what the controller would answer to --feature, or to --release-version;\n"
        "           nothing is changed\n"
        "update     the same of one request with --upgrade, --downgrade and --delete\n"
        "needs      who still needs a level below --feature F=N\n"
        "version-mapping        which levels a --release-version stands for; needs no run\n"
        "feature-dependencies   what --feature F=N depends on; needs no run"
    )
    parser.add_argument("what", choices=_WHAT)
    parser.add_argument(
        "--feature",
        action="append",
        default=[],
        metavar="F=N",
        help="a level, by number, name or release; may be repeated",
    )
    parser.add_argument(
        "--release-version", metavar="R", help="all features at the defaults of a release or level, e.g. 4.1 or 4.1-IV0"
    )
    for kind in ("upgrade", "downgrade", "delete"):
        form = "F" if kind == "delete" else "F=N"
        parser.add_argument(
            f"--{kind}", action="append", default=[], metavar=form, help=f"with update: a feature to {kind}"
        )
    parser.add_argument("--unsafe", action="store_true", help="request an unsafe downgrade")
    add_release_argument(parser, "--kafka-version", "the controllers' release (default: the run's)")
    add_warehouse_arguments(parser, required=False)
    add_run_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the run and the requested view. Returns 0 for every answer; the last line of a dry run has the exit code of Kafka's tool."""
    asked = [_parsed(text, delete=arguments.what == "delete") for text in arguments.feature]
    _check_arguments(arguments, asked)
    if arguments.what in _WITHOUT_RUN:
        for line in _of_the_tool(arguments, asked):
            say(visible(line, 400))
        return OK
    if arguments.conf is None and arguments.warehouse is None:
        raise UsageError("one of the arguments --conf --warehouse is required")
    with open_warehouse(arguments, in_spark=False) as run:
        known = past_cluster(past_run(run, arguments.run_id), arguments.kafka_version)
        which = known.past.standing.lines(run.stale_after_hours)
        for line in [*which, *_lines(arguments, known, asked)]:
            print("\t".join(visible(part, 400) for part in line.split("\t")))
    return OK


def _check_arguments(arguments: argparse.Namespace, asked: Asked) -> None:
    """Raise UsageError where the options do not go together."""
    what, by_release = arguments.what, arguments.release_version is not None
    if by_release and what not in _BY_RELEASE:
        raise UsageError(f"--release-version goes with {', '.join(_BY_RELEASE)}")
    if by_release and asked:
        raise UsageError("--release-version: can't be given with --feature")
    together = [*arguments.upgrade, *arguments.downgrade, *arguments.delete]
    if together and what != "update":
        raise UsageError("--upgrade, --downgrade and --delete go with update")
    if what == "update" and (asked or not together):
        raise UsageError("update: name features with --upgrade F=N, --downgrade F=N and --delete F")
    names_none = what in ("describe", "matrix", "update", "version-mapping") or by_release
    if not names_none and not asked:
        raise UsageError("--feature: name at least one, as F=N")


def _parsed(text: str, *, delete: bool, option: str = "--feature") -> tuple[str, int]:
    name, given, level = text.partition("=")
    if delete and not given:
        return name, 0
    if not given:
        raise UsageError(f"{option}: {visible(text, 80)} is not of the form F=N")
    try:
        return name, level_of(level) if name == FEATURE_NAME else int(level)
    except (UnknownLevelError, ValueError):
        raise UsageError(f"{option}: {visible(level, 80)} is not a level of {visible(name, 80)}") from None


def _of_the_tool(arguments: argparse.Namespace, asked: Asked) -> list[str]:
    """What kafka-features prints without a cluster, for the release named, else for the newest supported one."""
    try:
        release = arguments.kafka_version or NEWEST
        if arguments.what == "version-mapping":
            return version_mapping(arguments.release_version, release)
        return feature_dependencies(asked, release)
    except UnknownLevelError as error:
        raise UsageError(visible(str(error), 200)) from None


def _lines(arguments: argparse.Namespace, known: PastCluster, asked: Asked) -> list[str]:
    cluster = known.active
    if arguments.what == "describe":
        end = known.past.report.migration.committed_end_offset
        return describe(_supported(cluster), cluster.finalised, end, cluster.release)
    if arguments.what == "matrix":
        unknown = [] if cluster.zookeeper else unheard(cluster.nodes, cluster.voters)
        cells = [_cell(cell) for cell in matrix(cluster.nodes, cluster.finalised)]
        return [*cells, *(f"{text}: its levels are unknown" for text in unknown)]
    if arguments.what == "needs":
        return [line for name, level in asked for line in _needs(cluster, name, level)]
    return _dry_run(
        cluster, _updates(arguments, cluster, asked), None if arguments.what == "update" else arguments.what
    )


def _updates(arguments: argparse.Namespace, cluster: Cluster, asked: Asked) -> list[Update]:
    """One request, in the order given. Raises UsageError where a feature is named twice."""
    down = RequestKind.UNSAFE_DOWNGRADE if arguments.unsafe else RequestKind.SAFE_DOWNGRADE
    if arguments.release_version is not None:
        try:
            kind = RequestKind.UPGRADE if arguments.what == "upgrade" else down
            return of_release(arguments.release_version, kind, cluster.release)
        except UnknownLevelError as error:
            raise UsageError(f"--release-version: {visible(str(error), 200)}") from None
    if arguments.what == "update":
        parts = (("upgrade", RequestKind.UPGRADE), ("downgrade", down), ("delete", down))
        found = [
            Update(*_parsed(text, delete=option == "delete", option=f"--{option}"), kind)
            for option, kind in parts
            for text in getattr(arguments, option)
        ]
    else:
        found = [
            Update(name, level, RequestKind.UPGRADE if arguments.what == "upgrade" else down) for name, level in asked
        ]
    names = [update.feature for update in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"Feature {visible(twice, 80)} was specified more than once.")
    return found


def _supported(cluster: Cluster) -> dict[str, Range]:
    """The ranges that a running broker reports to the tool; the last registered broker stands for all."""
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
    shown = level_text(name, level)
    unknown = [] if cluster.zookeeper else unheard(cluster.nodes, cluster.voters)
    said = [f"Still in need of a level of {name} below {shown}:", *(f"  {text}" for text in found)] if found else []
    if unknown:
        return [
            *said,
            f"Unknown is whether they need a level of {name} below {shown}:",
            *(f"  {text}" for text in unknown),
        ]
    return said or [f"Nobody needs a level of {name} below {shown}."]


def _dry_run(cluster: Cluster, updates: Sequence[Update], what: str | None) -> list[str]:
    refused = None if cluster.zookeeper else refused_by_the_tool(updates, cluster.release)
    if refused is not None:
        return [refused, "The exit code of kafka-features would be 1."]
    run = dry_run(updates, cluster, "disable" if what == "delete" else what)
    lines = [*run.lines]
    for answer in run.answers:
        lines += [f"  in the way: {text}" for text in answer.blocking]
        lines += [
            f"  lost: {text}" for text in answer.loses if answer.verdict is not FeatureVerdict.NO or not answer.blocking
        ]
        lines += [f"  note: {text}" for text in answer.notes]
    code = "is not known" if run.exit_code is None else f"would be {run.exit_code}"
    return [*lines, f"The exit code of kafka-features {code}."]
