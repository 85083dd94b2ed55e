"""How fast the kernel folds records of partitions and tells their whole history.

    python -m tests.benchmarks.kernel [--partitions N] [--records N]

A log is made as a controller writes it: topics with their partitions, then shrinks, expansions and moves of leaders at random.
The kernel reads it in the order of the log. Figures are of the processor's time of one core.
"""

from __future__ import annotations

import argparse
import base64
import json
import resource
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.kernel.replay import Plan, TableKind, replay, warm_up
from transforms.kraft.decode.rows import RECORD_SCHEMA
from transforms.kraft.replay.extent import Extent

BATCH = 65_536
PER_TOPIC = 10
BROKERS = 30
_IDS = RECORD_SCHEMA.field("isr").type
Ints = npt.NDArray[np.int32]


def topic_id(number: int) -> str:
    """The id of a topic, as Kafka spells it."""
    return base64.urlsafe_b64encode((number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128)).to_bytes(16, "big"))[
        :22
    ].decode()


class GeneratedLog:
    """A log of `partitions` and, with what makes them, about `records` records, in batches of bronze rows."""

    def __init__(self, partitions: int, records: int) -> None:
        self.partitions = partitions
        self.changes = records - partitions
        self.end = records + -(-partitions // PER_TOPIC)
        self.topics = pa.array([topic_id(number) for number in range(-(-partitions // PER_TOPIC))])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All batches, in the order of the log."""
        offset = 0
        for first in range(0, self.partitions, BATCH):
            numbers = np.arange(first, min(first + BATCH, self.partitions))
            for batch in (self._topic_records(numbers), self._partition_records(numbers)):
                yield _placed(batch, offset)
                offset += batch.num_rows
        chance = np.random.default_rng(1)
        for first in range(0, self.changes, BATCH):
            batch = self._changes(chance, min(BATCH, self.changes - first))
            yield _placed(batch, offset)
            offset += batch.num_rows

    def _topic_records(self, numbers: npt.NDArray[np.int64]) -> pa.RecordBatch:
        topics = np.unique(numbers // PER_TOPIC)
        made = [topic for topic in topics.tolist() if topic * PER_TOPIC >= numbers[0]]
        ids = self.topics.take(pa.array(made, pa.int64())).to_pylist()
        bodies = [json.dumps({"name": f"topic-{n}", "topicId": each}) for n, each in zip(made, ids, strict=True)]
        return _rows(len(made), type=pa.repeat("TOPIC_RECORD", len(made)), data=pa.array(bodies, pa.string()))

    def _partition_records(self, numbers: npt.NDArray[np.int64]) -> pa.RecordBatch:
        count = len(numbers)
        replicas = _replicas(numbers)
        none = pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.int32()))
        return _rows(
            count,
            type=pa.repeat("PARTITION_RECORD", count),
            **self._keys(numbers),
            replicas=_lists(replicas),
            isr=_lists(replicas),
            adding_replicas=none,
            removing_replicas=none,
            leader=pa.array(replicas[:, 0]),
            leader_epoch=pa.array(np.zeros(count, np.int32)),
            partition_epoch=pa.array(np.zeros(count, np.int32)),
            leader_recovery_state=pa.array(np.zeros(count, np.int8)),
        )

    def _changes(self, chance: np.random.Generator, count: int) -> pa.RecordBatch:
        numbers = chance.integers(0, self.partitions, count)
        replicas = _replicas(numbers)
        kind = chance.integers(0, 4, count)
        sizes = np.select([kind == 0, kind == 1], [2, 3], 0)
        inside = np.arange(3) < sizes[:, None]
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        isr = pa.ListArray.from_arrays(pa.array(ends), pa.array(replicas[inside]), mask=pa.array(sizes == 0))
        leader = np.where(
            kind == 2, replicas[np.arange(count), chance.integers(0, 3, count)], np.where(kind == 3, -1, -2)
        )
        return _rows(
            count,
            type=pa.repeat("PARTITION_CHANGE_RECORD", count),
            **self._keys(numbers),
            isr=isr,
            leader=pa.array(leader.astype(np.int32)),
            leader_recovery_state=pa.array(np.full(count, -1, np.int8)),
        )

    def _keys(self, numbers: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        return {
            "topic_id": self.topics.take(pa.array(numbers // PER_TOPIC)),
            "partition_id": pa.array((numbers % PER_TOPIC).astype(np.int32)),
        }


def _replicas(numbers: npt.NDArray[np.int64]) -> Ints:
    return ((numbers[:, None] + np.array([0, 7, 11])) % BROKERS).astype(np.int32)


def _lists(rows: Ints) -> pa.ListArray:
    ends = np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(rows.ravel()))


def _rows(count: int, **columns: pa.Array) -> pa.RecordBatch:
    arrays = [columns.get(field.name, pa.nulls(count, field.type)).cast(field.type) for field in RECORD_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORD_SCHEMA)


def _placed(batch: pa.RecordBatch, offset: int) -> pa.RecordBatch:
    places = np.arange(offset, offset + batch.num_rows)
    values = {
        "offset": pa.array(places),
        "epoch": pa.array(np.full(batch.num_rows, 7, np.int32)),
        "append_time": pa.array(1_700_000_000_000 + places),
        "control": pa.repeat(False, batch.num_rows),
    }
    for name, column in values.items():
        batch = batch.set_column(batch.schema.get_field_index(name), RECORD_SCHEMA.field(name), column)
    return batch


class Consumed:
    """Batches, and the processor time that making them took: not the kernel's."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.batches = iter(batches)
        self.seconds = 0.0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            begun = time.process_time()
            batch = next(self.batches, None)
            self.seconds += time.process_time() - begun
            if batch is None:
                return
            yield batch


@dataclass
class Measured:
    """A pass: changes told, seconds of processor time by what was told, and the kept bytes."""

    changes: int = 0
    seconds: dict[TableKind, float] = field(default_factory=lambda: defaultdict(float))
    kept: bytes = b""


def measured(plan: Plan, batches: Iterable[pa.RecordBatch], kept: bytes | None = None) -> Measured:
    """Run a pass over batches that are made as they are read."""
    read, found = Consumed(batches), Measured()
    begun, reading = time.process_time(), 0.0
    for told in replay(plan, read, kept):
        now = time.process_time()
        found.seconds[told.kind] += now - begun - (read.seconds - reading)
        begun, reading = now, read.seconds
        if told.kind == TableKind.HISTORY:
            found.changes += told.rows.num_rows
        elif told.kind == TableKind.KEPT:
            found.kept = told.rows["kept"][0].as_py()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--records", type=int, default=10_000_000)
    asked = parser.parse_args()
    warm_up()
    log = GeneratedLog(asked.partitions, asked.records)
    plan = Plan("one", Extent(log.end), keep_at=log.end)
    whole = measured(plan, log.batches())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{whole.changes:,} changes of {asked.partitions:,} partitions folded and told in {whole.seconds[TableKind.HISTORY]:.1f} s, "
        f"kept as {len(whole.kept) / 1e6:.1f} MB in {whole.seconds[TableKind.KEPT]:.1f} s, at most {memory:,.0f} MiB"
    )
    rest = measured(plan, [], whole.kept)
    print(f"continued from there, to the tables of the whole state: {sum(rest.seconds.values()):.1f} s")


if __name__ == "__main__":
    main()
