"""Names in code keep the glossary's promises: one word, one thing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
# A lock is held; the audit's word for it is the system's own.
OTHERS_WORDS = {("jobs/sinks/lock.py", "held")}


def definitions() -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef]]:
    """Public classes, functions and methods of the product, each with its file."""
    for folder in ("jobs", "transforms", "schemas"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                    yield str(path.relative_to(ROOT)), node


def words(name: str) -> set[str]:
    """The words of a name: `KeptState` and `kept_state` are made of the same."""
    return set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_"))


def unused() -> set[str]:
    """Words that the glossary says names are not made of."""
    return set(re.findall(r"(?m)^\| (\w+) \| not used", GLOSSARY))


def test_no_two_classes_have_one_name() -> None:
    places = defaultdict(set)
    for path, node in definitions():
        if isinstance(node, ast.ClassDef):
            places[node.name].add(path)
    assert {name: sorted(paths) for name, paths in places.items() if len(paths) > 1} == {}


def test_words_that_are_not_used_name_nothing() -> None:
    assert {"story", "told", "held", "short"} <= unused()
    named = {(path, node.name) for path, node in definitions() if words(node.name) & unused()}
    files = {path for path, _ in definitions() if words(Path(path).stem) & unused()}
    assert (named - OTHERS_WORDS, files) == (set(), set())


def test_every_word_of_the_glossary_is_there_once() -> None:
    listed = re.findall(r"(?m)^\| ([^|]+) \|", GLOSSARY.split("## Words that meant several things")[0])
    names = [name.strip() for cell in listed for name in re.split(r"[,;]", cell) if name.strip() not in ("word", "---")]
    assert len(names) == len(set(names))
    assert {"gate", "barrier", "kept state", "class"} <= set(names)
