"""`kraft-audit`: one command, one sub-command for each task. Exit codes: 0 clean, 10 warnings, 20 errors, 2 usage, 1 crash."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from jobs.exit import CRASH, DEBUG_VARIABLE, MEANINGS, UsageError, guarded
from jobs.runtime.databricks import take_secrets
from jobs.runtime.output import steady_output
from jobs.runtime.stopping import Stopping, print_reason
from jobs.version import tool_version
from transforms.nearest import suggestion
from transforms.report.printable import visible

DEBUG_OPTION = "--debug"


@dataclass(frozen=True)
class Command:
    """A sub-command: where its functions are. Modules are imported only when called: Spark takes seconds."""

    name: str
    help: str
    module: str
    arguments: str = "add_arguments"
    execute: str = "execute"


COMMANDS = (
    Command("run", "audit the clusters that configuration files describe, in one run", "jobs.pipeline"),
    Command("check", "audit files once, without a configuration", "jobs.commands.check"),
    Command("report", "write the report of an earlier run again", "jobs.steps.report"),
    Command("fleet", "all clusters of a warehouse, worst first, or their page", "jobs.commands.fleet"),
    Command("maintain", "keep the tables small: remove old rows and files", "jobs.commands.maintain"),
    Command("doctor", "find problems that would make a run fail", "jobs.commands.doctor"),
    Command("completion", "the script that completes commands and options in a shell", "jobs.commands.completion"),
    Command("schema", "the JSON Schema of a configuration or of report.json", "jobs.commands.schema"),
    Command("gates", "what blocks each gate", "jobs.commands.history", "add_gates_arguments", "execute_gates"),
    Command("history", "the cluster's last runs", "jobs.commands.history", "add_history_arguments", "execute_history"),
    Command("diff", "the differences a run found, or at an offset", "jobs.commands.diff"),
    Command("compare", "how the KRaft metadata of two runs or of two clusters differs", "jobs.commands.compare"),
    Command("verify", "check that a run's stored results match its evidence", "jobs.commands.verify"),
    Command("explain", "one row's story: both values, records, transactions", "jobs.commands.explain"),
    Command("expect", "judge a finished run's tables by a suite of expectations", "jobs.commands.expect"),
    Command("isr", "a partition's ISR history; the answer to an AlterPartition request", "jobs.commands.isr"),
    Command("features", "who supports what; how the controller would answer an update", "jobs.commands.features"),
    Command("downgrade", "check whether the cluster can go back to an older release", "jobs.commands.downgrade"),
    Command("quorum", "the controllers' copies of the log side by side, or the quorum live", "jobs.commands.quorum"),
    Command("fetch", "copy the metadata log from running controllers", "jobs.commands.fetch"),
)
# Sub-commands that parse their own arguments: `main(argv) -> int`.
MAINS = (
    Command("dump", "print a metadata log, secrets masked", "jobs.commands.dump"),
    Command("snapshot-zookeeper", "dump a live ZooKeeper tree to a file", "jobs.commands.snapshot_zookeeper"),
    Command("demo", "two audits of a real capture", "jobs.commands.demo.demo"),
    Command("ingest-zookeeper", "step 1 of a run alone: read ZooKeeper into the tables", "jobs.steps.ingest_zookeeper"),
    Command("ingest-kraft", "step 2 of a run alone: read the metadata logs into the tables", "jobs.steps.ingest_kraft"),
    Command("materialize", "step 3 of a run alone: the state of both sides", "jobs.steps.materialize"),
    Command("reconcile", "step 4 of a run alone: compare and judge", "jobs.steps.reconcile"),
)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    """py4j also logs what it raises: after Java was killed, a trace for each thread that called it."""
    return "py4j" not in Path(record.pathname).parts


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    arguments = _without_debug(list(sys.argv[1:] if argv is None else argv))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    for library in ("py4j", "kazoo", "kafka"):
        logging.getLogger(library).setLevel(logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_not_py4js)
    own = {command.name: command for command in MAINS}
    if arguments and arguments[0] in own:
        return guarded(lambda: _execute_main(own[arguments[0]], arguments[1:]))
    chosen = {command.name: command for command in COMMANDS}.get(arguments[0] if arguments else "")
    if chosen is None:
        return _usage(arguments)
    # The module is loaded in there, too: what it needs may not be installed.
    return guarded(lambda: _execute(chosen, arguments[1:]))


def _execute_main(command: Command, arguments: list[str]) -> int:
    _refuse_empty(arguments)
    return int(importlib.import_module(command.module).main(arguments))


def _execute(command: Command, arguments: list[str]) -> int:
    _refuse_empty(arguments)
    module = importlib.import_module(command.module)
    with steady_output():
        return int(getattr(module, command.execute)(parser_of(command).parse_args(arguments)))


def parser_of(command: Command) -> argparse.ArgumentParser:
    """The parser of one of COMMANDS."""
    parser = argparse.ArgumentParser(prog=f"kraft-audit {command.name}", description=command.help)
    getattr(importlib.import_module(command.module), command.arguments)(parser)
    return parser


# A broker may ask for an ISR of no replica, and the controller has an answer to that.
_MAY_BE_EMPTY = "--isr"


def _refuse_empty(arguments: Sequence[str]) -> None:
    """Raise UsageError for an argument without a value, as of a variable that is not set: as a path it is the working directory."""
    for before, argument in pairwise(["", *arguments]):
        option, equals, value = argument.partition("=")
        joined = equals and option.startswith("--")
        name = option if joined else before if before.startswith("--") else "an argument"
        if (value if joined else argument).strip() or name == _MAY_BE_EMPTY:
            continue
        raise UsageError(f"{name} is empty: give a value, or leave it out")


def _without_debug(arguments: list[str]) -> list[str]:
    """Remove `--debug` from the arguments, at any position, and record it."""
    if DEBUG_OPTION in arguments:
        os.environ[DEBUG_VARIABLE] = "1"
    return [argument for argument in arguments if argument != DEBUG_OPTION]


def _usage(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] == "--version":
        print(f"kraft-audit {tool_version()}")
        return 0
    asked = bool(arguments) and arguments[0] in ("-h", "--help")
    out = sys.stdout if asked else sys.stderr
    if arguments and not asked:
        meant = suggestion(arguments[0], [command.name for command in (*COMMANDS, *MAINS)])
        # Without one that is like it, all are listed below.
        near = f"; {meant}" if meant.startswith("did you mean") else ""
        print(f"kraft-audit: unknown command `{visible(arguments[0], 80)}`{near}", file=out)
    print(
        "usage: kraft-audit COMMAND [options]\n\nAudits Kafka migrations from ZooKeeper to KRaft, and KRaft clusters.\n",
        file=out,
    )
    for command in sorted((*COMMANDS, *MAINS), key=lambda c: c.name):
        print(f"  {command.name:<20} {command.help}", file=out)
    print(
        "\n`kraft-audit COMMAND --help` lists the options of a command. With --debug an error shows its trace. "
        "--version names the release.",
        file=out,
    )
    return 0 if asked else 2


def entry_point() -> None:
    """Console script. SIGTERM ends every command with one line: the first process of a container ignores signals without a handler."""
    # A run arms one of its own, which leaves a row as well. Ctrl-C is Python's.
    stopping = Stopping(signals=(signal.SIGTERM,))
    code = CRASH
    try:
        with stopping.armed():
            code = main()
    except BaseException:
        # What a call to Java that was cut off raises is not what ended the command.
        if stopping.stopped is None:
            raise
    if stopping.stopped is not None:
        print_reason(stopping.stopped)
        code = stopping.stopped.exit_code
    sys.exit(code)


class TaskFailedError(Exception):
    """Fails the task of a scheduler that supports only success and failure."""


def task() -> None:
    """Entry point of a Python wheel task on Databricks, which counts every SystemExit as a failure, even with code 0.

    `--secret NAME=WHERE` before the command: see `jobs.runtime.databricks`. Raises TaskFailedError, one line with the
    exit code, for every code but 0.
    """
    code = guarded(lambda: main(take_secrets(sys.argv[1:])))
    if code:
        raise TaskFailedError(f"kraft-audit ended with exit code {code} ({MEANINGS[code]}); the lines above say why")


if __name__ == "__main__":
    entry_point()
