"""Quotas that are no finite number: Kafka takes them into its log, so the audit reads and compares them."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from schemas.entities.client_quotas import CLIENT_QUOTAS
from tests.reconcile.test_classify import differing, one
from transforms.kraft.replay.events import read_batch
from transforms.reconcile.compare.canonical import row_json

KEY = {"entity": [{"type": "client-id", "name": "app"}], "quota": "producer_byte_rate"}


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("other", [11.0, None, "Infinity", "NaN"])
def test_a_quota_that_is_no_number_is_compared_with_any_other(value: str, other: object) -> None:
    if value == other:
        return
    found = one(differing("client_quotas", KEY, zk_row={"value": other}, kraft_row={"value": value}, kraft_offset=50))
    assert (found.column, found.zk_value, found.kraft_value) == ("value", other, value)


@pytest.mark.parametrize(
    ("value", "spelled"), [(math.nan, '"NaN"'), (math.inf, '"Infinity"'), (-math.inf, '"-Infinity"')]
)
def test_both_sides_spell_it_the_same(spark: SparkSession, value: float, spelled: str) -> None:
    """The log's own text of it (`"NaN"`, as Jackson writes it) and the tree's come to one row."""
    data = f'{{"entity":[{{"entityType":"user","entityName":"a"}}],"key":"q","value":{spelled},"remove":false}}'
    batch = pa.RecordBatch.from_pydict(
        {
            "cluster": ["one"],
            "type": ["CLIENT_QUOTA_RECORD"],
            "data": [data],
            "offset": [1],
            "epoch": [1],
            "append_time": [1],
        }
    )
    texts = [read_batch(batch).to_pylist()[0]["row"], json.dumps({"quota": "q", "value": value})]
    rows = spark.createDataFrame([(text,) for text in texts], "text string")
    parsed = rows.select(F.from_json("text", StructType(list(CLIENT_QUOTAS.columns))).alias("row")).select("row.*")
    assert [row[0] for row in parsed.select(row_json(CLIENT_QUOTAS)).collect()] == [f'{{"value":{spelled}}}'] * 2
