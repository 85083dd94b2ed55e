"""What README and the documents tell people to type can be typed: options, targets, modules and files are there."""

from __future__ import annotations

import argparse
import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any, NoReturn

import pytest

from jobs import cli

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"(?ms)^ *```(?:sh|bash)\n(.*?)^ *```$")
# Of this checkout; `conf/prod.yml` and the like are a reader's own.
_OURS = re.compile(r"(?:tools|tests|jobs|notebooks|conf/(?:schedulers|databricks|metrics|expectations))/[\w./-]+")
# A shell's own words, which may come before a command.
_BEFORE = ("if", "then", "else", "do", "while", "!", "sudo", "time", "exec")


class Parsed(BaseException):
    """The arguments were understood; nothing is run."""


def commands(page: Path) -> list[list[str]]:
    """Words of each command in the page's shell blocks."""
    found = []
    for block in _BLOCK.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            found += _simple(words)
    return found


def _simple(words: list[str]) -> list[list[str]]:
    """A line's commands, one by one, without what stands before them."""
    commands: list[list[str]] = [[]]
    for word in words:
        if word in ("|", "||", "&&", ";", "&"):
            commands.append([])
        elif commands[-1] or not (word in _BEFORE or re.match(r"^\w+=", word)):
            commands[-1].append(word)
    return [each for each in commands if each]


def of_program(page: Path) -> list[list[str]]:
    """Arguments of each `kraft-audit`, without what a shell does with its output."""
    found = [each for each in commands(page) if each[0].rpartition("/")[2] == "kraft-audit"]
    return [[word for word in each[1:] if not re.match(r"^\d?>", word)] for each in found]


@pytest.mark.parametrize(
    ("page", "arguments"),
    [pytest.param(page, each, id=f"{page.stem}-{' '.join(each)[:60]}") for page in PAGES for each in of_program(page)],
)
def test_the_program_understands_it(page: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    understood = argparse.ArgumentParser.parse_args

    def parse_only(self: argparse.ArgumentParser, *given: Any, **named: Any) -> NoReturn:
        understood(self, *given, **named)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_only)
    with pytest.raises(Parsed):
        cli.main(arguments)


def test_there_are_commands_to_look_at() -> None:
    assert len([each for page in PAGES for each in of_program(page)]) >= 10
    assert _simple(shlex.split("a=$(x 1) && kraft-audit run --conf f | tee y")) == [
        ["1)"],
        ["kraft-audit", "run", "--conf", "f"],
        ["tee", "y"],
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_targets_modules_and_files_are_there(page: Path) -> None:
    targets = set(re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text()))
    text = page.read_text()
    named = {each[1] for each in commands(page) if each[0] == "make" and len(each) > 1 and "=" not in each[1]}
    assert named | set(re.findall(r"`make (?:PYTHON=\S+ )?([\w-]+)", text)) <= targets
    for module in re.findall(r"python -m ((?:tests|jobs|tools)\.[\w.]+)", text):
        assert importlib.util.find_spec(module), module
    for words in commands(page):
        for path in _OURS.findall(" ".join(words)):
            assert (ROOT / path.rstrip(".")).exists(), path
