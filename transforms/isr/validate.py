"""A controller's answer to an AlterIsr or AlterPartition request (S§8.2), predicted rule by rule.

`ReplicationControlManager.alterPartition` and `validateAlterPartitionData` for KRaft, `KafkaController.tryProcessAlterPartition`
for the ZooKeeper controller. The API was AlterIsr up to 3.1 (KIP-497) and is AlterPartition since 3.2 (KIP-704).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from schemas.kraft.metadata_versions import LATEST_PRODUCTION
from transforms.isr.builder import Builder, Proposal
from transforms.isr.partition import RECOVERED, RECOVERING, Ids, PartitionState, merged

ANY_EPOCH = -1


class ControllerMode(StrEnum):
    """Whose rules apply. During a migration, a KRaft controller's rules also apply to brokers in ZooKeeper mode."""

    ZOOKEEPER = "zk"
    KRAFT = "kraft"


class Error(StrEnum):
    """Kafka's errors that can be an answer, by the name shipped."""

    NONE = "NONE"
    UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
    CLUSTER_AUTHORIZATION_FAILED = "CLUSTER_AUTHORIZATION_FAILED"
    UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
    NOT_CONTROLLER = "NOT_CONTROLLER"
    INVALID_REQUEST = "INVALID_REQUEST"
    OPERATION_NOT_ATTEMPTED = "OPERATION_NOT_ATTEMPTED"
    FENCED_LEADER_EPOCH = "FENCED_LEADER_EPOCH"
    STALE_BROKER_EPOCH = "STALE_BROKER_EPOCH"
    INVALID_UPDATE_VERSION = "INVALID_UPDATE_VERSION"
    UNKNOWN_TOPIC_ID = "UNKNOWN_TOPIC_ID"
    INELIGIBLE_REPLICA = "INELIGIBLE_REPLICA"
    NEW_LEADER_ELECTED = "NEW_LEADER_ELECTED"


CODES: Mapping[Error, int] = {
    Error.NONE: 0,
    Error.UNKNOWN_TOPIC_OR_PARTITION: 3,
    Error.CLUSTER_AUTHORIZATION_FAILED: 31,
    Error.UNSUPPORTED_VERSION: 35,
    Error.NOT_CONTROLLER: 41,
    Error.INVALID_REQUEST: 42,
    Error.OPERATION_NOT_ATTEMPTED: 55,
    Error.FENCED_LEADER_EPOCH: 74,
    Error.STALE_BROKER_EPOCH: 77,
    Error.INVALID_UPDATE_VERSION: 95,
    Error.UNKNOWN_TOPIC_ID: 100,
    Error.INELIGIBLE_REPLICA: 107,
    Error.NEW_LEADER_ELECTED: 108,
}
# Where the proposal named an error otherwise than the code that was shipped.
KIP_497_NAMES: Mapping[Error, str] = {Error.INVALID_UPDATE_VERSION: "INVALID_ISR_VERSION"}


@dataclass(frozen=True)
class Registration:
    """A broker as registered with the controller. In ZooKeeper mode it is one of `/brokers/ids`, and never fenced."""

    broker_epoch: int
    fenced: bool = False
    in_controlled_shutdown: bool = False


@dataclass(frozen=True)
class AlterPartitionRequest:
    """A request of one partition's leader. What is None is taken as right: the sender is the leader, its epoch current.

    `broker_epochs` are those of the proposed ISR's members (KIP-903); -1, or none given, skips their comparison.
    """

    leader_epoch: int
    partition_epoch: int
    isr: Ids
    sender: int | None = None
    sender_epoch: int | None = None
    broker_epochs: Mapping[int, int] = field(default_factory=dict)
    leader_recovery_state: int = RECOVERED
    version: int | None = None


@dataclass(frozen=True)
class Controller:
    """The controller that gets the request: its rules, and its state of the brokers and of the partition (None: unknown).

    `bumps_on_shrink`: a shrinking ISR raises the leader epoch (S§3.3); None: determined by the release alone.
    `authorized`: the sender has CLUSTER_ACTION. `offline` are replicas whose directory is offline (3.7 and later).
    `elr`: eligible leader replicas are on; they depend on `min_isr`, the topic's effective min.insync.replicas, which is at
    most the replicas of its partition 0 (None: not known). `unclean` is its unclean.leader.election.enable.
    """

    mode: ControllerMode
    release: tuple[int, int]
    brokers: Mapping[int, Registration]
    partition: PartitionState | None
    topic_known: bool = True
    active: bool = True
    bumps_on_shrink: bool | None = None
    authorized: bool = True
    offline: Ids = ()
    elr: bool = False
    min_isr: int | None = None
    unclean: bool = False


@dataclass(frozen=True)
class AlterPartitionAnswer:
    """What the controller answers, by which rule, and whether it writes.

    `result` is the partition afterwards. `rule` is the rule's number in S§8.2; None if no rule refuses. `unverified` are rules
    that could not be applied, because an input was not given.
    """

    error: Error
    rule: int | None
    reason: str
    writes: bool = False
    result: PartitionState | None = None
    unverified: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """Kafka's number of the error."""
        return CODES[self.error]

    @property
    def kip_name(self) -> str:
        """The error's name in KIP-497."""
        return KIP_497_NAMES.get(self.error, self.error.value)


def api_name(release: tuple[int, int]) -> str:
    """Name of the request (API 56) in a release."""
    return "AlterIsr" if release < (3, 2) else "AlterPartition"


def partition_epoch_name(release: tuple[int, int]) -> str:
    """What the request of a release calls the epoch of the partition; KIP-497 calls it CurrentZkVersion."""
    return "CurrentIsrVersion" if release < (3, 2) else "PartitionEpoch"


def request_version(release: tuple[int, int]) -> int:
    """The newest version of the request that a release sends (S§8.1)."""
    return next(
        (version for version, since in ((3, (3, 5)), (2, (3, 3)), (1, (3, 2))) if release >= since),
        0,
    )


def request_versions(release: tuple[int, int]) -> tuple[int, int]:
    """The oldest and the newest version of the request that a controller of a release takes."""
    return (2 if release >= (4, 0) else 0), request_version(release)


@dataclass(frozen=True)
class _Asked:
    """A request with all inputs of the rules."""

    request: AlterPartitionRequest
    controller: Controller
    partition: PartitionState
    sender: int
    version: int

    @property
    def recovery_state(self) -> int:
        """Version 0 has no such field, which then is RECOVERED."""
        return self.request.leader_recovery_state if self.version >= 1 else RECOVERED


# Stands where a rule of S§8.2 has its number: that one answers, but refuses nothing.
_NO_REFUSAL = -1
_RequestRule = Callable[[_Asked], tuple[Error, str] | None]


def validate(request: AlterPartitionRequest, controller: Controller) -> AlterPartitionAnswer:
    """What `controller` answers to `request`. The rules are applied in its order; the first that fails gives the answer.

    For a release above the tables the newest known rules are applied, which the answer notes.
    """
    answer, (newest, name) = _answered(request, controller), _NEWEST
    if controller.release <= newest:
        return answer
    note = (
        f"the rules of Kafka {controller.release[0]}.{controller.release[1]} are unknown: those of {name} were applied"
    )
    return replace(answer, unverified=(note, *answer.unverified))


def _newest() -> tuple[tuple[int, int], str]:
    name = next(reversed(LATEST_PRODUCTION))
    major, minor = name.split(".")
    return (int(major), int(minor)), name


_NEWEST = _newest()


def _answered(request: AlterPartitionRequest, controller: Controller) -> AlterPartitionAnswer:
    version = request_version(controller.release) if request.version is None else request.version
    refused = _refused_at_the_door(controller, version) or _refused_before_partition(request, controller, version)
    partition = controller.partition
    if refused is not None:
        return refused
    if partition is None:
        return AlterPartitionAnswer(Error.UNKNOWN_TOPIC_OR_PARTITION, 2, "there is no such partition")
    sender = partition.leader if request.sender is None else request.sender
    asked = _Asked(request, controller, partition, sender, version)
    rules = (
        _kraft_rules(controller.release)
        if controller.mode is ControllerMode.KRAFT
        else _zookeeper_rules(controller.release)
    )
    for number, rule in rules:
        failed = rule(asked)
        if failed is not None:
            error, reason = failed
            same = error is Error.NONE
            return AlterPartitionAnswer(error, None if same else number, reason, result=partition if same else None)
    return _accepted(asked)


def _refused_at_the_door(controller: Controller, version: int) -> AlterPartitionAnswer | None:
    """Conditions that are checked before the controller: the request's version, and the sender's permissions."""
    oldest, newest = request_versions(controller.release)
    if not oldest <= version <= newest:
        reason = f"version {version} of the request is not one of {oldest} to {newest}: the connection is closed"
        return AlterPartitionAnswer(Error.UNSUPPORTED_VERSION, None, reason)
    if not controller.authorized:
        reason = "the sender is not allowed CLUSTER_ACTION on the cluster"
        return AlterPartitionAnswer(Error.CLUSTER_AUTHORIZATION_FAILED, None, reason)
    return None


def _refused_before_partition(
    request: AlterPartitionRequest, controller: Controller, version: int
) -> AlterPartitionAnswer | None:
    """Rules on the controller, the sender and the topic."""
    if not controller.active:
        return AlterPartitionAnswer(Error.NOT_CONTROLLER, 0, "the controller is not the active one")
    sender = request.sender
    if sender is None and controller.partition is not None:
        sender = controller.partition.leader
    stale = _stale(sender, request.sender_epoch, controller.brokers)
    if stale is not None:
        return AlterPartitionAnswer(Error.STALE_BROKER_EPOCH, 0, f"{stale}; the whole request is refused")
    if not controller.topic_known:
        error = Error.UNKNOWN_TOPIC_ID if version > 1 else Error.UNKNOWN_TOPIC_OR_PARTITION
        return AlterPartitionAnswer(error, 1, "there is no such topic")
    return None


def _stale(sender: int | None, epoch: int | None, brokers: Mapping[int, Registration]) -> str | None:
    if sender is None:
        return None
    known = brokers.get(sender)
    if known is None:
        return "there is no leader who could send it" if sender < 0 else f"broker {sender} is not registered"
    if epoch is not None and epoch != known.broker_epoch:
        return f"broker {sender} has the epoch {known.broker_epoch}, not {epoch}"
    return None


def _newer_leader_epoch(asked: _Asked) -> tuple[Error, str] | None:
    ours, theirs = asked.partition.leader_epoch, asked.request.leader_epoch
    if theirs <= ours:
        return None
    return (
        Error.NOT_CONTROLLER,
        f"leader epoch {theirs} is newer than {ours}: another controller must have given it out",
    )


def _newer_partition_epoch(asked: _Asked) -> tuple[Error, str] | None:
    ours, theirs = asked.partition.partition_epoch, asked.request.partition_epoch
    if theirs <= ours:
        return None
    return (
        Error.NOT_CONTROLLER,
        f"partition epoch {theirs} is newer than {ours}: another controller must have written it",
    )


def _older_leader_epoch(asked: _Asked) -> tuple[Error, str] | None:
    ours, theirs = asked.partition.leader_epoch, asked.request.leader_epoch
    return None if theirs >= ours else (Error.FENCED_LEADER_EPOCH, f"the leader epoch is {ours}, not {theirs}")


def _other_leader_epoch(asked: _Asked) -> tuple[Error, str] | None:
    ours, theirs = asked.partition.leader_epoch, asked.request.leader_epoch
    return None if theirs == ours else (Error.FENCED_LEADER_EPOCH, f"the leader epoch is {ours}, not {theirs}")


def _not_leader(asked: _Asked) -> tuple[Error, str] | None:
    leader = asked.partition.leader
    if asked.sender == leader:
        return None
    who = "there is no leader" if leader < 0 else f"the leader is broker {leader}"
    return Error.INVALID_REQUEST, f"{who}, not broker {asked.sender}"


def _older_partition_epoch(asked: _Asked) -> tuple[Error, str] | None:
    ours, theirs = asked.partition.partition_epoch, asked.request.partition_epoch
    return None if theirs >= ours else (Error.INVALID_UPDATE_VERSION, f"the partition epoch is {ours}, not {theirs}")


def _other_partition_epoch(asked: _Asked) -> tuple[Error, str] | None:
    ours, theirs = asked.partition.partition_epoch, asked.request.partition_epoch
    return None if theirs == ours else (Error.INVALID_UPDATE_VERSION, f"the partition epoch is {ours}, not {theirs}")


def _not_replicas(asked: _Asked) -> tuple[Error, str] | None:
    isr, replicas = asked.request.isr, asked.partition.replicas
    if len(set(isr)) != len(isr):
        return Error.INVALID_REQUEST, f"the ISR {listed(isr)} names a broker twice"
    strangers = [member for member in isr if member < 0 or member not in replicas]
    if strangers:
        return Error.INVALID_REQUEST, f"{listed(strangers)} of the ISR is not a replica of {listed(replicas)}"
    return None


def _without_leader(asked: _Asked) -> tuple[Error, str] | None:
    leader = asked.partition.leader
    if leader in asked.request.isr:
        return None
    return Error.INVALID_REQUEST, f"the leader, broker {leader}, is not in the ISR {listed(asked.request.isr)}"


def _recovers_with_others(asked: _Asked) -> tuple[Error, str] | None:
    if asked.recovery_state != RECOVERING or len(asked.request.isr) <= 1:
        return None
    return Error.INVALID_REQUEST, "a leader that is RECOVERING can have nobody else in the ISR"


def _recovers_again(asked: _Asked) -> tuple[Error, str] | None:
    if asked.partition.recovering or asked.recovery_state != RECOVERING:
        return None
    return Error.INVALID_REQUEST, "a leader that is RECOVERED can't become RECOVERING by its own request"


def _ineligible(asked: _Asked) -> tuple[Error, str] | None:
    """All members are checked, also those that are in the ISR already (KIP-841, KIP-903)."""
    found = [text for member in asked.request.isr if (text := _why_ineligible(member, asked)) is not None]
    return None if not found else (_ineligible_error(asked), "; ".join(found))


def _why_ineligible(member: int, asked: _Asked) -> str | None:
    known = asked.controller.brokers.get(member)
    if known is None:
        return f"broker {member} is not registered"
    if known.in_controlled_shutdown:
        return f"broker {member} is shutting down"
    if known.fenced:
        return f"broker {member} is fenced"
    given = asked.request.broker_epochs.get(member, ANY_EPOCH) if asked.version >= 3 else ANY_EPOCH
    if given not in (ANY_EPOCH, known.broker_epoch):
        return f"broker {member} has the epoch {known.broker_epoch}, not {given}"
    return None


def _not_live(asked: _Asked) -> tuple[Error, str] | None:
    dead = [member for member in asked.request.isr if member not in asked.controller.brokers]
    if not dead:
        return None
    return _ineligible_error(asked), f"{listed(dead)} of the ISR is not in /brokers/ids"


def _ineligible_error(asked: _Asked) -> Error:
    return Error.INELIGIBLE_REPLICA if asked.version > 1 else Error.OPERATION_NOT_ATTEMPTED


def _identical(asked: _Asked) -> tuple[Error, str] | None:
    """The ZooKeeper controller answers with success, and writes nothing, if the state equals the request."""
    request, partition = asked.request, asked.partition
    same = (
        request.isr == partition.isr
        and request.leader_epoch == partition.leader_epoch
        and asked.sender == partition.leader
        and (asked.controller.release < (3, 2) or asked.recovery_state == partition.leader_recovery_state)
    )
    return (Error.NONE, "the partition is in this state already: nothing is written") if same else None


def _kraft_rules(release: tuple[int, int]) -> Iterable[tuple[int, _RequestRule]]:
    recovery: list[tuple[int, _RequestRule]] = [(10, _recovers_with_others), (11, _recovers_again)]
    proposal: list[tuple[int, _RequestRule]] = [(8, _not_replicas), (9, _without_leader)]
    if release >= (3, 3):
        return [
            (3, _newer_leader_epoch),
            (4, _newer_partition_epoch),
            (5, _older_leader_epoch),
            (6, _not_leader),
            (7, _older_partition_epoch),
            *proposal,
            *recovery,
            (12, _ineligible),
        ]
    # Before 3.3 an epoch that differs either way is the partition's error; in 2.8 the sender is checked first.
    leads: list[tuple[int, _RequestRule]] = [(5, _other_leader_epoch), (6, _not_leader)]
    first = leads if release >= (3, 0) else leads[::-1]
    early: list[tuple[int, _RequestRule]] = [*first, (7, _other_partition_epoch), *proposal]
    return [*early, *recovery] if release >= (3, 2) else early


def _zookeeper_rules(release: tuple[int, int]) -> Iterable[tuple[int, _RequestRule]]:
    """It checks neither whether the sender leads, nor whether the ISR consists of replicas and contains the leader."""
    recovery: list[tuple[int, _RequestRule]] = [(10, _recovers_with_others), (11, _recovers_again)]
    if release >= (3, 3):
        return [
            (3, _newer_leader_epoch),
            (4, _newer_partition_epoch),
            (5, _older_leader_epoch),
            (_NO_REFUSAL, _identical),
            (7, _older_partition_epoch),
            *recovery,
            (12, _not_live),
        ]
    early: list[tuple[int, _RequestRule]] = [(5, _older_leader_epoch), (_NO_REFUSAL, _identical)]
    # The write of the znode names its version, so that any other one is refused.
    return [*(recovery if release >= (3, 2) else ()), *early, (7, _other_partition_epoch)]


def _accepted(asked: _Asked) -> AlterPartitionAnswer:
    partition, request = asked.partition, asked.request
    unverified = _unverified(asked)
    if asked.controller.mode is ControllerMode.ZOOKEEPER:
        result = _after(
            partition, request.isr, asked.recovery_state, leader=asked.sender, leader_epoch=request.leader_epoch
        )
        return AlterPartitionAnswer(Error.NONE, None, "accepted: the state znode is written", True, result, unverified)
    proposal = replace(Proposal.of(partition), isr=request.isr, leader_recovery_state=asked.recovery_state)
    change = builder_of(asked.controller).change(partition, proposal)
    if change is None:
        text = "accepted: nothing changes, no record is written"
        return AlterPartitionAnswer(Error.NONE, None, text, False, partition, unverified)
    result = merged(partition, change)
    done = partition.reassigning and not result.reassigning
    if change.leader is None or change.leader == partition.leader:
        text = "accepted: it completes the reassignment" if done else "accepted: a PartitionChangeRecord is written"
        return AlterPartitionAnswer(Error.NONE, None, text, True, result, unverified)
    error = Error.NEW_LEADER_ELECTED if asked.version > 1 else Error.FENCED_LEADER_EPOCH
    why = "the reassignment completes and" if done else "its directory is offline:"
    text = f"a record is written: {why} broker {partition.leader} leads no more"
    return AlterPartitionAnswer(error, 13, text, True, result, unverified)


def builder_of(controller: Controller) -> Builder:
    """The inputs of a record, from the controller's state."""

    def can_lead(broker: int) -> bool:
        known = controller.brokers.get(broker)
        at_work = known is not None and not known.fenced and not known.in_controlled_shutdown
        return at_work and not (controller.release >= (3, 7) and broker in controller.offline)

    return Builder(
        release=controller.release,
        can_lead=can_lead,
        bumps_on_shrink=_bumps(controller),
        # Unknown inputs change nothing here, and are noted.
        elr=controller.elr and controller.min_isr is not None,
        min_isr=controller.min_isr or 1,
        # Kafka applies the setting since 3.9 (`ConfigurationControlManager.uncleanLeaderElectionEnabledForTopic`).
        unclean=controller.unclean and controller.release >= (3, 9),
    )


def _bumps(controller: Controller) -> bool:
    """From 3.6 on only below metadata.version 3.6-IV0, or where the migration is enabled."""
    return controller.release < (3, 6) if controller.bumps_on_shrink is None else controller.bumps_on_shrink


def _after(partition: PartitionState, isr: Ids, recovery: int, **fields: int) -> PartitionState:
    changed = replace(partition, isr=isr, leader_recovery_state=recovery, partition_epoch=partition.partition_epoch + 1)
    return replace(changed, **fields)  # type: ignore[arg-type]


def _unverified(asked: _Asked) -> tuple[str, ...]:
    notes = []
    if asked.request.sender_epoch is None:
        notes.append("the sender's broker epoch was not given: rule 0 was asked without it")
    missing = [member for member in asked.request.isr if member not in asked.request.broker_epochs]
    if asked.controller.mode is ControllerMode.KRAFT and asked.version >= 3 and missing:
        notes.append(f"no broker epoch was given for {listed(missing)}: rule 12 was asked without it")
    if asked.controller.elr and asked.controller.min_isr is None:
        notes.append("min.insync.replicas was not given: eligible leader replicas may change with it")
    if (
        asked.controller.bumps_on_shrink is None
        and asked.controller.mode is ControllerMode.KRAFT
        and asked.controller.release >= (3, 6)
    ):
        notes.append("a shrink would raise the leader epoch too below metadata.version 3.6-IV0 or while migrating")
    return tuple(notes)


# Directory ids that stand for a state, not for a directory (`DirectoryId`).
_LOST, _NOT_KNOWN_YET = "AAAAAAAAAAAAAAAAAAAAAg", ("AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ")


def offline_replicas(replicas: Sequence[int], directories: Sequence[str], online: Mapping[int, Collection[str]]) -> Ids:
    """Replicas whose directory is offline (`ClusterControlManager.hasOnlineDir`). `online` are the brokers' directories.

    A directory that is MIGRATING or UNASSIGNED counts as online, and so does any of a broker that named none.
    """
    return tuple(
        replica
        for replica, directory in zip(replicas, directories, strict=False)
        if directory == _LOST
        or (directory not in _NOT_KNOWN_YET and online.get(replica) and directory not in online[replica])
    )


def listed(ids: Iterable[int]) -> str:
    """Broker ids as Kafka's tools print them."""
    return "[" + ", ".join(str(number) for number in ids) + "]"
