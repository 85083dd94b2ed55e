"""`kraft-audit completion SHELL`: a script that completes commands, options and their values, made from the parsers themselves."""

from __future__ import annotations

import argparse
import importlib

import shtab

from jobs.exit import OK

_INSTALLATION = {
    "bash": "kraft-audit completion bash > ~/.local/share/bash-completion/completions/kraft-audit",
    "zsh": 'kraft-audit completion zsh > "${fpath[1]}/_kraft-audit"',
    "fish": "kraft-audit completion fish > ~/.config/fish/completions/kraft-audit.fish",
}
SHELLS = tuple(_INSTALLATION)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `kraft-audit completion`."""
    parser.add_argument("shell", choices=SHELLS, help="shell to print the script for")
    where = "\n".join(f"  {line}" for line in _INSTALLATION.values())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"Where it goes:\n{where}"


def execute(arguments: argparse.Namespace) -> int:
    """Print the script."""
    print(shtab.complete(whole_parser(), arguments.shell))
    return OK


def whole_parser() -> argparse.ArgumentParser:
    """One parser of all commands, which `kraft-audit` itself loads one by one."""
    # jobs.cli imports this module.
    from jobs.cli import COMMANDS, DEBUG_OPTION, MAINS  # noqa: PLC0415

    whole = argparse.ArgumentParser(prog="kraft-audit")
    commands = whole.add_subparsers(dest="command")
    for command in sorted((*COMMANDS, *MAINS), key=lambda each: each.name):
        parser = commands.add_parser(command.name, help=command.help)
        parser.add_argument(DEBUG_OPTION, action="store_true", help="show the trace of an error")
        declare = getattr(importlib.import_module(command.module), command.arguments, None)
        # A command that parses its own arguments may declare none here: then only its name is completed.
        if declare is not None:
            declare(parser)
        _with_files(parser)
    return whole


def _with_files(parser: argparse.ArgumentParser) -> None:
    """Offer files wherever a value is free."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _with_files(below)
        elif action.choices is None and action.nargs != 0:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
