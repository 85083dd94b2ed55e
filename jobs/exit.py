"""Exit codes, and the errors that become one clear line."""

from __future__ import annotations

import sys
from collections.abc import Callable

OK, WARNINGS, ERRORS, USAGE, CRASH = 0, 10, 20, 2, 1


class UsageError(Exception):
    """The command line, the configuration or a path it names is wrong; the text is one line: what, where, what to do."""


class AuditError(Exception):
    """The run can't go on, through no fault of the call; the text is one line."""


def guarded(body: Callable[[], int]) -> int:
    """Run `body`; one clear line and exit code 2 for a wrong call, 1 for what stops a run otherwise."""
    try:
        return body()
    except UsageError as error:
        print(f"kraft-audit: {error}", file=sys.stderr)
        return USAGE
    except AuditError as error:
        print(f"kraft-audit: {error}", file=sys.stderr)
        return CRASH
    except KeyboardInterrupt:
        print("kraft-audit: interrupted; the previous run's report is unchanged", file=sys.stderr)
        return CRASH
