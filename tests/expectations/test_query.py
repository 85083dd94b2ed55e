"""What a suite may say in SQL: a query over `{batch}`, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import gold, silver
from schemas.sql_functions import FUNCTIONS
from transforms.expectations import query
from transforms.expectations.query import QueryError, check_condition, check_query

SHIPPED = sorted((Path(__file__).parents[2] / "conf" / "expectations").glob("*.json"))

GOOD = (
    "SELECT * FROM {batch} WHERE size(replicas) < 9",
    "select topic, count(*) AS n from {batch} group by topic, partition having count(*) > 1 order by topic, n desc;",
    "SELECT * FROM {batch} b JOIN {batch} c ON b.topic = c.topic AND b.partition <> c.partition",
    "SELECT * FROM {batch} JOIN {batch} AS c USING (topic, partition)",
    "SELECT * FROM (SELECT a, b, row_number() OVER (PARTITION BY a, b ORDER BY c, d) AS r FROM {batch}) WHERE r > 1",
    "WITH x AS (SELECT a, b FROM {batch}), y AS (SELECT a FROM x) SELECT * FROM y LEFT JOIN x ON x.a = y.a",
    "SELECT a, b FROM {batch} UNION ALL SELECT c, d FROM {batch} EXCEPT SELECT e, f FROM {batch}",
    "SELECT * FROM {batch} WHERE topic NOT IN (SELECT topic FROM {batch} WHERE partition = 0)",
    "SELECT * FROM {batch} WHERE EXISTS (SELECT 1 FROM {batch} WHERE a IS NOT DISTINCT FROM b)",
    "SELECT * FROM {batch} WHERE a IS DISTINCT FROM b AND a RLIKE '^[a-z]{{2}}$'",
    "SELECT transform(replicas, x -> x + 1), map('a', 1)['a'], arr[0] FROM {batch} WHERE `table` = \"it's\"",
    "SELECT CASE WHEN a > 1.5e3 THEN 'x\\'y' ELSE date '2026-01-01' END FROM {batch} WHERE b.values = -.5D",
    "SELECT CAST(a AS DECIMAL(10, 2)), a::int FROM {batch} LIMIT 5",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM {batch}",
    "SELECT count(*) FILTER (WHERE a = 1) FROM {batch} WHERE (a, b) IN ((1, 2), (3, 4))",
)

# What was tried, and a part of what is said of it.
BAD = (
    ("DROP TABLE silver_topics", "begin with SELECT"),
    ("INSERT INTO silver.topics SELECT * FROM {batch}", "begin with SELECT"),
    ("SELECT * FROM {batch}; DROP TABLE x", "joined"),
    ("SELECT * FROM {batch} ; DROP TABLE x", "joined"),
    ("SELECT * FROM {batch} b; DROP TABLE x", "not understood"),
    ("SELECT * FROM text.`/etc/passwd`", "it reads TEXT"),
    ("SELECT * FROM `text`.`/etc/passwd`", "it reads `text`"),
    ("SELECT * FROM {batch} JOIN silver.topics", "it reads SILVER"),
    ("SELECT * FROM {batch}, text.`/etc/passwd`", "nothing may be joined"),
    ("SELECT * FROM {batch} b, text.`/etc/passwd`", "several tables"),
    ("SELECT * FROM {batch} limit, text.`/etc/passwd`", "several tables"),
    ("SELECT * FROM {batch} where (a), text.`/etc/passwd`", "several tables"),
    ("SELECT * FROM {batch} select, text.`/etc/passwd`", "several tables"),
    ("SELECT * FROM {batch} JOIN {batch} on, text.`/etc/passwd`", "several tables"),
    ("SELECT * FROM ({batch} b, text.`/etc/passwd`)", "several tables"),
    ("SELECT * FROM ((text.`/etc/passwd`))", "it reads TEXT"),
    ("SELECT * FROM {batch} JOIN (text.`/etc/passwd`)", "it reads TEXT"),
    ("SELECT is distinct FROM text.`/etc/passwd` -- {batch}", "comments"),
    ("SELECT is distinct FROM text.`/etc/passwd` JOIN {batch}", "it reads TEXT"),
    ("SELECT * FROM {batch} UNION DISTINCT FROM text.`/etc/passwd` SELECT *", "it reads TEXT"),
    ("SELECT * FROM {batch} UNION TABLE silver.topics", "TABLE"),
    ("SELECT (TABLE silver.topics) FROM {batch}", "TABLE"),
    ("SELECT * FROM {batch} WHERE a IN (FROM text.`/etc/passwd` SELECT *)", "it reads TEXT"),
    ("SELECT * FROM {batch} WHERE a IN (VALUES (1))", "values"),
    ("SELECT * FROM IDENTIFIER('text.`/etc/passwd`') JOIN {batch}", "identifier"),
    ("SELECT * FROM read_files('/etc/passwd') JOIN {batch}", "read_files"),
    ("SELECT * FROM range(5) JOIN {batch}", "range"),
    ("SELECT * FROM LATERAL (SELECT 1) JOIN {batch}", "lateral"),
    ("SELECT reflect('java.lang.System', 'getenv', 'HOME') FROM {batch}", "reflect"),
    ("SELECT java_method('java.lang.System', 'getenv', 'HOME') FROM {batch}", "java_method"),
    ("SELECT try_reflect('a', 'b') FROM {batch}", "try_reflect"),
    ("SELECT `reflect`('java.lang.System', 'getenv', 'HOME') FROM {batch}", "`reflect`"),
    ("SELECT my.functions.udf(a) FROM {batch}", "udf"),
    ("SELECT a.size(b) FROM {batch}", "size"),
    ("SELECT ai_query('model', a) FROM {batch}", "ai_query"),
    ("SELECT xpath(a, 'b') FROM {batch}", "xpath"),
    ("SELECT current_user() FROM {batch}", "current_user"),
    ("SELECT * FROM {batch} WHERE a = '${env:HOME}'", "${"),
    ("SELECT * FROM {batch} WHERE a = '${{env:HOME}}'", "${"),
    ("SELECT TRANSFORM(a) USING 'cat /etc/passwd' FROM {batch}", "USING"),
    ("SELECT a FROM {batch} WHERE b IN (MAP a USING 'cat' AS b FROM {batch})", "MAP"),
    ("SELECT r'\\' , reflect('java.lang.System') , ' FROM {batch}", "begins with r'"),
    ("SELECT .1r'\\' , reflect('java.lang.System') , ' FROM {batch}", "not understood"),
    ("SELECT 1.FROM text.`/etc/passwd` JOIN {batch}", "not understood"),
    ("SELECT a /* ' */ , reflect('x') FROM {batch} /* ' */", "comments"),
    ("SELECT '{batch.__class__}' FROM {batch}", "brace"),
    ("SELECT '{batch}' FROM {batch}", "brace"),
    ("SELECT * FROM {batch}.topics", "joined"),
    ("SELECT * FROM {batch} .topics", "joined"),
    ("SELECT * FROM {batch}_2", "joined"),
    ("SELECT * FROM {batch}(1)", "joined"),
    ("SELECT * FROM {batch!r}", "not understood"),
    ("WITH topics AS (SELECT * FROM topics) SELECT * FROM topics JOIN {batch}", "it reads TOPICS"),
    ("SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) JOIN t JOIN {batch}", "it reads WITH"),
    ("WITH t AS (SELECT 1 FROM {batch}) INSERT INTO x SELECT * FROM t", "INSERT"),
    ("WITH t AS (SELECT 1 FROM {batch}) SELECT * FROM t.x", "it reads T"),
    ("WITH t AS (SELECT 1 FROM {batch}) FROM t INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT *", "INSERT"),
    ("FROM {batch} INSERT INTO x SELECT *", "begin with SELECT"),
    ("FROM {batch} b WHERE true", "begin with SELECT"),
    ("SELECT * FROM {batch} |> JOIN x", "joined"),
    ("SELECT * FROM {batch} b |> UNION ALL (x)", "not understood"),
    ("SELECT * FROM {batch} WHERE a = :secret", "not understood"),
    ("SELECT * FROM {batch} WHERE a = ?", "not understood"),
    ("SELECT * FROM {batch} WHERE (a = 1", "missing"),
    ("SELECT * FROM {batch} WHERE a = 1)", "closes nothing"),
    ("SELECT * FROM {batch} WHERE a = 'x", "not understood"),
    ("SELECT 1", "does not read {batch}"),
    ("BEGIN SELECT * FROM {batch} b END", "begin with SELECT"),
    ("EXECUTE IMMEDIATE 'DROP TABLE x'", "begin with SELECT"),
    ("EXPLAIN SELECT * FROM {batch}", "begin with SELECT"),
    ("", "begin with SELECT"),
)


@pytest.mark.parametrize("text", GOOD)
def test_a_query_over_the_batch_is_taken(text: str) -> None:
    check_query(text)


@pytest.mark.parametrize(("text", "said"), BAD)
def test_anything_else_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        check_query(text)
    assert said.lower() in str(refused.value).lower()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["source = 'kraft'", "a IS DISTINCT FROM b", "size(isr) < 2 AND (topic LIKE 'a%' OR b IN (1, 2))", "`from` = 1"],
)
def test_a_condition_is_taken(text: str) -> None:
    check_condition(text)


@pytest.mark.parametrize(
    "text",
    [
        "EXISTS (SELECT 1 FROM text.`/etc/passwd`)",
        "a IN (FROM text.`/etc/passwd`)",
        "a IN (TABLE x)",
        "reflect('java.lang.System', 'getenv', 'HOME') = ''",
        "a = 1) OR (b = 2",
        "a = '${env:HOME}'",
        "a = 1 -- b",
        "a = {batch}",
    ],
)
def test_a_condition_that_is_more_than_one_is_refused(text: str) -> None:
    with pytest.raises(QueryError):
        check_condition(text)


def test_the_shipped_suites_say_nothing_else() -> None:
    asked = 0
    for path in SHIPPED:
        suite = json.loads(path.read_text())
        conditions = [
            suite["meta"].get("where"),
            *(each["kwargs"].get("row_condition") for each in suite["expectations"]),
        ]
        queries = [each["kwargs"].get("unexpected_rows_query") for each in suite["expectations"]]
        for condition in filter(None, conditions):
            check_condition(condition)
        for text in filter(None, queries):
            check_query(text)
        asked += sum(text is not None for text in (*conditions, *queries))
    assert asked > 5


def test_no_column_of_a_table_has_to_be_quoted() -> None:
    for table in (*silver.TABLES, *gold.TABLES):
        for column in table.column_names:
            # gold.expectations has a column `table`, which Spark itself reads as a keyword in places.
            name = f"`{column}`" if column == "table" else column
            check_query(f"SELECT {name}, b.{column} FROM {{batch}} b WHERE {name} IS NULL")  # noqa: S608 - nothing runs it


def test_nothing_that_reaches_beyond_its_arguments_may_be_called() -> None:
    beyond = {
        "reflect",
        "java_method",
        "try_reflect",
        "udf",
        "input_file_name",
        "current_user",
        "xpath",
        "from_xml",
        "expr",
    }
    assert not FUNCTIONS & beyond
    assert {"size", "count", "coalesce", "array_contains", "regexp_like", "date_diff", "if"} <= FUNCTIONS


_PIECES = ("SELECT", "*", "FROM", "JOIN", "{batch}", "(", ")", ",", "text", ".", "`/etc/passwd`", "WHERE", "ORDER BY", "a", "UNION",
           "is", "distinct", "AS", "on", "select", "order", "limit", "1", "by", "group", "WITH", "=", "'x'", "all")  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=16))
def test_whatever_is_put_together_no_file_follows_from_join_or_a_comma_after_them(pieces: list[str]) -> None:
    text = " ".join(["SELECT * FROM {batch}", *pieces])
    try:
        check_query(text)
    except QueryError:
        return
    tokens = [token.text for token in query._tokens(text)]
    for index, token in enumerate(tokens[:-1]):
        # After a point it is the name of a field.
        if token in {"from", "join"} and tokens[index - 1] not in {"distinct", "."}:
            rest = next(each for each in tokens[index + 1 :] if each != "(")
            assert rest in {"{batch}", "select"}, text
