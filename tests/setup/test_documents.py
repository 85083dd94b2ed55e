"""README and CONTRIBUTING name what exists, and say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from jobs import cli
from jobs import exit as codes
from jobs.settings import GateName, Settings
from schemas.classes import CLASSES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_links_and_paths_lead_somewhere(text: str) -> None:
    linked = set(re.findall(r"\]\((?!https?:)([^)#]+)\)", text))
    named = set(re.findall(r"`((?:jobs|transforms|schemas|conf|tests|tools|notebooks)/[\w./]*)`", text))
    missing = {path for path in linked | named if not (ROOT / path).exists()}
    assert missing - {f"{folder}/entities/quorum_voters.py" for folder in ENTITY_FOLDERS} == set()


ENTITY_FOLDERS = ("schemas", "transforms/zookeeper", "transforms/kraft")


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"(?m)^(\w+):", (ROOT / "Makefile").read_text()))
    assert {"setup", "demo", "test", "lock"} <= targets
    assert set(re.findall(r"(?:^|`)make (?:PYTHON=\S+ )?(\w+)", README + CONTRIBUTING, re.MULTILINE)) <= targets


def test_the_smallest_configuration_is_valid() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        assert Settings.model_validate(yaml.safe_load(block)).cluster == "prod-eu"


def test_exit_codes_are_the_programs() -> None:
    listed = {int(code): meaning for code, meaning in re.findall(r"(?m)^\| (\d+) \| (.*) \|$", README)}
    assert listed.keys() == {codes.OK, codes.WARNINGS, codes.ERRORS, codes.USAGE, codes.CRASH}
    assert listed[codes.OK] == "clean"
    assert listed[codes.WARNINGS].startswith("warnings")
    assert listed[codes.ERRORS].startswith("errors")
    assert "configuration" in listed[codes.USAGE]


def test_every_class_is_explained_with_what_it_is() -> None:
    rows = re.findall(r"(?m)^\| (`\w+`(?:, `\w+`)*) \| .* \| (yes|no) \|$", README)
    explained = {name: defect == "yes" for names, defect in rows for name in re.findall(r"`(\w+)`", names)}
    assert explained == {name: entry.defect for name, entry in CLASSES.items()}


def test_gates_are_the_programs() -> None:
    (listed,) = re.findall(r"--gate \{([\w,]+)\}", README)
    assert tuple(listed.split(",")) == GateName.__args__  # type: ignore[attr-defined]


def test_commands_are_the_programs() -> None:
    commands = {command.name for command in (*cli.COMMANDS, *cli.MAINS)}
    used = set(re.findall(r"kraft-audit (\w[\w-]*)(?= --|$)", README + (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"run", "check", "demo"} <= used <= commands
