"""Ids of one list that are not in another: each once, in their order, and unknown where a list is."""

from __future__ import annotations

import random

import polars as pl

from transforms.frames import except_ids, listed

IDS = pl.List(pl.Int32)
CHANCE = random.Random(7)  # noqa: S311


def some_ids() -> list[int] | None:
    return None if CHANCE.random() < 0.1 else [CHANCE.randrange(6) for _ in range(CHANCE.randrange(6))]


def expected(left: list[int] | None, right: list[int] | None) -> list[int] | None:
    return None if left is None or right is None else [each for each in dict.fromkeys(left) if each not in right]


def test_the_order_is_that_of_the_left_list() -> None:
    pairs = [(some_ids(), some_ids()) for _ in range(500)]
    rows = pl.DataFrame(pairs, schema={"left": IDS, "right": IDS}, orient="row")
    found = rows.select(except_ids("left", "right")).to_series().to_list()
    assert found == [expected(left, right) for left, right in pairs]
    for known in ([], [3], [4, 0, 4], range(6)):
        found = rows.select(except_ids("left", known)).to_series().to_list()
        assert found == [expected(left, [*known]) for left, _ in pairs]


def test_ids_are_spelled_in_brackets() -> None:
    rows = pl.DataFrame({"ids": [[2, 0], [], None]}, schema={"ids": IDS})
    assert rows.select(listed("ids")).to_series().to_list() == ["[2, 0]", "[]", None]
