"""What is made ahead by a thread is the same: items, their order, errors; and no thread outlives its use."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from itertools import islice

import pytest

from transforms.ahead import ahead


def counted(number: int, error: Exception | None = None) -> Iterator[int]:
    yield from range(number)
    if error is not None:
        raise error


@pytest.mark.parametrize("number", [0, 1, 2, 3, 50])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_items_come_in_their_order_and_none_is_lost(number: int, most: int) -> None:
    assert list(ahead(counted(number), most)) == list(range(number))


@pytest.mark.parametrize("number", [0, 1, 7])
def test_an_error_comes_where_its_item_would(number: int) -> None:
    items = ahead(counted(number, ValueError("broken")))
    assert list(islice(items, number)) == list(range(number))
    with pytest.raises(ValueError, match="broken"):
        next(items)


def test_the_next_items_are_made_while_one_is_used() -> None:
    begun = threading.Event()

    def items() -> Iterator[int]:
        yield 0
        begun.set()
        yield 1

    found = ahead(items())
    assert next(found) == 0
    assert begun.wait(10), "the second item is made before it is asked for"
    assert list(found) == [1]


def test_who_takes_only_some_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    items = ahead(counted(1000))
    assert next(items) == 0
    assert threading.active_count() == before + 1
    items.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_one_in_the_other_gives_a_return_value_too() -> None:
    returned = []

    def inner() -> Generator[int, None, str]:
        yield from ahead(counted(5))
        return "end"

    def outer() -> Iterator[int]:
        returned.append((yield from inner()))

    assert list(ahead(outer())) == [0, 1, 2, 3, 4]
    assert returned == ["end"]
