"""A key that one side has twice is kept and counted, though the row that is compared may be the same on both sides."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from schemas.replayed import ROW_VERSION
from transforms.reconcile.compare.canonical import ASSIGNMENT_PROVENANCE
from transforms.reconcile.compare.difference import Ends, differing_rows
from transforms.reconcile.compare.duplicates import duplicated

_PROVENANCE = ("zk_path", "zk_czxid", "zk_mzxid", "zk_mtime", *ASSIGNMENT_PROVENANCE)
_KRAFT = ("kraft_offset", "kraft_created_offset", "kraft_append_time")
_SCHEMA = (
    "cluster string, zk boolean, entity string, key string, row string, comparable boolean, zk_path string, "
    + ", ".join(f"{name} bigint" for name in (*_PROVENANCE[1:], *_KRAFT))
)


def side(*, zk: bool, key: str, cluster: str = "one") -> tuple[Any, ...]:
    return (cluster, zk, "client_quotas", key, "{}", True, *[None] * (len(_PROVENANCE) + len(_KRAFT)))


def test_a_key_that_is_there_twice_is_counted(spark: SparkSession) -> None:
    rows = [side(zk=True, key="a"), side(zk=True, key="a"), side(zk=False, key="a")]
    rows += [side(zk=True, key="b"), side(zk=False, key="b")]
    # The same key once on each side of another cluster is twice nowhere.
    rows += [side(zk=True, key="a", cluster="two"), side(zk=False, key="a", cluster="two")]
    versions = spark.createDataFrame([], ROW_VERSION)
    ends = {"one": Ends(100), "two": Ends(100)}
    found = duplicated(differing_rows(spark.createDataFrame(rows, _SCHEMA), versions, ends)).collect()
    assert [row.asDict() for row in found] == [
        {"cluster": "one", "total": 1, "texts": ["client_quotas a: 2 rows in ZooKeeper, 1 in KRaft"]}
    ]
