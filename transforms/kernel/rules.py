"""What a change of a partition is, compiled: `transforms.isr.history.classify`, rule by rule, which this is compared with.

Kinds are bits, in the order in which `classify` names them: each row's kinds are those of its bits from the lowest on.
"""

# ruff: noqa: SIM110 - what is compiled is loops

# mypy: disable-error-code="no-any-return,return-value"
# In compiled code numpy's integers are the integers.

from __future__ import annotations

from transforms.isr.history import ELECTIONS, ChangeKind
from transforms.isr.partition import NO_LEADER, RECOVERED, RECOVERING
from transforms.kernel.layout import (
    ADDING,
    AFTER,
    BEFORE,
    CLEARS,
    ELR,
    IS_MADE,
    IS_WHOLE,
    ISR,
    LAST_ELR,
    LEADER,
    LISTS,
    NAMES_LEADER,
    RECOVERS,
    RECOVERY,
    REMOVING,
    REPLICAS,
    Step,
)
from transforms.kernel.lists import has, inlined, lacks, same

ORDER = (
    ChangeKind.CREATED,
    ChangeKind.REPLACED,
    ChangeKind.ELR_CLEARED,
    *ELECTIONS,
    ChangeKind.EPOCH_BUMP,
    ChangeKind.LEADER_LOST,
    ChangeKind.LEADER_MOVE,
    ChangeKind.REASSIGNMENT_STARTED,
    ChangeKind.REASSIGNMENT_CHANGED,
    ChangeKind.REASSIGNMENT_COMPLETED,
    ChangeKind.REASSIGNMENT_CANCELLED,
    ChangeKind.SHRINK,
    ChangeKind.EXPAND,
    ChangeKind.REORDERED,
    ChangeKind.RECOVERED,
    ChangeKind.ELR_GAINED,
    ChangeKind.ELR_LOST,
    ChangeKind.DIRECTORIES,
)
_BIT = {kind: 1 << place for place, kind in enumerate(ORDER)}
_CREATED, _REPLACED, _ELR_CLEARED = _BIT[ChangeKind.CREATED], _BIT[ChangeKind.REPLACED], _BIT[ChangeKind.ELR_CLEARED]
_CLEAN, _OF_ELR = _BIT[ChangeKind.CLEAN_ELECTION], _BIT[ChangeKind.ELR_ELECTION]
_LAST_KNOWN, _UNCLEAN = _BIT[ChangeKind.LAST_KNOWN_LEADER_ELECTION], _BIT[ChangeKind.UNCLEAN_ELECTION]
_BUMP, _LOST, _MOVE = _BIT[ChangeKind.EPOCH_BUMP], _BIT[ChangeKind.LEADER_LOST], _BIT[ChangeKind.LEADER_MOVE]
_STARTED, _CHANGED = _BIT[ChangeKind.REASSIGNMENT_STARTED], _BIT[ChangeKind.REASSIGNMENT_CHANGED]
_COMPLETED, _CANCELLED = _BIT[ChangeKind.REASSIGNMENT_COMPLETED], _BIT[ChangeKind.REASSIGNMENT_CANCELLED]
_SHRINK, _EXPAND, _REORDERED = _BIT[ChangeKind.SHRINK], _BIT[ChangeKind.EXPAND], _BIT[ChangeKind.REORDERED]
_RECOVERED, _GAINED, _ELR_LOST = _BIT[ChangeKind.RECOVERED], _BIT[ChangeKind.ELR_GAINED], _BIT[ChangeKind.ELR_LOST]
_DIRECTORIES = _BIT[ChangeKind.DIRECTORIES]


@inlined
def kinds_of(step: Step) -> int:
    """All kinds of a change, as bits."""
    if step.facts[IS_MADE]:
        return _CREATED
    if step.facts[IS_WHOLE]:
        return _REPLACED
    if step.facts[CLEARS]:
        return _ELR_CLEARED
    cancelled = _is_cancelled(step)
    kinds = _election(step, cancelled) | _leader(step) | _reassignment(step, cancelled) | _isr(step) | _elr(step)
    if step.numbers[BEFORE, RECOVERY] == RECOVERING and step.numbers[AFTER, RECOVERY] == RECOVERED:
        kinds |= _RECOVERED
    return kinds if kinds != 0 else _DIRECTORIES


@inlined
def _election(step: Step, cancelled: bool) -> int:
    """`election_of`."""
    if cancelled and _has_strangers(step):
        return _UNCLEAN
    leader, recovers = step.numbers[AFTER, LEADER], step.facts[RECOVERS] != 0
    if not step.facts[NAMES_LEADER] or leader == NO_LEADER:
        return 0
    if leader == step.numbers[BEFORE, LEADER] and not recovers:
        return 0
    in_isr, in_elr = has(step, ISR, leader), has(step, ELR, leader)
    safe = in_isr or in_elr
    if recovers or not (safe or _joined_in_time(step, cancelled)):
        return _LAST_KNOWN if has(step, LAST_ELR, leader) and not safe else _UNCLEAN
    return _CLEAN if in_isr or not in_elr else _OF_ELR


@inlined
def _joined_in_time(step: Step, cancelled: bool) -> bool:
    led = step.numbers[BEFORE, LEADER] != NO_LEADER
    return led and _ends(step) and not cancelled and has(step, LISTS + ISR, step.numbers[AFTER, LEADER])


@inlined
def _is_reassigning(step: Step, half: int) -> bool:
    return step.sizes[half * LISTS + ADDING] > 0 or step.sizes[half * LISTS + REMOVING] > 0


@inlined
def _ends(step: Step) -> bool:
    return _is_reassigning(step, BEFORE) and not _is_reassigning(step, AFTER)


@inlined
def _is_cancelled(step: Step) -> bool:
    """`_cancelled`."""
    if not _ends(step):
        return False
    if not _reaches_target(step):
        return True
    if not _adds_and_removes(step):
        return False
    led = step.numbers[BEFORE, LEADER] != NO_LEADER and step.numbers[AFTER, LEADER] != NO_LEADER
    return not (_holds_target(step) and (led or not _has_strangers(step)))


@inlined
def _is_target(step: Step, wanted: int) -> bool:
    return has(step, REPLICAS, wanted) and not has(step, REMOVING, wanted)


@inlined
def _reaches_target(step: Step) -> bool:
    """Whether the replicas after the change are the target of the reassignment before it."""
    first = step.starts[LISTS + REPLICAS]
    for at in range(first, first + step.sizes[LISTS + REPLICAS]):
        if not _is_target(step, step.pool[at]):
            return False
    return _all_of_target(step, LISTS + REPLICAS)


@inlined
def _holds_target(step: Step) -> bool:
    """Whether the ISR after the change holds the whole target."""
    return _all_of_target(step, LISTS + ISR)


@inlined
def _all_of_target(step: Step, k: int) -> bool:
    first = step.starts[REPLICAS]
    for at in range(first, first + step.sizes[REPLICAS]):
        wanted = step.pool[at]
        if _is_target(step, wanted) and not has(step, k, wanted):
            return False
    return True


@inlined
def _adds_and_removes(step: Step) -> bool:
    """Whether a replica was both added and removed."""
    first = step.starts[ADDING]
    for at in range(first, first + step.sizes[ADDING]):
        if has(step, REMOVING, step.pool[at]):
            return True
    return False


@inlined
def _has_strangers(step: Step) -> bool:
    """`_strangers`: whether there are any."""
    first = step.starts[LISTS + ISR]
    for at in range(first, first + step.sizes[LISTS + ISR]):
        member = step.pool[at]
        if not has(step, ISR, member) and not has(step, ELR, member):
            return True
    return False


@inlined
def _leader(step: Step) -> int:
    if not step.facts[NAMES_LEADER]:
        return 0
    if step.numbers[AFTER, LEADER] == step.numbers[BEFORE, LEADER]:
        return _BUMP
    return _LOST if step.numbers[AFTER, LEADER] == NO_LEADER else _MOVE


@inlined
def _isr(step: Step) -> int:
    kinds = 0
    if lacks(step, LISTS + ISR, ISR):
        kinds |= _SHRINK
    if lacks(step, ISR, LISTS + ISR):
        kinds |= _EXPAND
    if kinds == 0 and not same(step, ISR, LISTS + ISR):
        kinds = _REORDERED
    return kinds


@inlined
def _reassignment(step: Step, cancelled: bool) -> int:
    moves = not (same(step, ADDING, LISTS + ADDING) and same(step, REMOVING, LISTS + REMOVING))
    if not moves and same(step, REPLICAS, LISTS + REPLICAS):
        return 0
    after = _is_reassigning(step, AFTER)
    if not _is_reassigning(step, BEFORE):
        return _STARTED if after else _COMPLETED
    if after:
        return _CHANGED
    return _CANCELLED if cancelled else _COMPLETED


@inlined
def _elr(step: Step) -> int:
    kinds = 0
    if lacks(step, ELR, LISTS + ELR):
        kinds |= _GAINED
    if lacks(step, LISTS + ELR, ELR):
        kinds |= _ELR_LOST
    return kinds
