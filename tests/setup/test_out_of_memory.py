"""What is said when the system kills Spark's processes, or memory runs out otherwise."""

from __future__ import annotations

import logging

import pytest

from jobs import out_of_memory
from jobs.cli import _is_not_py4js
from jobs.exit import CRASH, guarded, why
from jobs.run.run import ClusterRun, Run

KILLED = (
    "Task 1 in stage 3.0 failed 2 times: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
)


class Py4JNetworkError(Exception):
    """As py4j names it."""


class Py4JError(Exception):
    """As py4j names it, with a trace where Java has answered."""


def refused() -> Exception:
    """What py4j raises where no Java listens any more."""
    code = compile(
        "raise ConnectionRefusedError(111, 'Connection refused')", "/site-packages/py4j/clientserver.py", "exec"
    )
    try:
        exec(code)  # noqa: S102 - for its trace
    except ConnectionRefusedError as error:
        return error
    raise AssertionError


CASES = [
    (RuntimeError(KILLED), out_of_memory.WORKER),
    (
        RuntimeError("ExecutorLostFailure (executor 1 exited ...): Container killed, exit code 137"),
        out_of_memory.WORKER,
    ),
    (RuntimeError("java.lang.OutOfMemoryError: Java heap space"), out_of_memory.HEAP),
    (MemoryError(), out_of_memory.PYTHON),
    (RuntimeError("Traceback (most recent call last):\n  …\nMemoryError\n"), out_of_memory.PYTHON),
    (Py4JNetworkError("Answer from Java side is empty"), out_of_memory.JAVA),
    (refused(), out_of_memory.JAVA),
    (Py4JError("An error occurred while calling o71.read"), out_of_memory.JAVA),
]


@pytest.mark.parametrize(("error", "words"), CASES, ids=[f"{number}" for number in range(len(CASES))])
def test_memory_and_the_remedy_are_named(
    error: Exception, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KRAFT_AUDIT_DEBUG", raising=False)

    def body() -> int:
        raise error

    assert guarded(body) == CRASH
    assert capsys.readouterr().err == f"kraft-audit: {words}\n"
    assert "memory" in words
    assert "run again" in words
    assert why(error) == words


def test_so_is_it_of_a_cluster_and_of_a_cause_of_a_cause() -> None:
    clusters = {"c": ClusterRun(settings=None)}  # type: ignore[arg-type] - nothing of it is asked for
    run = Run(clusters, "r", None, None, None, None)  # type: ignore[arg-type]
    try:
        try:
            raise RuntimeError(KILLED)
        except RuntimeError as error:
            raise ValueError("a query failed") from error
    except ValueError as error:
        run.fail("c", error)
    failure = clusters["c"].failure
    assert failure is not None
    assert (failure.reason, failure.exit_code) == (out_of_memory.WORKER, CRASH)
    run.close()


ANSWERED = Py4JError(
    "An error occurred while calling o71.read. Trace:\npy4j.Py4JException: Method read([]) does not exist\n"
)


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "Connection refused"), RuntimeError("PythonException"), ANSWERED]
)
def test_other_errors_are_not_taken_for_it(error: Exception) -> None:
    assert out_of_memory.said(error) is None


def test_what_py4j_logs_and_raises_is_not_shown_twice() -> None:
    def record(path: str) -> logging.LogRecord:
        return logging.LogRecord("root", logging.ERROR, path, 1, "Exception while sending command.", None, None)

    assert not _is_not_py4js(record("/x/site-packages/py4j/java_gateway.py"))
    assert _is_not_py4js(record("/x/jobs/pipeline.py"))
