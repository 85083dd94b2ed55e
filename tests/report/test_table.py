"""Tables in a terminal: columns stand under each other, whatever the characters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from transforms.report.divergence_table import as_record, as_table
from transforms.report.table import aligned, fitted


def divergence(**values: Any) -> dict[str, Any]:
    row = {
        "fingerprint": "61d791b5a7e274f4",
        "class": "lost_write",
        "severity": "error",
        "entity": "topics",
        "key": '{"topic": "orders"}',
        "column": None,
        "kind": "zk_only",
        "zk_value": '{"a": 1}',
        "kraft_value": "null",
        "zk_mzxid": 1239,
        "kraft_offset": 327,
        "status": "new",
    }
    return {**row, **values}


def test_columns_stand_under_each_other() -> None:
    assert aligned([("a", "1", "x"), ("東京", "20", "y"), ("e\u0301", "3", "")], right=frozenset({1})) == [
        "a      1  x",
        "東京  20  y",
        "e\u0301      3",
    ]


def test_a_divergence_shows_what_and_where() -> None:
    head, row = as_table([divergence()])
    assert " ".join(head.split()) == "class severity entity key column ZooKeeper KRaft zxid offset status fingerprint"
    assert " ".join(row.split()) == "lost_write error topics orders - a=1 absent 0x4d7 327 new 61d791b5a7e274f4"
    assert as_table([]) == []


def test_what_is_cut_is_said_and_jsonl_has_it_whole() -> None:
    long = divergence(column="value", kind="differs", zk_value=json.dumps("x" * 500), kraft_value='"y"', status=None)
    lines = as_table([long])
    assert "[440 more characters]" in lines[1]
    assert lines[-1] == "(long values are cut here; --format jsonl has them whole)"
    assert as_record(long)["zk_value"] == "x" * 500
    assert as_record(long)["key"] == {"topic": "orders"}


def test_a_null_cell_is_not_an_absent_row() -> None:
    cell = divergence(column="topic_id", kind="differs", zk_value='""', kraft_value='"x"')
    assert as_table([cell])[1].split()[5:7] == ['""', "x"]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    rows = [
        divergence(key=json.dumps({"topic": name}), kind="differs", zk_value=json.dumps(value), kraft_value='"y"')
        for name, value in (("orders", "x"), ("t" * 249, "z" * 500), ("a", "two words " * 40))
    ]
    lines = as_table(rows, width)
    assert max(map(len, lines)) <= width
    told = "".join("".join(line.split()) for line in lines)
    for row in rows:
        for cell in as_table([row])[1].split():
            assert cell == "-" or cell in told


def test_a_table_that_fits_stays_one() -> None:
    rows = [("a", "b"), ("1", "2")]
    assert fitted(rows, frozenset(), 4) == fitted(rows, frozenset(), None) == ["a  b", "1  2"]


def test_a_row_that_does_not_fit_is_a_block_with_the_names_of_its_cells() -> None:
    assert as_table([divergence()], 80) == [
        "lost_write",
        "  severity: error  entity: topics  key: orders  ZooKeeper: a=1  KRaft: absent",
        "  zxid: 0x4d7  offset: 327  status: new  fingerprint: 61d791b5a7e274f4",
    ]
