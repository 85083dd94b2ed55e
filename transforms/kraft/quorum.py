"""Several controllers' copies of one log: which records are valid, and up to which offset they are committed.

No file of a controller stores the high watermark, so it is proved from below (S§2.9): a checkpoint, the offset
in ZooKeeper's `/migration`, a majority of copies, or the leader's high watermark for a copy that was fetched from it.
Copies disagree only in a suffix that was never committed; there the copy with the higher epoch wins (S§2.10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from schemas.kraft.enums import DIRECTORY_MIGRATING
from transforms.kraft.replay.transactions import TransactionLog


@dataclass(frozen=True)
class Checkpoint:
    """A metadata snapshot file; everything below `offset` (exclusive) is in it."""

    file: str
    offset: int
    epoch: int
    complete: bool


@dataclass(frozen=True)
class LogCopy:
    """What one copy holds. `log_end` is exclusive; `epoch_starts` are (epoch, first offset), ascending.

    `controller_id` is None for a copy without meta.properties. `directory_id` is that of meta.properties, `largest_batch`
    in bytes, `bootstrap_level` the metadata.version of bootstrap.checkpoint; None if unknown. A copy that was
    fetched from the leader has its `high_watermark` (exclusive), the time of the leader's answer (`fetched_at`, milliseconds), the
    voters' log ends then, and the `silent_voters`, which did not fetch from it. `voter_directories` are the directory ids of the
    voters, as far as they are known (KIP-853). One of `other_log` has the cluster's id and is of another log than the one that is read.
    """

    controller_id: int | None
    location: str
    cluster_id: str | None
    log_start: int | None
    log_end: int | None
    last_epoch: int | None
    last_append_time: int | None
    epoch_starts: tuple[tuple[int, int], ...]
    checkpoints: tuple[Checkpoint, ...]
    voters: tuple[int, ...]
    leader_id: int | None
    leader_epoch: int | None
    problem: str | None
    producer_snapshot: int | None = None
    directory_id: str | None = None
    largest_batch: int | None = None
    bootstrap_level: int | None = None
    high_watermark: int | None = None
    fetched_at: int | None = None
    voter_ends: tuple[tuple[int, int], ...] = ()
    voter_directories: tuple[tuple[int, str], ...] = ()
    silent_voters: tuple[int, ...] = ()
    damaged: bool = False
    other_log: bool = False

    @staticmethod
    def from_row(row: Mapping[str, Any]) -> LogCopy:
        """Read a row of bronze `kraft_log_copies` (or of the folder scan that fills it)."""
        return LogCopy(
            controller_id=row["controller_id"],
            location=row["location"],
            cluster_id=row["cluster_id"],
            log_start=row["log_start_offset"],
            log_end=row["log_end_offset"],
            last_epoch=row["last_epoch"],
            last_append_time=row["last_append_time"],
            epoch_starts=tuple((e["epoch"], e["start_offset"]) for e in row["epoch_starts"] or ()),
            checkpoints=tuple(
                Checkpoint(c["file"], c["offset"], c["epoch"], c["complete"]) for c in row["checkpoints"] or ()
            ),
            voters=tuple(row["voters"] or ()),
            leader_id=row["quorum_leader_id"],
            leader_epoch=row["quorum_leader_epoch"],
            problem=row["problem"],
            producer_snapshot=row["producer_snapshot_offset"],
            # Rows that earlier releases wrote have none of these.
            directory_id=row.get("directory_id"),
            largest_batch=row.get("largest_batch_bytes"),
            bootstrap_level=row.get("bootstrap_level"),
            # Rows of runs before there were live copies don't have them.
            high_watermark=row.get("high_watermark"),
            fetched_at=row.get("fetched_at"),
            voter_ends=tuple((e["voter_id"], e["log_end_offset"]) for e in row.get("voter_ends") or ()),
            voter_directories=tuple((e["voter_id"], e["directory_id"]) for e in row.get("voter_directories") or ()),
            silent_voters=tuple(row.get("silent_voters") or ()),
            damaged=bool(row.get("damaged")),
            other_log=bool(row.get("other_log")),
        )

    @property
    def name(self) -> str:
        """The controller for a message, by its folder where no file names it."""
        return f"controller {self.who}"

    @property
    def who(self) -> str:
        """The controller's id, or its folder where no file names it."""
        return f"of {self.location}" if self.controller_id is None else str(self.controller_id)

    @property
    def has_log(self) -> bool:
        """True when the copy holds at least one intact batch and nothing forbids its use."""
        return self.problem is None and self.log_end is not None and self.last_epoch is not None

    @property
    def stopped_cleanly(self) -> bool:
        """True if the controller shut down cleanly: it wrote a producer snapshot at the log's very end.

        (`UnifiedLog.close`; one that runs on appends at least a no-op twice a second.)
        """
        return self.has_log and self.producer_snapshot == self.log_end

    @property
    def end(self) -> int:
        """Log end offset, 0 for an empty copy."""
        return self.log_end or 0

    def epoch_at(self, offset: int) -> int | None:
        """Leader epoch of the record at `offset`, None outside the copy."""
        if self.log_start is None or not self.log_start <= offset < self.end:
            return None
        epochs = [epoch for epoch, start in self.epoch_starts if start <= offset]
        return epochs[-1] if epochs else None

    def epoch_end(self, epoch: int) -> int | None:
        """One past the last offset of `epoch` in this copy, None when the copy has no record of it."""
        later = [start for other, start in self.epoch_starts if other > epoch]
        if all(other != epoch for other, _ in self.epoch_starts):
            return None
        return later[0] if later else self.end


@dataclass(frozen=True)
class Slice:
    """Offsets [from_offset_inclusive, to_offset_exclusive) to be taken from the copy at `location`."""

    location: str
    from_offset_inclusive: int
    to_offset_exclusive: int


@dataclass(frozen=True)
class Fork:
    """A copy whose suffix is not in the winning log: it was never committed and will be truncated on rejoining."""

    controller_id: int | None
    offset: int
    losing_epoch: int
    winning_epoch: int
    location: str = ""


@dataclass(frozen=True)
class ReadPlan:
    """Which bytes make the one true log: a base checkpoint (or none) and slices that follow each other."""

    leading: LogCopy
    base_checkpoint: tuple[str, Checkpoint] | None
    slices: tuple[Slice, ...]
    forks: tuple[Fork, ...]
    explanation: str

    @property
    def start(self) -> int:
        """First offset the plan gives as records; the base checkpoint covers what is below."""
        return self.slices[0].from_offset_inclusive if self.slices else self.leading.end


class NoUsableLogError(Exception):
    """No copy can be used: the message lists the copies, and why each was refused."""


def foreign_copies(copies: Sequence[LogCopy]) -> list[str]:
    """Where the copies' meta.properties name more than one cluster: each cluster with its copies; else nothing."""
    by_cluster: dict[str, list[str]] = {}
    for copy in copies:
        if copy.cluster_id is not None:
            by_cluster.setdefault(copy.cluster_id, []).append(copy.location)
    if len(by_cluster) < 2:
        return []
    return [f"cluster.id {name} in {', '.join(sorted(where))}" for name, where in sorted(by_cluster.items())]


def common_end(copy: LogCopy, other: LogCopy) -> int | None:
    """Offset up to which two copies agree, by their epochs; None when they share no epoch."""
    shared = {epoch for epoch, _ in copy.epoch_starts} & {epoch for epoch, _ in other.epoch_starts}
    if not shared:
        return None
    newest = max(shared)
    ends = (copy.epoch_end(newest), other.epoch_end(newest))
    return min(end for end in ends if end is not None)


def plan_read(copies: Sequence[LogCopy]) -> ReadPlan:
    """Choose the leading copy (highest epoch, then longest) and stitch the longest history in front of it. If it is damaged, what
    another one without damage has comes from that one.

    Raises NoUsableLogError when copies are of several clusters, no copy has a batch, or history starts beyond every complete
    checkpoint.
    """
    foreign = foreign_copies(copies)
    if foreign:
        raise NoUsableLogError(f"the copies of the log are not of one cluster: {'; '.join(foreign)}")
    usable = [copy for copy in copies if copy.has_log]
    if not usable:
        reasons = "; ".join(f"{copy.location}: {copy.problem or 'no batch'}" for copy in copies)
        raise NoUsableLogError(f"no controller's copy of the metadata log can be used: {reasons or 'none was given'}")
    leading = leading_of(usable)
    forks = tuple(_forks(leading, usable))
    sound = _without_damage(leading, usable)
    oldest = min(usable, key=lambda copy: _by_reach(sound, copy))
    slices = _stitch(sound, oldest)
    if sound is not leading:
        slices = (*slices, Slice(leading.location, sound.end, leading.end))
    base = _base_checkpoint(usable, slices[0].from_offset_inclusive)
    if slices[0].from_offset_inclusive > 0 and base is None:
        raise NoUsableLogError(
            f"the log of {leading.name} starts at offset {slices[0].from_offset_inclusive} and no complete "
            f".checkpoint covers what is before; copy the newest .checkpoint beside the segments"
        )
    if base is not None:
        slices = _after(slices, base[1].offset)
    return ReadPlan(leading, base, slices, forks, _explain(leading, sound, oldest, usable))


def leading_of(usable: Sequence[LogCopy]) -> LogCopy:
    """The most advanced of the copies that have a log: highest epoch, then longest; of two such, one without damage."""

    def advance(copy: LogCopy) -> tuple[int, int, bool, int, int]:
        return copy.last_epoch or 0, copy.end, not copy.damaged, -(copy.log_start or 0), -(copy.controller_id or 0)

    return max(usable, key=advance)


def _without_damage(leading: LogCopy, usable: Sequence[LogCopy]) -> LogCopy:
    """The copy to read for all that it has: a damaged leading one only for what no copy without damage that reaches as far back has."""
    if not leading.damaged:
        return leading
    sound = [
        copy
        for copy in usable
        if not copy.damaged
        and copy.end == common_end(copy, leading)
        and (copy.log_start or 0) <= (leading.log_start or 0) < copy.end
    ]
    return max(sound, key=lambda copy: copy.end, default=leading)


def _forks(leading: LogCopy, usable: Sequence[LogCopy]) -> list[Fork]:
    forks = []
    for copy in usable:
        end = common_end(copy, leading)
        if end is None or end >= copy.end:
            continue
        losing, winning = copy.epoch_at(end), leading.epoch_at(end)
        if losing is not None and winning is not None and losing != winning:
            forks.append(Fork(copy.controller_id, end, losing, winning, copy.location))
    return forks


def _by_reach(leading: LogCopy, copy: LogCopy) -> tuple[int, int]:
    """Order copies by how far back they reach, among those that overlap the leading one without a gap and have no damage."""
    end = common_end(copy, leading)
    start = copy.log_start or 0
    reaches = end is not None and end > (leading.log_start or 0) > start and not copy.damaged
    return (start if reaches else (leading.log_start or 0), 0 if copy is leading else 1)


def _stitch(leading: LogCopy, oldest: LogCopy) -> tuple[Slice, ...]:
    start, end = leading.log_start or 0, leading.end
    if oldest is leading:
        return (Slice(leading.location, start, end),)
    return (
        Slice(oldest.location, oldest.log_start or 0, start),
        Slice(leading.location, start, end),
    )


def _base_checkpoint(usable: Sequence[LogCopy], start: int) -> tuple[str, Checkpoint] | None:
    if start == 0:
        return None
    candidates = [
        (checkpoint.offset, copy.location, checkpoint)
        for copy in usable
        for checkpoint in copy.checkpoints
        if checkpoint.complete and checkpoint.offset >= start
    ]
    if not candidates:
        return None
    _, location, checkpoint = min(candidates, key=lambda candidate: candidate[:2])
    return location, checkpoint


def _after(slices: tuple[Slice, ...], offset: int) -> tuple[Slice, ...]:
    return tuple(
        Slice(s.location, max(s.from_offset_inclusive, offset), s.to_offset_exclusive)
        for s in slices
        if s.to_offset_exclusive > offset
    )


def _explain(leading: LogCopy, sound: LogCopy, oldest: LogCopy, usable: Sequence[LogCopy]) -> str:
    text = (
        f"{_whose(leading)} copy is the most advanced of {len(usable)} "
        f"(epoch {leading.last_epoch}, end offset {leading.end})"
    )
    behind = [copy for copy in usable if copy.end < leading.end]
    if behind:
        names = ", ".join(f"{copy.who} ends at {copy.end}" for copy in behind)
        text += f"; behind it: {names}"
    if oldest is not sound:
        text += f"; records before offset {sound.log_start} come from {oldest.name}"
    if sound is not leading:
        text += f"; records before offset {sound.end} come from {sound.name}, whose log has no damage"
    return text


def _whose(copy: LogCopy) -> str:
    return f"{copy.name}'s" if copy.controller_id is not None else f"the {copy.location}"


def known_voters(copies: Sequence[LogCopy], plan: ReadPlan | None) -> tuple[int, ...]:
    """The quorum's voters, from the leading copy or else from the newest that names them; none when no copy does."""
    naming = _naming_voters(copies, plan)
    return () if naming is None else naming.voters


def _naming_voters(copies: Sequence[LogCopy], plan: ReadPlan | None) -> LogCopy | None:
    if plan is not None and plan.leading.voters:
        return plan.leading
    return max(
        (copy for copy in copies if copy.voters), key=lambda copy: (copy.last_epoch or 0, copy.end), default=None
    )


def copies_of_observers(copies: Sequence[LogCopy], plan: ReadPlan | None) -> list[LogCopy]:
    """Copies of controllers that have a voter's id, but another directory id than the voter: their disk was formatted again.

    The leader takes them for observers (KIP-853, `LeaderState.getOrCreateReplicaState`).
    """
    naming = _naming_voters(copies, plan)
    directories = {} if naming is None else dict(naming.voter_directories)
    return [
        copy
        for copy in copies
        if copy.controller_id in directories
        and copy.directory_id not in (None, DIRECTORY_MIGRATING, directories[copy.controller_id])
    ]


def ends_of_voters(copies: Sequence[LogCopy], plan: ReadPlan | None) -> dict[int, int]:
    """Log end (exclusive) by controller: as the leader reported it last, otherwise that of the controller's longest copy."""
    observers = copies_of_observers(copies, plan)
    ends: dict[int, int] = {}
    for copy in copies:
        if copy.has_log and copy.controller_id is not None and copy not in observers:
            ends[copy.controller_id] = max(copy.end, ends.get(copy.controller_id, 0))
    fetched = [copy for copy in copies if copy.fetched_at is not None]
    newest = max(fetched, key=lambda copy: copy.fetched_at or 0, default=None)
    return ends if newest is None else {**ends, **dict(newest.voter_ends)}


def elected_leader(copies: Sequence[LogCopy], epoch: int) -> int | None:
    """The leader that some copy's `quorum-state` names for an epoch; None if no copy has one.

    (`QuorumState`: each voter stores the leader it follows; -1 stands for none.)
    """
    named = [copy.leader_id for copy in copies if copy.leader_epoch == epoch and copy.leader_id is not None]
    return next((leader for leader in named if leader >= 0), None)


def seeking_a_leader(copies: Sequence[LogCopy]) -> LogCopy | None:
    """A copy whose `quorum-state` is of an epoch newer than any log, of which no copy names a leader; None if there is none.

    Where a majority is missing, epochs rise with each vote before 4.0, and by one when the leader resigns; the same holds for the last
    of controllers that are stopped one after the other (they are left out if each stopped cleanly), and for a moment at an election.
    """
    usable = [copy for copy in copies if copy.has_log]
    newest = max(usable, key=lambda copy: copy.leader_epoch or 0, default=None)
    if newest is None or all(copy.stopped_cleanly for copy in usable):
        return None
    epoch = newest.leader_epoch or 0
    led = epoch <= max(copy.last_epoch or 0 for copy in usable) or elected_leader(copies, epoch) is not None
    return None if led else newest


@dataclass(frozen=True)
class CommittedEnd:
    """Everything below `end_exclusive` is committed; `proof` is the reason.

    It is one of high_watermark, majority, migration, checkpoint and log_start. Where a metadata transaction has not ended at the
    end that is proved, `end_exclusive` is its beginning, and `proved` that end (exclusive): see `last_stable`.
    """

    end_exclusive: int
    proof: str
    explanation: str
    proved: int | None = None

    @property
    def proved_exclusive(self) -> int:
        """Exclusive end of the records that are proved committed, of a transaction that has not ended there too."""
        return self.end_exclusive if self.proved is None else self.proved


def last_stable(committed: CommittedEnd, transactions: TransactionLog) -> CommittedEnd:
    """The committed end without a transaction that has not ended there, as its records may still come to nothing.

    It is Kafka's last stable offset (`OffsetControlManager.maybeAdvanceLastStableOffset`).
    """
    waiting = transactions.open_at(committed.end_exclusive)
    if waiting is None:
        return committed
    why = (
        f"{committed.explanation}, but the transaction {waiting.name or 'without a name'}, which begins at offset "
        f"{waiting.begin_inclusive}, has not ended there: none of it is in effect"
    )
    return replace(committed, end_exclusive=waiting.begin_inclusive, explanation=why, proved=committed.end_exclusive)


def committed_end(
    copies: Sequence[LogCopy], plan: ReadPlan, migration_offset: int | None, migration_epoch: int | None
) -> CommittedEnd:
    """Take the best of the lower bounds of S§2.9.

    `migration_offset`/`migration_epoch` are `/migration`'s kraft_metadata_offset (inclusive) and kraft_metadata_epoch,
    None when ZooKeeper was not read.
    """
    bounds = [
        _log_start_bound(plan),
        _checkpoint_bound(copies, plan),
        _migration_bound(plan, migration_offset, migration_epoch),
        _majority_bound(copies, plan),
        _high_watermark_bound(copies, plan),
    ]
    return max((bound for bound in bounds if bound is not None), key=lambda bound: bound.end_exclusive)


def _log_start_bound(plan: ReadPlan) -> CommittedEnd:
    start = plan.leading.log_start or 0
    return CommittedEnd(start, "log_start", f"a log that starts at {start} is committed up to there")


def _checkpoint_bound(copies: Sequence[LogCopy], plan: ReadPlan) -> CommittedEnd | None:
    offsets = [
        (checkpoint.offset, copy.name)
        for copy in copies
        if copy.has_log
        for checkpoint in copy.checkpoints
        if checkpoint.complete and checkpoint.offset <= plan.leading.end
    ]
    if not offsets:
        return None
    offset, name = max(offsets)
    return CommittedEnd(offset, "checkpoint", f"{name} has a complete checkpoint at {offset}")


def _migration_bound(plan: ReadPlan, offset: int | None, epoch: int | None) -> CommittedEnd | None:
    if offset is None or offset < 0 or epoch is None or plan.leading.epoch_at(offset) != epoch:
        return None
    return CommittedEnd(
        offset + 1, "migration", f"/migration names offset {offset} of epoch {epoch}, which this log has"
    )


def _majority_bound(copies: Sequence[LogCopy], plan: ReadPlan) -> CommittedEnd | None:
    """The records that more than half of the voters have. If no file names the voters, no copies are a majority."""
    leading = plan.leading
    voters = known_voters(copies, plan)
    if not voters:
        return None
    # Two copies of one controller are one voter's, which held what the longer of them holds.
    held_by = dict.fromkeys(voters, 0)
    observers = copies_of_observers(copies, plan)
    mine = [copy for copy in copies if copy.has_log and copy.controller_id in held_by and copy not in observers]
    every = held_by.keys() == {copy.controller_id for copy in mine if copy.stopped_cleanly}
    for copy in mine:
        if copy.controller_id is not None and (every or not _sent_later(copy, leading)):
            held_by[copy.controller_id] = max(held_by[copy.controller_id], _agreed_end(copy, leading))
    ends = sorted(held_by.values(), reverse=True)
    offset = ends[len(voters) // 2]
    newest_epoch_start = leading.epoch_starts[-1][1]
    if offset <= newest_epoch_start and every:
        # The last leader had nobody left to send its records to. Whoever is elected next has what all of them have.
        offset = ends[-1]
    elif offset <= newest_epoch_start:
        return None
    held = sum(1 for end in ends if end >= offset)
    return CommittedEnd(offset, "majority", f"{held} of {len(voters)} voters' copies hold every record below {offset}")


def _sent_later(copy: LogCopy, leading: LogCopy) -> bool:
    """Whether a leader of a later epoch may have sent the copy's newest records while another one can still replace them.

    By counting, Raft commits records of the leader's own epoch only (figure 8 of its paper). Between the log's last epoch and that
    of the copy's quorum-state a voter without a copy may have been elected and have other records there; so may one that was copied
    before and ran on. Just after the last epoch nobody can: who was elected then has what its voters had before, and what it sent since.
    """
    return copy.leader_epoch is not None and copy.leader_epoch > (leading.last_epoch or 0) + 1


def _high_watermark_bound(copies: Sequence[LogCopy], plan: ReadPlan) -> CommittedEnd | None:
    """What the leader called committed, as far as the log that is read has it."""
    said = [
        (min(copy.high_watermark, _agreed_end(copy, plan.leading)), copy)
        for copy in copies
        if copy.has_log and copy.high_watermark is not None
    ]
    if not said:
        return None
    offset, copy = max(said, key=lambda each: each[0])
    return CommittedEnd(
        offset,
        "high_watermark",
        f"the leader's high watermark: controller {copy.who} said in epoch {copy.leader_epoch} that every record below "
        f"{copy.high_watermark} is committed",
    )


def _agreed_end(copy: LogCopy, leading: LogCopy) -> int:
    if copy is leading:
        return copy.end
    return common_end(copy, leading) or 0


def newest_checkpoint(copies: Sequence[LogCopy]) -> int | None:
    """Offset (exclusive) of the newest complete checkpoint that any copy has."""
    return max((c.offset for copy in copies if copy.has_log for c in copy.checkpoints if c.complete), default=None)


def replayed_from(copies: Sequence[LogCopy]) -> int:
    """The first offset (inclusive) that some node replays when it starts: each begins with its own newest complete checkpoint
    (`KafkaRaftClient.latestSnapshot`)."""
    starts = (
        max((c.offset for c in copy.checkpoints if c.complete), default=copy.log_start or 0)
        for copy in copies
        if copy.has_log
    )
    return min(starts, default=0)
