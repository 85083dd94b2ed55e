"""The history of partitions over Arrow batches of sorted records: the rules of `transforms.isr.history`, a batch at a time.

Nothing is looked at row by row: a log of ten million records is mostly records on partitions. A partition's last state is
carried from one batch to the next as a record that says everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.clusters import CLUSTER
from transforms.isr.columns import begins, flags, latest
from transforms.isr.history import Kind
from transforms.isr.id_lists import END, Flags, IdLists, Numbers, is_list, list_array, together
from transforms.isr.partition import NO_LEADER, RECOVERED, RECOVERING
from transforms.kraft.replay.partitions import KEY

LISTS = ("replicas", "adding_replicas", "removing_replicas", "isr", "eligible_leader_replicas", "last_known_elr")
_NUMBERS = ("leader", "leader_recovery_state", "leader_epoch", "partition_epoch")
STATE = (*LISTS, *_NUMBERS)
WHERE = (*KEY, "offset", "epoch", "append_time")
# Columns of the batches. `directories` is whether the record names any.
READ = (*WHERE, "whole", "created_offset", *STATE, "directories")
_ELR = ("eligible_leader_replicas", "last_known_elr")
_UNSAID = {"leader": NO_LEADER, "leader_recovery_state": RECOVERED}
# Columns that come out.
HISTORY = (
    CLUSTER,
    "topic_id",
    "partition",
    "offset",
    "epoch",
    "append_time",
    "kinds",
    "election",
    "brokers",
    "departed",
    "joined",
    *STATE,
    *[f"{name}_before" for name in STATE],
    "before_time",
    "leaderless_since",
)

_KIND_NAMES = pa.array([kind.value for kind in Kind])
_NUMBER_OF = {kind: number for number, kind in enumerate(Kind)}
_NONE = -1


def histories(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The change that each record is: the columns of `transforms.isr.frames.isr_history` but `topic`.

    `batches` have the columns READ, in the order of KEY and offset; a partition's records may lie in several of them. A
    null list may be spelled NOTHING (`transforms.isr.id_lists`). A row with a `created_offset` is one of a kept state:
    where a history begins, and no change. Changes of a partition that was never made are none either.
    """
    carried: _Carried | None = None
    for batch in batches:
        if batch.num_rows:
            states = _states(_Records.of(batch, carried), carried)
            yield _changes(states)
            carried = _carried(states)


@dataclass(frozen=True)
class _Carried:
    """A partition's last state as a row of READ, and when it lost its leader (ms), if it has none."""

    row: pa.RecordBatch
    leaderless_since: int


@dataclass(frozen=True)
class _Records:
    """Records of one or several partitions, and in each row the place of its partition's first one."""

    rows: pa.RecordBatch
    first: Numbers
    whole: Flags
    names_leader: Flags

    @staticmethod
    def of(batch: pa.RecordBatch, carried: _Carried | None) -> _Records:
        rows = batch if carried is None else _put_together(carried.row, batch)
        whole = flags(rows["whole"])
        return _Records(rows, _latest(begins(rows, KEY)), whole, ~whole & _said(rows["leader"]))

    def numbers(self, name: str) -> Numbers:
        """A column of numbers; null is what a PartitionRecord means by it."""
        filled: Numbers = pc.fill_null(self.rows[name], _UNSAID.get(name, 0)).to_numpy().astype(np.int64)
        return filled

    def latest(self, name: str) -> Numbers:
        """The place of the record that set a column last: a PartitionRecord sets all of them."""
        return _latest(self.whole | _said(self.rows[name]))


@dataclass(frozen=True)
class _State:
    """The state of a partition in each row."""

    lists: dict[str, IdLists]
    numbers: dict[str, Numbers]
    append_time: Numbers

    def take(self, rows: Numbers) -> _State:
        return _State(
            {name: each.take(rows) for name, each in self.lists.items()},
            {name: each[rows] for name, each in self.numbers.items()},
            self.append_time[rows],
        )

    def without(self, rows: Flags) -> _State:
        """Nothing in the rows that are flagged: empty lists, and no leader."""
        lists = {name: each.only(~rows) for name, each in self.lists.items()}
        numbers = {name: np.where(rows, _UNSAID.get(name, 0), each) for name, each in self.numbers.items()}
        return _State(lists, numbers, self.append_time)

    @property
    def leader(self) -> Numbers:
        return self.numbers["leader"]

    @property
    def reassigning(self) -> Flags:
        return (self.lists["adding_replicas"].sizes > 0) | (self.lists["removing_replicas"].sizes > 0)


@dataclass(frozen=True)
class _States:
    """The state after each record and before it, but where `made`; rows that are not `known` have none."""

    records: _Records
    after: _State
    before: _State
    known: Flags
    made: Flags
    lost_at: Numbers
    leaderless_since: Numbers


def _states(records: _Records, carried: _Carried | None) -> _States:
    after = _merged(records)
    known = _last_whole(records) >= records.first
    places = np.arange(len(known))
    previous = np.maximum(places - 1, 0)
    made = known & ((places == records.first) | ~known[previous])
    before = after.take(previous)
    # Nobody leads: since the first of the records that say so in a row.
    lost = known & (after.leader == NO_LEADER) & (made | (before.leader != NO_LEADER))
    times = after.append_time.copy()
    if carried is not None:
        times[0] = carried.leaderless_since
    lost_at = times[_latest(lost)]
    return _States(records, after, before, known, made, lost_at, lost_at[previous])


def _merged(records: _Records) -> _State:
    """The state after each record (`transforms.isr.partition.merged`).

    Epochs count on from the last PartitionRecord, which restarts both.
    """
    since = np.maximum(_last_whole(records), 0)
    lists = {name: IdLists.of(records.rows[name]).take(records.latest(name)) for name in LISTS}
    numbers = {name: records.numbers(name)[records.latest(name)] for name in _UNSAID}
    for name, counts in (("leader_epoch", records.names_leader), ("partition_epoch", ~records.whole)):
        counted = np.cumsum(counts)
        numbers[name] = records.numbers(name)[since] + counted - counted[since]
    return _State(lists, numbers, records.numbers("append_time"))


def _last_whole(records: _Records) -> Numbers:
    """The place of the last PartitionRecord up to each row, of whatever partition; -1 before the first of all."""
    return latest(records.whole)


def _carried(states: _States) -> _Carried | None:
    if not states.known[-1]:
        return None
    rows, last = states.records.rows, np.array([len(states.known) - 1])
    state, [where] = states.after.take(last), rows.slice(rows.num_rows - 1).select(list(WHERE)).to_pylist()
    values = {
        **where,
        "whole": True,
        "created_offset": where["offset"],
        "directories": True,
        **{name: each.to_arrow()[0] for name, each in state.lists.items()},
        **{name: int(each[0]) for name, each in state.numbers.items()},
    }
    row = pa.RecordBatch.from_arrays([pa.array([values[name]], rows[name].type) for name in READ], schema=rows.schema)
    return _Carried(row, int(states.lost_at[-1]))


def _changes(states: _States) -> pa.RecordBatch:
    """What each record that is a change made of its partition."""
    recorded = np.flatnonzero(states.known & ~_said(states.records.rows["created_offset"]))
    rows, made, whole = (
        states.records.rows.take(pa.array(recorded)),
        states.made[recorded],
        states.records.whole[recorded],
    )
    change = _Change(
        after=states.after.take(recorded),
        before=states.before.take(recorded).without(made),
        made=made,
        whole=whole,
        names_leader=states.records.names_leader[recorded],
        recovers=~whole & (pc.fill_null(rows["leader_recovery_state"], RECOVERED).to_numpy() == RECOVERING),
        clears=_clears(rows),
    )
    nowhere = np.zeros(len(recorded), np.bool_)
    columns = {
        **{name: rows[name] for name in WHERE if name != "partition_id"},
        "partition": rows["partition_id"],
        "kinds": _names(change.kinds),
        "election": _KIND_NAMES.take(pa.array(change.election, mask=change.election == _NONE)),
        "brokers": change.brokers.to_arrow(),
        "departed": change.departed.to_arrow(),
        "joined": change.joined.to_arrow(),
        **_columns(change.after, "", nowhere),
        **_columns(change.before, "_before", made),
        "before_time": pa.array(change.before.append_time, mask=made),
        "leaderless_since": pa.array(
            states.leaderless_since[recorded], mask=made | (change.before.leader != NO_LEADER)
        ),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in HISTORY], names=list(HISTORY))


def _columns(state: _State, suffix: str, null: Flags) -> dict[str, pa.Array]:
    lists = {name + suffix: each.to_arrow(null) for name, each in state.lists.items()}
    return lists | {name + suffix: pa.array(state.numbers[name].astype(np.int32), mask=null) for name in _NUMBERS}


def _clears(rows: pa.RecordBatch) -> Flags:
    """What `transforms.kraft.replay.elr` makes of a CLEAR_ELR: nothing but two empty lists."""
    clears = ~flags(rows["whole"]) & ~flags(rows["directories"])
    for name in (*[name for name in LISTS if name not in _ELR], *_UNSAID):
        clears &= ~_said(rows[name])
    for name in _ELR:
        clears &= _said(rows[name]) & (IdLists.of(rows[name]).sizes == 0)
    return clears


@dataclass(frozen=True)
class _Change:
    """Changes in columns (`transforms.isr.history.classify`); nothing is before one that `made` its partition.

    `recovers`: the record says RECOVERING; `clears`: it does nothing but empty both ELR lists. Kinds are numbers in the
    order of `Kind`, or _NONE.
    """

    after: _State
    before: _State
    made: Flags
    whole: Flags
    names_leader: Flags
    recovers: Flags
    clears: Flags

    @cached_property
    def departed(self) -> IdLists:
        return self.before.lists["isr"].minus(self.after.lists["isr"])

    @cached_property
    def joined(self) -> IdLists:
        return self.after.lists["isr"].minus(self.before.lists["isr"])

    @cached_property
    def elr_lost(self) -> IdLists:
        return self.before.lists["eligible_leader_replicas"].minus(self.after.lists["eligible_leader_replicas"])

    @cached_property
    def elr_gained(self) -> IdLists:
        return self.after.lists["eligible_leader_replicas"].minus(self.before.lists["eligible_leader_replicas"])

    @cached_property
    def election(self) -> Numbers:
        """`transforms.isr.history.election_of`."""
        leader, before = self.after.leader, self.before.lists
        in_isr, in_elr = before["isr"].has(leader), before["eligible_leader_replicas"].has(leader)
        last_known = before["last_known_elr"].has(leader) & ~in_isr & ~in_elr
        lossy = self.recovers | ~(in_isr | in_elr | self._joined_in_time)
        kinds = [
            (lossy & last_known, Kind.LAST_KNOWN_LEADER_ELECTION),
            (lossy, Kind.UNCLEAN_ELECTION),
            (in_elr & ~in_isr, Kind.ELR_ELECTION),
        ]
        elected = self._merges & self.names_leader & (leader != NO_LEADER)
        elected &= (leader != self.before.leader) | self.recovers
        found = np.where(elected, _first(kinds, otherwise=Kind.CLEAN_ELECTION), _NONE)
        return np.where(self._reverted_uncleanly, _NUMBER_OF[Kind.UNCLEAN_ELECTION], found)

    @property
    def _joined_in_time(self) -> Flags:
        led = self.before.leader != NO_LEADER
        in_time: Flags = self.after.lists["isr"].has(self.after.leader) & led & self._ends & ~self._cancelled
        return in_time

    @property
    def _ends(self) -> Flags:
        return self.before.reassigning & ~self.after.reassigning

    @cached_property
    def _cancelled(self) -> Flags:
        """`transforms.isr.history._cancelled`."""
        before, after = self.before.lists, self.after.lists
        target = before["replicas"].minus(before["removing_replicas"])
        same = (after["replicas"].minus(target).sizes == 0) & (target.minus(after["replicas"]).sizes == 0)
        adding, removing = before["adding_replicas"], before["removing_replicas"]
        both = adding.minus(removing).sizes < adding.sizes
        led = (self.before.leader != NO_LEADER) & (self.after.leader != NO_LEADER)
        completes = (target.minus(after["isr"]).sizes == 0) & (led | ~self._strangers)
        cancelled: Flags = self._ends & (~same | (both & ~completes))
        return cancelled

    @cached_property
    def _strangers(self) -> Flags:
        """`transforms.isr.history._strangers`: whether there are any."""
        found: Flags = self.joined.minus(self.before.lists["eligible_leader_replicas"]).sizes > 0
        return found

    @property
    def _reverted_uncleanly(self) -> Flags:
        """`transforms.isr.history._reverted_uncleanly`."""
        return self._merges & self._cancelled & self._strangers

    @property
    def _merges(self) -> Flags:
        return ~(self.made | self.whole | self.clears)

    @cached_property
    def kinds(self) -> npt.NDArray[np.int64]:
        """A matrix: what each change is, the weightiest first."""
        departed, joined = self.departed.sizes > 0, self.joined.sizes > 0
        recovery = "leader_recovery_state"
        recovered = (self.before.numbers[recovery] == RECOVERING) & (self.after.numbers[recovery] == RECOVERED)
        reordered = ~departed & ~joined & ~self.after.lists["isr"].same(self.before.lists["isr"])
        found = [
            self.election,
            self._leader,
            self._reassignment,
            _when(departed, Kind.SHRINK),
            _when(joined, Kind.EXPAND),
            _when(reordered, Kind.REORDERED),
            _when(recovered, Kind.RECOVERED),
            _when(self.elr_gained.sizes > 0, Kind.ELR_GAINED),
            _when(self.elr_lost.sizes > 0, Kind.ELR_LOST),
        ]
        merged = np.where(self._merges[:, None], np.stack(found, axis=1), _NONE)
        alone = [
            (self.made, Kind.CREATED),
            (self.whole, Kind.REPLACED),
            (self.clears, Kind.ELR_CLEARED),
            ((merged == _NONE).all(axis=1), Kind.DIRECTORIES),
        ]
        return np.hstack([_first(alone)[:, None], merged])

    @property
    def _leader(self) -> Numbers:
        leader = self.after.leader
        kinds = [
            (leader == self.before.leader, Kind.EPOCH_BUMP),
            (leader == NO_LEADER, Kind.LEADER_LOST),
        ]
        return np.where(self.names_leader, _first(kinds, otherwise=Kind.LEADER_MOVE), _NONE)

    @property
    def _reassignment(self) -> Numbers:
        after, before = self.after.lists, self.before.lists
        same = np.logical_and.reduce([after[name].same(before[name]) for name in LISTS[:3]])
        kinds = [
            (~self.before.reassigning & self.after.reassigning, Kind.REASSIGNMENT_STARTED),
            (~self.before.reassigning, Kind.REASSIGNMENT_COMPLETED),
            (self.after.reassigning, Kind.REASSIGNMENT_CHANGED),
            (self._cancelled, Kind.REASSIGNMENT_CANCELLED),
        ]
        return np.where(same, _NONE, _first(kinds, otherwise=Kind.REASSIGNMENT_COMPLETED))

    @property
    def brokers(self) -> IdLists:
        """Brokers that joined or left one of the lists, and both leaders of a record that names one."""
        replicas, were = self.after.lists["replicas"], self.before.lists["replicas"]
        leaders = np.stack([self.before.leader, self.after.leader], axis=1).astype(np.int32)
        named = self.names_leader | self.made | self.whole
        both = IdLists(np.where(named[:, None] & (leaders >= 0), leaders, END))
        lists = [self.departed, self.joined, self.elr_lost, self.elr_gained, replicas.minus(were), were.minus(replicas)]
        return together([*lists, both])


def _first(kinds: Sequence[tuple[Flags, Kind]], otherwise: Kind | None = None) -> Numbers:
    """The first kind of each row whose condition holds."""
    conditions, found = zip(*kinds, strict=True)
    default = _NONE if otherwise is None else _NUMBER_OF[otherwise]
    return np.select(list(conditions), [np.int64(_NUMBER_OF[kind]) for kind in found], default)


def _when(condition: Flags, kind: Kind) -> Numbers:
    return np.where(condition, _NUMBER_OF[kind], _NONE)


def _names(kinds: npt.NDArray[np.int64]) -> pa.ListArray:
    there = kinds != _NONE
    return list_array(there, _KIND_NAMES.take(pa.array(kinds[there])))


def _latest(flagged: Flags) -> Numbers:
    """The last flagged row up to each row; the first row where there is none."""
    return np.maximum(latest(flagged), 0)


def _said(column: pa.Array) -> Flags:
    return is_list(column) if pa.types.is_list(column.type) else flags(column.is_valid())


def _put_together(first: pa.RecordBatch, batch: pa.RecordBatch) -> pa.RecordBatch:
    arrays = [pa.concat_arrays([first[name], batch[name]]) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
