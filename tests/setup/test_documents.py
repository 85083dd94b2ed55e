"""README, CONTRIBUTING and the documents name what exists, and say what the code says."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
import yaml

from jobs import cli
from jobs import exit as codes
from jobs.expectations.suites import read_suite
from jobs.settings import Settings
from schemas.checks import CHECKS
from schemas.classes import CLASSES
from schemas.defects import DEFECTS
from schemas.gates import GATES
from tests.captures import capture
from tools.docs import PAGES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def page(name: str) -> str:
    """The text of one document."""
    return (ROOT / "docs" / name).read_text()


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
    blocks = [re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) for text in (README, page("running.md"))]
    assert all(blocks)
    for block in (each for found in blocks for each in found):
        assert Settings.model_validate(yaml.safe_load(block)).cluster == "prod-eu"


def test_exit_codes_are_the_programs() -> None:
    listed = {int(code): meaning for code, meaning in re.findall(r"(?m)^\| (\d+) \| (.*) \|$", page("exit-codes.md"))}
    assert listed.keys() == {codes.OK, codes.WARNINGS, codes.ERRORS, codes.USAGE, codes.CRASH}
    assert listed[codes.OK] == "clean"
    assert listed[codes.WARNINGS].startswith("warnings")
    assert listed[codes.ERRORS].startswith("errors")
    assert "configuration" in listed[codes.USAGE]


def test_every_class_is_explained_with_what_it_is() -> None:
    rows = re.findall(r"(?m)^\| (`\w+`(?:, `\w+`)*) \| .* \| (yes|no) \|$", page("classes.md"))
    explained = {name: defect == "yes" for names, defect in rows for name in re.findall(r"`(\w+)`", names)}
    assert explained == {name: entry.defect for name, entry in CLASSES.items()}


def test_gates_are_the_programs() -> None:
    (listed,) = re.findall(r"--gate \{([\w,]+)\}", page("exit-codes.md"))
    assert tuple(listed.split(",")) == GATES


def test_commands_are_the_programs() -> None:
    commands = {command.name for command in (*cli.COMMANDS, *cli.MAINS)}
    used = set(re.findall(r"kraft-audit (\w[\w-]*)(?= --|$)", README + (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"run", "check", "demo"} <= used <= commands


def test_every_command_is_explained() -> None:
    """Those that print rather than run something are in the table of commands."""
    shown = set(re.findall(r"(?m)^\| `(\w+)", page("commands.md")))
    assert shown == {
        "compare",
        "diff",
        "downgrade",
        "expect",
        "explain",
        "features",
        "fleet",
        "gates",
        "history",
        "isr",
    }
    assert shown <= {command.name for command in (*cli.COMMANDS, *cli.MAINS)}


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_the_index_lists_every_page() -> None:
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", page("README.md")))
    assert listed == {path.name for path in DOCS} - {"README.md"}


def test_the_quick_start_is_on_the_first_screen() -> None:
    """A reader, and what runs the commands of the README, finds one for a demonstration and one for all tests."""
    assert (
        README.index("```sh\nmake demo\n```")
        < README.index("```sh\nmake test\n```")
        < README.index("## Read a finding")
    )


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


DOCS = sorted((ROOT / "docs").glob("*.md"))
# Of every check: a page that names one which is not in the catalogue is wrong, whatever group it is of.
PREFIXES = sorted({check.id.split("-")[0] for check in CHECKS})
WRITTEN = [path for path in DOCS if path.name not in (*PAGES, "semantics.md", "glossary.md")]


@pytest.mark.parametrize("name", PAGES)
def test_pages_made_from_the_declarations_are_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == PAGES[name](), "run `make docs`"


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", path.read_text()):
        name, _, anchor = target.partition("#")
        leads_to = (path.parent / name).resolve() if name else path
        assert leads_to.exists(), target
        if anchor:
            text = leads_to.read_text()
            headings = {
                re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-")
                for each in re.findall(r"(?m)^#+ (.*)$", text)
            }
            assert f'id="{anchor}"' in text or anchor in headings, target


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_pages_name_checks_captures_tables_and_commands_that_exist(path: Path) -> None:
    text = path.read_text()
    checks = {check.id for check in CHECKS}
    named = re.findall(rf"\b(?:{'|'.join(PREFIXES)})-\d+\b", text)
    assert set(named) <= checks
    for version, stage in re.findall(r"look (\d\.\d\.\d) ([\w-]+)", text):
        assert capture(version, stage).is_dir()
    commands = {command.name for command in (*cli.COMMANDS, *cli.MAINS)}
    assert {word for word in re.findall(r"kraft-audit (\w[\w-]*)", text) if word not in ("is",)} <= commands
    latent = {defect.jira for defect in DEFECTS}
    assert set(re.findall(r"KAFKA-\d+|PR \d+|latent [A-Z]", text)) <= latent


def test_every_check_has_its_rule() -> None:
    assert {check.id for check in CHECKS} == set(re.findall(r"(?m)^\| ([A-Z]+-\d\d) \|", page("semantics.md")))


def test_every_class_has_its_rule() -> None:
    listed = {
        name
        for cell in re.findall(r"(?m)^\| (?:\d+|beside) \| (.*?) \|", page("classes.md"))
        for name in re.findall(r"`(\w+)`", cell)
    }
    assert listed == set(CLASSES)


def test_every_gate_is_in_the_guide() -> None:
    guide = (ROOT / "docs" / "operating.md").read_text()
    assert [gate for gate in GATES if f"`{gate}`" not in guide and f"--gate {gate}" not in guide] == []


def test_the_suite_in_the_documents_is_valid(tmp_path: Path) -> None:
    (block,) = re.findall(r"```json\n(.*?)```", page("expectations.md"), re.DOTALL)
    path = tmp_path / "suite.json"
    path.write_text(block)
    suite = read_suite(path)
    assert suite is not None
    assert (suite.name, suite.table.full_name, len(suite.expectations)) == ("house_rules", "silver.partitions", 1)


# What each fault's capture shows, by the page's own words: compared with audits in tests/pipeline.
def test_faults_that_a_page_calls_seen_are_declared_with_their_traces() -> None:
    named = set(re.findall(r"KAFKA-\d+|PR \d+|latent [A-Z]", (ROOT / "docs" / "faults.md").read_text()))
    assert {"latent A", "KAFKA-17146", "KAFKA-16222", "KAFKA-16411", "PR 15327"} <= named
    traced = {each.jira for each in DEFECTS if each.checks or each.rows or each.findings}
    assert named <= traced
