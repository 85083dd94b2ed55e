"""The ISR checks (S§8.3) in the plainest way: on single partitions and their histories. What the rules over columns are compared with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from transforms.isr.history import HOUR, LOSSY, ChangeKind, ClassifiedChange
from transforms.isr.partition import NO_LEADER, PartitionState
from transforms.isr.validate import Registration, listed
from transforms.outcome import Outcome, found, not_applicable, unknown

Partitions = Mapping[str, PartitionState]
_NO_PARTITIONS = "no partitions were collected"
MINUTE = 60_000


def isr_of_replicas(partitions: Partitions | None) -> Outcome:
    """ISR-01: each ISR contains only replicas of its partition, each once.

    The ZooKeeper controller does not check it (it has no rule 8): such a state is migrated as it is, and every
    AlterPartition that names the broker that is not a replica is refused from then on.
    """
    if partitions is None:
        return unknown(_NO_PARTITIONS)
    texts = []
    for name, state in partitions.items():
        strangers = [member for member in state.isr if member not in state.replicas]
        if strangers:
            texts.append(
                f"{name}: {listed(strangers)} of the ISR {listed(state.isr)} is not a replica of {listed(state.replicas)}"
            )
        elif len(set(state.isr)) < len(state.isr):
            texts.append(f"{name}: the ISR {listed(state.isr)} names a broker twice")
    return found(texts)


def leader_in_isr(partitions: Partitions | None) -> Outcome:
    """ISR-02: a leader is in the ISR. Without a leader (-1, or -2 for a topic that is being deleted) there is nothing to check."""
    if partitions is None:
        return unknown(_NO_PARTITIONS)
    return found(
        f"{name}: leader {state.leader} is not in the ISR {listed(state.isr)}"
        for name, state in partitions.items()
        if state.leader >= 0 and state.leader not in state.isr
    )


def leader_of_replicas(partitions: Partitions | None) -> Outcome:
    """ISR-03: a leader is a replica."""
    if partitions is None:
        return unknown(_NO_PARTITIONS)
    return found(
        f"{name}: leader {state.leader} is not a replica of {listed(state.replicas)}"
        for name, state in partitions.items()
        if state.leader >= 0 and state.leader not in state.replicas
    )


def isr_running(partitions: Partitions | None, brokers: Mapping[int, Registration] | None) -> Outcome:
    """ISR-04 (KRaft): each member of an ISR is registered, unfenced and not in controlled shutdown.

    The last member of an ISR stays in it when its broker is fenced and there is no ELR: that partition has no leader.
    """
    if partitions is None or brokers is None:
        return unknown(_NO_PARTITIONS if partitions is None else "no broker registrations were collected")
    texts = []
    for name, state in partitions.items():
        if state.leader == NO_LEADER and len(state.isr) == 1:
            continue
        texts += [
            f"{name}: broker {member} of the ISR {listed(state.isr)} {why}"
            for member in state.isr
            if (why := _not_at_work(brokers.get(member))) is not None
        ]
    return found(texts)


def _not_at_work(broker: Registration | None) -> str | None:
    if broker is None:
        return "is not registered"
    if broker.fenced:
        return "is fenced"
    return "is in controlled shutdown" if broker.in_controlled_shutdown else None


def isr_alive(partitions: Partitions | None, live: Collection[int] | None) -> Outcome:
    """ISR-05 (ZooKeeper phase): each member of an ISR is in `/brokers/ids`; a broker just stopped makes it a warning."""
    if partitions is None or live is None:
        return unknown(_NO_PARTITIONS if partitions is None else "/brokers/ids was not read")
    texts = []
    for name, state in partitions.items():
        gone = [member for member in state.isr if member not in live]
        if gone and state.leader >= 0:
            texts.append(f"{name}: {listed(gone)} of the ISR {listed(state.isr)} is not in /brokers/ids")
    return found(texts, tolerable=True)


def epochs_follow(histories: Mapping[str, Sequence[ClassifiedChange]] | None, kept: Partitions | None) -> Outcome:
    """ISR-06: leader and partition epochs follow from the records.

    `kept` is the partitions' present state by another source (a checkpoint, the Admin API); each must have the epochs
    that follow from its history. Histories alone prove nothing, because their epochs are computed, not read.
    """
    if histories is None or kept is None:
        return unknown(
            "there is nothing to compare the partitions' epochs with" if histories else "no log was collected"
        )
    texts = []
    for name, history in histories.items():
        if not history or name not in kept:
            continue
        ours, theirs = history[-1].after, kept[name]
        if (ours.leader_epoch, ours.partition_epoch) != (theirs.leader_epoch, theirs.partition_epoch):
            texts.append(
                f"{name}: leader epoch {theirs.leader_epoch} and partition epoch {theirs.partition_epoch}, "
                f"the records make {ours.leader_epoch} and {ours.partition_epoch}"
            )
    return found(texts)


def shrinks_bump(histories: Mapping[str, Sequence[ClassifiedChange]] | None, bumps: bool | None) -> Outcome:
    """ISR-07: where a shrinking ISR must raise the leader epoch, it did."""
    if histories is None or bumps is None:
        return unknown("no log was collected" if histories is None else "the metadata.version is unknown")
    if not bumps:
        return not_applicable("from metadata.version 3.6-IV0 on a shrinking ISR leaves the leader epoch as it is")
    return found(
        f"{name}: {listed(step.left)} left the ISR at offset {step.offset}, the leader epoch stayed {step.after.leader_epoch}"
        for name, history in histories.items()
        for step in history
        if step.before is not None and step.left and step.after.leader_epoch == step.before.leader_epoch
    )


def flaps(histories: Mapping[str, Sequence[ClassifiedChange]] | None, least: int = 6) -> Outcome:
    """ISR-08: no broker goes in and out of one ISR `least` times or more within an hour; a warning."""
    if histories is None:
        return unknown("no log was collected")
    return found(
        (
            f"{name}: broker {member} left or joined the ISR {times} times within an hour"
            for name, history in histories.items()
            for member, times in flapping(history, least).items()
        ),
        tolerable=True,
    )


def under_min(
    partitions: Partitions | None, min_isr: Mapping[str, int | None] | None, *, capped: bool = True
) -> Outcome:
    """ISR-09: no ISR is smaller than min.insync.replicas; a warning.

    `min_isr` has each partition's effective value, by the topic's configuration or the cluster's dynamic default; None if only
    a broker's property file could show it. A partition without a known value makes the rest unknown. `capped`: from Kafka 3.7 on no
    partition needs more than its replicas (`Partition.effectiveMinIsr`).
    """
    if partitions is None or min_isr is None:
        return unknown(_NO_PARTITIONS if partitions is None else "no configurations were collected")
    texts, undecided = [], 0
    for name, state in partitions.items():
        least = min_isr.get(name)
        if least is None:
            undecided += 1
        elif len(state.isr) < (min(least, len(state.replicas)) if capped else least):
            texts.append(f"{name}: ISR {listed(state.isr)}, min.insync.replicas {least}")
    if undecided and not texts:
        return unknown(f"min.insync.replicas of {undecided} partitions is a broker's static default")
    return found(texts, tolerable=True)


def other_order(zookeeper: Partitions | None, kraft: Partitions | None) -> Outcome:
    """ISR-10: how many ISRs have the same members in another order in the two stores; it means nothing."""
    if zookeeper is None or kraft is None:
        return unknown("both sides are needed")
    return found(
        (
            f"{name}: {listed(state.isr)} in ZooKeeper, {listed(kraft[name].isr)} in KRaft"
            for name, state in zookeeper.items()
            if name in kraft and state.isr != kraft[name].isr and sorted(state.isr) == sorted(kraft[name].isr)
        ),
        tolerable=True,
    )


def recovers(
    histories: Mapping[str, Sequence[ClassifiedChange]] | None, now: int, longest: int = 30 * MINUTE
) -> Outcome:
    """ISR-11: no leader is RECOVERING for longer than `longest` ms; a warning.

    A partition with one replica stays RECOVERING forever, because its leader never has a change of the ISR to send: it is left
    out.
    """
    if histories is None:
        return unknown("no log was collected")
    texts = []
    for name, history in histories.items():
        since = _recovering_since(history)
        if since is not None and len(history[-1].after.replicas) > 1 and now - since.time > longest:
            minutes = (now - since.time) // MINUTE
            texts.append(
                f"{name}: leader {history[-1].after.leader} RECOVERING since offset {since.offset}, {minutes} min"
            )
    return found(texts, tolerable=True)


def _recovering_since(history: Sequence[ClassifiedChange]) -> ClassifiedChange | None:
    if not history or not history[-1].after.recovering:
        return None
    begun = history[-1]
    for step in reversed(history):
        if not step.after.recovering:
            break
        begun = step
    return begun


_WORDS = {
    ChangeKind.UNCLEAN_ELECTION: "unclean election",
    ChangeKind.LAST_KNOWN_LEADER_ELECTION: "election of the last known leader",
}


def lossy_elections(histories: Mapping[str, Sequence[ClassifiedChange]] | None) -> Outcome:
    """ISR-12: elections that may have lost acknowledged records, with offset and kind; a warning, because they are past."""
    if histories is None:
        return unknown("no log was collected")
    ordered = sorted(
        (step.offset, name, step) for name, history in histories.items() for step in history if step.election in LOSSY
    )
    return found((_election_text(name, step) for _, name, step in ordered), tolerable=True)


def _election_text(name: str, step: ClassifiedChange) -> str:
    before = step.before
    state = "" if before is None else f"; before it ISR {listed(before.isr)}, ELR {listed(before.elr)}"
    word = "election" if step.election is None else _WORDS[step.election]
    # A cancelled reassignment chooses a broker that need not be there to lead.
    chosen = step.after.leader if step.after.leader >= 0 else next(iter(step.after.isr), NO_LEADER)
    return f"{name}: {word} of broker {chosen} at offset {step.offset}{state}"


def notifications_left(notifications: Iterable[str] | None, *, legacy: bool | None) -> Outcome:
    """ISR-13: nothing is left in `/isr_change_notification`; a warning.

    Only brokers below IBP 2.7-IV2 write there, so that a znode means one of those (`legacy` True), or that no
    controller has read it.
    """
    if notifications is None:
        return unknown("/isr_change_notification was not read")
    why = "a broker below IBP 2.7-IV2 wrote it" if legacy else "no controller has read it"
    return found((f"{name}: {why}" for name in notifications), tolerable=True)


def controller_epochs(states: Mapping[str, int | None] | None, controller_epoch: int | None) -> Outcome:
    """ISR-14 (ZooKeeper phase): no state znode has a controller epoch above `/controller_epoch`."""
    if states is None or controller_epoch is None:
        return unknown(_NO_PARTITIONS if states is None else "/controller_epoch was not read")
    return found(
        f"{name}: controller epoch {epoch}, /controller_epoch is {controller_epoch}"
        for name, epoch in states.items()
        if epoch is not None and epoch > controller_epoch
    )


def epochs_never_fall(
    before: Mapping[str, tuple[int, PartitionState]] | None, after: Mapping[str, tuple[int, PartitionState]] | None
) -> Outcome:
    """ISR-15 (two captures of ZooKeeper): epochs of the same znode do not fall. Each state comes with its czxid.

    A partition that was made again has another czxid, and epochs of its own.
    """
    if before is None or after is None:
        return unknown("there is no earlier run to compare with")
    texts = []
    for name, (czxid, state) in after.items():
        earlier = before.get(name)
        if earlier is None or earlier[0] != czxid:
            continue
        for word, now, then in (
            ("leader epoch", state.leader_epoch, earlier[1].leader_epoch),
            ("znode version", state.partition_epoch, earlier[1].partition_epoch),
        ):
            if now < then:
                texts.append(f"{name}: {word} {now} after {then}")
    return found(texts)


def offline(partitions: Partitions | None, running: Collection[int] | None) -> Outcome:
    """ISR-16: no partition is without a leader; a partition that no returning broker can heal is marked.

    Without a replica in the ISR or the ELR, and without a last known leader where both are empty, the controller may elect nobody:
    such a partition stays without a leader, even with all its replicas running, until an unclean election is requested.
    """
    if partitions is None:
        return unknown(_NO_PARTITIONS)
    texts = []
    for name, state in partitions.items():
        if state.leader != NO_LEADER:
            continue
        eligible = [*state.isr, *(member for member in state.elr if member not in state.isr)]
        known = [member for member in state.last_known_elr if member >= 0]
        candidates = [member for member in eligible if member in state.replicas] if eligible else known
        if not candidates:
            alive = running is not None and all(replica in running for replica in state.replicas)
            texts.append(
                f"{name}: no leader for good{', although all replicas are running' if alive else ''}: only an unclean election helps"
            )
        else:
            texts.append(f"{name}: no leader, waiting for one of {listed(candidates)}")
    return found(texts)


def preferred_leaders(partitions: Partitions | None) -> Outcome:
    """ISR-16: leaders that are not the first replica; a warning only if leadership is checked."""
    if partitions is None:
        return unknown(_NO_PARTITIONS)
    return found(
        (
            f"{name}: leader {state.leader}, preferred {state.replicas[0]}"
            for name, state in partitions.items()
            if state.leader >= 0 and state.replicas and state.leader != state.replicas[0]
        ),
        tolerable=True,
    )


def kraft_epochs_lead(zookeeper: Partitions | None, kraft: Partitions | None) -> Outcome:
    """ISR-17: no leader epoch in ZooKeeper is above KRaft's, or a ZooKeeper controller wrote after the load."""
    if zookeeper is None or kraft is None:
        return unknown("both sides are needed")
    return found(
        f"{name}: leader epoch {state.leader_epoch} in ZooKeeper, {kraft[name].leader_epoch} in KRaft"
        for name, state in zookeeper.items()
        if name in kraft and state.leader_epoch > kraft[name].leader_epoch
    )


@dataclass(frozen=True)
class Churn:
    """How often brokers left and came back into ISRs in one hour (`hour` is its start, milliseconds since the epoch)."""

    subject: str
    hour: int
    shrinks: int
    expansions: int


def churn(histories: Mapping[str, Iterable[ClassifiedChange]]) -> list[Churn]:
    """Shrinks and expansions per partition and per broker and hour, the worst first (ISR-08).

    `histories` are the steps of partitions by name; brokers are `broker N`. A change by several brokers counts once for
    the partition and once for each of them.
    """
    counts: dict[tuple[str, int], list[int]] = {}
    for name, history in histories.items():
        for step in history:
            if step.before is None:
                continue
            hour = step.time - step.time % HOUR
            for column, members in ((0, step.left), (1, step.joined)):
                for subject in [name, *(f"broker {member}" for member in members)] if members else []:
                    counts.setdefault((subject, hour), [0, 0])[column] += 1
    rows = [Churn(subject, hour, *numbers) for (subject, hour), numbers in counts.items()]
    return sorted(rows, key=lambda row: (-row.shrinks - row.expansions, row.subject, row.hour))


def flapping(history: Iterable[ClassifiedChange], least: int, within: int = HOUR) -> dict[int, int]:
    """Brokers that left and came back into one partition's ISR at least `least` times in turn within `within` ms.

    Gives the largest number of alternations of each such broker.
    """
    moves: dict[int, list[int]] = {}
    for step in history:
        if step.before is not None:
            for member in (*step.left, *step.joined):
                moves.setdefault(member, []).append(step.time)
    return {member: most for member, times in sorted(moves.items()) if (most := _most_within(times, within)) >= least}


def _most_within(times: list[int], within: int) -> int:
    most = first = 0
    for last, time in enumerate(times):
        while time - times[first] > within:
            first += 1
        most = max(most, last - first + 1)
    return most
