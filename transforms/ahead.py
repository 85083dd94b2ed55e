"""Work on one item while the next one is made: compiled code, Arrow's and Polars' let another thread run meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")
_END: Final = object()


def ahead(items: Iterator[T], most: int = 2) -> Iterator[T]:
    """The same items, of which a thread makes up to `most` before they are taken.

    An error in making one is raised where it would be taken. Who does not take all of them waits for those in the making.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead") as thread:
        made = deque(thread.submit(next, items, _END) for _ in range(most))
        while (item := made.popleft().result()) is not _END:
            made.append(thread.submit(next, items, _END))
            yield item  # type: ignore[misc]
