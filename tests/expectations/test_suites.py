"""What a person may write in a suite, and what is said of a wrong one before anything starts."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from jobs.commands import expect
from jobs.exit import UsageError
from jobs.expectations import engine
from jobs.expectations.suites import read_suite, read_suites

SHIPPED = Path(__file__).parents[2] / "conf" / "expectations"
NOT_NULL = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "topic"}}


def written(folder: Path, content: object, name: str = "mine.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def suite(*expectations: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {"name": "mine", "meta": {"table": "silver.topics", **meta}, "expectations": list(expectations)}


@pytest.mark.slow
def test_the_shipped_suites_are_valid_and_house_rules_are_switched_off() -> None:
    files = sorted(SHIPPED.glob("*.json"))
    on = read_suites([str(SHIPPED / "*.json")])
    assert {path.stem for path in files} - {each.name for each in on} == {
        "policy_replication_factor",
        "policy_retention",
    }
    assert all(each.expectations for each in on)
    for path in files:
        content = json.loads(path.read_text())
        content["meta"].pop("enabled", None)
        assert content["name"] == path.stem
        engine.check(read_suites([str(path)]))


def test_what_the_library_itself_writes_is_read(tmp_path: Path) -> None:
    content = suite({**NOT_NULL, "id": None, "severity": "critical"}, great_expectations_version="1.24.1")
    read = read_suite(written(tmp_path, {**content, "id": None, "notes": None}))
    assert read is not None
    assert (read.name, read.table.full_name, read.where) == ("mine", "silver.topics", None)
    assert [(each.place, each.severity, each.column) for each in read.expectations] == [(1, "error", "topic")]


def test_what_is_switched_off_is_left_out_and_keeps_its_place(tmp_path: Path) -> None:
    path = written(
        tmp_path, suite({**NOT_NULL, "meta": {"enabled": False}}, {**NOT_NULL, "meta": {"severity": "warning"}})
    )
    (read,) = read_suites([str(path)])
    assert [(each.place, each.severity) for each in read.expectations] == [(2, "warning")]
    assert read_suites([str(written(tmp_path, suite(NOT_NULL, enabled=False)))]) == ()


def test_a_suite_that_expects_nothing_is_not_one_that_is_met(tmp_path: Path) -> None:
    """`expect` printed nothing of it and exited with 0."""
    for nothing in (suite(), suite({**NOT_NULL, "meta": {"enabled": False}})):
        path = str(written(tmp_path, nothing))
        assert read_suites([path]) == ()
        with pytest.raises(UsageError, match=r"switched off \(`meta.enabled`\), or expect nothing$"):
            expect.execute(argparse.Namespace(suites=[path]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "mine.json is not JSON"),
        ([], "must be one suite"),
        ({"expectations": []}, "`meta`: Field required"),
        (suite(table="silver.topic"), "`meta.table`: there is no `silver.topic`; did you mean `silver.topics`?"),
        (suite(table="bronze.kraft_records"), "`meta.table`: there is no `bronze.kraft_records`"),
        (suite(table="gold.runs"), "`meta.table`: there is no `gold.runs`"),
        (suite(wher="true"), "unknown key `meta.wher`; did you mean `where`?"),
        (suite({**NOT_NULL, "meta": {"severty": "warning"}}), "unknown key `expectations.0.meta.severty`"),
        (suite({**NOT_NULL, "meta": {"severity": "critical"}}), "`expectations.0.meta.severity`"),
    ],
)
def test_a_wrong_file_gets_one_line(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_suites([str(written(tmp_path, content))])
    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_a_file_that_is_not_there_and_a_name_given_twice_are_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no file .*none\.json"):
        read_suites([str(tmp_path / "none.json")])
    paths = [str(written(tmp_path, suite(NOT_NULL), name)) for name in ("a.json", "b.json")]
    with pytest.raises(UsageError, match="two suites are named `mine`"):
        read_suites(paths)


@pytest.mark.parametrize(
    ("expectation", "message"),
    [
        # A suite that is made of such an entry by the library would silently be without it.
        ({"type": "expect_nothing"}, "expectations `mine`, expectation 1 (expect_nothing): expect_nothing not found"),
        ({**NOT_NULL, "kwargs": {}}, "column field required"),
        ({**NOT_NULL, "kwargs": {"column": "topic", "mostli": 1}}, "mostli extra fields not permitted"),
    ],
)
def test_an_expectation_the_library_does_not_know_is_refused(
    tmp_path: Path, expectation: dict[str, Any], message: str
) -> None:
    suites = read_suites([str(written(tmp_path, suite(expectation)))])
    with pytest.raises(UsageError) as raised:
        engine.check(suites)
    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


QUERY = "unexpected_rows_expectation"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (suite(NOT_NULL, where="a IN (SELECT b FROM text.`/etc/passwd`)"), "`meta.where`"),
        (suite({"type": QUERY, "kwargs": {"unexpected_rows_query": "DROP TABLE x"}}), f"expectation 1 ({QUERY})"),
        (
            suite(NOT_NULL, {"type": QUERY, "kwargs": {"unexpected_rows_query": "SELECT * FROM {batch} JOIN x"}}),
            "reads X",
        ),
        (suite({**NOT_NULL, "kwargs": {"column": "topic", "row_condition": "reflect('a', 'b') = 1"}}), "reflect"),
        (
            suite({"type": "expect_query_results_to_match_comparison", "kwargs": {"base_query": "SELECT 1"}}),
            "`base_query`",
        ),
        (suite({"type": QUERY, "kwargs": {"unexpected_rows_query": {"$PARAMETER": "x"}}}), "`unexpected_rows_query`"),
        (suite({**NOT_NULL, "kwargs": {"column": "a", "comparison_data_source_name": "x"}}), "data_source"),
    ],
)
def test_a_suite_that_says_more_than_a_query_over_its_rows_is_refused_in_one_line(
    tmp_path: Path, content: dict[str, Any], said: str
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(UsageError) as refused:
        read_suite(path)
    text = str(refused.value)
    assert text.startswith(f"expectations {path}, ")
    assert "a suite may query {batch} and nothing else: " in text
    assert said in text
    assert "\n" not in text
