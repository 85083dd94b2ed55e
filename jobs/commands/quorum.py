"""`kraft-audit quorum`: the controllers' copies of the log, side by side, and how far they are proved committed.

With `--controllers` it queries the running quorum: leader, epoch, high watermark, voters and observers with their lags.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jobs.commands.fetch import add_controller_arguments, controller_settings
from jobs.exit import ERRORS, OK, AuditError, UsageError
from jobs.runtime.output import say, terminal_width
from jobs.steps.ingest_kraft import find_copies
from transforms.kraft.quorum import Fork, LogCopy, committed_end
from transforms.report.printable import visible
from transforms.report.table import fitted

if TYPE_CHECKING:
    from jobs.sources.kraft.live.messages import QuorumAnswer, Replica

_HEAD = ("controller", "start", "end", "epoch", "leader", "checkpoints", "location")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit quorum`."""
    parser.add_argument("path", nargs="*", help="a controller's metadata log folder, or a parent of several")
    add_controller_arguments(parser, required=False)


def execute(arguments: argparse.Namespace) -> int:
    """Print the table of copies, or of the live quorum; 20 when no copy can be used. Needs no Spark."""
    if bool(arguments.path) == bool(arguments.controllers):
        raise UsageError("give folders or --controllers")
    return _live(arguments) if arguments.controllers else _copies(arguments)


def _copies(arguments: argparse.Namespace) -> int:
    found = find_copies(arguments.path)
    facts = [LogCopy.from_row(copy.row()) for copy in found.copies]
    for line in fitted([_HEAD, *map(_cells, facts)], frozenset(range(5)), terminal_width()):
        print(line)
    if found.plan is None:
        say(visible(found.problem or "", 400))
        return ERRORS
    committed = committed_end(facts, found.plan, None, None)
    print()
    say(f"used       {found.plan.explanation}")
    for fork in found.plan.forks:
        say(
            f"fork       {_whose(fork)} from offset {fork.offset} on: epoch {fork.losing_epoch} lost to "
            f"epoch {fork.winning_epoch}; those records were never committed"
        )
    say(f"committed  below {committed.end_exclusive} ({committed.proof}): {committed.explanation}")
    return OK


def _live(arguments: argparse.Namespace) -> int:
    # kafka-python is an extra.
    from jobs.sources.kraft.live.errors import NoLeaderError, QuorumError  # noqa: PLC0415
    from jobs.sources.kraft.live.fetch import quorum_settings  # noqa: PLC0415
    from jobs.sources.kraft.live.quorum import QuorumClient  # noqa: PLC0415

    # No log is read, so no other cluster's can be taken for this one's.
    settings = quorum_settings(controller_settings(arguments, cluster_id="any"))
    try:
        with QuorumClient(settings) as quorum:
            answer = quorum.describe()
    except QuorumError as error:
        raise (AuditError if isinstance(error, NoLeaderError) else UsageError)(str(error)) from None
    if answer.error:
        raise UsageError("the controllers don't describe the quorum to this user: it needs DESCRIBE on the cluster")
    for line in live_lines(answer):
        say(visible(line, 400))
    return OK


def live_lines(answer: QuorumAnswer) -> list[str]:
    """The quorum as lines: times are the leader's clock, lags are records behind the leader's log end."""
    lines = [
        f"leader {answer.leader_id}   epoch {answer.leader_epoch}   high watermark {answer.high_watermark}",
        "",
        f"{'node':>10} {'role':<9} {'log end':>12} {'lag':>8}  {'last fetch':<24} last caught up",
    ]
    leading = next((voter.log_end for voter in answer.voters if voter.replica_id == answer.leader_id), None)
    for role, replicas in (("voter", answer.voters), ("observer", answer.observers)):
        for replica in replicas:
            shown = "leader" if replica.replica_id == answer.leader_id else role
            lines.append(_replica_line(replica, shown, leading))
    return lines


def _replica_line(replica: Replica, role: str, leading: int | None) -> str:
    known = replica.log_end is not None and leading is not None
    lag = str(max(0, (leading or 0) - (replica.log_end or 0))) if known else "-"
    end = "-" if replica.log_end is None else str(replica.log_end)
    return (
        f"{replica.replica_id:>10} {role:<9} {end:>12} {lag:>8}  {_time(replica.last_fetch_ms):<24} "
        f"{_time(replica.last_caught_up_ms)}"
    )


def _time(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-"
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _whose(fork: Fork) -> str:
    return fork.location if fork.controller_id is None else f"controller {fork.controller_id}"


def _cells(copy: LogCopy) -> list[str]:
    checkpoints = ", ".join(f"{c.offset}{'' if c.complete else ' (incomplete)'}" for c in copy.checkpoints) or "none"
    numbers = [copy.controller_id, copy.log_start, copy.log_end, copy.last_epoch, copy.leader_id]
    faults = [copy.problem or "", "a batch is damaged, missing or out of order" if copy.damaged else ""]
    place = copy.location + "".join(f"  [{each}]" for each in faults if each)
    return [*("-" if number is None else str(number) for number in numbers), checkpoints, visible(place, 400)]
