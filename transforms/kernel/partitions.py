"""The state of partitions: batch after batch in, changes and tables out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.entities.partitions import PARTITIONS
from schemas.kraft.enums import DIRECTORY_MIGRATING
from transforms.clusters import CLUSTER
from transforms.kernel import layout
from transforms.kernel.history import empty_changes, history
from transforms.kernel.layout import (
    LIST_NAMES,
    NUMBER_NAMES,
    Changes,
    Ints,
    Longs,
    Records,
    Slots,
    Step,
    Window,
    grown,
    read_only,
    room,
)
from transforms.kernel.records import Batch
from transforms.kernel.silver import silver_schema
from transforms.kernel.slots import enter_all, fill_table
from transforms.kernel.states import ALONE, EQUAL, compare, list_ends, list_values, put_lists
from transforms.kernel.steps import fold
from transforms.kernel.texts import Texts
from transforms.kernel.topics import Finding, Flags, Topics

SILVER: pa.Schema = silver_schema(PARTITIONS)
_FEWEST_CHANGES = 1024
_SMALLEST_TABLE = 256
# Code of the finding.
UNLIKE = "DIRECTORIES"
_SLACK = 16
_LONGS = {"offset": layout.OFFSET, "append_time": layout.APPEND_TIME, "created": layout.CREATED}
_LONGS |= {"lost_at": layout.LOST_AT, "unmade": layout.UNMADE}


class Differences(NamedTuple):
    """Slots of another state that are not as here, those of them that are not here at all, and slots that are only here."""

    different: Longs
    missing: Longs
    more: Longs


class Partitions:
    """All partitions that a shard's records name, those of removed topics included."""

    def __init__(self, cluster: str, topics: Topics) -> None:
        self.cluster = cluster
        self.topics = topics
        self.directories = Texts()
        self.directories.number(DIRECTORY_MIGRATING)
        self.slots = _empty_slots(64, 256)
        self._step = _empty_step(self.slots)
        self._found: list[Finding] = []

    def read(self, batch: Batch, rows: Longs, topics: Longs, window: Window) -> Iterator[pa.RecordBatch]:
        """Apply the records in some rows, which name the topics of these numbers; gives the changes in the window."""
        records = batch.records(rows, topics, self.directories)
        self._check_directories(records, window)
        changes = empty_changes(max(len(rows), _FEWEST_CHANGES), 0)
        made: list[pa.RecordBatch] = []
        place = 0
        while place < len(rows):
            place = fold(records, place, self.slots, self.topics.longs, self._step, changes, window)
            if place < len(rows):
                made += self._as_history(changes)
                changes = self._make_room(changes, len(rows) - place)
        made += self._as_history(changes)
        if made:
            # Whoever takes them takes as long for a few as for many, and a small log makes room nine times.
            yield pa.concat_batches(made) if len(made) > 1 else made[0]

    def _as_history(self, changes: Changes) -> list[pa.RecordBatch]:
        if not changes.used[layout.ROWS]:
            return []
        return [history(changes, self.cluster, self.topics.ids, self.topics.names)]

    def _make_room(self, changes: Changes, rows: int) -> Changes:
        """Make room for the record that found none, wherever it was; returns where further changes go."""
        ids = 4 * int(self.slots.used[layout.NEED]) + _SLACK
        slots, used = self.slots, self.slots.used
        if used[layout.POOL] + ids > slots.pool.size:
            slots = slots._replace(pool=grown(slots.pool, int(used[layout.POOL]) + ids))
        if used[layout.SLOTS] + 1 > len(slots.longs):
            slots = slots._replace(longs=grown(slots.longs, 0), ints=grown(slots.ints, 0))
        if 2 * used[layout.SLOTS] + 2 > len(slots.table):
            slots = slots._replace(table=np.zeros((2 * len(slots.table), 2), np.int64))
            fill_table(slots)
        self.slots, self._step = slots, _empty_step(slots)
        return empty_changes(max(rows, _FEWEST_CHANGES), ids)

    def _check_directories(self, records: Records, window: Window) -> None:
        """Records whose directories are not one a replica (`PartitionRegistration.checkDirectories` throws)."""
        rows = records.rows
        directories, replicas = (records.sizes[rows, k] for k in (layout.DIRECTORIES, layout.REPLICAS))
        wrong = (directories > 0) & (replicas >= 0) & (directories != replicas)
        for place in np.flatnonzero(wrong).tolist():
            topic, offset = self.topics.longs[records.topics[place]], int(records.offset[rows[place]])
            named = 0 <= topic[layout.MADE] <= offset
            if topic[layout.MINE] == 1 if named else window.nameless:
                subject = self._subject(int(records.topics[place]), int(records.partition[rows[place]]))
                self._found.append(Finding.at(offset, UNLIKE, subject, _unlike(directories[place], replicas[place])))

    def _subject(self, topic: int, partition: int) -> str:
        return f"{self.topics.ids.text(topic)} partition {partition}"

    def take_findings(self) -> list[Finding]:
        """The violations of rules since the last call."""
        found, self._found = self._found, []
        return found

    def findings(self) -> Iterator[Finding]:
        """Changes of a partition that no PartitionRecord had made (`ReplicationControlManager.replay` throws)."""
        unmade = self.longs(layout.UNMADE)
        mine = self.topics.owned[self.topic()]
        for slot in np.flatnonzero((unmade >= 0) & mine).tolist():
            subject = self._subject(int(self.topic()[slot]), int(self._partition()[slot]))
            detail = "a change of a partition that was never made"
            yield Finding.at(int(unmade[slot]), "PARTITION-UNKNOWN", subject, detail)

    def misfits(self, told: Collection[str]) -> Iterator[Finding]:
        """Partitions with known directories that are not one a replica (`PartitionRegistration` throws), but for those `told` already."""
        directories, replicas = (self._ints(layout.LENGTHS + k) for k in (layout.DIRECTORIES, layout.REPLICAS))
        living = self.living()
        for slot in living[directories[living] != replicas[living]].tolist():
            subject = self._subject(int(self.topic()[slot]), int(self._partition()[slot]))
            if subject not in told:
                offset = int(self.longs(layout.OFFSET)[slot])
                yield Finding.at(offset, UNLIKE, subject, _unlike(directories[slot], replicas[slot]))

    @property
    def count(self) -> int:
        """Number of slots."""
        return int(self.slots.used[layout.SLOTS])

    def longs(self, column: int) -> Longs:
        """A column of Slots.longs, of all slots."""
        return self.slots.longs[: self.count, column]

    def _ints(self, column: int) -> Ints:
        return self.slots.ints[: self.count, column]

    def topic(self) -> Longs:
        """Number of each slot's topic."""
        return self.longs(layout.KEY) >> 32

    def _partition(self) -> Ints:
        return self.longs(layout.KEY).astype(np.int32)

    def living(self) -> Longs:
        """Slots of the partitions that are there: made, and of a topic that is there.

        A second TopicRecord of an id begins the topic again, without its partitions (`TopicsDelta.replay`): a load that is repeated
        makes those again that ZooKeeper has.
        """
        slots = self.made(self.topics.here)
        made_last: Longs = self.topics.longs[self.topic()[slots], layout.MADE_LAST]
        return slots[self.longs(layout.OFFSET)[slots] >= made_last]

    def gone(self) -> Longs:
        """Slots of the partitions that went with their topic."""
        return self.made(self.topics.gone)

    def made(self, topics: Flags) -> Longs:
        """Slots of the partitions of some topics that a PartitionRecord made."""
        if not len(topics):
            return np.empty(0, np.int64)
        return np.flatnonzero((self.longs(layout.CREATED) >= 0) & topics[self.topic()])

    def table(self, picked: Longs, *, gone: bool = False) -> pa.Table:
        """Some slots as rows of SILVER; with `gone` where the log says so is the removal of their topic."""
        topic = self.topic()[picked]
        slots = self.slots
        at: list[Longs | Ints] = [slots.longs[picked, k] for k in (layout.OFFSET, layout.APPEND_TIME)]
        at.append(slots.ints[picked, layout.EPOCH])
        if gone:
            at = [self.topics.longs[topic, k] for k in (layout.LAST_OFFSET, layout.LAST_TIME, layout.LAST_EPOCH)]
        columns = {
            CLUSTER: pa.repeat(pa.scalar(self.cluster), len(picked)),
            "topic": self.topics.names.column(self.topics.longs[topic, layout.NAME]),
            "topic_id": self.topics.ids.column(topic),
            "partition": pa.array(self._partition()[picked]),
            "directories": self._directories(picked),
            "kraft_offset": pa.array(at[0]),
            "kraft_created_offset": pa.array(self.longs(layout.CREATED)[picked]),
            "kraft_epoch": pa.array(at[2]),
            "kraft_append_time": pa.array(at[1]),
            **{name: self._list(picked, k) for k, name in enumerate(LIST_NAMES)},
            **{name: pa.array(self._ints(k)[picked]) for k, name in enumerate(NUMBER_NAMES)},
        }
        nothing = {field.name: pa.nulls(len(picked), field.type) for field in SILVER if field.name not in columns}
        return pa.table([(columns | nothing)[field.name].cast(field.type) for field in SILVER], SILVER)

    def _list(self, picked: Longs, k: int, values: pa.Array | None = None) -> pa.ListArray:
        ends = np.empty(len(picked) + 1, np.int32)
        list_ends(self.slots, picked, k, ends)
        ids = np.empty(int(ends[-1]), np.int32)
        list_values(self.slots, picked, k, ends, ids)
        null = self._ints(layout.LENGTHS + k)[picked] < 0
        return pa.ListArray.from_arrays(pa.array(ends), pa.array(ids), mask=pa.array(null))

    def _directories(self, picked: Longs) -> pa.ListArray:
        numbers = self._list(picked, layout.DIRECTORIES)
        texts = self.directories.column(numbers.values.to_numpy())
        null = numbers.is_null()
        return pa.ListArray.from_arrays(numbers.offsets, texts, mask=null)

    def against(self, theirs: Partitions, *, directories: bool, elr: bool) -> Differences:
        """Living partitions of another state of the same log that differ from those here, or are on one side only."""
        picked = theirs.living()
        topic_of = self.topics.ids.find(theirs.topics.ids.all())
        directory_of = self.directories.find(theirs.directories.all()) if directories else np.empty(0, np.int64)
        partners, found = np.empty(len(picked), np.int64), np.empty(len(picked), np.int32)
        compare(self.slots, theirs.slots, picked, topic_of, directory_of, elr, partners, found)
        living = self.living()
        missing = (found == ALONE) | ~np.isin(partners, living)
        return Differences(picked[(found != EQUAL) & ~missing], picked[missing], living[~np.isin(living, partners)])

    def keys(self, picked: Longs) -> list[str]:
        """Topic id and number of some partitions, as one text each."""
        ids = self.topics.ids.column(self.topic()[picked]).to_pylist()
        return [f"{topic}/{number}" for topic, number in zip(ids, self._partition()[picked].tolist(), strict=True)]

    def kept(self, topics: Longs) -> tuple[pa.Table, pa.StringArray]:
        """All slots as `restore` takes them, and the directories that they name; `topics` says by which number each topic is kept.

        In the order of topics and partitions, so that the same state gives the same rows whatever way it came about.
        """
        topic, partition = topics[self.topic()], self._partition()
        order = np.lexsort((partition, topic))
        lists = {name: self._list(order, k) for k, name in enumerate((*LIST_NAMES, "directories"))}
        numbers = lists["directories"].values.to_numpy()
        texts = self.directories.column(np.unique(np.append(numbers, 0)))
        texts = texts.take(pc.sort_indices(texts))
        named = Texts()
        named.numbers(texts)
        renumbered = pa.array(named.find(self.directories.all())[numbers].astype(np.int32))
        null = lists["directories"].is_null()
        lists["directories"] = pa.ListArray.from_arrays(lists["directories"].offsets, renumbered, mask=null)
        columns: dict[str, pa.Array] = {
            "topic": pa.array(topic[order].astype(np.int32)),
            "partition": pa.array(partition[order]),
            **{name: pa.array(self.longs(column)[order]) for name, column in _LONGS.items()},
            "epoch": pa.array(self._ints(layout.EPOCH)[order]),
            **{name: pa.array(self._ints(k)[order]) for k, name in enumerate(NUMBER_NAMES)},
            **lists,
        }
        return pa.table(columns), texts

    def restore(self, rows: pa.Table, directories: pa.StringArray) -> None:
        """Take the slots and directories of `kept`; the topics are there already."""
        known = self.directories.numbers(directories)
        table = rows.combine_chunks()
        count = table.num_rows
        numbers = {name: _numbers(table[name]) for name in table.column_names if not pa.types.is_list(table[name].type)}
        lists = [one_chunk(table[name]) for name in (*LIST_NAMES, "directories")]
        lengths = [np.diff(each.offsets.to_numpy()) for each in lists]
        capacities = np.sum(lengths, axis=0, dtype=np.int64)
        slots = _empty_slots(max(count, 1), int(capacities.sum()))
        key = numbers["topic"].astype(np.int64) << 32 | (numbers["partition"].astype(np.int64) & 0xFFFFFFFF)
        slots.longs[:count, layout.KEY] = key
        slots.longs[:count, layout.START] = np.cumsum(capacities) - capacities
        for name, column in _LONGS.items():
            slots.longs[:count, column] = numbers[name]
        slots.ints[:count, layout.CAPACITY] = slots.ints[:count, layout.TOTAL] = capacities
        slots.ints[:count, layout.EPOCH] = numbers["epoch"]
        for k, name in enumerate(NUMBER_NAMES):
            slots.ints[:count, k] = numbers[name]
        slots.used[:] = count, capacities.sum(), 0
        for k, (each, length) in enumerate(zip(lists, lengths, strict=True)):
            null = each.is_null().to_numpy(zero_copy_only=False)
            slots.ints[:count, layout.LENGTHS + k] = np.where(null, layout.NULL, length)
        for k, each in enumerate(lists):
            values = each.values.to_numpy()
            ids = known[values].astype(np.int32) if k == layout.DIRECTORIES else values
            put_lists(slots, k, each.offsets.to_numpy(), read_only(ids))
        enter_all(slots, self.topics.longs)
        self.slots, self._step = slots, _empty_step(slots)


def _empty_slots(count: int, ids: int) -> Slots:
    return Slots(
        longs=room((count, layout.SLOT_LONGS), np.int64),
        ints=room((count, layout.SLOT_INTS), np.int32),
        pool=room((ids + _SLACK,), np.int32),
        table=np.zeros((1 << max(4 * count, _SMALLEST_TABLE).bit_length(), 2), np.int64),
        used=np.zeros(3, np.int64),
    )


def _empty_step(slots: Slots) -> Step:
    return Step(
        pool=slots.pool,
        starts=np.zeros(2 * layout.LISTS, np.uint32),
        sizes=np.zeros(2 * layout.LISTS, np.int32),
        numbers=np.zeros((2, layout.NUMBERS), np.int64),
        facts=np.zeros(layout.FACTS, np.int64),
        ahead=np.zeros(layout.AHEAD, np.int64),
    )


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column of a table as one array."""
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = column.to_numpy()
    return numbers


def _unlike(directories: int, replicas: int) -> str:
    return f"{directories} directories for {replicas} replicas"
