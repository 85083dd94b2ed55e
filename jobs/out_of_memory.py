"""Errors of a machine that is short of memory, and what to do about them.

The system kills the largest process: a Python worker of Spark, whose task then ends without a reason, or Java, which then no longer
answers. Nobody can guess that from "Connection refused".
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

_MORE = "give the machine or container more memory, or set `spark.cores` lower, so that fewer clusters are in memory at once"
WORKER = f"a Python worker of Spark was killed, as the system does when memory runs out (exit code 137); {_MORE}, and run again"
JAVA = (
    "Spark's Java is gone, as when the system kills it because memory runs out (exit code 137); give the machine or container "
    "more memory, or set `spark.driver_memory` or `spark.cores` lower, and run again"
)
HEAP = "Spark's Java ran out of memory; raise `spark.driver_memory`, and run again"
PYTHON = f"memory ran out; {_MORE}, and run again"
# Messages of Spark: for a worker on this machine, and for executors on others.
_WORKER = ("Python worker exited unexpectedly", "ExecutorLostFailure")
_HEAP = ("java.lang.OutOfMemoryError", "SparkOutOfMemoryError", "Java heap space")
_CAUSES = 20


def said(error: BaseException) -> str | None:
    """How an error comes from a lack of memory, and the remedy, in one line; None if it does not."""
    if java_is_gone(error):
        return JAVA
    texts = "\n".join(f"{type(each).__name__}: {each}" for each in _chain(error))
    if any(known in texts for known in _HEAP):
        return HEAP
    if worker_died(error):
        return WORKER
    return PYTHON if "MemoryError" in texts else None


def worker_died(error: BaseException) -> bool:
    """True if Spark gave up a query because its Python workers, or the machines they were on, died."""
    return any(known in str(each) for known in _WORKER for each in _chain(error))


def java_is_gone(error: BaseException) -> bool:
    """True if Java no longer answers."""
    for each in _chain(error):
        refused = isinstance(each, OSError) and any(
            "py4j" in Path(frame.filename).parts for frame in traceback.extract_tb(each.__traceback__)
        )
        kind = type(each).__name__
        # What Java itself answers has a trace; py4j's own words for a call without an answer have none.
        if refused or kind == "Py4JNetworkError" or (kind == "Py4JError" and "Trace:" not in str(each)):
            return True
    return False


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    for _ in range(_CAUSES):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__ or seen.__context__
