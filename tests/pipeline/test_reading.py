"""What commands that only read say with Spark and without it, over the tables of the pipeline's tests: the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from jobs.cli import main
from jobs.evidence import opening
from jobs.sinks.reader import Folder
from schemas import bronze, gold, silver
from schemas.gates import GATES
from schemas.table import Table
from tests.pipeline.audits import Audit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]
TABLES = (*bronze.TABLES, *silver.TABLES, *gold.TABLES)
# What takes long to import, and what would start Spark.
# Types of columns are declared as Spark's, so its module of types is there.
HEAVY = ("delta", "great_expectations", "matplotlib", "numba", "pandas", "pyspark.sql.classic")
CLUSTERS = ("3.9.1-8", "3.9.1-quota-removal", "3.9.1-blocked-by-missing-broker")
COMMANDS = [
    ["history"],
    ["history", "--trend"],
    ["history", "--format", "jsonl"],
    ["gates"],
    ["gates", "--gate", "finalize"],
    ["gates", "--run", "none"],
    ["diff"],
    ["diff", "--format", "jsonl", "--entity", "client_quotas"],
    ["features", "matrix"],
    ["features", "describe"],
    ["downgrade", "--to", "3.6"],
]
REQUEST = ["--topic", "late-lag", "--partition", "0", "--leader-epoch", "0", "--partition-epoch", "0", "--isr", "2,0"]
# Of the first cluster, which has this topic.
OF_ONE = [
    ["isr", "late-lag"],
    ["isr", "late-lag/0"],
    ["isr", "validate", *REQUEST],
    ["isr", "validate", *REQUEST, "--mode", "zk"],
    ["compare", "--cluster", CLUSTERS[1]],
]


@pytest.fixture
def root(audited: Callable[[str], Audit]) -> str:
    return audited(CLUSTERS[0]).warehouse.root


def _sorted(rows: pl.DataFrame) -> pl.DataFrame:
    """In an order that says nothing: that of the rows' texts."""
    keys = [json.dumps(row, default=repr) for row in rows.iter_rows()]
    return rows.with_columns(pl.Series("key", keys)).sort("key").drop("key")


@pytest.mark.parametrize("table", TABLES, ids=[table.full_name for table in TABLES])
def test_the_rows_are_the_same_with_spark_and_without_it(audited: Callable[[str], Audit], table: Table) -> None:
    warehouse = audited(CLUSTERS[0]).warehouse
    where = {"cluster": [*CLUSTERS]}
    ways = [_sorted(each.rows(table, where=where)) for each in (warehouse, Folder(warehouse.root))]
    assert_frame_equal(*ways)


def _told(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(argv)
    said = capsys.readouterr()
    # How long ago it was is another number a moment later, and its column may be wider.
    return code, *(re.sub(r" *\(?[\d.]+ (s|min|h) ago\)? *", " AGO ", text) for text in (said.out, said.err))


@pytest.mark.parametrize("command", COMMANDS, ids=[" ".join(command) for command in COMMANDS])
def test_a_command_says_the_same_with_spark_and_without_it(
    root: str, command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for cluster in CLUSTERS:
        argv = [command[0], "--warehouse", root, "--cluster", cluster, *command[1:]]
        without = _told(argv, capsys)
        with monkeypatch.context() as patched:
            patched.setattr(opening, "read_without_spark", lambda *_: False)
            assert _told(argv, capsys) == without
        said += without[1:]
    # Of a cluster without a log there may be nothing to say.
    assert any(said)


@pytest.mark.parametrize("command", OF_ONE, ids=[" ".join(command) for command in OF_ONE])
def test_a_look_at_one_cluster_says_the_same_with_spark_and_without_it(
    root: str, command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = [command[0], "--warehouse", root, "--cluster", CLUSTERS[0], *command[1:]]
    code, out, err = _told(argv, capsys)
    assert (code, err) == (10 if command[0] == "compare" else 0, "")
    assert out
    monkeypatch.setattr(opening, "read_without_spark", lambda *_: False)
    assert _told(argv, capsys) == (code, out, err)


def test_the_fleet_is_the_same_with_spark_and_without_it(
    root: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ["fleet", "--warehouse", root]
    without = _told(argv, capsys)
    monkeypatch.setattr(opening, "read_without_spark", lambda *_: False)
    assert _told(argv, capsys) == without
    assert all(cluster in without[1] for cluster in CLUSTERS)


READING = [["history"], ["gates"], ["fleet"], ["diff"], *OF_ONE, ["features", "matrix"], ["downgrade", "--to", "3.6"]]
# All in one process, because to begin takes longer than to read; the first command that loads anything is named.
LOADING = """
import sys
from jobs.cli import main
for argv in {commands}:
    print("BEGUN")
    code = main(argv)
    print(argv[0], code, sorted(name for name in {heavy} if name in sys.modules), file=sys.stderr)
"""


def test_a_command_that_reads_loads_neither_spark_nor_what_takes_long(root: str) -> None:
    commands = []
    for command in READING:
        cluster = [] if command == ["fleet"] else ["--cluster", CLUSTERS[0]]
        commands.append([command[0], "--warehouse", root, *cluster, *command[1:]])
    code = LOADING.format(commands=commands, heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    said = [line for line in done.stderr.splitlines() if line.endswith("]")]
    assert said == [f"{name} {10 if name == 'compare' else 0} []" for name, *_ in READING]
    outputs = done.stdout.split("BEGUN\n")[1:]
    assert len(outputs) == len(READING)
    assert all(outputs)


def test_the_example_of_the_page_reads_the_tables_with_polars(root: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reading.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert "/var/lib/kraft-audit" in block
    names: dict[str, object] = {}
    exec(block.replace("/var/lib/kraft-audit", root), names)  # noqa: S102 - the page's own
    gates = names["gates"]
    assert isinstance(gates, pl.DataFrame)
    newest = gates.filter(pl.col("cluster") == CLUSTERS[0])
    assert set(newest["gate"]) == {*GATES}
