"""How many queries an audit takes: Spark's cost is per query, so this number only falls, or a commit says why."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.evidence.fleet_runs import fleet_runs
from schemas.report import Report
from tests.captures import capture
from tests.pipeline.audits import Audit, audits, executions, settings_content
from transforms.report.json import to_json

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

# Measured for one small cluster in a new warehouse: one for each table that workers write, and no look by Delta for the files of a
# table that is read.
MOST = 7


@dataclass(frozen=True)
class Counted:
    """What a run found, and how many SQL executions it took."""

    audits: dict[str, Audit]
    executions: int


def counted(spark: SparkSession, warehouse: Path, stages: list[str]) -> Counted:
    contents = [settings_content(capture("3.9.1", stage), warehouse, cluster=stage) for stage in stages]
    before = executions(spark)
    found = audits(list(contents))
    after = executions(spark)
    assert found.keys() == set(stages)
    return Counted(found, after - before - 1)


@pytest.fixture(scope="module")
def alone(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Counted:
    return counted(spark, tmp_path_factory.mktemp("alone"), ["8"])


@pytest.fixture(scope="module")
def together(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Counted:
    return counted(spark, tmp_path_factory.mktemp("together"), ["8", "quota-removal", "blocked-by-missing-broker"])


def test_an_audit_takes_few_queries_and_a_fleet_hardly_more(alone: Counted, together: Counted) -> None:
    assert alone.executions <= MOST
    # A second look at what ZooKeeper lacks is the only question that some clusters raise and others don't.
    assert together.executions <= alone.executions + 2


def test_the_fleets_page_and_mails_ask_little_whatever_the_number_of_clusters(
    spark: SparkSession, together: Counted
) -> None:
    before = executions(spark)
    assert len(fleet_runs(together.audits["8"].warehouse)) == 3
    # As whoever opens the table for the first time: Spark has not written it.
    assert executions(spark) - before - 1 <= 5


OF_THE_RUN = {"run_id", "started_at", "finished_at", "cluster", "history"}


def said(report: Report) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(to_json(report))
    return {name: value for name, value in told.items() if name not in OF_THE_RUN}


def test_a_cluster_is_told_the_same_alone_among_few_and_among_many(
    alone: Counted, together: Counted, audit_of: Callable[[str, str], Audit]
) -> None:
    assert said(alone.audits["8"].report) == said(together.audits["8"].report)
    for stage, each in together.audits.items():
        assert said(each.report) == said(audit_of("3.9.1", stage).report)
