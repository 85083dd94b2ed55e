"""The state of one shard of a cluster: batches of records in, in the order of the log; tables and findings out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from schemas.checks.codes import CLEAR_UNKNOWN, CONFIG_ALONE
from schemas.entities.topics import TOPICS
from schemas.kraft.enums import CONFIG_RESOURCE_TYPES
from schemas.kraft.records import CLEAR_ELR, CONFIG, REMOVE_TOPIC, TOPIC
from schemas.silver import FINDINGS as FINDINGS_TABLE
from transforms.clusters import CLUSTER
from transforms.kernel.brokers import BrokerEvent, Brokers
from transforms.kernel.cold import Cold
from transforms.kernel.layout import (
    CLEAR,
    EVERY_TOPIC,
    LAST_EPOCH,
    LAST_OFFSET,
    LAST_TIME,
    MADE,
    NAME,
    Longs,
    Window,
)
from transforms.kernel.partitions import UNLIKE, Partitions
from transforms.kernel.records import Batch
from transforms.kernel.shards import Shard
from transforms.kernel.silver import silver_schema
from transforms.kernel.topics import At, Finding, Topics
from transforms.kernel.versions import VERSIONS, Versions, holding_elr
from transforms.kraft.replay.entities import DELETE, READERS, Event

FINDINGS: pa.Schema = to_arrow_schema(StructType([f for f in FINDINGS_TABLE.columns if f.name != "run_id"]))
_TOPICS: pa.Schema = silver_schema(TOPICS)
_OF_TOPICS = frozenset((TOPIC.name, REMOVE_TOPIC.name))
# Types that may be any shard's; all others are read by shard 0 alone.
_ANYWHERE = _OF_TOPICS | {CONFIG.name, CLEAR_ELR.name}
_COLD = ("type", "data", "epoch", "append_time")


class Fold:
    """All that records made of a shard."""

    def __init__(self, cluster: str, shard: Shard) -> None:
        self.cluster = cluster
        self.shard = shard
        self.topics = Topics(shard)
        self.partitions = Partitions(cluster, self.topics)
        self.cold = Cold()
        self.brokers = Brokers()
        # What was found as its record was read, and offsets of CLEAR_ELR records of all topics.
        self.found: list[Finding] = []
        self.clears: list[int] = []
        self.versions: Versions | None = None
        # Types of records that this shard reads, but for those of partitions.
        self._read_here = pa.array(sorted(_ANYWHERE | (READERS.keys() if shard.has_the_rest else set())))

    def record(self, versions: Versions) -> None:
        """From here on, record in `versions` what rows were before further records and what these make of them."""
        self.versions = versions
        self.cold.watch = versions.row

    def row_versions(self) -> pl.DataFrame:
        """What was recorded: columns of `transforms.kernel.versions.VERSIONS`; no rows without `record`."""
        if self.versions is None:
            return pl.DataFrame(schema=VERSIONS)
        return self.versions.table(self.topics, self.partitions, self.cold)

    def read(self, batch: Batch, rows: Longs, first: int, end: int) -> Iterator[pa.RecordBatch]:
        """Apply the records in some rows, in order; gives the changes of partitions at offsets from `first` to `end` (exclusive)."""
        window = Window(first, end, self.shard.has_the_rest)
        for part, every in _parts(batch, rows):
            clears = self._read_cold(batch, part[~batch.of_partitions[part]])
            yield from self._read_partitions(batch, part[batch.of_partitions[part]], clears, window)
            if every is not None:
                self.clears.append(int(batch.offsets[every]))
                if self.versions is not None:
                    self.versions.touch(holding_elr(self.partitions, self.topics), self.topics, self.partitions)
                yield from self._recorded(
                    self.partitions.read(batch, np.array([every]), np.array([EVERY_TOPIC]), window)
                )

    def _read_partitions(
        self, batch: Batch, rows: Longs, clears: list[tuple[int, int]], window: Window
    ) -> Iterator[pa.RecordBatch]:
        """Records of partitions and those (row, topic) that clear one topic's, in their order."""
        topics = self.topics.numbers(batch.rows["topic_id"], rows)
        if self.versions is not None:
            self._touch(topics, clears)
        if clears:
            more = np.array(clears)
            rows, topics = np.concatenate([rows, more[:, 0]]), np.concatenate([topics, more[:, 1]])
            in_order = np.argsort(rows, kind="stable")
            rows, topics = rows[in_order], topics[in_order]
        if len(rows):
            yield from self._recorded(self.partitions.read(batch, rows, topics, window))
            self.found += self.partitions.take_findings()

    def _touch(self, topics: Longs, clears: list[tuple[int, int]]) -> None:
        """Pass the partitions to `versions` before records on them are applied."""
        if clears:
            named = np.array([topic for _, topic in clears], np.int64)
            topics = np.concatenate([topics, holding_elr(self.partitions, self.topics, named)])
        if self.versions is not None:
            self.versions.touch(topics, self.topics, self.partitions)

    def _recorded(self, changes: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in changes:
            if self.versions is not None:
                self.versions.take(batch)
            yield batch

    def _read_cold(self, batch: Batch, rows: Longs) -> list[tuple[int, int]]:
        """Apply all other records; gives the rows of those that clear one topic's ELR, with its number."""
        clears: list[tuple[int, int]] = []
        places = pa.array(rows)
        places = places.filter(pc.is_in(batch.rows["type"].take(places), self._read_here))
        rows = places.to_numpy()
        columns = [batch.rows[name].take(places).to_pylist() for name in _COLD]
        for row, offset, kind, data, epoch, time in zip(
            rows.tolist(), batch.offsets[rows].tolist(), *columns, strict=True
        ):
            at, body = At(offset, epoch, time), json.loads(data)
            if kind == CLEAR_ELR.name:
                clears += [(row, topic) for topic in self._to_clear(body["topicName"], at)]
            elif kind != CONFIG.name or self._owns_config(body):
                for event in READERS[kind](body):
                    self._apply(event, body, at)
        self.topics.settle()
        return clears

    def _owns_config(self, body: Mapping[str, Any]) -> bool:
        if CONFIG_RESOURCE_TYPES.get(body["resourceType"]) == "TOPIC":
            return self.shard.owns(body["resourceName"])
        return self.shard.has_the_rest

    def _to_clear(self, name: str, at: At) -> list[int]:
        """Numbers of the topics that a CLEAR_ELR names (`ReplicationControlManager.replayClearTopicElrs` throws without any)."""
        topics = self.topics.living(name)
        if name and not topics and self.shard.owns(name):
            detail = "a ClearElr record of a topic that is not there"
            self.found.append(Finding.at(at.offset, CLEAR_UNKNOWN, name, detail))
        return topics

    def _apply(self, event: Event, body: Mapping[str, Any], at: At) -> None:
        key = event.key[0] if event.key else None
        if event.entity == TOPICS.name:
            self._apply_topic(event, str(key), at)
        elif event.entity == "brokers":
            asked = body.get("brokerEpoch") if event.op == DELETE else None
            self.brokers.events.append(BrokerEvent(int(key or 0), event.op, event.row, asked, at))
        else:
            self._note(self.cold.apply(event, at))

    def _apply_topic(self, event: Event, topic_id: str, at: At) -> None:
        if self.versions is not None:
            self.versions.topic(self.topics, topic_id, None if event.row is None else event.row["topic"], at)
        if event.row is not None:
            self.topics.make(topic_id, event.row["topic"], at)
            return
        self._note(self.topics.remove(topic_id, at))
        name = self.topics.name_of(topic_id)
        if name is not None:
            self.cold.remove_configs_of(name, at)

    def _note(self, finding: Finding | None) -> None:
        if finding is not None:
            self.found.append(finding)

    def tables(self) -> dict[str, pa.Table]:
        """The state as silver has it, without the run's columns: a table by entity."""
        return {
            "topics": self._topics(),
            "partitions": self.partitions.table(self.partitions.living()),
            "brokers": self.brokers.table(self.cluster),
            **self.cold.tables(self.cluster),
        }

    def _topics(self) -> pa.Table:
        numbers = np.flatnonzero(self.topics.here)
        rows = self.topics.longs[numbers]
        columns = [
            pa.repeat(pa.scalar(self.cluster), len(rows)),
            self.topics.names.column(rows[:, NAME]),
            self.topics.ids.column(numbers),
            *[pa.array(rows[:, column]) for column in (LAST_OFFSET, MADE, LAST_EPOCH, LAST_TIME)],
        ]
        return pa.table([each.cast(f.type) for each, f in zip(columns, _TOPICS, strict=True)], _TOPICS)

    def findings(self, snapshot: int | None = None, committed: int | None = None) -> pa.Table:
        """What breaks a rule of replay: columns FINDINGS.

        `snapshot` is the first offset (inclusive) that some node replays when it starts, `committed` the committed end (exclusive),
        where the log goes on.
        """
        found = [
            *self.found,
            *self.partitions.findings(),
            *self.partitions.misfits({each.subject for each in self.found if each.code == UNLIKE}),
            *self.topics.findings(self.clears, snapshot or 0, committed),
            *self.brokers.findings(),
            *self._alone(),
        ]
        return findings_table(self.cluster, found)

    def _alone(self) -> Iterator[Finding]:
        """Configurations of topics that are not there, as the checkpoint has them that the log begins with."""
        living = set(self.topics.names.column(self.topics.longs[np.flatnonzero(self.topics.here), NAME]).to_pylist())
        for key, row in self.cold.configs_without(living):
            yield Finding.at(row.at.offset, CONFIG_ALONE, f"configs {key}", "its topic is not there")


def findings_table(cluster: str, found: list[Finding]) -> pa.Table:
    """Findings as rows of FINDINGS."""
    return pa.Table.from_pylist([{CLUSTER: cluster, "source": "kraft", **vars(each)} for each in found], FINDINGS)


def _parts(batch: Batch, rows: Longs) -> Iterator[tuple[Longs, int | None]]:
    """The rows cut after each CLEAR_ELR of all topics, which is the second of a pair: it looks at all that is there then."""
    clears = rows[batch.does[rows] == CLEAR]
    names = [json.loads(data)["topicName"] for data in batch.rows["data"].take(pa.array(clears)).to_pylist()]
    begin = 0
    for row, name in zip(clears.tolist(), names, strict=True):
        if not name:
            end = int(np.searchsorted(rows, row))
            yield rows[begin:end], row
            begin = end + 1
    yield rows[begin:], None
