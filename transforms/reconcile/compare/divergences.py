"""Differing rows to gold divergences: classified in the workers, followed over runs by a fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from schemas.classes import IN_FLIGHT, ORDER
from schemas.gold import DIVERGENCES
from transforms.clusters import CLUSTER, by_cluster
from transforms.reconcile.compare.classify import SEVERITIES, Context, Divergence, classify

_ADDED_LATER = ("run_id", "first_seen_run", "status")
DIVERGENCE = StructType([field for field in DIVERGENCES.columns if field.name not in _ADDED_LATER])
_ARROW: pa.Schema = to_arrow_schema(DIVERGENCE)


def divergences(differing: DataFrame, contexts: Mapping[str, Context]) -> DataFrame:
    """Rows of `differing_rows` to rows of DIVERGENCE (gold divergences without what only earlier runs tell).

    `contexts` says what is known of each cluster.
    """
    return differing.mapInArrow(_classifier(contexts), DIVERGENCE)


def _classifier(contexts: Mapping[str, Context]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def classify_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [
                _cells(raw["cluster"], divergence)
                for raw in batch.to_pylist()
                for divergence in classify(raw, contexts[raw["cluster"]])
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)

    return classify_batches


def _cells(cluster: str, divergence: Divergence) -> dict[str, str | int | None]:
    key = json.dumps(divergence.key, sort_keys=False, ensure_ascii=False)
    return {
        "cluster": cluster,
        "fingerprint": fingerprint(divergence.entity, key, divergence.column, divergence.class_),
        "entity": divergence.entity,
        "key": key,
        "column": divergence.column,
        "kind": divergence.kind,
        "zk_value": json.dumps(divergence.zk_value, ensure_ascii=False),
        "kraft_value": json.dumps(divergence.kraft_value, ensure_ascii=False),
        "class": divergence.class_,
        "severity": divergence.severity,
        "explanation": divergence.explanation,
        "zk_path": divergence.zk_path,
        "zk_mzxid": divergence.zk_mzxid,
        "kraft_offset": divergence.kraft_offset,
    }


def fingerprint(entity: str, key: str, column: str | None, class_: str) -> str:
    """Stable id of a divergence over runs: its entity, key, column and class."""
    text = "\x1f".join((entity, key, column or "", class_))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def followed(current: DataFrame, previous: DataFrame, run_id: str) -> DataFrame:
    """Add first_seen_run and status, and the previous run's rows that are gone, as resolved.

    `previous` are gold rows of each cluster's run before (none on its first run); resolved ones among them are history already.
    """
    row = [CLUSTER, "fingerprint"]
    before = previous.where("status <> 'resolved'").drop("run_id")
    seen = before.groupBy(*row).agg(F.min("first_seen_run").alias("first_seen_run"))
    now = current.join(seen, row, "left").select(
        *[field.name for field in DIVERGENCE.fields],
        F.coalesce("first_seen_run", F.lit(run_id)).alias("first_seen_run"),
        F.when(F.col("first_seen_run").isNull(), "new").otherwise("persisting").alias("status"),
    )
    gone = before.join(current.select(*row).distinct(), row, "left_anti")
    return now.unionByName(gone.withColumn("status", F.lit("resolved")))


def seen_from(rows: DataFrame, offset: int, migration_offset: int) -> DataFrame:
    """Rows of a comparison with the image at an `offset` below /migration's: what ZooKeeper has of later records.

    There in_flight is not a write on its way but a write that came later, and the row says so.
    """
    why = f"ZooKeeper is at {migration_offset}: it has what the log did to the row after offset {offset}"
    in_flight = F.col("class") == IN_FLIGHT
    return rows.withColumn("explanation", F.when(in_flight, F.lit(why)).otherwise(F.col("explanation")))


def ranked(rows: DataFrame) -> DataFrame:
    """Rows with a sortable `rank`: defects first, then by severity, entity and key."""
    by_class = F.array_position(F.array(*[F.lit(name) for name in ORDER]), F.col("class"))
    by_severity = F.array_position(F.array(*[F.lit(name) for name in SEVERITIES]), F.col("severity"))
    return rows.withColumn("rank", F.struct(by_class.alias("c"), by_severity.alias("s"), "entity", "key", "column"))


def stored_counts() -> Column:
    """A run's exact counts by class as one JSON object, from its row of gold `runs`: no divergence is read for it."""
    return F.get_json_object("report", "$.divergences.by_class")


def listed(rows: DataFrame, limits: Mapping[str, int]) -> DataFrame:
    """The first rows of each cluster by `ranked`, as many as its limit, and their exact counts, in one pass.

    Rows of gold divergences, with `rank` and `total`: how many rows of the cluster have the same class, entity and
    status. Of each of these groups at least the first row is there, so that no count is lost.
    """
    group = Window.partitionBy(CLUSTER, "class", "entity", "status")
    gone = F.col("status") == "resolved"
    in_order = ranked(rows).withColumns({"resolved": gone})
    placed = in_order.withColumns(
        {
            "total": F.count("*").over(group),
            "first": F.row_number().over(group.orderBy("rank")) == 1,
            "place": F.row_number().over(Window.partitionBy(CLUSTER, "resolved").orderBy("rank")),
        }
    )
    limit = by_cluster(limits, "bigint")
    return placed.where(F.col("first") | (F.col("place") <= limit)).drop("first", "resolved")
