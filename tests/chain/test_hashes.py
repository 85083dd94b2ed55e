"""The number of a row is that of what it holds: told in plain Python, and the same whatever way the rows came."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.chain.hashes import row_hashes

_ALL = (1 << 64) - 1
COLUMNS = pl.Schema(
    {
        "text": pl.String(),
        "number": pl.Int32(),
        "flag": pl.Boolean(),
        "share": pl.Float64(),
        "ids": pl.List(pl.Int32()),
        "names": pl.List(pl.String()),
        "ends": pl.List(pl.Struct({"name": pl.String(), "port": pl.Int32()})),
    }
)


def mixed(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _ALL
    return value ^ (value >> 31)


def joined(start: int, cells: list[int]) -> int:
    for cell in cells:
        start = mixed(((start + 0x9E3779B97F4A7C15) & _ALL) ^ cell)
    return start


def cell(value: Any) -> int:
    if value is None:
        return 0x6E756C6C
    if isinstance(value, str):
        found = 0xCBF29CE484222325
        for byte in value.encode():
            found = ((found ^ byte) * 0x100000001B3) & _ALL
        return mixed(found)
    if isinstance(value, list):
        return joined(0xCBF29CE484222325, [cell(each) for each in value])
    if isinstance(value, dict):
        return joined(0, [cell(each) for each in value.values()])
    if isinstance(value, float):
        return int.from_bytes(pl.Series([value]).to_numpy().tobytes(), "little")
    return int(value) & _ALL


def wanted(row: dict[str, Any]) -> int:
    return joined(0xCBF29CE484222325, [cell(row[name]) for name in COLUMNS])


TEXTS = st.none() | st.text(st.characters(codec="utf-8"), max_size=4)
NUMBERS = st.none() | st.integers(-(2**31), 2**31 - 1)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": TEXTS,
            "number": NUMBERS,
            "flag": st.none() | st.booleans(),
            "share": st.none() | st.floats(allow_nan=False),
            "ids": st.none() | st.lists(NUMBERS, max_size=3),
            "names": st.none() | st.lists(TEXTS, max_size=3),
            "ends": st.none() | st.lists(st.fixed_dictionaries({"name": TEXTS, "port": NUMBERS}), max_size=2),
        }
    ),
    max_size=6,
)


@settings(deadline=None, max_examples=150)
@given(ROWS, st.integers(0, 3))
def test_it_is_what_plain_python_makes_of_each_row(rows: list[dict[str, Any]], skipped: int) -> None:
    frame = pl.DataFrame(rows, schema=COLUMNS)
    rows = frame.to_dicts()
    assert row_hashes(frame, COLUMNS).tolist() == [wanted(row) for row in rows]
    # Rows that are a part of others, and rows that came in two pieces.
    assert row_hashes(frame[skipped:], COLUMNS).tolist() == [wanted(row) for row in rows[skipped:]]
    twice = pl.concat([frame, frame], rechunk=False)
    assert row_hashes(twice, COLUMNS).tolist() == [wanted(row) for row in (*rows, *rows)]


def test_what_differs_in_anything_has_another_number() -> None:
    rows = [
        {"text": "a"},
        {"text": "b"},
        {"text": ""},
        {"names": [""]},
        {"names": []},
        {"names": [None]},
        {"names": ["ab", "c"]},
        {"names": ["a", "bc"]},
        {"ids": [1, 2]},
        {"ids": [2, 1]},
        {"number": 1},
        {"flag": True},
        {"ends": [{"name": "a", "port": None}]},
        {"ends": [None]},
        {},
    ]
    found = row_hashes(pl.DataFrame(rows, schema=COLUMNS), COLUMNS).tolist()
    assert len(set(found)) == len(rows)


def test_a_type_that_no_table_has_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a column of type duration\[us\] has no hash"):
        row_hashes(pl.DataFrame({"a": [1]}, schema={"a": pl.Duration("us")}), ["a"])
