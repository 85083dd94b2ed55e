"""Fixtures that several areas share: one Spark session for the whole run, one empty warehouse for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.runtime.spark import spark_session
from jobs.sinks.delta import Warehouse

# What a process that makes dozens of audits wants, each in tables of its own, and a single one does not.
LONG_LIVED = {
    # Java's second compiler pays for itself: a fifth less time. What is called four times as often as it asks by itself is
    # worth it; that spares a third of what it takes.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4 -XX:Tier4InvocationThreshold=20000"
    " -XX:Tier4MinInvocationThreshold=2400 -XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=160000",
    # Delta keeps a megabyte of plans for every table it ever saw; after thousands of them Java does nothing but collect.
    "spark.databricks.delta.delta.log.cacheSize": "64",
    "spark.sql.ui.retainedExecutions": "10",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session("small", "kraft-audit-tests", cores=2, driver_memory="4g", settings=LONG_LIVED) as session:
        yield session


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    return Warehouse(spark, str(tmp_path / "warehouse"))


AUDITS = "audits"


# Before xdist writes the groups into the tests' names: without that each process would run the shared audits.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick tests first: those without Spark, then those with it, then what is marked slow.

    The tests of a module stay in one process, which has their fixtures. The modules that share audits are one group, the
    first of those with Spark because it takes longest.
    """
    sharing = {item.location[0] for item in items if "fleet" in _fixtures(item)}
    for item in items:
        module = item.location[0]
        item.add_marker(pytest.mark.xdist_group(AUDITS if module in sharing else module))
        if "spark" in _fixtures(item):
            item.add_marker("spark")
    items.sort(
        key=lambda item: (
            item.get_closest_marker("slow") is not None,
            "spark" in _fixtures(item),
            item.location[0] not in sharing,
        )
    )


def _fixtures(item: pytest.Item) -> tuple[str, ...]:
    return tuple(getattr(item, "fixturenames", ()))
