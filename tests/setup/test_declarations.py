"""Tables and reports say what their numbers are: times in which unit, offsets inside or outside, sizes of what."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructField, TimestampType

from schemas import bronze, gold, silver
from schemas.table import Table

TABLES: tuple[Table, ...] = (*bronze.TABLES, *silver.TABLES, *gold.TABLES)
COLUMNS = [(f"{table.full_name}.{field.name}", field) for table in TABLES for field in table.columns]
# An offset is a bound, which has its record inside or outside, or the place of one record.
OFFSET = re.compile(r"inclusive|exclusive|[Oo]ffset of (the|its) .*([Rr]ecord|batch)")
REPORT = Path(__file__).parents[2] / "schemas" / "report.py"


def comment(field: StructField) -> str:
    return str(field.metadata["comment"])


def named(*parts: str) -> list[tuple[str, StructField]]:
    """Columns of whole numbers whose name has one of the parts as a word."""
    return [
        (name, field)
        for name, field in COLUMNS
        if isinstance(field.dataType, LongType) and set(parts) & set(field.name.split("_"))
    ]


@pytest.mark.parametrize("field", [pytest.param(field, id=name) for name, field in named("offset", "chosen")])
def test_an_offset_says_whether_it_is_inside(field: StructField) -> None:
    assert OFFSET.search(comment(field)), comment(field)


@pytest.mark.parametrize(
    "field", [pytest.param(field, id=name) for name, field in named("time", "timestamp", "ctime", "mtime", "at")]
)
def test_a_time_says_its_unit(field: StructField) -> None:
    assert "milliseconds since the epoch" in comment(field)


@pytest.mark.parametrize(
    "field", [pytest.param(field, id=name) for name, field in named("bytes", "length", "position")]
)
def test_a_size_is_in_bytes(field: StructField) -> None:
    assert re.search(r"\b[Bb]ytes?\b", comment(field))


def test_a_lag_says_its_unit() -> None:
    lags = [field for name, field in COLUMNS if {"seconds"} & set(field.name.split("_"))]
    assert lags
    assert [comment(field) for field in lags if "seconds" not in comment(field).lower()] == []


def test_a_timestamp_says_its_zone() -> None:
    stamps = [field for _, field in COLUMNS if isinstance(field.dataType, TimestampType)]
    assert stamps
    assert [field.name for field in stamps if "UTC" not in comment(field)] == []


def test_every_column_and_table_is_a_sentence() -> None:
    """A comment begins as a sentence or a name does, ends with a full stop, and is plain English."""
    texts = [comment(field) for _, field in COLUMNS] + [table.comment for table in TABLES]
    assert [text for text in texts if not text.endswith(".") or text[0].isspace()] == []
    assert [text for text in texts if re.search(r"\bone (row|entry) a\b|\bis told\b", text, re.IGNORECASE)] == []


def test_every_field_of_the_report_is_documented() -> None:
    """`report.json` is a contract: each field has its meaning and unit right below its declaration."""
    classes = [node for node in ast.parse(REPORT.read_text()).body if isinstance(node, ast.ClassDef)]
    assert len(classes) > 10
    missing = [
        f"{node.name}.{field.target.id}"
        for node in classes
        for field, below in zip(node.body, [*node.body[1:], None], strict=True)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and not _is_text(below)
    ]
    assert missing == []


def _is_text(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
