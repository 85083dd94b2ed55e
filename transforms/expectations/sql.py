"""The rows that do not meet an expectation, as SQL that a person can continue with.

The library itself lists at most 200 values, and no rows for several columns, so this module selects the rows. The library
determines their number: rows are shown only if this finds as many (`jobs.expectations.engine`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transforms.expectations.query import QueryError, check_condition, check_query
from transforms.expectations.suite import Expectation

BATCH = "batch"
_QUERY = "unexpected_rows_expectation"
_UNIQUE = "expect_column_values_to_be_unique"
_COMPOUND = "expect_compound_columns_to_be_unique"
_REPEATED = "repeated"
_MISSING = {"all_values_are_missing": " AND ", "any_value_is_missing": " OR ", "never": ""}
_PLAIN_QUERY = re.compile(r"\s*select\s+\*\s+from\s+\{batch\}\s+where\s+(?P<condition>.+)", re.IGNORECASE | re.DOTALL)
_SEVERAL_ROWS = re.compile(
    r"\b(select|over|group|having|order|limit|union|except|intersect|join|qualify)\b|\{", re.IGNORECASE
)
Kwargs = Mapping[str, Any]


def literal(value: Any) -> str:
    """A value as Spark SQL spells it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"


def name(column: str) -> str:
    """A column's name in Spark SQL, quoted; dots lead into a structure, as in Spark."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in column.split("."))


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(literal(value) for value in values)


def _outside(kwargs: Kwargs) -> str:
    return _not_within(name(kwargs["column"]), kwargs)


def _not_within(subject: str, kwargs: Kwargs) -> str:
    bounds = []
    for key, strict, sign in (("min_value", "strict_min", ">"), ("max_value", "strict_max", "<")):
        if kwargs.get(key) is not None:
            bounds.append(f"{subject} {sign}{'' if kwargs.get(strict) else '='} {literal(kwargs[key])}")
    return f"NOT ({' AND '.join(bounds)})" if bounds else "false"


# Conditions of a row that is not as expected, for rows whose column is not null.
_OF_VALUES: dict[str, Callable[[Kwargs], str]] = {
    "expect_column_values_to_be_between": _outside,
    "expect_column_values_to_be_in_set": lambda k: f"{name(k['column'])} NOT IN ({_listed(k['value_set'])})",
    "expect_column_values_to_not_be_in_set": lambda k: f"{name(k['column'])} IN ({_listed(k['value_set'])})",
    "expect_column_values_to_match_regex": lambda k: f"NOT ({name(k['column'])} RLIKE {literal(k['regex'])})",
    "expect_column_values_to_not_match_regex": lambda k: f"{name(k['column'])} RLIKE {literal(k['regex'])}",
    "expect_column_value_lengths_to_be_between": lambda k: _not_within(f"length({name(k['column'])})", k),
    "expect_column_value_lengths_to_equal": lambda k: f"length({name(k['column'])}) <> {literal(k['value'])}",
}
_OF_NULLS: dict[str, Callable[[Kwargs], str]] = {
    "expect_column_values_to_not_be_null": lambda k: f"{name(k['column'])} IS NULL",
    "expect_column_values_to_be_null": lambda k: f"{name(k['column'])} IS NOT NULL",
}


def failing_rows(expectation: Expectation) -> str | None:
    """A query over the view `batch` for the rows that the expectation does not accept.

    None for a type whose rows only the library can find, and for one without rows: averages, counts, sums.
    """
    kwargs, row_condition = expectation.kwargs, _row_condition(expectation)
    if row_condition is None:
        return None
    if expectation.type == _QUERY:
        return str(kwargs["unexpected_rows_query"]).strip().rstrip(";").replace("{batch}", BATCH)
    if expectation.type in _OF_NULLS:
        return _where(row_condition, _OF_NULLS[expectation.type](kwargs))
    if expectation.type in _OF_VALUES:
        return _where(row_condition, f"{name(kwargs['column'])} IS NOT NULL", _OF_VALUES[expectation.type](kwargs))
    if expectation.type in (_UNIQUE, _COMPOUND):
        return _repeated_rows(kwargs, row_condition)
    return None


def check_sql(expectation: Expectation) -> None:
    """Raise QueryError if an expectation's SQL is more than a query over `{batch}` or a condition on a row.

    A type of the library that takes another query also takes another source of data, and is refused.
    """
    for key, value in expectation.kwargs.items():
        if key == "unexpected_rows_query" and isinstance(value, str):
            check_query(value)
        elif "query" in key or "data_source" in key:
            raise QueryError(f"`{key}` is not taken")
    condition = expectation.kwargs.get("row_condition")
    spoken_otherwise = str(expectation.kwargs.get("condition_parser")).startswith("great_expectations")
    if isinstance(condition, str) and not spoken_otherwise:
        check_condition(condition)


def _repeated_rows(kwargs: Kwargs, row_condition: str) -> str:
    columns = [name(column) for column in kwargs.get("column_list") or [kwargs["column"]]]
    # Rows that the library counts as missing: all columns are null, or as `ignore_row_if` defines.
    missing = _MISSING[kwargs.get("ignore_row_if", "all_values_are_missing")]
    present = f"NOT ({missing.join(f'{column} IS NULL' for column in columns)})" if missing else ""
    inside = f"SELECT *, count(*) OVER (PARTITION BY {', '.join(columns)}) AS {_REPEATED} FROM {BATCH}"
    conditions = " AND ".join(part for part in (row_condition, present) if part) or "true"
    return f"SELECT * EXCEPT ({_REPEATED}) FROM ({inside} WHERE {conditions}) WHERE {_REPEATED} > 1"


def _row_condition(expectation: Expectation) -> str | None:
    """The rows it is about, "" for all; None when they are chosen in a way that is not SQL."""
    condition = expectation.kwargs.get("row_condition")
    if condition is None:
        return ""
    spoken = expectation.kwargs.get("condition_parser") == "spark" and isinstance(condition, str)
    return f"({condition})" if spoken else None


def _where(*conditions: str) -> str:
    return f"SELECT * FROM {BATCH} WHERE {' AND '.join(part for part in conditions if part)}"


def by_itself(expectation: Expectation) -> bool:
    """True if each row is judged alone: if all clusters' rows are accepted together, so are each cluster's."""
    if expectation.type == _QUERY:
        found = _PLAIN_QUERY.fullmatch(str(expectation.kwargs.get("unexpected_rows_query", "")).rstrip("; \n"))
        return found is not None and not _SEVERAL_ROWS.search(found["condition"])
    return expectation.type in _OF_NULLS or expectation.type in _OF_VALUES


def about_rows(expectation: Expectation) -> bool:
    """True for a type that is met if no row fails: a met expectation needs no further details."""
    return expectation.type in (_QUERY, _UNIQUE, _COMPOUND) or by_itself(expectation)


def together(expectation: Expectation, cluster_column: str) -> Expectation | None:
    """The expectation for the rows of all clusters at once; None if each cluster must be judged alone."""
    if by_itself(expectation):
        return expectation
    if expectation.type != _COMPOUND:
        return None
    columns = [*expectation.kwargs["column_list"], cluster_column]
    kwargs = {**expectation.kwargs, "column_list": columns}
    return Expectation(expectation.place, expectation.type, kwargs, expectation.severity, expectation.why)


def state_rows(table: str, cluster: str, runs: Sequence[str]) -> str:
    """A query for a cluster's rows of a chained table (its name in SQL): those of the state that these runs make up, the base's first.

    It ends in conditions. docs/tables.md has the same query.
    """
    of_runs = ", ".join(literal(run_id) for run_id in runs)
    place = f"array_position(array({of_runs}), run_id)"
    mine = f"SELECT *, {place} AS place FROM {table} WHERE cluster = {literal(cluster)} AND run_id IN ({of_runs})"
    newest = f"SELECT *, max(place) OVER (PARTITION BY row_key) AS newest FROM ({mine})"
    return f"SELECT * EXCEPT (place, newest) FROM ({newest}) WHERE place = newest AND gone IS NULL"


def shown(query: str, rows: str, where: str | None) -> str:
    """The whole statement, to copy: `query` over the `rows`, a query that ends in conditions, that meet one more."""
    more = f" AND ({where})" if where else ""
    return f"WITH {BATCH} AS ({rows}{more})\n{query}"
