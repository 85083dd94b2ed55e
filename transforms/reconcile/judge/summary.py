"""Facts and verdicts to the parts of a report, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schemas.checks import KRAFT, ZOOKEEPER, Phase
from schemas.checks.check import IN_KRAFT
from schemas.classes import DEFECTS, LAG
from schemas.report import (
    ZNODE_ABSENT,
    ZNODE_NOT_GIVEN,
    ZNODE_READ,
    ZNODE_UNREADABLE,
    CheckResult,
    Divergences,
    Gate,
    Lag,
    LogCopyLine,
    MigrationSummary,
)
from transforms import runs
from transforms.kraft.quorum import LogCopy, ReadPlan
from transforms.kraft.release import before
from transforms.reconcile.judge.checks.dual_write import NO_LAG_IN_3_4, repeated_load, restarted_load_text
from transforms.reconcile.judge.facts import Facts
from transforms.reconcile.judge.gates import WARN, is_error
from transforms.reconcile.judge.liveness import LivenessState, liveness, measured_skew
from transforms.reconcile.judge.requested_gate import asked_of
from transforms.zookeeper.zxids import hexadecimal

CLEAN, WARNINGS, ERRORS = runs.CLEAN, runs.WARNINGS, runs.ERRORS
_COMPARED_PHASES = (Phase.DUAL_WRITE, Phase.FINALIZED)

MODES = {
    "barrier": "the ZooKeeper tree at the very transaction that wrote /migration's offset, against the log at that offset",
    "bracket": "two walks of the ZooKeeper tree around the log; what moved between them is not judged",
    "single": "one walk of the ZooKeeper tree against the log",
    "kraft_only": "only the metadata log was given; nothing is compared",
    "zookeeper_only": "only the ZooKeeper tree was given; nothing is compared",
}


def mode(facts: Facts) -> str:
    """How the two sides were compared; a key of MODES."""
    if {ZOOKEEPER, KRAFT} <= facts.collected:
        if facts.moved is not None:
            return "bracket"
        return "barrier" if facts.at_barrier else "single"
    return "kraft_only" if KRAFT in facts.collected else "zookeeper_only"


def may_compare(facts: Facts) -> bool:
    """Rows are compared in dual write and after finalising, when both sides are there and the log reaches M (CAP-04)."""
    if facts.phase not in _COMPARED_PHASES or not {ZOOKEEPER, KRAFT} <= facts.collected or facts.plan is None:
        return False
    offset, leading = facts.compared_offset, facts.plan.leading
    if offset is None or not 0 <= offset < leading.end:
        return False
    return leading.epoch_at(offset) in (None, (facts.compared_znodes or {}).get("kraft_metadata_epoch"))


def defects(summary: Divergences) -> int:
    """Divergences in a defect class."""
    return sum(summary.by_class.get(name, 0) for name in DEFECTS)


def verdict(
    summary: Divergences,
    checks: Sequence[CheckResult],
    gates: Mapping[str, Gate],
    phase: Phase,
    requested_gate: str | None = None,
    *,
    allow_unknown: bool = False,
) -> str:
    """errors, warnings or clean.

    Errors are defects, failed checks about the present, and a requested gate that is closed, which is any that is not `go`
    (`allow_unknown`: nor one that could not be judged or is of another phase). A start that is blocked while the controllers
    wait for it is a warning: nothing is broken, but nothing will continue on its own; so is an upgrade that is blocked, of a cluster
    that was finalised or never migrated.
    """
    shut = bool(asked_of(gates, requested_gate, checks, allow_unknown=allow_unknown))
    if defects(summary) or shut or any(is_error(check, requested_gate) for check in checks):
        return ERRORS
    late = any(row.class_ == LAG and row.severity == "warning" for row in summary.rows)
    waiting = phase is Phase.WAITING and gates["start"].verdict == "no_go"
    held_back = phase in IN_KRAFT and gates["upgrade"].verdict == "no_go"
    if late or waiting or held_back or any(check.verdict == WARN for check in checks):
        return WARNINGS
    return CLEAN


def migration(facts: Facts) -> MigrationSummary:
    """Where the migration stands; offsets inclusive."""
    leader, plan, committed, skew = facts.leader, facts.plan, facts.committed, measured_skew(facts)
    reasons = []
    if plan is not None:
        reasons.append(plan.explanation)
    if committed is not None:
        reasons.append(f"committed below {committed.end_exclusive}: {committed.explanation}")
    if leader is not None and leader not in facts.epochs:
        reasons.append(f"the leader is taken from {leader.source}")
    return MigrationSummary(
        state=facts.state_name,
        kraft_metadata_offset=facts.migration_offset,
        committed_end_offset=None if committed is None else committed.end_exclusive - 1,
        log_end_offset=None if plan is None else plan.leading.end - 1,
        leader_id=leader.leader_id if leader else None,
        leader_epoch=leader.epoch if leader else None,
        copy_used=plan.leading.controller_id if plan else None,
        explanation="; ".join(reasons),
        history=_history(facts),
        phase=facts.phase.value,
        compared_zxid=(facts.compared_znodes or {}).get("migration_mzxid") if facts.at_barrier else None,
        compared_offset=facts.compared_offset if facts.compared else None,
        newest_zxid=facts.newest_zxid,
        captured_at_ms=facts.captured_at_ms,
        clock_skew_ms=None if skew is None else skew.median,
        migration_znode=_migration_znode(facts),
    )


def _history(facts: Facts) -> list[dict[str, Any]]:
    """The states in the log; one that follows itself is listed once, with how often and where last."""
    states: list[dict[str, Any]] = []
    for change in facts.states:
        name = facts.name_of(change)
        if states and states[-1]["state"] == name:
            states[-1] |= {"times": states[-1].get("times", 1) + 1, "last_offset": change.offset}
        else:
            states.append({"offset": change.offset, "state": name, "append_time": change.append_time_ms})
    return states


def lag(facts: Facts) -> Lag:
    """ZkWriteBehindLag, and whether dual write lives (`transforms.reconcile.judge.liveness`)."""
    if facts.phase is Phase.DUAL_WRITE and before(facts.kafka_version, 3, 5):
        return Lag(None, None, None, NO_LAG_IN_3_4)
    now = liveness(facts)
    if facts.phase is not Phase.DUAL_WRITE:
        return Lag(None, None, None, "the cluster is not in dual write")
    if facts.lag is None or now is None:
        return Lag(None, None, None, _no_lag(facts))
    text = "" if now.state is LivenessState.LIVE else now.text
    state = "stopped in order" if now.in_order else now.state.value
    if facts.ends_early is not None:
        return Lag(None, None, now.alive, text or facts.ends_early, state)
    return Lag(facts.lag.records, facts.lag.seconds, now.alive, text, state)


def _no_lag(facts: Facts) -> str:
    znode, unknown = _migration_znode(facts), "nothing shows how far"
    if znode == ZNODE_NOT_GIVEN:
        return f"ZooKeeper was not given: {unknown} it is behind"
    reasons = {ZNODE_ABSENT: "does not exist", ZNODE_UNREADABLE: "cannot be read", ZNODE_READ: "has no offset yet"}
    return f"/migration {reasons[znode]}: {unknown} ZooKeeper is behind"


def _migration_znode(facts: Facts) -> str:
    if ZOOKEEPER not in facts.collected:
        return ZNODE_NOT_GIVEN
    if facts.migration_offset is not None:
        return ZNODE_READ
    denied = any(text.startswith("/migration: ") for text in facts.unreadable_znodes.examples)
    there = denied or bool((facts.zookeeper or {}).get("migration_present"))
    return ZNODE_UNREADABLE if there else ZNODE_ABSENT


def copies(facts: Facts) -> list[LogCopyLine]:
    """Every controller's copy of the log, by controller and place, and what was taken from it."""
    ordered = sorted(facts.copies, key=lambda copy: (copy.controller_id is None, copy.controller_id, copy.location))
    return [_copy(copy, facts.plan) for copy in ordered]


def _copy(copy: LogCopy, plan: ReadPlan | None) -> LogCopyLine:
    last = None if copy.log_end is None else copy.log_end - 1
    return LogCopyLine(
        copy.controller_id, copy.location, copy.log_start, last, copy.last_epoch, _use(copy, plan), copy.problem
    )


def _use(copy: LogCopy, plan: ReadPlan | None) -> str:
    if plan is None:
        return "not used"
    for fork in plan.forks:
        if fork.location == copy.location:
            return (
                f"its records from offset {fork.offset} on (epoch {fork.losing_epoch}) were never committed: "
                f"epoch {fork.winning_epoch} won"
            )
    for piece in plan.slices:
        if piece.location == copy.location:
            return f"offsets {piece.from_offset_inclusive} to {piece.to_offset_exclusive - 1}"
    return "not needed"


def _load_notes(facts: Facts) -> list[str]:
    """Loads that did not finish, and what the audit cannot determine for a release."""
    said = []
    begun = repeated_load(facts)
    if begun:
        said.append(restarted_load_text(facts, begun))
    if facts.phase is Phase.DUAL_WRITE and before(facts.kafka_version, 3, 5):
        said.append(
            "Kafka 3.4 (early access) does not mirror ACLs, SCRAM credentials, delegation tokens, deleted topics and "
            "changed assignments, and never moves the offset in /migration"
        )
    return said


def _trees(facts: Facts) -> list[str]:
    """What was read at which transaction, where rows are compared at a barrier that the tree has gone past."""
    now, then = facts.zookeeper or {}, facts.compared_at
    if then is None or not facts.at_barrier:
        return []
    moved = f"/migration was at offset {then.get('kraft_metadata_offset')}"
    return [
        f"rows were compared at the barrier, ZooKeeper's transaction {hexadecimal(then.get('migration_mzxid'))}, when {moved}; "
        f"everything else is judged by the newest tree, transaction {hexadecimal(facts.newest_zxid)}, where it is at "
        f"{now.get('kraft_metadata_offset')} and /controller names {now.get('controller_id')}"
    ]


def _clocks(facts: Facts) -> list[str]:
    skew = measured_skew(facts)
    if skew is None:
        return []
    return [
        f"ZooKeeper's clock is {skew.median / 1000:+.1f} s from the controllers' (give or take "
        f"{skew.spread / 1000:.1f} s, from {skew.pairs} mirrored changes); times are compared after this correction"
    ]


def notes(facts: Facts) -> list[str]:
    """Notes for the reader about the capture itself."""
    said = _load_notes(facts)
    hidden = facts.found("CIPHERTEXT").total
    if hidden:
        said.append(
            f"{hidden} encrypted configuration{'s' if hidden > 1 else ''} could not be compared: "
            "name the environment variable that holds password.encoder.secret to have them decoded"
        )
    if facts.phase is Phase.ROLLED_BACK:
        said.append("a ZooKeeper broker is the controller again: the cluster was rolled back, nothing is compared")
    said += [*_trees(facts), *_clocks(facts), *facts.found("TORN-ENTRY", "SOURCE-FALLBACK").examples]
    if facts.moved is not None and facts.moved.total:
        said.append(
            f"{facts.moved.total} znodes changed between the two walks and are not judged: "
            + "; ".join(facts.moved.examples[:3])
        )
    if facts.foreign_writes.total:
        said.append(
            f"{facts.foreign_writes.total} writes of ZooKeeper since the claim were not the KRaft controller's: "
            + "; ".join(facts.foreign_writes.examples[:3])
        )
    if facts.plan_problem is not None:
        said.append(facts.plan_problem)
    if (
        facts.committed is not None
        and facts.plan is not None
        and facts.committed.proved_exclusive < facts.plan.leading.end
    ):
        tail = facts.plan.leading.end - facts.committed.proved_exclusive
        said.append(f"the last {tail} records of the log are not proved committed; they are judged separately")
    return said
