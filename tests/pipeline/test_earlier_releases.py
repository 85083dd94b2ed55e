"""Tables of earlier releases (`tests.tables`): looked at, continued from, maintained; those of a later one are refused in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType
from pyspark.sql import SparkSession

from jobs.cli import main
from jobs.sinks.delta import Warehouse
from jobs.sinks.reader import Folder, records
from jobs.steps.maintenance.maintain import maintain
from jobs.steps.maintenance.upkeep import Upkeep
from schemas.gold import RUNS
from tests.reliability.killing import WHOLE_LOG, Reports, copied, differences, recorded, said
from tests.reliability.schedules import OF_TWO_RUNS
from tests.tables import NAMES, OLDEST, STAGES, content, gone_on, sources, unpacked
from transforms.retention import Retention

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]
MIGRATION, KRAFT = STAGES
TOPIC = "orders"
# What is told of one cluster without a word about what is missing.
TOLD = [
    ["history"],
    ["history", "--trend"],
    ["history", "topics", TOPIC],
    ["gates"],
    ["diff"],
    ["explain", "topics", TOPIC, "--run", "first"],
    ["isr", TOPIC],
    ["isr", TOPIC, "--run", "first"],
]
# A run of the oldest one that continued from another one's state: that state is kept in a form that is not read any more.
ENDED = "read only the end of the log, and what run first kept of the rest is gone or of an earlier release"
UNSTORED = "the answers of run last are not stored (any more)"
UNTOLD = [
    (["explain", "topics", TOPIC], ENDED),
    (["isr", TOPIC, "--run", "last"], ENDED),
    (["diff", "--as-of", "100"], UNSTORED),
    (["downgrade", "--to", "3.8"], UNSTORED),
]


class Earlier:
    """Tables of an earlier release, its runs of the migration, and the same tables when this release has gone on."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.tables = unpacked(name, folder / "made")
        rows = Folder(str(self.tables)).rows(RUNS, ["run_id", "started_at"], {"cluster": MIGRATION})
        ordered = sorted(records(rows, RUNS), key=lambda row: row["started_at"])
        self.first, self.last = (row["run_id"] for row in ordered)
        self.gone_on = copied(folder / "made", folder / "gone-on")
        self.report = gone_on(self.gone_on)

    def command(self, argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, list[str]]:
        """Exit code, output and lines of trouble of a command on the tables as they were, with the runs named first and last."""
        named = {"first": self.first, "last": self.last}
        capsys.readouterr()
        words = [named.get(word, word) for word in argv]
        code = main([*words, "--warehouse", str(self.tables), "--cluster", MIGRATION])
        told = capsys.readouterr()
        return code, told.out, self._named(told.err).splitlines()

    def _named(self, text: str) -> str:
        return text.replace(self.first, "first").replace(self.last, "last")


@pytest.fixture(scope="module", params=NAMES)
def earlier(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Earlier:
    return Earlier(request.param, tmp_path_factory.mktemp("earlier"))


@pytest.fixture(scope="module")
def fresh(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reports]:
    folder = tmp_path_factory.mktemp("fresh")
    return folder, gone_on(folder)


def without_history(report: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What a report says of the cluster alone: nothing of the runs before, nor how much of the log was read."""
    told = said(report, folder)
    told.pop("history", None)
    told["checks"] = [check for check in told["checks"] if check["id"] not in OF_TWO_RUNS]
    told["notes"] = [note for note in told["notes"] if WHOLE_LOG not in note]
    return told


def test_the_oldest_and_a_younger_release_are_there() -> None:
    assert OLDEST in NAMES
    assert len(NAMES) > 1


def test_commands_tell_what_is_there_and_say_in_a_line_what_is_not(
    earlier: Earlier, capsys: pytest.CaptureFixture[str]
) -> None:
    for argv in TOLD:
        code, out, trouble = earlier.command(argv, capsys)
        assert (code, trouble) == (0, []), argv
        assert out, argv
    for argv, words in UNTOLD:
        code, out, trouble = earlier.command(argv, capsys)
        if earlier.name == OLDEST:
            assert (code, out) == (2, ""), argv
            assert len(trouble) == 1, argv
            assert words in trouble[0], argv
        else:
            assert code == 0, (argv, trouble)


@pytest.mark.parametrize("cluster", STAGES)
def test_a_run_that_goes_on_says_what_a_fresh_warehouse_says(
    earlier: Earlier, fresh: tuple[Path, Reports], cluster: str
) -> None:
    folder, wanted = fresh
    found = without_history(earlier.report[cluster], earlier.gone_on)
    assert differences(found, without_history(wanted[cluster], folder)) == []


def test_maintenance_changes_nothing_that_the_next_run_says(
    earlier: Earlier, spark: SparkSession, tmp_path: Path
) -> None:
    tended = copied(earlier.folder / "made", tmp_path / "tended")
    warehouse = Warehouse(spark, str(tended / "tables"))
    in_three_years = datetime.now(UTC) + timedelta(days=1000)
    done = maintain(warehouse, Upkeep(dict.fromkeys(STAGES, Retention()), in_three_years))
    assert [each.problem for each in done if each.problem] == []
    assert sum(each.rows for each in done) > 0
    report = gone_on(tended)
    for cluster in STAGES:
        wanted = said(earlier.report[cluster], earlier.gone_on)
        assert differences(said(report[cluster], tended), wanted) == []
    whole = recorded(Warehouse(spark, str(earlier.gone_on / "tables")))
    assert all(set(changes) <= set(whole[name]) for name, changes in recorded(warehouse).items())


@pytest.mark.parametrize("argv", [["history"], ["gates"], ["history", "topics", TOPIC], ["maintain"], ["run"]])
def test_tables_of_a_later_release_are_refused_in_one_line(
    earlier: Earlier, tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    later_one = copied(earlier.folder / "made", tmp_path / "later")
    table = DeltaTable(str(later_one / "tables" / "gold" / "runs"))
    table.alter.add_columns([Field("certainty", PrimitiveType("string"))])
    conf = later_one / f"{MIGRATION}.yml"
    conf.write_text(json.dumps(content(MIGRATION, sources(MIGRATION, 2), later_one / "tables")))
    before = sorted(path for path in later_one.rglob("*.parquet"))
    capsys.readouterr()
    assert main([*argv, "--conf", str(conf)]) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("kraft-audit: ")]
    assert "table gold.runs can't be read: it has columns that this release does not know (certainty)" in line
    assert "use a newer kraft-audit" in line
    assert sorted(path for path in later_one.rglob("*.parquet")) == before, "nothing was written"
