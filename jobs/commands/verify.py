"""`kraft-audit verify`: a finished run examined again from its evidence, and compared with what it has stored."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from jobs.commands.options import add_run_argument
from jobs.evidence.inputs import profile_of_tables
from jobs.evidence.opening import Finished
from jobs.evidence.past_run import NoRunError, past_run, runs_of
from jobs.evidence.reexamination import examined_again
from jobs.evidence.verified import DIFFERS, EQUAL, UNKNOWN, longest_ago, store
from jobs.exit import ERRORS, GONE, OK, AuditError, UsageError, files_are_gone, guarded, unexpected, worst
from jobs.run import kept
from jobs.run.run import shared
from jobs.runtime.spark import spark_session
from jobs.settings import Settings, add_files_argument, limits_of, load_settings
from jobs.sinks.delta import Warehouse
from jobs.sinks.delta_errors import readable
from jobs.version import tool_version
from transforms.examination.reexamination import EVIDENCE
from transforms.nearest import suggestion
from transforms.report.printable import counted, visible
from transforms.report.run_standing import standing_of

_SAMPLE = 5
_LONGEST = 400
_UNNAMED = "(unknown)"
_KEPT = "kept state"
# What is not rows of a table, but the reason in one line.
_REASONS = (EVIDENCE, _KEPT)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit verify`."""
    add_files_argument(parser, "configuration files (YAML), those of `run`", required=True)
    parser.add_argument("--cluster", metavar="NAME", help="only this one of the clusters configured")
    parser.add_argument(
        "--clusters",
        type=int,
        metavar="N",
        help="only the N clusters with a finished run that were verified longest ago",
    )
    add_run_argument(parser)
    parser.add_argument(
        "--sample", type=int, default=_SAMPLE, metavar="N", help=f"differing rows shown of each table ({_SAMPLE})"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Say of each cluster, in a line, whether what its run has stored is what its evidence gives; the worst exit code.

    0 where all is equal, 20 where something is not, 1 where a run could not be examined again. What is said of newest runs is kept
    in gold `verifications`.
    """
    if arguments.clusters is not None and arguments.clusters < 1:
        raise UsageError(f"--clusters: {arguments.clusters} is below 1; give a number of clusters")
    if arguments.sample < 0:
        raise UsageError(f"--sample: {arguments.sample} is below 0; give a number of rows")
    several = _chosen([load_settings(path) for path in arguments.conf], arguments.cluster)
    first = shared(several)
    chosen = first.spark
    with spark_session(profile_of_tables(first), cores=chosen.cores, driver_memory=chosen.driver_memory) as spark:
        warehouse = Warehouse(spark, first.warehouse, first.catalog, first.warehouse_single_driver)
        if arguments.clusters is not None:
            several = _longest_ago(warehouse, several, arguments.clusters)
        return worst([guarded(lambda each=each: _verify(warehouse, each, arguments)) for each in several])  # type: ignore[misc]


def _chosen(several: Sequence[Settings], cluster: str | None) -> list[Settings]:
    found = [each for each in several if cluster in (None, each.cluster)]
    if not found:
        names = [each.cluster for each in several]
        raise UsageError(
            f"--cluster: `{cluster}` is in none of these configurations; {suggestion(cluster or '', names)}"
        )
    return found


def _longest_ago(warehouse: Warehouse, several: Sequence[Settings], number: int) -> list[Settings]:
    chosen_ones = longest_ago(warehouse, [each.cluster for each in several], number)
    if not chosen_ones:
        raise NoRunError("no cluster of these configurations has a finished run yet; run `kraft-audit run` first")
    return [each for each in several if each.cluster in chosen_ones]


def _verify(warehouse: Warehouse, settings: Settings, arguments: argparse.Namespace) -> int:
    name = settings.cluster

    def keep(run_id: str, verdict: str, problem: str = "") -> int:
        # An older run is looked at by a person, and says nothing of how the cluster's tables are.
        return OK if arguments.run_id else guarded(lambda: _stored(warehouse, name, run_id, verdict, problem))

    def unknown(run_id: str, error: Exception) -> AuditError:
        # Whatever it was: the fleet's page has to say that nobody knows, and other clusters have their turn.
        problem = f"can't be examined again: {_why(error)}"
        keep(run_id, UNKNOWN, problem)
        return AuditError(f"{name}: run {run_id} {problem}")

    try:
        with readable():
            past = past_run(Finished(warehouse, name, thresholds=limits_of(settings)), arguments.run_id)
    except NoRunError:
        raise
    except Exception as error:
        if arguments.run_id and isinstance(error, UsageError):
            raise
        raise unknown(arguments.run_id or _newest_id(warehouse, name), error) from error
    try:
        kept_bytes = kept.kept_bytes_of(past)
        # A table of which nothing is shown differs as well.
        found = [*_problems(kept_bytes), *examined_again(past, max(1, arguments.sample))]
    except Exception as error:
        raise unknown(past.run_id, error) from error
    totals = {row["what"]: row["total"] for row in found}
    if not totals:
        print(f"{name}: run {past.run_id} matches its evidence")
        _tell(kept_bytes.forgotten)
        return keep(past.run_id, EQUAL)
    where = ", ".join(f"{counted(total, 'row')} of {what}" for what, total in totals.items())
    if past.report.tool_version != tool_version():
        raise unknown(past.run_id, AuditError(_of_another_release(past.report.tool_version, where)))
    problem = f"does NOT match its evidence: {where}"
    print(f"{name}: run {past.run_id} {problem}")
    reasons = [row for row in found if arguments.sample or row["what"] in _REASONS]
    _tell([*_lines(reasons), *kept_bytes.forgotten])
    return worst([ERRORS, keep(past.run_id, DIFFERS, problem)])


def _of_another_release(made_by: str, where: str) -> str:
    return f"release {made_by} made it and this is {tool_version()}, whose rules may be others ({where} differ); verify the next run"


def _why(error: Exception) -> str:
    if isinstance(error, UsageError | AuditError):
        return str(error)
    return GONE if files_are_gone(error) else unexpected(error)


def _newest_id(warehouse: Warehouse, cluster: str) -> str:
    """The id of a newest finished run whose row can't be read as a whole."""
    try:
        standing = standing_of(runs_of(warehouse, cluster), None, datetime.now(UTC))
    except Exception:
        # Its row itself is what can't be read, which is said already.
        return _UNNAMED
    return _UNNAMED if standing is None else standing.run.run_id


def _stored(warehouse: Warehouse, cluster: str, run_id: str, verdict: str, problem: str) -> int:
    store(warehouse, cluster, run_id, verdict, problem)
    return OK


def _problems(kept_bytes: kept.KeptBytes) -> list[dict[str, Any]]:
    """What is wrong with the bytes that the run has kept for the next one."""
    if kept_bytes.problem is None:
        return []
    return [{"what": _KEPT, "stored": 1, "again": 0, "row": kept_bytes.problem, "total": 1}]


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        print(f"  {line}")


def _lines(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    for row in found:
        times = row["what"] if row["what"] in _REASONS else f"{row['what']}, {_place(row)}"
        yield f"{times}: {visible(row['row'], _LONGEST)}"


def _place(row: dict[str, Any]) -> str:
    if not row["again"]:
        return "stored only"
    return "found only" if not row["stored"] else f"stored {row['stored']} times, found {row['again']}"
