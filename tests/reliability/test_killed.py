"""A sample of what `tests.reliability.kill` and `tests.reliability.pairs` try in full, by commands of their own."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.captures import capture
from tests.reliability.kill import LATER, SIMULATED, Harness, Point
from tests.reliability.killing import AFTER, BEFORE, IN_STEPS, audit, configuration
from tests.reliability.pairs import Pair, compared

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]


@pytest.fixture(scope="module")
def harness(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Harness:
    earlier, following = ({"unclean": ("4.3.1-kraft", stage)} for stage in ("7-elr-cleared", "8-unclean"))
    return Harness(spark, tmp_path_factory.mktemp("kill"), earlier=earlier, following=following)


@pytest.mark.parametrize(
    ("commit", "when"),
    [("append bronze.kraft_records", BEFORE), ("append silver.examined", AFTER), ("append gold.runs", AFTER)],
)
def test_a_step_that_was_killed_is_repeated_and_the_report_is_the_same(
    harness: Harness, commit: str, when: str
) -> None:
    harness.undisturbed(LATER, IN_STEPS)
    number = harness.commits[LATER, IN_STEPS].index(commit) + 1
    result = harness.tried(Point(LATER, IN_STEPS, number, when, SIMULATED), seed=1)
    assert (result.survived, result.differs) == (True, [])


def test_after_a_kill_a_later_stage_says_what_a_run_of_the_whole_log_says(spark: SparkSession, tmp_path: Path) -> None:
    mine = [
        Pair("4.3.1-kraft", "7-elr-cleared", "8-unclean"),
        Pair("3.9.1", "5-dual-write-changed", "7-dual-write-failover"),
    ]
    base = tmp_path / "base"
    audit([configuration(base, pair.cluster, capture(pair.version, pair.earlier)) for pair in mine])
    found = compared(spark, tmp_path, base, mine, random.Random(1))  # noqa: S311 - the same commit each time
    assert [(each.continued, each.differs) for each in found] == [(True, [])] * 2
