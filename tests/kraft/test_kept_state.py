"""replay(prefix), then the rest from its state, is replay(all): rows, provenance, versions and findings."""

from __future__ import annotations

import json
import random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.sources.kraft.log import KraftLogDataSource
from schemas.bronze import LOG_RECORD_COLUMNS
from schemas.entities import MIRRORED
from tests.kraft.dumps import log_folder
from transforms.kraft.replay.base import continued, state_at
from transforms.kraft.replay.findings import log_findings
from transforms.kraft.replay.image import Log, image, row_versions
from transforms.kraft.replay.rows import fold

RECORDS = StructType(list(LOG_RECORD_COLUMNS))
TOPIC_NAMES = ("orders", "payments", "audit")
BROKERS = (1, 2, 3)


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(row[0] for row in frame.select(F.to_json(F.struct(*sorted(frame.columns)))).collect())


def everything(log: Log, after: int, whole: Log | None = None) -> dict[str, list[str]]:
    """What a run makes of a log: state with provenance, every version from `after` on, findings."""
    folded = fold(log.events).localCheckpoint()
    made = {name: rows_of(rows) for name, rows in image(log, folded).items()}
    made["row_versions"] = rows_of(row_versions(log, folded, after, MIRRORED))
    made["findings"] = rows_of(log_findings(whole or log, log, folded))
    return made


def held(log: Log) -> Log:
    return Log(log.events.localCheckpoint(), log.hot.localCheckpoint())


class RandomLog:
    """Records as Kafka's controller makes them: names reused under new ids, partitions remade, configs cascaded away."""

    def __init__(self, seed: int, length: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
        self.topics: dict[str, str] = {}
        self.partitions: set[tuple[str, int]] = set()
        self.brokers: dict[int, int] = {}
        self.made = 0
        self.producer_id = 0
        self.rows: list[dict[str, object]] = []
        while len(self.rows) < length:
            self._one()

    def _one(self) -> None:
        step = self.random.choice(
            [self._topic, self._config, self._broker, self._quota, self._producer_ids, *[self._partition] * 5]
        )
        step()

    def _add(self, type_: str, body: dict[str, object] | None, **columns: object) -> None:
        offset = len(self.rows)
        data = None if body is None else json.dumps(body)
        self.rows.append(
            {"offset": offset, "epoch": 1 + offset // 50, "append_time": 1_000 * offset, "control": False}
            | {"type": type_, "version": 0, "data": data, **columns}
        )

    def _topic(self) -> None:
        name = self.random.choice(TOPIC_NAMES)
        if name in self.topics:
            topic_id = self.topics.pop(name)
            self.partitions = {(t, p) for t, p in self.partitions if t != topic_id}
            self._add("REMOVE_TOPIC_RECORD", {"topicId": topic_id})
            return
        self.made += 1
        self.topics[name] = f"id-{self.made}"
        self._add("TOPIC_RECORD", {"name": name, "topicId": self.topics[name]})

    def _config(self) -> None:
        value = self.random.choice([None, "1", "2"])
        name = self.random.choice([*self.topics, "orders"])
        config = self.random.choice(["retention.ms", "segment.ms"])
        self._add("CONFIG_RECORD", {"resourceType": 2, "resourceName": name, "name": config, "value": value})

    def _broker(self) -> None:
        broker = self.random.choice(BROKERS)
        if broker not in self.brokers or self.random.random() < 0.3:
            self.brokers[broker] = len(self.rows)
            body = {"brokerId": broker, "brokerEpoch": len(self.rows), "incarnationId": f"i{len(self.rows)}"}
            body |= {"fenced": True, "rack": None, "endPoints": [], "features": []}
            self._add("REGISTER_BROKER_RECORD", body)
        elif self.random.random() < 0.2:
            epoch = self.brokers.pop(broker)
            self._add("UNREGISTER_BROKER_RECORD", {"brokerId": broker, "brokerEpoch": epoch})
        else:
            body = {"brokerId": broker, "brokerEpoch": self.brokers[broker], "fenced": self.random.choice([1, -1])}
            self._add("BROKER_REGISTRATION_CHANGE_RECORD", body)

    def _quota(self) -> None:
        entity = [{"entityType": "user", "entityName": self.random.choice(["ann", None])}]
        body = {"entity": entity, "key": "producer_byte_rate", "remove": self.random.random() < 0.3, "value": 7.0}
        self._add("CLIENT_QUOTA_RECORD", body)

    def _producer_ids(self) -> None:
        self.producer_id += 1000
        self._add("PRODUCER_IDS_RECORD", {"brokerId": 1, "brokerEpoch": 1, "nextProducerId": self.producer_id})

    def _partition(self) -> None:
        if not self.topics:
            return
        topic_id, partition = self.topics[self.random.choice(sorted(self.topics))], self.random.randrange(2)
        columns: dict[str, object] = {"topic_id": topic_id, "partition_id": partition}
        if (topic_id, partition) not in self.partitions or self.random.random() < 0.1:
            self.partitions.add((topic_id, partition))
            columns |= {"replicas": [1, 2, 3], "isr": [1, 2], "adding_replicas": [], "removing_replicas": []}
            columns |= {"leader": 1, "leader_epoch": self.random.randrange(9), "partition_epoch": 0}
            self._add("PARTITION_RECORD", None, **columns, leader_recovery_state=0)
        else:
            isr = self.random.choice([None, [1], [2, 3]])
            columns |= {"isr": isr, "leader": self.random.choice([-2, -1, 2]), "leader_recovery_state": -1}
            self._add("PARTITION_CHANGE_RECORD", None, **columns)

    def frame(self, spark: SparkSession) -> DataFrame:
        names = RECORDS.fieldNames()
        return spark.createDataFrame([tuple(row.get(name) for name in names) for row in self.rows], RECORDS)


@pytest.fixture(params=[1, 2, 3])
def random_log(request: pytest.FixtureRequest) -> RandomLog:
    return RandomLog(request.param, 160)


def test_the_rest_after_any_prefix_is_the_whole(spark: SparkSession, random_log: RandomLog) -> None:
    records = random_log.frame(spark).localCheckpoint()
    end = len(random_log.rows)
    whole = held(Log.of(records, end))
    for cut in sorted(random_log.random.sample(range(1, end + 1), 3)):
        # As between two runs: the state is all that is left of the prefix.
        state = held(state_at(whole, cut))
        rest = held(Log.of(records.where(F.col("offset") >= cut), end, base=state))
        after = random_log.random.randrange(cut, end + 1)
        expected = everything(whole, after)
        assert everything(rest, after) == expected, f"cut {cut}, versions from {after}"
        # As within one run: the prefix is compacted, the findings still read all of it.
        assert everything(continued(state, whole, cut), after, whole) == expected, f"cut {cut}"


def test_a_state_of_a_state_is_the_same_state(spark: SparkSession, random_log: RandomLog) -> None:
    records = random_log.frame(spark)
    end = len(random_log.rows)
    whole = held(Log.of(records, end))
    once = held(state_at(whole, end // 2))
    twice = state_at(continued(once, whole, end // 2), end)
    direct = state_at(whole, end)
    assert rows_of(twice.events.distinct()) == rows_of(direct.events.distinct())
    assert rows_of(twice.hot) == rows_of(direct.hot)


def test_order_of_rows_and_partitions_changes_nothing(spark: SparkSession, random_log: RandomLog) -> None:
    ordered = random_log.frame(spark)
    end = len(random_log.rows)
    shuffled = spark.createDataFrame(random_log.random.sample(ordered.collect(), end), RECORDS).repartition(7)
    assert everything(held(Log.of(shuffled, end)), end // 2) == everything(held(Log.of(ordered, end)), end // 2)


@pytest.fixture(scope="module")
def captured(spark: SparkSession) -> DataFrame:
    spark.dataSource.register(KraftLogDataSource)
    reader = spark.read.format("kraft_log").option("controller", "3001").option("fingerprint_key", "00" * 32)
    return reader.load(str(log_folder("3.9.1", "12-finalized", 3001).parents[1])).localCheckpoint()


@pytest.mark.parametrize("part", [0.2, 0.7])
def test_a_real_migration_cut_in_two(spark: SparkSession, captured: DataFrame, part: float) -> None:
    [(end,)] = captured.agg(F.max("offset") + 1).collect()
    cut = int(end * part)
    whole = held(Log.of(captured, end))
    state = held(state_at(whole, cut))
    rest = held(Log.of(captured.where(F.col("offset") >= cut), end, base=state))
    assert everything(rest, cut) == everything(whole, cut)
