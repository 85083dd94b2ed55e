"""`kraft-audit quorum`: the controllers' copies of the log, side by side, and what can be proved of them."""

from __future__ import annotations

import argparse

from jobs.exit import ERRORS, OK
from jobs.steps.ingest_kraft import find_copies
from transforms.kraft.quorum import Fork, LogCopy, committed_end
from transforms.report.printable import visible


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit quorum`."""
    parser.add_argument("path", nargs="+", help="a controller's metadata log folder, or a parent of several")


def execute(arguments: argparse.Namespace) -> int:
    """Print the table of copies; 20 when none can be used. Needs no Spark."""
    found = find_copies(arguments.path)
    facts = [LogCopy.from_row(copy.row()) for copy in found.copies]
    print(f"{'controller':>10} {'start':>10} {'end':>10} {'epoch':>6} {'leader':>6}  {'checkpoints':<24} location")
    for copy in facts:
        print(_line(copy))
    if found.plan is None:
        print(visible(found.problem or "", 400))
        return ERRORS
    committed = committed_end(facts, found.plan, None, None)
    print(f"\nused       {found.plan.explanation}")
    for fork in found.plan.forks:
        print(
            f"fork       {_whose(fork)} from offset {fork.offset} on: epoch {fork.losing_epoch} lost to "
            f"epoch {fork.winning_epoch}; those records were never committed"
        )
    print(f"committed  below {committed.end_exclusive} ({committed.proof}): {committed.explanation}")
    return OK


def _whose(fork: Fork) -> str:
    return fork.location if fork.controller_id is None else f"controller {fork.controller_id}"


def _line(copy: LogCopy) -> str:
    checkpoints = ", ".join(f"{c.offset}{'' if c.complete else ' (incomplete)'}" for c in copy.checkpoints) or "none"
    numbers = [copy.controller_id, copy.log_start, copy.log_end, copy.last_epoch, copy.leader_id]
    texts = ["-" if number is None else str(number) for number in numbers]
    line = (
        f"{texts[0]:>10} {texts[1]:>10} {texts[2]:>10} {texts[3]:>6} {texts[4]:>6}  {checkpoints:<24} {copy.location}"
    )
    return visible(line + (f"  [{copy.problem}]" if copy.problem else ""), 400)
