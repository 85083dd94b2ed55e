"""What people read is plain English: turns that readers stumbled over stay out of messages, pages, documents and docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Each turn that readers did not understand, or took for its opposite, and what to write instead.
AVOID = {
    r"\banew\b": "again",
    r"\bfor long\b": "say how long: 'no recent audit', 'for more than 48 h'",
    r"\bat work\b": "running",
    r"\b(hold|holds|held) \S*( \S+)? ?against\b": "compare(d) with",
    r"\b(go|goes|going|gone|went) on (from|with)\b": "resume, continue",
    r"\bwhatever (it|they|else|the|was)\b": "name what it is",
    r"\bby itself\b": "alone, on its own",
    r"(?<!there )(?<!There )\b(is|are|was|were|be) no (?!longer\b|more\b)[a-z]": "is not a",
    r"\b(is|are|was|were) told\b": "is shown, is reported",
    r"\b(what|it|they|that|files|logs|rows|nothing|nobody) tells?\b": "shows",
    r"\b(stop|stops|stopped|start|restart|shut|shuts|close)( \w+){0,4} in order\b": "cleanly",
    r"\bof now\b": "current",
    r"\bcom(e|es|ing) to (its|their) end\b|\bcame to (its|their) end\b": "finish(ed)",
    r"\b(the others|the rest|the run|the audit|may|can|must|cluster) goe?s? on\b": "continue(s)",
    r"\btells? the story\b": "shows what happened",
    r"\bfor ever\b": "forever",
    r"\bwithout a word\b": "silently",
    r"\bas it must be\b": "name the fault",
    r"\b(whose|with whose) word\b": "who says so",
    r"\bof a kind that\b": "name the kind",
    r"\bthat (is|are) none\b": "that is not a",
    r"\b(are|is) no more\b": "no longer exist(s)",
    r"\bspeaks? of\b": "is about",
    r"\bin truth\b": "in fact",
    r"\bas ever\b": "as before",
    r"\bin the midst\b": "meanwhile, while it runs",
    r"\banother than\b": "differs from",
    r"\bbeside each other\b": "at the same time",
    r"\bputs? together\b": "merges",
    r"\bfor so long\b|\bso long ago\b|\b(is|stay|stays) so long\b": "for this long",
    r"\bgoes by\b": "uses, follows",
    r"\bheeds?\b": "reads, respects",
    r"\bwhat bec(ame|omes) of\b": "what happened to, the result of",
    r"\bwas not collected\b": "was not given",
    r"\bvouch(es)? for\b": "accepts",
    r"\b[Dd]ual[- ]writing\b": "dual write",
    r"\bgates? (\w+ )?(is|are) shut\b": "closed",
    r"\b(is|are) to (be|begin|have)\b": "must",
    r"\b(nodes|brokers|controllers|coordinators|authorizers) pass over\b": "ignore",
    r"\bwould go\b": "would be removed",
    r"\bunder way\b": "in progress",
}
PAGES = sorted(
    path
    for pattern in (
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/*.md",
        "conf/**/*.yml",
        "conf/**/*.json",
        "conf/**/*.py",
        "conf/**/*.service",
        "conf/**/*.timer",
        "notebooks/*.py",
        "transforms/report/*.j2",
    )
    for path in ROOT.glob(pattern)
)
# The name of a state in report.json, which readers are shown as `stopped cleanly`.
KEPT = "stopped in order"
# Rules for people who read Kafka's source, and the list of the words themselves.
NOT_FOR_USERS = {"semantics.md", "glossary.md"}


def faults(text: str) -> list[str]:
    """The turns to avoid in a text, each with what to write instead."""
    flat = " ".join(text.split())
    flat = flat.replace(KEPT, "")
    return [
        f"…{flat[max(0, hit.start() - 40) : hit.end() + 30]}… → {AVOID[each]}"
        for each in AVOID
        for hit in re.finditer(each, flat)
    ]


def messages(source: str) -> Iterator[str]:
    """String literals with more than one word; formatted ones with `…` for their values. Docstrings are no messages."""
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in alone or id(node) in inside:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)


def docstrings(source: str) -> Iterator[str]:
    """Docstrings of a module and of everything in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


@pytest.mark.parametrize("texts", [messages, docstrings])
@pytest.mark.parametrize("folder", ["jobs", "schemas", "transforms"])
def test_messages_and_docstrings_are_plain_english(folder: str, texts: Callable[[str], Iterator[str]]) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for text in texts(path.read_text())
        for fault in faults(text)
    ]
    assert found == []


@pytest.mark.parametrize("path", [path for path in PAGES if path.name not in NOT_FOR_USERS], ids=lambda path: path.name)
def test_pages_are_plain_english(path: Path) -> None:
    assert faults(path.read_text()) == []


@pytest.mark.parametrize(
    "bad",
    [
        "not audited for long",
        "the log was begun anew",
        "3 is no list of ids",
        "a run is held against the last one",
        "stop the controllers in order",
        "nothing tells the leader",
        "dual write may go on",
    ],
)
def test_the_old_turns_are_found(bad: str) -> None:
    assert faults(bad)


def test_docstrings_are_found_at_every_depth() -> None:
    assert list(docstrings('"""A."""\nclass B:\n    """B."""\n    def c(self):\n        """C."""\n')) == [
        "A.",
        "B.",
        "C.",
    ]


def test_a_message_is_found_where_it_is_formatted() -> None:
    assert list(messages('"""Begun anew."""\nx = f"{a} begun " f"anew"')) == ["… begun anew"]


# Kafka's metadata snapshot is a checkpoint here: a snapshot is a file of ZooKeeper's, unless the words beside it say otherwise.
_SNAPSHOT = re.compile(r"(?<![.\w-])[Ss]napshots?\b(?![.*_=-])")
_OF_ANOTHER = re.compile(
    r"[Mm]etadata snapshot|producer snapshot|ZooKeeper|version-2|dataDir|`snapshot|data folder|ensemble|znode|snapRetain"
)


def unclear_snapshots(text: str) -> list[str]:
    """Paragraphs, list items and rows of tables with a snapshot that may be Kafka's."""
    blocks = re.split(r"\n\s*\n|\n(?=[-|#] )", text)
    return [block for block in blocks if _SNAPSHOT.search(block) and not _OF_ANOTHER.search(block)]


def test_a_snapshot_is_zookeepers() -> None:
    pages = [path for path in PAGES if path.name not in NOT_FOR_USERS]
    found = [f"{path.name}: {block}" for path in pages for block in unclear_snapshots(path.read_text())]
    found += [
        f"{path}: {message}"
        for folder in ("jobs", "schemas", "transforms")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "zookeeper" not in path.parts and path.name not in ("doctor.py", "capture.py")
        for message in messages(path.read_text())
        for message in unclear_snapshots(message)
    ]
    assert found == []
    assert unclear_snapshots("The newest snapshot is old.")
