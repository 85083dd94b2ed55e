"""replay(prefix), then the rest from its state, is replay(all): rows, provenance, versions and findings (DESIGN §4.4).

Several logs stand in one frame as several clusters, as a run has them, and none may touch another's rows.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.sources.kraft.log import KraftLogDataSource
from schemas.bronze import LOG_RECORD_COLUMNS, RUN_COLUMNS
from schemas.entities import MIRRORED
from tests.held import held, held_log, hold
from tests.kraft.dumps import log_folder
from transforms.clusters import CLUSTER, by_cluster
from transforms.kraft.replay.compaction import compacted_below, compacted_then
from transforms.kraft.replay.extent import Extent
from transforms.kraft.replay.findings import log_findings
from transforms.kraft.replay.image import Log, image, row_versions
from transforms.kraft.replay.rows import fold
from transforms.unions import union_all

RECORDS = StructType([RUN_COLUMNS[0], *LOG_RECORD_COLUMNS])
TOPIC_NAMES = ("orders", "payments", "audit")
BROKERS = (1, 2, 3)
# Seed and length of the log of each cluster.
LOGS = {"one": (1, 160), "two": (2, 175), "three": (3, 190)}


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(row[0] for row in frame.select(F.to_json(F.struct(*sorted(frame.columns)))).collect())


def everything(
    log: Log, after: Mapping[str, int], records: DataFrame, whole: Log | None = None
) -> dict[str, list[str]]:
    """What a run makes of its logs: state with provenance, every version from `after` on, findings."""
    folded = hold(fold(log.events))
    frames = {
        **image(log, folded),
        "row_versions": row_versions(log, folded, after, MIRRORED),
        "findings": log_findings(whole or log, log, folded, records, {}),
    }
    # One query for all of it: each takes longer to plan than to run.
    texts = [
        rows.select(F.lit(name).alias("name"), F.to_json(F.struct(*sorted(rows.columns))).alias("row"))
        for name, rows in frames.items()
    ]
    made: dict[str, list[str]] = {name: [] for name in frames}
    for name, row in union_all(texts).collect():
        made[name].append(row)
    return {name: sorted(rows) for name, rows in made.items()}


def of_cluster(made: Mapping[str, list[str]], cluster: str) -> dict[str, list[str]]:
    """The part of `everything` that is a cluster's."""
    return {name: [row for row in rows if json.loads(row)[CLUSTER] == cluster] for name, rows in made.items()}


def extents(ends: Mapping[str, int]) -> dict[str, Extent]:
    return {cluster: Extent(end) for cluster, end in ends.items()}


def since(records: DataFrame, offsets: Mapping[str, int]) -> DataFrame:
    """Records from each cluster's offset on; all of a cluster that is not in `offsets`."""
    return records.where(F.col("offset") >= F.coalesce(by_cluster(offsets, "bigint"), F.lit(0)))


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

    def tuples(self, cluster: str) -> list[tuple[object, ...]]:
        names = RECORDS.fieldNames()
        return [tuple({**row, CLUSTER: cluster}.get(name) for name in names) for row in self.rows]


@pytest.fixture(scope="module")
def random_logs() -> dict[str, RandomLog]:
    return {cluster: RandomLog(seed, length) for cluster, (seed, length) in LOGS.items()}


@pytest.fixture(scope="module")
def records(spark: SparkSession, random_logs: dict[str, RandomLog]) -> DataFrame:
    rows = [row for cluster, log in random_logs.items() for row in log.tuples(cluster)]
    return hold(spark.createDataFrame(rows, RECORDS))


ENDS = {cluster: length for cluster, (_, length) in LOGS.items()}


@pytest.fixture(scope="module")
def whole(records: DataFrame) -> Log:
    return held_log(records, extents(ENDS))


# Seeds from three on leave a cluster out: of one nothing was kept, and it is read whole beside those that go on.
SEEDS = (0, 1, 3, 4)


@dataclass(frozen=True)
class Cut:
    """The logs once for each seed, each cut at random: what is made of the whole, and of the rest after the prefix."""

    places: dict[str, str]
    whole: dict[str, list[str]]
    between_runs: dict[str, list[str]]
    within_a_run: dict[str, list[str]]


@pytest.fixture(scope="module")
def cut(records: DataFrame) -> Cut:
    ends, cuts, after = {}, {}, {}
    for seed in SEEDS:
        chance = random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
        ends |= {f"{cluster}-{seed}": end for cluster, end in ENDS.items()}
        mine = {name: chance.randint(1, ends[name]) for name in ends if name.endswith(f"-{seed}")}
        left_out = chance.choice(sorted(mine)) if seed >= len(ENDS) else None
        after |= {name: chance.randint(0 if name == left_out else at, ends[name]) for name, at in mine.items()}
        cuts |= {name: at for name, at in mine.items() if name != left_out}
    named = F.explode(F.array(*[F.concat(CLUSTER, F.lit(f"-{seed}")) for seed in SEEDS]))
    copies = hold(records.withColumn(CLUSTER, named))
    whole = held_log(copies, extents(ends))
    # As between two runs: the state is all that is left of the prefix.
    state = held(compacted_below(whole, cuts))
    rest = held_log(since(copies, cuts), extents(ends), state)
    return Cut(
        {name: f"cut at {cuts.get(name)}, versions from {after[name]}" for name in ends},
        everything(whole, after, copies),
        everything(rest, after, since(copies, cuts)),
        # As within one run: the prefix is compacted, the findings still read all of it.
        everything(held(compacted_then(state, whole, cuts)), after, copies, whole),
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cluster", ENDS)
def test_the_rest_after_any_prefix_is_the_whole(cut: Cut, cluster: str, seed: int) -> None:
    name = f"{cluster}-{seed}"
    expected = of_cluster(cut.whole, name)
    assert expected["partitions"]
    assert of_cluster(cut.between_runs, name) == expected, cut.places[name]
    assert of_cluster(cut.within_a_run, name) == expected, cut.places[name]


def test_no_row_is_of_another_cluster(cut: Cut) -> None:
    assert cut.between_runs == cut.whole
    assert cut.within_a_run == cut.whole


HALVES = {cluster: end // 2 for cluster, end in ENDS.items()}


@pytest.fixture(scope="module")
def halved(records: DataFrame, whole: Log) -> dict[str, list[str]]:
    """What a run makes of all logs at once, with every version from the middle on."""
    return everything(whole, HALVES, records)


@pytest.mark.parametrize("cluster", ["one", "three"])
def test_logs_at_once_are_each_what_it_is_alone(
    records: DataFrame, whole: Log, halved: dict[str, list[str]], cluster: str
) -> None:
    after = HALVES
    mine_alone = records.where(F.col(CLUSTER) == cluster)
    alone = held_log(mine_alone, extents({cluster: ENDS[cluster]}))
    expected = everything(alone, {cluster: after[cluster]}, mine_alone)
    assert of_cluster(halved, cluster) == expected
    assert expected["row_versions"]
    assert expected["partitions"]
    # And the state of one is not in the others' way, nor theirs in its.
    state, own = compacted_below(whole, after), compacted_below(alone, {cluster: after[cluster]})
    for mine, rows in ((own.events, state.events), (own.partition_records, state.partition_records)):
        assert rows_of(rows.where(F.col(CLUSTER) == cluster)) == rows_of(mine)


def test_a_state_of_a_state_is_the_same_state(whole: Log) -> None:
    once = held(compacted_below(whole, HALVES))
    twice = compacted_below(compacted_then(once, whole, HALVES), ENDS)
    direct = compacted_below(whole, ENDS)
    assert rows_of(twice.events.distinct()) == rows_of(direct.events.distinct())
    assert rows_of(twice.partition_records) == rows_of(direct.partition_records)


def test_order_of_rows_and_partitions_changes_nothing(
    spark: SparkSession, records: DataFrame, halved: dict[str, list[str]]
) -> None:
    rows = records.collect()
    random.Random(1).shuffle(rows)  # noqa: S311 - any order will do
    shuffled = hold(spark.createDataFrame(rows, RECORDS).repartition(7))
    assert everything(held_log(shuffled, extents(ENDS)), HALVES, shuffled) == halved


PARTS = (0.2, 0.7)


@pytest.fixture(scope="module")
def migration(spark: SparkSession) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """What is made of a real migration's log whole, and after each part of it, which stand together as clusters."""
    spark.dataSource.register(KraftLogDataSource)
    reader = spark.read.format("kraft_log").option("controller", "3001")
    rows = reader.load(str(log_folder("3.9.1", "12-finalized", 3001).parents[1]))
    names = [str(part) for part in PARTS]
    captured = hold(rows.withColumn(CLUSTER, F.explode(F.array(*map(F.lit, names)))))
    [(end,)] = captured.agg(F.max("offset") + 1).collect()
    cuts, all_of_it = {name: int(end * float(name)) for name in names}, extents(dict.fromkeys(names, end))
    whole = held_log(captured, all_of_it)
    state = held(compacted_below(whole, cuts))
    later = since(captured, cuts)
    return everything(whole, cuts, captured), everything(held_log(later, all_of_it, state), cuts, later)


@pytest.mark.parametrize("part", PARTS)
def test_a_real_migration_cut_in_two(migration: tuple[dict[str, list[str]], dict[str, list[str]]], part: float) -> None:
    whole, rest = migration
    expected = of_cluster(whole, str(part))
    assert expected["partitions"]
    assert expected["row_versions"]
    assert of_cluster(rest, str(part)) == expected
    assert rest == whole
