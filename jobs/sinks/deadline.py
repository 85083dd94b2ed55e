"""Ends the wait for a server that goes on answering, a byte now and then: time-outs of sockets are for each single step."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, call: Callable[[], T]) -> T:
    """The call's result or exception; TimeoutError if it takes longer. It then goes on in a thread that ends with the process."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError
    for error in errors:
        raise error
    return results[0]
