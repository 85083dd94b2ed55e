"""Exit codes, and the errors that become one clear line."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

from jobs import out_of_memory
from transforms.report.printable import visible

OK, WARNINGS, ERRORS, USAGE, CRASH = 0, 10, 20, 2, 1
# As shells count the signals SIGINT and SIGTERM.
INTERRUPTED, TERMINATED = 130, 143
MEANINGS = {
    WARNINGS: "warnings were found",
    ERRORS: "errors were found, or the requested gate is not open",
    USAGE: "wrong call or configuration",
    CRASH: "an audit could not be finished",
    INTERRUPTED: "interrupted",
    TERMINATED: "terminated",
}
# `--debug` sets it: errors show their trace.
DEBUG_VARIABLE = "KRAFT_AUDIT_DEBUG"
_ROOT = Path(__file__).parents[1]
_PACKAGES = ("jobs", "transforms", "schemas")
# An error may contain text from a server or a file: control characters are made visible, and the length is bounded.
_LONGEST = 4000

# How Spark and Delta name a file that an earlier version of a table needs and that is not there any more.
_FILES_GONE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "DELTA_FILE_NOT_FOUND", "DELTA_VERSION_NOT_FOUND")
# The message if rows of an earlier version are needed and their files are gone.
GONE = (
    "rows of an earlier run are gone from a table (VACUUM removes them after a week); look at a newer run, "
    "or let `kraft-audit run --full` read everything again"
)
# Packages that a cluster or Databricks brings, so that the program does not, and what is said where they are missing.
_BROUGHT_ALONG = ("pyspark", "delta")
_NO_SPARK = (
    "there is no Spark here: pip install 'kraft-migration-audit[spark]'; for commands that only read, pip install --no-deps "
    "pyspark-client is enough"
)
_NO_CONNECT = (
    "packages are missing that Spark Connect needs: pip install 'kraft-migration-audit[connect]'; without Spark Connect, "
    "install 'kraft-migration-audit[spark]' in place of pyspark-client"
)

# From best to worst: a cluster that could not be audited is worse than one with errors.
_BY_BADNESS = (OK, WARNINGS, ERRORS, USAGE, CRASH, INTERRUPTED, TERMINATED)


def worst(codes: Iterable[int]) -> int:
    """The worst of several exit codes; OK of none."""
    return max(codes, key=_BY_BADNESS.index, default=OK)


def _said(text: str, code: int) -> int:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    print(f"kraft-audit: {visible(text, _LONGEST)}", file=sys.stderr)
    return code


def unexpected(error: Exception) -> str:
    """A fault of this program in one line; its trace is printed with `--debug`.

    Its own text is left out, because it may repeat input, even a secret.
    """
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    # A virtual environment may lie below the checkout: only the program's own packages count.
    own = [_ROOT / package for package in _PACKAGES]
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if any(Path(frame.filename).is_relative_to(folder) for folder in own)
    ]
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}{f': {error.filename}' if error.filename else ''}; --debug shows the trace"
    where = f" at {Path(frames[-1].filename).relative_to(_ROOT)}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}, which is a fault of kraft-audit; --debug shows the trace"


def _missing(error: Exception) -> str:
    """What to install, if that is what is wrong."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] in _BROUGHT_ALONG:
        return _NO_SPARK
    # Named, not imported: it is Spark's own, and that may be what is missing.
    return _NO_CONNECT if type(error).__name__ == "PySparkImportError" else ""


def files_are_gone(error: Exception) -> bool:
    """True if an earlier version of a table can no longer be read. Spark raises one of several types for this."""
    text = str(error)
    return text == GONE or any(condition in text for condition in _FILES_GONE)


class UsageError(Exception):
    """The command line, the configuration or a path it names is wrong; the text is one line: what, where, what to do."""


class AuditError(Exception):
    """The run cannot continue, but the call was correct; the text is one line."""


def for_people(error: BaseException) -> str | None:
    """The text of an error that was written for a person, or what a lack of memory has to do with it; None for any other."""
    return str(error) if isinstance(error, UsageError | AuditError) else out_of_memory.said(error)


def why(error: BaseException) -> str:
    """The reason for a failure in one line, without a trace and without input data."""
    of_the_system = error.strerror if isinstance(error, OSError) else None
    return for_people(error) or of_the_system or f"{type(error).__name__} inside the audit"


def guarded(body: Callable[[], int]) -> int:
    """Run `body`; one clear line and exit code 2 for a wrong call, 1 for what stops a run otherwise, 130 for Ctrl-C.

    With DEBUG_VARIABLE set in the environment (`--debug`) the trace is shown as well.
    """
    try:
        return body()
    except UsageError as error:
        return _said(str(error), USAGE)
    except AuditError as error:
        return _said(str(error), CRASH)
    except Exception as error:
        if missing := _missing(error):
            return _said(missing, USAGE)
        if files_are_gone(error):
            return _said(GONE, CRASH)
        if (text := out_of_memory.said(error)) is not None:
            return _said(text, CRASH)
        print(f"kraft-audit: {visible(unexpected(error), _LONGEST)}", file=sys.stderr)
        return CRASH
    except KeyboardInterrupt:
        print("kraft-audit: interrupted; the previous run's report is unchanged", file=sys.stderr)
        return INTERRUPTED
