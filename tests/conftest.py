"""Fixtures that several areas share: one Spark session for the whole run, one empty warehouse for each test."""

from __future__ import annotations

import gc
import os
import time
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
    "spark.python.daemon.module": "tests.daemon",
}

# Reads of one log that are compared with each other need one fingerprint key; Spark's workers have the environment of its start.
KEY_ENV = "KRAFT_AUDIT_TESTS_KEY"
os.environ.setdefault(KEY_ENV, "a key of the tests, as long as one is")


# So that what fails in what tests inherit shows its values.
pytest.register_assert_rewrite("tests.cluster.on_a_store")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session("small", "kraft-audit-tests", cores=2, driver_memory="4g", settings=LONG_LIVED) as session:
        yield session


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    return Warehouse(spark, str(tmp_path / "warehouse"))


# After so many minutes no test of real servers begins any more: continuous integration ends whatever takes too long, and fails.
LIVE_MINUTES = "LIVE_MINUTES"
BEGUN = time.monotonic()

AUDITS = "audits"
QUICK = -1
# The groups that take longest, longest first (of `make test-live` 13 minutes to one, then of `make test` five to half of one):
# whoever begins one of them last works on alone.
LONGEST = (
    "tests/cluster/test_hdfs.py",
    "tests/cluster/test_object_store.py",
    # It has few tests, so xdist gives its process another group at once: one that does not take long.
    "tests/live/test_real_migration.py",
    "tests/live/test_features_real.py",
    "tests/live/test_ten_runs.py",
    "tests/live/test_real_quorums.py",
    "tests/live/test_commands_of_pages.py",
    "tests/live/test_fire.py",
    "tests/cluster/test_standalone.py",
    "tests/cluster/test_connect.py",
    "tests/pipeline/test_profile_local.py",
    AUDITS,
    "tests/pipeline/test_verify.py",
    "tests/reliability/test_tables.py",
    "tests/pipeline/test_earlier_releases.py",
    "tests/pipeline/test_catalog.py",
    "tests/setup/test_delta.py",
    "tests/report/test_browser.py",
    "tests/pipeline/test_chained.py",
    "tests/pipeline/test_stopped_runs.py",
    "tests/pipeline/test_what_counts.py",
    "tests/reliability/test_killed_maintenance.py",
    "tests/setup/test_wheel.py",
)


# Before xdist writes the groups into the tests' names: without that each process would run the shared audits.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick tests first, those without Spark; then the groups that take longest, and the others with Spark or marked slow.

    The tests of a module stay in one process, which has their fixtures. The modules that share audits are one group.
    """
    sharing = {item.location[0] for item in items if "fleet" in _fixtures(item)}
    group, place = {}, {}
    for item in items:
        module = item.location[0]
        group[item] = AUDITS if module in sharing else module
        item.add_marker(pytest.mark.xdist_group(group[item]))
        if "spark" in _fixtures(item):
            item.add_marker("spark")
        slow = any(item.get_closest_marker(name) for name in ("slow", "live"))
        quick = not slow and "spark" not in _fixtures(item)
        place[group[item]] = max(place.get(group[item], QUICK), QUICK if quick else _place(group[item]))
    items.sort(key=lambda item: place[group[item]])


def pytest_collection_finish() -> None:
    """Thousands of tests are no garbage: with them each look for some takes a third of a second, and each audit asks for one."""
    gc.collect()
    gc.freeze()


# Before the fixtures of a test that will not run are made.
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A live test whose turn comes too late is skipped, and says so."""
    minutes = os.environ.get(LIVE_MINUTES)
    if minutes and item.get_closest_marker("live") and time.monotonic() - BEGUN > 60 * float(minutes):
        pytest.skip(f"{minutes} minutes for tests of real servers are over ({LIVE_MINUTES})")


def _place(group: str) -> int:
    return LONGEST.index(group) if group in LONGEST else len(LONGEST)


def _fixtures(item: pytest.Item) -> tuple[str, ...]:
    return tuple(getattr(item, "fixturenames", ()))
