"""What mails and messages have in common: the error of one that was not sent, and another attempt where that may help."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from jobs.exit import AuditError
from jobs.runtime.stopping import is_stop_due

FIRST_PAUSE_SECONDS = 2.0
T = TypeVar("T")


class NotSentError(AuditError):
    """It was not sent; the text is one line: where to, why, what to do. `passing`: it may go through later."""

    def __init__(self, text: str, *, passing: bool = False) -> None:
        super().__init__(text)
        self.passing = passing


def repeated(once: Callable[[], T], attempts: int, pause: Callable[[float], None]) -> T:
    """The result of `once`, called again after a fault that may pass: `attempts` times at most, with pauses of 2, 4, 8 … seconds.

    A run that was stopped tries nothing again. Raises the last NotSentError.
    """
    for attempt in range(1, attempts + 1):
        try:
            return once()
        except NotSentError as error:
            if not error.passing or attempt == attempts or is_stop_due():
                raise
            pause(FIRST_PAUSE_SECONDS * 2.0 ** (attempt - 1))
    raise AssertionError("the settings ask for at least one attempt")
