"""Exit codes, and the errors that become one clear line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

OK, WARNINGS, ERRORS, USAGE, CRASH = 0, 10, 20, 2, 1

# How Spark and Delta name a file that an earlier version of a table needs and that is not there any more.
_FILES_GONE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "DELTA_FILE_NOT_FOUND", "DELTA_VERSION_NOT_FOUND")
_GONE = (
    "a table's rows as an earlier run left them are gone (VACUUM removes them after a week); look at a newer run, "
    "or let `kraft-audit run --full` read everything again"
)


# From best to worst: a cluster that could not be audited is worse than one with errors.
_BY_BADNESS = (OK, WARNINGS, ERRORS, USAGE, CRASH)


def worst(codes: Iterable[int]) -> int:
    """The worst of several exit codes; OK of none."""
    return max(codes, key=_BY_BADNESS.index, default=OK)


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
    except Exception as error:
        # Spark tells it as one of several types, some of which only a session in this process has.
        if not any(condition in str(error) for condition in _FILES_GONE):
            raise
        print(f"kraft-audit: {_GONE}", file=sys.stderr)
        return CRASH
    except KeyboardInterrupt:
        print("kraft-audit: interrupted; the previous run's report is unchanged", file=sys.stderr)
        return CRASH
