"""Fixtures that several areas share: one Spark session for the whole run, one empty warehouse for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.sinks.delta import Warehouse
from jobs.spark import spark_session

# What a process that makes dozens of audits wants, each in tables of its own, and a single one does not.
LONG_LIVED = {
    # Java's second compiler pays for itself: a fifth less time.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4",
    # Delta keeps a megabyte of plans for every table it ever saw; after thousands of them Java does nothing but collect.
    "spark.databricks.delta.delta.log.cacheSize": "64",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session("small", "kraft-audit-tests", cores=2, driver_memory="4g", settings=LONG_LIVED) as session:
        yield session


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    return Warehouse(spark, str(tmp_path / "warehouse"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick tests first: those without Spark, then those with it, then what is marked slow.

    The tests of a module stay in one process, which has their fixtures; those that share audits are one group of their
    own, first of the slow ones because it takes longest.
    """
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(
        key=lambda item: (
            item.get_closest_marker("slow") is not None,
            "spark" in _fixtures(item),
            _group(item) != AUDITS,
        )
    )


AUDITS = "audits"


def _group(item: pytest.Item) -> str:
    return AUDITS if "audit_of" in _fixtures(item) else item.location[0]


def _fixtures(item: pytest.Item) -> tuple[str, ...]:
    return tuple(getattr(item, "fixturenames", ()))
