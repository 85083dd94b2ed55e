"""Great Expectations, and nothing else of it than its engine: no project, no data docs, no telemetry, no network.

Importing it takes seconds, so nothing imports this module's library before a suite is there.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from pyspark.sql import DataFrame

from jobs.exit import AuditError, UsageError
from transforms.expectations.outcome import MOST_ROWS
from transforms.expectations.suite import Expectation, Suite
from transforms.report.printable import visible

_PLACE = "place"


@cache
def _library() -> Any:
    """Import the library, its telemetry off. Raises AuditError when it can't be imported."""
    # Read when the library is imported; nothing of a run is anybody else's business.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    # It logs by the hundred while it is imported.
    logging.getLogger("great_expectations").setLevel(logging.CRITICAL)
    try:
        with _main_module_with_a_file():
            return importlib.import_module("great_expectations")
    except ImportError as error:
        raise AuditError(f"Great Expectations can't be imported: {error}") from error


@contextmanager
def _main_module_with_a_file() -> Iterator[None]:
    """Where the main module is not a file (`python -c`, a test's worker), pyspark's connect client takes the import for its
    own doctests, and ends the process when there is no grpc."""
    main = sys.modules["__main__"]
    if hasattr(main, "__file__"):
        yield
        return
    main.__file__ = "kraft-audit"
    try:
        yield
    finally:
        del main.__file__


@cache
def _batches() -> Any:
    """The definition of a batch that is given as a DataFrame, in a context that lives in memory and makes no files."""
    library = _library()
    types = importlib.import_module("great_expectations.data_context.types.base")
    configuration = types.DataContextConfig(
        store_backend_defaults=types.InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
        progress_bars=types.ProgressBarsConfig(globally=False),
        analytics_enabled=False,
    )
    context = library.get_context(mode="ephemeral", project_config=configuration)
    source = context.data_sources.add_spark("tables", persist=False)
    return source.add_dataframe_asset("table").add_batch_definition_whole_dataframe("rows")


def built(expectation: Expectation, where: str) -> Any:
    """The library's object for an expectation.

    Raises UsageError, naming `where`, for a type the library does not have and for arguments it does not take. (A suite
    made of such an expectation would silently leave it out.)
    """
    _library()
    module = importlib.import_module("great_expectations.expectations.expectation_configuration")
    try:
        configuration = module.ExpectationConfiguration(
            type=expectation.type, kwargs=dict(expectation.kwargs), meta={_PLACE: expectation.place}
        )
        return configuration.to_domain_obj()
    except Exception as error:
        reason = visible(" ".join(str(error).split()), 300)
        raise UsageError(f"{where}, expectation {expectation.place} ({expectation.type}): {reason}") from None


def check(suites: Sequence[Suite]) -> None:
    """Build every expectation once, before a run begins. Raises UsageError for the first that is wrong."""
    for suite in suites:
        for expectation in suite.expectations:
            built(expectation, f"expectations `{suite.name}`")


def validate(
    rows: DataFrame, suite: str, expectations: Sequence[Expectation], *, whether_only: bool = False
) -> dict[int, Mapping[str, Any]]:
    """The library's results for the rows, as dictionaries, by the expectation's place.

    With `whether_only` only whether each is met is evaluated, which needs fewer queries. Raises AuditError when the library
    leaves one out.
    """
    if not expectations:
        return {}
    batches, library = _batches(), _library()
    asked = library.ExpectationSuite(name=f"{suite}-{uuid.uuid4().hex}")
    asked.expectations = [built(expectation, f"expectations `{suite}`") for expectation in expectations]
    batch = batches.get_batch({"dataframe": rows})
    # BASIC collects at most the requested number of values, regardless of how many rows fail.
    form = {"result_format": "BOOLEAN_ONLY" if whether_only else "BASIC", "partial_unexpected_count": MOST_ROWS}
    said = batch.validate(asked, result_format=form).to_json_dict()["results"]
    found = {int(each["expectation_config"]["meta"][_PLACE]): each for each in said}
    missing = [str(each.place) for each in expectations if each.place not in found]
    if missing:
        raise AuditError(f"expectations `{suite}`: the library gave no result for expectation {', '.join(missing)}")
    return found
