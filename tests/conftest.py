"""Fixtures that several areas share: one Spark session for the whole run, one empty warehouse for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.sinks.delta import Warehouse
from jobs.spark import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session("small", "kraft-audit-tests", cores=2, driver_memory="4g") as session:
        yield session


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    return Warehouse(spark, str(tmp_path / "warehouse"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick tests first: those without Spark, then those with it, then what is marked slow."""
    items.sort(
        key=lambda item: (item.get_closest_marker("slow") is not None, "spark" in getattr(item, "fixturenames", ()))
    )
