"""Lives of topics: each id with its name, when it was created and removed, and its faults (S§3.1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.checks.codes import CLEAR_REMOVED, MADE_AGAIN, TOPIC_UNKNOWN
from transforms.kernel.entries import make_topics
from transforms.kernel.layout import (
    ALIVE,
    LAST_EPOCH,
    LAST_OFFSET,
    LAST_TIME,
    MADE,
    MADE_LAST,
    MINE,
    NAME,
    NAMESAKE,
    NULL,
    REMOVED,
    SEEN_FIRST,
    SEEN_LAST,
    TIMES,
    TOPIC_LONGS,
    Longs,
    grown,
)
from transforms.kernel.shards import Shard, utf8
from transforms.kernel.texts import Texts

Flags = npt.NDArray[np.bool_]


class At(NamedTuple):
    """Where a record stands in the log."""

    offset: int
    epoch: int
    append_time: int


@dataclass(frozen=True)
class Finding:
    """A violation of a rule, and its place: an offset, or `place`."""

    code: str
    subject: str
    detail: str
    place: str

    @staticmethod
    def at(offset: int, code: str, subject: str, detail: str) -> Finding:
        """A finding at an offset of the log."""
        return Finding(code, subject, detail, f"offset {offset}")


class Topics:
    """All ids of topics that records name, by number: rows of `transforms.kernel.layout`'s columns of a topic.

    Topics of other shards are only marked as such. An id keeps the name of its first TopicRecord. An id without a
    TopicRecord has no known shard: every shard folds its records, and shard 0 reports them.
    """

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.ids = Texts()
        self.names = Texts()
        self.longs: Longs = _nothing(64, TOPIC_LONGS)
        self.newest: Longs = _nothing(64)
        self._made: list[tuple[str, str, At]] = []
        self._waiting: set[str] = set()

    def numbers(self, ids: pa.StringArray, rows: Longs | None = None) -> Longs:
        """Numbers of the topics with the ids in some rows of a column."""
        numbers = self.ids.numbers(ids, rows)
        self.longs = _with_room(self.longs, len(self.ids))
        return numbers

    def number(self, topic_id: str) -> int:
        """The number of a topic's id."""
        number = self.ids.number(topic_id)
        self.longs = _with_room(self.longs, len(self.ids))
        return number

    def find(self, topic_id: str) -> int:
        """The number of a topic's id; -1 for one that no record has named."""
        return int(self.ids.find(pa.array([utf8(topic_id)], pa.string()))[0])

    def make(self, topic_id: str, name: str, at: At) -> None:
        """A TopicRecord; it counts from `settle` on, which makes many at once."""
        self._made.append((topic_id, name, at))
        self._waiting.add(topic_id)

    def settle(self) -> None:
        """Make the topics that wait."""
        if not self._made:
            return
        ids, names, places = zip(*self._made, strict=True)
        self._made, self._waiting = [], set()
        numbers = self.numbers(pa.array(ids))
        mine = np.fromiter(map(self.shard.owns, names), np.bool_, len(names))
        named = np.full(len(names), NULL, np.int64)
        named[mine] = self.names.numbers(pa.array(names).filter(pa.array(mine)))
        self.newest = _with_room(self.newest, len(self.names))
        make_topics(self.longs, self.newest, numbers, named, np.array(places, np.int64))

    def settle_one(self, topic_id: str) -> None:
        """Settle if this topic waits: to make a few takes as long as to make many."""
        if topic_id in self._waiting:
            self.settle()

    def remove(self, topic_id: str, at: At) -> Finding | None:
        """Apply a RemoveTopicRecord; returns its fault, if any."""
        self.settle_one(topic_id)
        number = self.number(topic_id)
        topic, finding = self.longs[number], None
        if topic[ALIVE] != 1 and self.owned[number]:
            what = "is removed already" if topic[ALIVE] == 0 else "was never made"
            detail = f"a removal of an id in topics that {what}"
            finding = Finding.at(at.offset, "REMOVAL-UNKNOWN", json.dumps([topic_id]), detail)
        topic[ALIVE], topic[REMOVED] = 0, at.offset
        _moved(topic, at)
        return finding

    def restore(self, rows: Longs, newest: Longs) -> None:
        """Take topics as they were, and the newest of each name; their texts are there already."""
        self.longs, self.newest = _with_room(self.longs, len(rows)), _with_room(self.newest, len(newest))
        self.longs[: len(rows)], self.newest[: len(newest)] = rows, newest

    def name_of(self, topic_id: str) -> str | None:
        """The name of a topic of this shard, of one that is gone too."""
        name = int(self.longs[self.number(topic_id), NAME])
        return self.names.text(name) if name >= 0 else None

    def living(self, name: str) -> list[int]:
        """Numbers of the topics of a name that are there now; several where the log is damaged."""
        self.settle()
        [named] = self.names.find(pa.array([name])).tolist()
        topic = int(self.newest[named]) if named >= 0 else -1
        found = []
        while topic >= 0:
            if self.longs[topic, ALIVE] == 1:
                found.append(topic)
            topic = int(self.longs[topic, NAMESAKE])
        return found

    @property
    def owned(self) -> Flags:
        """Topics that this shard reports."""
        rows = self.longs[: len(self.ids)]
        owned: Flags = np.where(rows[:, MADE] < 0, self.shard.has_the_rest, rows[:, MINE] == 1)
        return owned

    @property
    def here(self) -> Flags:
        """Topics of this shard that are there now."""
        rows = self.longs[: len(self.ids)]
        here: Flags = self.owned & (rows[:, MADE] >= 0) & (rows[:, ALIVE] == 1)
        return here

    @property
    def gone(self) -> Flags:
        """Topics of this shard that were there."""
        rows = self.longs[: len(self.ids)]
        gone: Flags = self.owned & (rows[:, MADE] >= 0) & (rows[:, ALIVE] == 0)
        return gone

    def findings(self, clears: Sequence[int], snapshot: int, committed: int | None = None) -> Iterator[Finding]:
        """What breaks a rule. `clears` are the offsets of CLEAR_ELR records of all topics, `snapshot` is the first that some node replays.

        Topics that share a name are looked for below `committed` (exclusive): what comes after it may be taken back.
        """
        yield from self._unknown()
        yield from self._made_twice(committed)
        yield from self._made_again()
        yield from self._cleared_after_removal(np.array(clears, np.int64), snapshot)

    def _unknown(self) -> Iterator[Finding]:
        """Records on partitions of a topic that no TopicRecord made, or that was removed before them."""
        rows = self.longs[: len(self.ids)]
        seen = self.owned & (rows[:, SEEN_FIRST] >= 0)
        never = seen & ((rows[:, MADE] < 0) | (rows[:, SEEN_FIRST] < rows[:, MADE]))
        late = seen & (rows[:, REMOVED] > rows[:, MADE_LAST]) & (rows[:, SEEN_LAST] > rows[:, REMOVED])
        for number in np.flatnonzero(never | late).tolist():
            subject = f"topic id {self.ids.text(number)}"
            if never[number]:
                offset, detail = rows[number, SEEN_FIRST], "a record of a partition before its topic was made"
            else:
                removed = rows[number, REMOVED]
                offset = rows[number, SEEN_LAST]
                detail = f"a record of a partition after its topic was removed at offset {removed}"
            yield Finding.at(int(offset), TOPIC_UNKNOWN, subject, detail)

    def _made_twice(self, committed: int | None) -> Iterator[Finding]:
        """A TopicRecord for a name that is still there under another id: a second load, or a corrupt log (DUR-08)."""
        rows = self.longs[: len(self.ids)]
        below = np.iinfo(np.int64).max if committed is None else committed
        mine = rows[self.owned & (rows[:, MADE] >= 0) & (rows[:, MADE] < below)]
        mine = mine[np.lexsort((mine[:, MADE], mine[:, NAME]))]
        topic, following = mine[:-1], mine[1:]
        there = (topic[:, ALIVE] == 1) | (topic[:, LAST_OFFSET] > following[:, MADE])
        detail = "a topic of this name was made while another was still there"
        for place in np.flatnonzero((topic[:, NAME] == following[:, NAME]) & there).tolist():
            name = self.names.text(int(topic[place, NAME]))
            yield Finding.at(int(following[place, MADE]), "DUR-08", name, detail)

    def _made_again(self) -> Iterator[Finding]:
        """Topics whose TopicRecord comes again with the same id: a load that ran more than once (S§4.3, S§14; DUR-08)."""
        rows = self.longs[: len(self.ids)]
        for topic in rows[self.owned & (rows[:, TIMES] > 1)]:
            detail = f"made {topic[TIMES]} times {MADE_AGAIN}"
            yield Finding.at(int(topic[MADE_LAST]), "DUR-08", self.names.text(int(topic[NAME])), detail)

    def _cleared_after_removal(self, clears: Longs, snapshot: int) -> Iterator[Finding]:
        """CLEAR_ELR records of all topics after one was made and removed, both since the newest checkpoint of some node.

        `TopicsDelta.replay` of 4.0.1 to 4.1.2 still holds the topic for made and throws; 4.2 forgets it with its removal.
        """
        rows = self.longs[: len(self.ids)]
        short = rows[self.owned & (rows[:, MADE] >= max(snapshot, 0)) & (rows[:, REMOVED] >= 0)]
        after = np.searchsorted(clears, short[:, REMOVED], "right")
        met = after < len(clears)
        first: dict[int, tuple[int, int]] = {}
        for topic, cleared in zip(short[met], clears[after[met]].tolist(), strict=True):
            name, removed = int(topic[NAME]), int(topic[REMOVED])
            known = first.get(name, (cleared, removed))
            first[name] = (min(known[0], cleared), min(known[1], removed))
        for name, (cleared, removed) in first.items():
            detail = f"a ClearElr record of all topics after the topic's removal at offset {removed}"
            yield Finding.at(cleared, CLEAR_REMOVED, self.names.text(name), detail)


def _moved(topic: Longs, at: At) -> None:
    topic[LAST_OFFSET], topic[LAST_EPOCH], topic[LAST_TIME] = at


def _nothing(*shape: int) -> Longs:
    return np.full(shape, -1, np.int64)


def _with_room(array: Longs, rows: int) -> Longs:
    """An array with room for so many rows; -1 in new ones."""
    if rows <= len(array):
        return array
    longer = grown(array, rows)
    longer[len(array) :] = -1
    return longer
