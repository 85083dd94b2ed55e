"""A warehouse that is put back as a backup has it: the runs after it say no false word and record each change once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.sinks.delta import Warehouse
from schemas.gold import RUNS
from tests.captures import capture
from tests.reliability.killing import Reports, audit, configuration, copied, recorded, said
from tests.reliability.schedules import clock_ahead, false_words, restored

pytestmark = pytest.mark.slow
VERSION, STAGES = "4.3.1-kraft", ("6-elr-member-lost", "7-elr-cleared", "8-unclean")
NAME = "c"


def run(folder: Path, stage: str) -> Reports:
    return audit([configuration(folder, NAME, capture(VERSION, stage))])


def told(folder: Path, stage: str) -> dict[str, object]:
    return said(run(folder, stage)[NAME], folder)


@pytest.fixture(scope="module")
def fresh(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, object]]:
    root = tmp_path_factory.mktemp("fresh")
    found = {stage: told(root / stage, stage) for stage in STAGES[1:]}
    return lambda stage: found[stage]


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables after the first stage (`backup`) and after the second one (`tables`)."""
    root = tmp_path_factory.mktemp("undisturbed")
    run(root, STAGES[0])
    copied(root / "tables", root / "backup")
    run(root, STAGES[1])
    return root


def all_but_runs(tables: Path) -> list[str]:
    return [
        f"{path.parent.parent.name}.{path.parent.name}"
        for path in tables.glob("*/*/_delta_log")
        if f"{path.parent.parent.name}.{path.parent.name}" != RUNS.full_name
    ]


@pytest.mark.parametrize(
    ("what", "only"),
    [("all", lambda _: None), ("runs alone", lambda _: [RUNS.full_name]), ("all but runs", all_but_runs)],
    ids=["all", "runs alone", "all but runs"],
)
def test_the_runs_after_it_say_what_those_of_fresh_tables_say(
    spark: SparkSession,
    undisturbed: Path,
    fresh: Callable[[str], dict[str, object]],
    tmp_path: Path,
    what: str,
    only: Callable[[Path], Collection[str] | None],
) -> None:
    """A backup that was copied while a run wrote has tables of two moments."""
    folder = copied(undisturbed, tmp_path / "w")
    restored(spark, folder / "backup", folder / "tables", only(folder / "tables"))
    for stage, hours in zip(STAGES[1:], (-1, 1), strict=True):
        with clock_ahead(lambda hours=hours: timedelta(hours=hours)):  # type: ignore[misc]
            assert false_words(told(folder, stage), fresh(stage)) == [], (what, stage)
    if what == "all":
        changes = recorded(Warehouse(spark, str(folder / "tables")))[NAME]
        assert len(changes) == len(set(changes)) > 0
        assert changes == recorded(Warehouse(spark, str(_one_after_the_other(tmp_path / "other") / "tables")))[NAME]


def _one_after_the_other(folder: Path) -> Path:
    for stage in STAGES:
        run(folder, stage)
    return folder
