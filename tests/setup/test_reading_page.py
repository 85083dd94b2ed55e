"""The examples of docs/reading.md take the newest run of each cluster, with and without a number."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import polars as pl
import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reading.md").read_text()


def test_the_newest_of_runs_without_a_number_is_the_latest(tmp_path: Path) -> None:
    runs = [
        # Not in their order.
        ("a", "r2", None, datetime(2024, 1, 2)),
        ("a", "r1", None, datetime(2024, 1, 1)),
        ("b", "r3", None, datetime(2024, 1, 3)),
        # By a clock that was behind.
        ("b", "r4", 1, datetime(2023, 1, 1)),
    ]
    columns = ["cluster", "run_id", "sequence", "started_at"]
    stored = pl.DataFrame(runs, schema=columns, orient="row").with_columns(verdict=pl.lit("clean"))
    stored.write_delta(tmp_path / "gold" / "runs")
    gates = stored.select("cluster", "run_id", "verdict", gate=pl.lit("start"), blocking=pl.lit([], pl.List(pl.String)))
    gates.write_delta(tmp_path / "gold" / "gates")
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(block.replace("/var/lib/kraft-audit", str(tmp_path)), names)  # noqa: S102 - the page's own
    newest = names["newest"]
    assert isinstance(newest, pl.LazyFrame)
    assert sorted(newest.collect().rows()) == [("a", "r2"), ("b", "r4")]


def test_duckdb_is_given_the_order_that_the_alerts_use() -> None:
    bundle = yaml.safe_load((ROOT / "conf" / "databricks" / "databricks.yml").read_text())
    (order,) = re.findall(
        r"\(PARTITION BY cluster ORDER BY [^)]*\)", bundle["resources"]["alerts"]["red"]["query_text"]
    )
    (statement,) = re.findall(r"LOAD delta;\n(.*?)```", PAGE, re.DOTALL)
    assert f"row_number() OVER {order} = 1" in statement
