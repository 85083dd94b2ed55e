"""`kraft-audit completion SHELL`: a script that completes commands, options and their values, made from the parsers themselves."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.exit import OK

SHELLS = ("bash", "zsh", "fish")
_INSTALLATION = {
    "bash": "# kraft-audit completion bash > ~/.local/share/bash-completion/completions/kraft-audit",
    "zsh": "# Before compinit in ~/.zshrc: source <(kraft-audit completion zsh)",
    "fish": "# kraft-audit completion fish > ~/.config/fish/completions/kraft-audit.fish",
}


@dataclass(frozen=True)
class Option:
    """An option: its spellings, help, the values it knows, and whether it takes any."""

    names: tuple[str, ...]
    help: str
    choices: tuple[str, ...]
    takes_value: bool


@dataclass
class Described:
    """What can follow a command: its options, words (sub-commands, values of arguments), and its line of help."""

    help: str
    options: list[Option] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `kraft-audit completion`."""
    parser.add_argument(
        "shell", choices=SHELLS, help="shell to print the script for; its first line shows where to put it"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the script."""
    # The command line knows the commands, and this is one of them.
    from jobs.cli import COMMANDS, MAINS, parser_of  # noqa: PLC0415

    commands = {command.name: described(parser_of(command), command.help) for command in COMMANDS}
    commands |= {command.name: Described(command.help) for command in MAINS}
    print(script(arguments.shell, dict(sorted(commands.items()))), end="")
    return OK


def described(parser: argparse.ArgumentParser, help_text: str) -> Described:
    """What a parser knows, those of its sub-commands included."""
    found = Described(help_text)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                inner = described(below, "")
                found.words += [name, *inner.words]
                known = {option.names for option in found.options}
                found.options += [option for option in inner.options if option.names not in known]
        elif action.option_strings:
            found.options.append(_option(action))
        elif action.choices:
            found.words += [str(choice) for choice in action.choices]
    return found


def _option(action: argparse.Action) -> Option:
    choices = tuple(str(choice) for choice in action.choices) if action.choices else ()
    return Option(tuple(action.option_strings), action.help or "", choices, action.nargs != 0)


def script(shell: str, commands: dict[str, Described]) -> str:
    """The script for a shell."""
    body = _fish(commands) if shell == "fish" else _bash(commands)
    if shell == "zsh":
        body = ["autoload -U +X compinit bashcompinit && compinit && bashcompinit", *body]
    return "\n".join([_INSTALLATION[shell], *body]) + "\n"


def _bash(commands: dict[str, Described]) -> list[str]:
    lines = [
        "_kraft_audit() {",
        '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" words=""',
        "  COMPREPLY=()",
        '  if [ "$COMP_CWORD" -eq 1 ]; then',
        f'    COMPREPLY=($(compgen -W "{" ".join(commands)} --help" -- "$cur")); return',
        "  fi",
        '  case "${COMP_WORDS[1]} $prev" in',
    ]
    for name, command in commands.items():
        for option in command.options:
            patterns = "|".join(f'"{name} {spelling}"' for spelling in option.names)
            if option.choices:
                lines.append(
                    f'    {patterns}) COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$cur")); return ;;'
                )
            elif option.takes_value:
                lines.append(f'    {patterns}) COMPREPLY=($(compgen -f -- "$cur")); return ;;')
    lines += ["  esac", '  case "${COMP_WORDS[1]}" in']
    for name, command in commands.items():
        lines.append(
            f'    {name}) words="{" ".join(_spellings(command.options))}"; subs="{" ".join(command.words)}" ;;'
        )
    lines[1] = lines[1].replace(' words=""', ' words="" subs=""')
    return [
        *lines,
        "  esac",
        '  if [ "${cur#-}" != "$cur" ]; then COMPREPLY=($(compgen -W "$words --debug" -- "$cur"))',
        '  else COMPREPLY=($(compgen -W "$subs" -- "$cur") $(compgen -f -- "$cur")); fi',
        "}",
        "complete -o filenames -F _kraft_audit kraft-audit",
    ]


def _spellings(options: Sequence[Option]) -> list[str]:
    return [name for option in options for name in option.names if name.startswith("--")]


def _fish(commands: dict[str, Described]) -> list[str]:
    lines = []
    for name, command in commands.items():
        lines.append(f"complete -c kraft-audit -n __fish_use_subcommand -f -a {name} -d {_quoted(command.help)}")
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        if command.words:
            lines.append(f"complete -c kraft-audit {seen} -a {_quoted(' '.join(command.words))}")
        for option in command.options:
            long = next((spelling for spelling in option.names if spelling.startswith("--")), None)
            if long is None:
                continue
            value = f" -x -a {_quoted(' '.join(option.choices))}" if option.choices else " -r" * option.takes_value
            lines.append(f"complete -c kraft-audit {seen} -l {long[2:]}{value} -d {_quoted(option.help)}")
    return lines


def _quoted(text: str) -> str:
    plain = text.replace("%%", "%").replace("\\", "\\\\").replace("'", "\\'")
    return f"'{plain}'"
