"""README and CONTRIBUTING name what exists, and say what the code says."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
import yaml

from jobs import cli
from jobs import exit as codes
from jobs.settings import GateName, Settings
from schemas.classes import CLASSES
from tests.captures import capture

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_links_and_paths_lead_somewhere(text: str) -> None:
    linked = set(re.findall(r"\]\((?!https?:)([^)#]+)\)", text))
    named = set(re.findall(r"`((?:jobs|transforms|schemas|conf|tests|tools|notebooks)/[\w./]*)`", text))
    missing = {path for path in linked | named if not (ROOT / path).exists()}
    assert missing - {f"{folder}/entities/quorum_voters.py" for folder in ENTITY_FOLDERS} == set()


ENTITY_FOLDERS = ("schemas", "transforms/zookeeper/read", "transforms/kraft/replay")


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


def test_the_worked_example_tells_what_is_in_the_capture() -> None:
    folder = capture("3.9.1", "quota-removal")
    told = [int(offset) for offset in re.findall(r"(?:set at|again at|up to) offset (\d+)", README)]
    with gzip.open(folder / "dump-log-3001.txt.gz", "rt") as lines:
        found = re.findall(r'offset: (\d+) .*"entityName":"app-9".*"remove":(\w+)', "".join(lines))
    assert [(str(told[0]), "false"), (str(told[1]), "true")] == sorted(set(found))
    assert told[2] == json.loads((folder / "expected.json").read_text())["end_offset"]
    with gzip.open(folder / "zookeeper.jsonl.gz", "rt") as lines:
        znodes = {znode["path"]: znode for znode in map(json.loads, lines)}
    assert f"transaction {znodes['/config/clients/app-9']['mzxid']:#x}." in README.replace("\n", " ")
