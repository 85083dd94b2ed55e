"""A key that one side has twice is kept and counted, though the row that is compared may be the same on both sides."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from schemas.silver import ROW_VERSIONS
from tests.reconcile.planted import frame
from transforms.reconcile.compare.canonical import ASSIGNMENT_PROVENANCE
from transforms.reconcile.compare.difference import differing_rows
from transforms.reconcile.compare.duplicates import duplicates
from transforms.reconcile.judge.facts import Sample

_PROVENANCE = ("zk_path", "zk_czxid", "zk_mzxid", "zk_mtime", *ASSIGNMENT_PROVENANCE)
_KRAFT = ("kraft_offset", "kraft_created_offset", "kraft_append_time")
_SCHEMA = "zk boolean, entity string, key string, row string, comparable boolean, zk_path string, " + ", ".join(
    f"{name} bigint" for name in (*_PROVENANCE[1:], *_KRAFT)
)


def side(*, zk: bool, key: str) -> tuple[Any, ...]:
    return (zk, "client_quotas", key, "{}", True, *[None] * (len(_PROVENANCE) + len(_KRAFT)))


def test_a_key_that_is_there_twice_is_counted(spark: SparkSession) -> None:
    rows = [side(zk=True, key="a"), side(zk=True, key="a"), side(zk=False, key="a")]
    rows += [side(zk=True, key="b"), side(zk=False, key="b")]
    versions = frame(spark, ROW_VERSIONS, [])
    found = duplicates(differing_rows(spark.createDataFrame(rows, _SCHEMA), versions, tail_from=100))
    assert found == Sample(1, ("client_quotas a: 2 rows in ZooKeeper, 1 in KRaft",))
    healthy = differing_rows(spark.createDataFrame(rows[3:], _SCHEMA), versions, tail_from=100)
    assert duplicates(healthy) == Sample()
