"""Who is to be told of a run, and why: policies `always`, `on_change` and `when_red`, decided from what runs stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from transforms.reconcile.judge import summary
from transforms.report.fleet_model import NOT_READY, FleetRun, gates_in_order
from transforms.report.printable import counted, listed
from transforms.report.words import VERDICT_WORDS

ALWAYS, ON_CHANGE, WHEN_RED = "always", "on_change", "when_red"
REASON_ALWAYS, REASON_CHANGE, REASON_REMINDER, REASON_RED = "always", "change", "reminder", "red"


@dataclass(frozen=True)
class LastMail:
    """The newest mail about a cluster that was tried: of which run, when (UTC), and why it was not sent, if so."""

    run_id: str
    at: datetime
    problem: str = ""


@dataclass(frozen=True)
class Decision:
    """Whether a cluster's run is mailed: `reason` is empty when not; `changes` are sentences, gravest first."""

    reason: str = ""
    changes: tuple[str, ...] = ()

    @property
    def wanted(self) -> bool:
        """True when the run is to be mailed."""
        return bool(self.reason)


@dataclass(frozen=True)
class Policy:
    """What a configuration asks for; `remind_after_hours` is when what persists is told again (`on_change` only)."""

    send: str
    remind_after_hours: float


def decide(policy: Policy, now: FleetRun, before: Sequence[FleetRun], last_mail: LastMail | None) -> Decision:
    """Decide about the run `now` of a cluster; `before` are its earlier runs, oldest first.

    A mail that could not be sent is owed: what it was about counts as a change, whatever has happened since.
    """
    found = tuple(changes(now, before, last_mail))
    if policy.send == ALWAYS:
        return Decision(REASON_ALWAYS, found)
    if policy.send == WHEN_RED:
        owed = last_mail is not None and last_mail.problem
        return Decision(REASON_RED, found) if is_red(now) else Decision(REASON_CHANGE, found) if owed else Decision()
    if found:
        return Decision(REASON_CHANGE, found)
    due = last_mail is None or now.finished_at - last_mail.at >= timedelta(hours=policy.remind_after_hours)
    if is_red(now) and due:
        return Decision(REASON_REMINDER, (_reminder(last_mail),))
    return Decision()


def _reminder(last_mail: LastMail | None) -> str:
    if last_mail is None:
        return "Nothing has changed since the run before; no mail has told of it yet."
    return f"Nothing has changed since the mail of {last_mail.at:%Y-%m-%d %H:%M} UTC: what it told still stands."


def is_red(run: FleetRun) -> bool:
    """True for warnings, errors, a start that is blocked, and an audit that failed."""
    return run.verdict != summary.CLEAN or run.label == NOT_READY


def changes(now: FleetRun, before: Sequence[FleetRun], last_mail: LastMail | None = None) -> list[str]:
    """What is different from the run before, in sentences, gravest first; nothing when nothing is.

    Lag that comes and goes is no change: only verdicts, gates, checks and defects are. Of a failed run only the failure
    is known; after it, the last run that came to its end is what counts. A first run is a change.
    """
    owed = (
        [f"The mail of run {last_mail.run_id} was not sent: {last_mail.problem}."]
        if last_mail is not None and last_mail.problem
        else []
    )
    if not before:
        return [*owed, "This is the first run."]
    last = before[-1]
    if now.failed:
        same = last.failed and last.failure == now.failure
        return owed if same else [*owed, f"The audit failed: {now.failure}"]
    back = ["The audit works again."] if last.failed else []
    judged = next((run for run in reversed(before) if not run.failed), None)
    if judged is None:
        return [*owed, *back, "This is the first run that came to its end."]
    return [*owed, *back, *_verdict(now, judged), *_gates(now, judged), *_defects(now, judged), *_checks(now, judged)]


def _verdict(now: FleetRun, then: FleetRun) -> list[str]:
    # A run of an earlier release has no word of its own.
    was, is_ = (then.label, now.label) if then.label else (then.verdict, now.verdict)
    turned = [] if was == is_ else [f"Verdict: {was.lower()} → {is_.lower()}."]
    moved = then.phase and then.phase != now.phase
    return [*turned, *([f"Phase: {_plain(then.phase)} → {_plain(now.phase)}."] if moved else [])]


def _gates(now: FleetRun, then: FleetRun) -> list[str]:
    if not then.gates:
        return []
    names = gates_in_order({**then.gates, **now.gates})
    pairs = [(name, then.gates.get(name, "not_applicable"), now.gates.get(name, "not_applicable")) for name in names]
    return [
        f"Gate {_plain(name)}: {VERDICT_WORDS.get(was, was)} → {VERDICT_WORDS.get(is_, is_)}."
        for name, was, is_ in pairs
        if was != is_
    ]


def _defects(now: FleetRun, then: FleetRun) -> list[str]:
    new, resolved = now.statuses.get("new", 0), now.statuses.get("resolved", 0)
    found = [f"{counted(new, 'new defect')}."] if new else []
    found += [f"{counted(resolved, 'defect')} resolved."] if resolved else []
    if not found and now.defects != then.defects:
        found = [f"Defects: {then.defects:,} → {now.defects:,}."]
    return found


def _checks(now: FleetRun, then: FleetRun) -> list[str]:
    # A run of an earlier release stored no checks here: all would look new.
    if not then.label:
        return []
    new = [name for name in now.open_checks if name not in then.open_checks]
    gone = [name for name in then.open_checks if name not in now.open_checks]
    found = [f"Checks that fail or warn now: {listed(new, 8)}."] if new else []
    return found + ([f"Checks that no longer do: {listed(gone, 8)}."] if gone else [])


def _plain(name: str) -> str:
    return name.replace("_", " ")
