"""A divergence over runs: it appears, persists, disappears and comes back."""

from __future__ import annotations

import polars as pl
import pytest

from transforms.frames import frame
from transforms.reconcile.compare.between import located
from transforms.reconcile.compare.divergences import DIVERGENCE, FOLLOWED, fingerprint, followed, listed, ranked

NOTHING = pl.DataFrame(schema=FOLLOWED)


def found(*topics: str) -> pl.DataFrame:
    rows = [
        {
            "fingerprint": fingerprint("topics", topic, None, "lost_write"),
            "entity": "topics",
            "key": topic,
            "class": "lost_write",
        }
        for topic in topics
    ]
    return located(frame(rows, DIVERGENCE), None)


def told(run: pl.DataFrame) -> dict[str, tuple[str, str]]:
    assert run.schema == FOLLOWED
    assert run["key"].is_unique().all()
    return {key: (status, first) for key, status, first in run.select("key", "status", "first_seen_run").iter_rows()}


def test_a_divergence_appears_persists_disappears_and_comes_back() -> None:
    first = followed(found("a", "b"), NOTHING, "run-1")
    assert told(first) == {"a": ("new", "run-1"), "b": ("new", "run-1")}
    second = followed(found("a", "b", "c"), first, "run-2")
    assert told(second) == {"a": ("persisting", "run-1"), "b": ("persisting", "run-1"), "c": ("new", "run-2")}
    third = followed(found("b"), second, "run-3")
    assert told(third) == {"a": ("resolved", "run-1"), "b": ("persisting", "run-1"), "c": ("resolved", "run-2")}
    fourth = followed(found("a", "b"), third, "run-4")
    assert told(fourth) == {"a": ("new", "run-4"), "b": ("persisting", "run-1")}, "resolved once is said once"


def test_stored_rows_name_their_cluster_and_run_and_what_follows_does_not() -> None:
    stored = followed(found("a", "b"), NOTHING, "run-1").select(
        pl.lit("c").alias("cluster"), pl.lit("run-1").alias("run_id"), pl.all()
    )
    assert told(followed(found("b"), stored, "run-2")) == {"a": ("resolved", "run-1"), "b": ("persisting", "run-1")}


LISTED = {"class": pl.String, "severity": pl.String, "entity": pl.String, "key": pl.String, "column": pl.String}


@pytest.mark.parametrize("limit", [2, 4])
def test_the_first_rows_are_listed_and_no_count_is_lost(limit: int) -> None:
    rows = [("lost_write", "error", "topics", f"{n}", None, "new") for n in range(4)]
    rows += [("lag", "info", "topics", "9", None, "new"), ("lag", "info", "topics", "8", None, "resolved")]
    kept = listed(pl.DataFrame(rows, schema={**LISTED, "status": pl.String}, orient="row"), limit).sort("key")
    assert kept.select("key", "status", "total", "place").rows() == [
        *[(f"{n}", "new", 4, n + 1) for n in range(limit)],
        ("8", "resolved", 1, 1),
        ("9", "new", 1, 5),
    ]


def test_another_class_of_the_same_row_is_another_divergence() -> None:
    of_row = {fingerprint("topics", "k", None, name) for name in ("lag", "lost_write")}
    assert len(of_row | {fingerprint("topics", "k", "topic_id", "lag")}) == 3


@pytest.mark.parametrize("order", [("lost_write", "lag"), ("lag", "lost_write")])
def test_defects_come_first(order: tuple[str, ...]) -> None:
    rows = [(name, "info", "topics", "k", None) for name in order]
    assert ranked(pl.DataFrame(rows, schema=LISTED, orient="row"))["class"].to_list() == ["lost_write", "lag"]


def test_rows_of_a_class_are_in_order_of_severity_entity_key_and_column() -> None:
    in_order = [
        ("lost_write", "critical", "topics", "k", "topic_id"),
        ("lost_write", "error", "configs", "z", None),
        ("lost_write", "error", "topics", "a", None),
        ("lost_write", "error", "topics", "b", None),
        ("lost_write", "error", "topics", "b", "topic_id"),
        ("lost_write", "error", "topics", "é", None),
        ("lag", "critical", "topics", "a", None),
    ]
    rows = pl.DataFrame(in_order, schema=LISTED, orient="row")
    assert ranked(rows.reverse()).rows() == in_order
