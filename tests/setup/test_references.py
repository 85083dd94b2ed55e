"""Every rule that the code cites is written down here, and no reader of a report meets a citation nobody explains."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from email.message import EmailMessage
from pathlib import Path

import pytest

from schemas import bronze, gold, silver
from schemas.checks import CHECKS
from schemas.classes import CLASSES
from schemas.defects import DEFECTS
from schemas.kraft.metadata_versions import BY_LEVEL
from schemas.kraft.records import ACCESS_CONTROL, RECORD_TYPES
from schemas.references import RULES, spelled_out
from schemas.zookeeper.findings import FINDINGS
from tests.report.samples import SAMPLES, healthy
from transforms.report.html import render_html
from transforms.report.json import to_json
from transforms.report.mail import render_mail
from transforms.report.text import render_text

ROOT = Path(__file__).parents[2]
CODE = ("jobs", "transforms", "schemas")
CITING = (*CODE, "tests", "notebooks", "tools", "conf", "docs")
SUFFIXES = {".py", ".j2", ".yml", ".yaml", ".md", ".css", ".toml"}
SECTION = re.compile(r"S§(\d+(?:\.\d+)*)")
HEADING = re.compile(r'(?m)^<a id="s([\d.]+)"></a>\n#{2,4} S§([\d.]+) \S')
DOCUMENT = (ROOT / RULES).read_text()


def files(folders: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES)


def cited() -> dict[str, str]:
    """Each section cited, with one file that cites it."""
    texts = [*files(CITING), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return {section: str(path) for path in texts for section in SECTION.findall(path.read_text())}


def headings() -> list[str]:
    return [section for _, section in HEADING.findall(DOCUMENT)]


def test_every_section_cited_is_there() -> None:
    missing = {section: path for section, path in cited().items() if section not in headings()}
    assert not missing
    assert len(cited()) > 50  # The pattern finds what the code cites.


def test_every_section_is_there_once_and_has_its_anchor() -> None:
    assert all(anchor == section for anchor, section in HEADING.findall(DOCUMENT))
    assert len(set(headings())) == len(headings())
    assert len(headings()) == len(re.findall(r"(?m)^#{2,}", DOCUMENT))


def test_the_rules_stand_alone() -> None:
    assert "shared" not in DOCUMENT
    for target in re.findall(r"\]\(([^)]+)\)", DOCUMENT + (ROOT / "docs" / "glossary.md").read_text()):
        assert (ROOT / "docs" / target).exists(), target
    own = set(re.findall(r"(?<![\w/])(?:S)?§(\d+(?:\.\d+)*)", DOCUMENT))
    assert own <= set(headings())


def test_no_document_is_cited_that_is_not_here() -> None:
    """`DESIGN §5` names a section of a document that no reader has; the rules are cited as `S§5`."""
    citation = re.compile(r"\b([A-Z]{4,}) §\d")
    found = {str(path) for path in files(CITING) if path != Path(__file__) and citation.search(path.read_text())}
    assert found == set()


@pytest.mark.parametrize(
    ("reference", "spelled"),
    [
        ("S§12.2", "docs/semantics.md §12.2"),
        ("KIP-866; S§5.2, S§14", "KIP-866; docs/semantics.md §5.2, §14"),
        ("KIP-866, Migration", "KIP-866, Migration"),
    ],
)
def test_a_reference_names_its_document(reference: str, spelled: str) -> None:
    assert spelled_out(reference) == spelled
    assert spelled_out(spelled) == spelled


def section(name: str) -> str:
    return DOCUMENT.split(f'<a id="s{name}"></a>')[1].split("\n<a id=")[0]


def rows(name: str) -> list[list[str]]:
    """The cells of a section's tables, headings and rules included."""
    lines = re.findall(r"(?m)^\| (.*) \|$", section(name))
    return [[cell.strip() for cell in re.split(r" \| ", line)] for line in lines]


def test_record_types_are_as_declared() -> None:
    """Keys with the newest version, and the fields of each body in the order of the wire, tagged ones last."""
    # No release after 3.4 knows ACCESS_CONTROL.
    documented = {
        int(key): cells[-1].rstrip("*")
        for cells in rows("2.5")
        for key in cells[0].split(", ")
        if key.isdigit() and len(cells) == 8
    }
    assert {key: value for key, value in documented.items() if value.isdigit()} == {
        key: str(record.body.highest) for key, record in RECORD_TYPES.items() if record is not ACCESS_CONTROL
    }
    bodies = {name: cells[1] for cells in rows("2.5") if len(cells) == 2 for name in cells[0].split(", ")}
    for record in RECORD_TYPES.values():
        name = "".join(word.capitalize() for word in record.name.removesuffix("_RECORD").split("_"))
        if record is not ACCESS_CONTROL and record.body.fields and "TRANSACTION" not in record.name:
            on_the_wire = sorted(record.body.fields, key=lambda field: -1 if field.tag is None else field.tag)
            at = [_position(field.name, bodies[name]) for field in on_the_wire]
            assert at == sorted(at), name


def _position(field: str, body: str) -> int:
    found = re.search(rf"\b{field}\b", body, re.IGNORECASE)
    assert found, f"{field} in {body}"
    return found.start()


def test_levels_are_as_declared() -> None:
    named = {int(cells[0]): cells[1:3] for cells in rows("2.6") if cells[0].isdigit() and "IV" in cells[1]}
    assert len(named) > 5
    for level, (name, changed) in named.items():
        assert (BY_LEVEL[level].name, BY_LEVEL[level].changed) == (name, changed == "yes")


def test_the_declarations_have_no_unexplained_citation() -> None:
    tables = (*bronze.TABLES, *silver.TABLES, *gold.TABLES)
    columns = [field.metadata["comment"] for table in tables for field in table.columns]
    texts = [
        *(str(asdict(check)) for check in CHECKS),
        *(str(asdict(defect)) for defect in DEFECTS),
        *(str(asdict(entry)) for entry in CLASSES.values()),
        *(meaning for _, meaning in FINDINGS.values()),
        *(table.comment for table in tables),
        *columns,
    ]
    assert [text for text in texts if "S§" in text] == []


def test_references_of_checks_lead_to_their_sections() -> None:
    named = {section for check in CHECKS for section in re.findall(r"§([\d.]+\d|\d+)", check.reference)}
    assert named <= set(headings())
    assert {"5.6", "7.3"} <= named


def texts_of(path: Path) -> Iterator[str]:
    """The string literals of a module but for docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_no_message_has_an_unexplained_citation() -> None:
    """Whatever text the code holds beside docstrings may be shown: as a message, a note, a table's comment.

    The catalogue of checks is left out: `check` spells its references, and the test of the declarations reads them.
    """
    catalogue = ROOT / "schemas" / "checks"
    modules = [path for path in files(CODE) if path.suffix == ".py" and path.name != "references.py"]
    modules = [path for path in modules if path.parent != catalogue]
    found = {f"{path}: {text}" for path in modules for text in texts_of(path) if "S§" in text}
    assert found == set()
    templates = [path for path in files((*CODE, "conf")) if path.suffix != ".py"]
    assert [path for path in templates if "S§" in path.read_text()] == []


def test_help_has_no_unexplained_citation() -> None:
    """A module of `jobs` describes its command by its docstring, a step by that of its function."""
    for path in sorted((ROOT / "jobs").rglob("*.py")):
        tree = ast.parse(path.read_text())
        described = [
            tree,
            *(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run_step"),
        ]
        assert not [text for node in described if "S§" in (text := ast.get_docstring(node) or "")], path


def test_reports_have_no_unexplained_citation() -> None:
    """Also those made again from what an earlier release stored."""
    old = healthy()
    old = replace(old, checks=[replace(check, reference="KIP-866, S§7.3; S§14") for check in old.checks])
    assert "docs/semantics.md §7.3; §14" in render_html(old)
    reports = [make() for make in SAMPLES.values()]
    for report in (*reports, old):
        assert "S§" not in render_html(report)
        assert "S§" not in render_text(report)
        assert "S§" not in body(render_mail(report))
    for report in reports:
        assert "S§" not in to_json(report)


def body(mail: EmailMessage) -> str:
    parts = [part for part in mail.walk() if part.get_content_maintype() == "text"]
    assert len(parts) == 2
    return "".join(part.get_content() for part in parts)
