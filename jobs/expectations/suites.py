"""The files of expectations that a configuration or a command line names: Great Expectations' own JSON form.

The suite's `meta` names its rows: `table` (a silver or gold table), optionally `where` (Spark SQL) and `enabled`.
An expectation's `meta` has `severity` (error or warning), optionally `why` and `enabled`.
"""

from __future__ import annotations

import glob
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jobs.exit import UsageError
from jobs.settings import Strict, first_problem
from schemas import gold, silver
from schemas.table import Table
from transforms.expectations.query import QueryError, check_condition
from transforms.expectations.sql import check_sql
from transforms.expectations.suite import Expectation, Suite
from transforms.nearest import suggestion

_Text = Annotated[str, Field(min_length=1, max_length=500)]


def _tables() -> dict[str, Table]:
    # `runs` is written last, when the expectations have been judged.
    return {table.full_name: table for table in (*silver.TABLES, *gold.TABLES) if table is not gold.RUNS}


class SuiteMeta(Strict):
    """What a suite is about."""

    table: str
    where: _Text | None = None
    enabled: bool = True
    great_expectations_version: str | None = None


class ExpectationMeta(Strict):
    """What a failure of an expectation is, and why it is expected."""

    severity: Literal["error", "warning"] = "error"
    why: str = ""
    enabled: bool = True


class _FromTheLibrary(BaseModel):
    """The library writes more keys than are read here."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ExpectationEntry(_FromTheLibrary):
    """One expectation, as the library writes it."""

    type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    kwargs: dict[str, Any] = {}
    meta: ExpectationMeta = ExpectationMeta()


class SuiteFile(_FromTheLibrary):
    """One file."""

    name: str | None = None
    meta: SuiteMeta
    expectations: list[ExpectationEntry]


def read_suites(patterns: Sequence[str]) -> tuple[Suite, ...]:
    """Read the files that the paths and patterns name, in order; suites that are switched off or expect nothing are left out.

    Raises UsageError naming the file and the key; also if nothing matches, two suites have the same name, or the library is not
    installed.
    """
    suites = [read_suite(path) for pattern in patterns for path in _files(pattern)]
    names = [suite.name for suite in suites if suite is not None]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"expectations: two suites are named `{twice}`; give each a name of its own")
    if names and importlib.util.find_spec("great_expectations") is None:
        raise UsageError("expectations need Great Expectations: pip install 'kraft-migration-audit[expectations]'")
    return tuple(suite for suite in suites if suite is not None)


def _files(pattern: str) -> list[Path]:
    path = Path(pattern)
    found = [path] if path.is_file() else sorted(Path(name) for name in glob.glob(pattern))
    if not found:
        raise UsageError(f"expectations: there is no file {pattern}")
    return found


def read_suite(path: Path) -> Suite | None:
    """Read one file; None when its suite is switched off, or expects nothing. Raises UsageError naming the file and the key."""
    where = f"expectations {path}"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{where} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is not UTF-8 text (byte {error.start})") from error
    except ValueError as error:
        raise UsageError(f"{where} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise UsageError(f"{where} must be one suite: an object with `meta` and `expectations`")
    try:
        file = SuiteFile.model_validate(content)
    except ValidationError as error:
        raise UsageError(f"{where}: {first_problem(error, SuiteFile)}") from None
    table = _tables().get(file.meta.table)
    if table is None:
        raise UsageError(
            f"{where}: `meta.table`: there is no `{file.meta.table}`; {suggestion(file.meta.table, _tables())}"
        )
    entries = [
        Expectation(place, entry.type, entry.kwargs, entry.meta.severity, entry.meta.why)
        for place, entry in enumerate(file.expectations, 1)
        if entry.meta.enabled
    ]
    if not file.meta.enabled or not entries:
        return None
    _check_sql(where, file.meta.where, entries)
    return Suite(file.name or path.stem, table, tuple(entries), file.meta.where)


def _check_sql(where: str, condition: str | None, entries: Sequence[Expectation]) -> None:
    """Refuse what reaches beyond the rows: a suite may be somebody else's, and Spark's SQL reads files and runs code."""
    place = "`meta.where`"
    try:
        if condition is not None:
            check_condition(condition)
        for entry in entries:
            place = f"expectation {entry.place} ({entry.type})"
            check_sql(entry)
    except QueryError as error:
        raise UsageError(f"{where}, {place}: a suite may query {{batch}} and nothing else: {error}") from None
