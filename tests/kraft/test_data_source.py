"""`spark.read.format("kraft_log")` in a real session: split over tasks, exact schema, options, no key and no secret shown."""

from __future__ import annotations

import os
import re

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.sources.kraft.folder import read_copy
from jobs.sources.kraft.log import KraftLogDataSource, KraftLogReader, plan_log, read_records
from schemas.bronze import LOG_RECORD_COLUMNS
from tests.kraft.dumps import log_folder, read_dump
from transforms.secrets import Fingerprinter

STAGE = ("3.9.1", "8-zookeeper-behind", 3001)
# A variable that the workers have too, which were started before this test: any one does.
KEY_VARIABLE = "PATH"
KEY = os.environ[KEY_VARIABLE].encode()


def load(spark: SparkSession, **options: str) -> DataFrame:
    spark.dataSource.register(KraftLogDataSource)
    reader = spark.read.format("kraft_log").option("fingerprint_key_env", KEY_VARIABLE).options(**options)
    return reader.load(str(log_folder(*STAGE).parents[1]))


def test_rows_are_those_read_without_spark(spark: SparkSession) -> None:
    frame = load(spark, controller="3001", split_bytes="3000")
    assert [(field.name, field.dataType) for field in frame.schema] == [
        (field.name, field.dataType) for field in LOG_RECORD_COLUMNS
    ]
    assert frame.rdd.getNumPartitions() >= 4
    tasks = plan_log(read_copy(log_folder(*STAGE)))
    direct = [row for batch in read_records(tasks, Fingerprinter(KEY)) for row in batch.to_pylist()]
    assert [row.asDict() for row in frame.orderBy("offset").collect()] == direct


def test_options_select(spark: SparkSession) -> None:
    assert {row.controller_id for row in load(spark).select("controller_id").distinct().collect()} == {3000, 3001, 3002}
    some = load(spark, controller="3001", from_offset="470", to_offset="480", include_control="false")
    assert sorted(row.offset for row in some.select("offset").collect()) == [
        470,
        471,
        472,
        473,
        474,
        476,
        477,
        478,
        479,
    ]
    [name] = [name for name in read_dump(*STAGE) if name.endswith(".checkpoint")]
    assert load(spark, controller="3001", checkpoint=name).count() == len(read_dump(*STAGE)[name])


def test_neither_key_nor_secret_is_shown(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    frame = load(spark, controller="3001").where("type = 'USER_SCRAM_CREDENTIAL_RECORD'")
    frame.explain(mode="extended")
    bodies = [row.data for row in frame.select("data").collect()]
    shown = "\n".join([*capfd.readouterr(), *bodies, repr(Fingerprinter(KEY))])
    assert KEY.decode() not in shown
    assert KEY.hex() not in shown
    assert len(bodies) >= 5
    assert all(len(re.findall(r'"hmac:[0-9a-f]{24}"', body)) == 3 for body in bodies)


def test_a_key_that_is_not_set_is_named() -> None:
    reader = KraftLogReader({"path": str(log_folder(*STAGE)), "fingerprint_key_env": "NOT_SET_ANYWHERE"})
    [first, *_] = reader.partitions()
    with pytest.raises(ValueError, match="the environment variable NOT_SET_ANYWHERE is not set on the worker"):
        list(reader.read(first))


def test_without_a_key_every_worker_has_the_same_one_and_every_read_another() -> None:
    """Fingerprints of one read compare with each other; nobody else has the key."""
    folder = str(log_folder(*STAGE))
    one, other = KraftLogReader({"path": folder}), KraftLogReader({"path": folder})

    def marks(reader: KraftLogReader) -> set[str]:
        bodies = [
            row["data"] for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()
        ]
        return set(re.findall(r"hmac:[0-9a-f]{24}", "".join(body or "" for body in bodies)))

    assert marks(one)
    assert marks(one) == marks(one)
    assert not marks(one) & marks(other)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"colour": "red"}, "unknown option 'colour'"),
        ({"from_offset": "x"}, "option from_offset of kraft_log must be a number"),
        ({"include_control": "maybe"}, "must be true or false"),
        ({"fingerprint_key": "hunter2"}, "unknown option 'fingerprint_key' of kraft_log; known: [^2]*$"),
        ({"path": ""}, "needs a path"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], says: str) -> None:
    given = {"path": "p"} | options
    with pytest.raises(ValueError, match=says):
        KraftLogReader({key: value for key, value in given.items() if value})
