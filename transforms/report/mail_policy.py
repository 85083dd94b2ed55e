"""Who gets a mail or message about a run, and why: policies `always`, `on_change` and `when_red`, decided from stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from transforms.report.compared import NOT_COMPARED
from transforms.report.fleet_model import NOT_READY, FleetRun, gates_in_order
from transforms.report.printable import counted, listed
from transforms.report.words import VERDICT_WORDS
from transforms.runs import CLEAN, ERRORS, FAILED, latest_now

ALWAYS, ON_CHANGE, WHEN_RED = "always", "on_change", "when_red"
REASON_ALWAYS, REASON_CHANGE, REASON_REMINDER, REASON_RED = "always", "change", "reminder", "red"


@dataclass(frozen=True)
class LastMail:
    """The newest mail about a cluster that was tried: its run, its time (UTC), and why it was not sent, if so.

    `earlier` is then the newest one that was sent, None without any.
    """

    run_id: str
    at: datetime
    problem: str = ""
    earlier: LastMail | None = None

    @property
    def sent(self) -> LastMail | None:
        """The newest mail that was sent: the state that its readers know."""
        return self.earlier if self.problem else self


def last_mail(tried: Sequence[LastMail], as_of: datetime) -> LastMail | None:
    """The newest of the mails about a cluster, as of a moment (UTC). One from the future is of a wrong clock, and none."""
    known = sorted((mail for mail in tried if mail.at <= latest_now(as_of)), key=lambda mail: mail.at)
    if not known:
        return None
    newest = known[-1]
    sent = [mail for mail in known if not mail.problem]
    return replace(newest, earlier=sent[-1]) if newest.problem and sent else newest


@dataclass(frozen=True)
class Decision:
    """Whether a cluster's run is mailed: `reason` is empty when not; `changes` are sentences, gravest first.

    With `has_notices` the first of them are faults of the audit itself, of which its verdict says nothing.
    """

    reason: str = ""
    changes: tuple[str, ...] = ()
    has_notices: bool = False

    @property
    def wanted(self) -> bool:
        """True if a mail about the run must be sent."""
        return bool(self.reason)


@dataclass(frozen=True)
class Policy:
    """A configured policy; `remind_after_hours` is the interval of reminders while a fault persists (`on_change` only).

    `medium` is a mail, or a message to a chat.
    """

    send: str
    remind_after_hours: float
    medium: str = "mail"


def decide(
    policy: Policy,
    now: FleetRun,
    before: Sequence[FleetRun],
    last_mail: LastMail | None,
    notices: Sequence[str] = (),
) -> Decision:
    """Decide about the run `now` of a cluster; `before` are its earlier runs, oldest first.

    The run is compared with the run of the newest mail that was sent, not with the run before: a run that was stopped before
    its mail informed nobody. A mail that could not be sent is still due. `notices` are sentences that are sent regardless of
    the policy.
    """
    found, noticed = (*notices, *changes(now, before, last_mail, policy.medium)), bool(notices)
    if policy.send == ALWAYS:
        return Decision(REASON_ALWAYS, found, noticed)
    if policy.send == WHEN_RED:
        owed = last_mail is not None and last_mail.problem
        unreported = notices or owed or any(is_red(run) for run in _missed(now, before, last_mail))
        return (
            Decision(REASON_RED, found, noticed)
            if is_red(now)
            else Decision(REASON_CHANGE, found, noticed)
            if unreported
            else Decision()
        )
    if found:
        return Decision(REASON_CHANGE, found, noticed)
    # Nothing has changed since the last mail: so there is one.
    sent = None if last_mail is None else last_mail.sent
    if sent is not None and is_red(now) and now.finished_at - sent.at >= timedelta(hours=policy.remind_after_hours):
        return Decision(REASON_REMINDER, (_reminder(sent, policy.medium),))
    return Decision()


def decide_unknowing(policy: Policy, notices: Sequence[str]) -> Decision:
    """Decide about a run that cannot read earlier runs and mails: it is mailed, because it is unknown whether that was done."""
    return Decision(REASON_ALWAYS if policy.send == ALWAYS else REASON_RED, tuple(notices), bool(notices))


def with_notice(label: str, verdict: str, decisions: Sequence[Decision]) -> str:
    """A verdict's label for a subject line. After a calm one nobody would read on to the notice."""
    noticed = verdict not in (ERRORS, FAILED) and any(each.has_notices for each in decisions)
    return f"{label.upper()}{', WITH NOTICE' if noticed else ''}"


def _reminder(sent: LastMail, medium: str) -> str:
    when = f"{sent.at:%Y-%m-%d %H:%M} UTC"
    return f"No verdict, gate, check or defect has changed since the {medium} of {when}."


def is_red(run: FleetRun) -> bool:
    """True for warnings, errors, a start that is blocked, and an audit that failed."""
    return run.verdict != CLEAN or run.label == NOT_READY


def changes(
    now: FleetRun, before: Sequence[FleetRun], last_mail: LastMail | None = None, medium: str = "mail"
) -> list[str]:
    """The differences to the run of the last mail, in sentences, the most severe first; empty if there are none.

    Lag that comes and goes is not a change: only verdicts, gates, checks and defects are. Of a failed run only the failure is
    known; after it, the last finished run counts. A state that no mail has reported is a change, and so are runs since then
    that differed from both, because no mail reported them.
    """
    owed = (
        [f"The {medium} of run {last_mail.run_id} was not sent: {last_mail.problem}."]
        if last_mail is not None and last_mail.problem
        else []
    )
    if not before:
        return [*owed, "This is the first run."]
    reported = _last_reported(before, last_mail)
    unknown = [] if reported is not None or owed else [_why_unknown(last_mail, medium)]
    missed = _untold_words(_missed(now, before, last_mail), medium)
    return [*owed, *unknown, *_turned_since(now, before, reported), *missed]


def _turned_since(now: FleetRun, before: Sequence[FleetRun], reported: FleetRun | None) -> list[str]:
    """How the run differs from the reported run, or from the run before if none was reported."""
    last = before[-1] if reported is None else reported
    if now.failed:
        same = last.failed and last.failure == now.failure
        return [] if same else [f"The audit failed: {now.failure}"]
    back = ["The audit works again."] if last.failed else []
    place = before.index(last)
    judged = next((index for index in range(place, -1, -1) if not before[index].failed), None)
    if judged is None:
        first = all(run.failed for run in before)
        return [*back, "This is the first finished run." if first else f"Verdict: {_label(now)}."]
    then = before[judged]
    since = [*(run for run in before[judged + 1 :] if not run.failed), now]
    return [*back, *_verdict(now, then), *_gates(now, then), *_defects(now, then, since), *_checks(now, then)]


def _last_reported(before: Sequence[FleetRun], last_mail: LastMail | None) -> FleetRun | None:
    """The run of the last mail; None if there is none, or it is no longer stored."""
    sent = None if last_mail is None else last_mail.sent
    return None if sent is None else next((run for run in reversed(before) if run.run_id == sent.run_id), None)


def _why_unknown(last_mail: LastMail | None, medium: str) -> str:
    sent = None if last_mail is None else last_mail.sent
    if sent is None:
        return f"This is the first {medium} about this cluster."
    return f"Run {sent.run_id}, the subject of the {medium} of {sent.at:%Y-%m-%d %H:%M} UTC, is not in the warehouse."


def _missed(now: FleetRun, before: Sequence[FleetRun], last_mail: LastMail | None) -> list[FleetRun]:
    """Runs since the reported one that differ both from it and from this one, oldest first."""
    reported = _last_reported(before, last_mail)
    place = -1 if reported is None else before.index(reported)
    judged = next((run for run in reversed(before[: place + 1]) if not run.failed), None)
    known = [run for run in (reported, judged, now) if run is not None]
    return [run for run in before[place + 1 :] if not any(_alike(run, each) for each in known)]


def _alike(one: FleetRun, other: FleetRun) -> bool:
    if one.failed or other.failed:
        return one.failed and other.failed and one.failure == other.failure
    return not (_verdict(other, one) or _gates(other, one) or _checks(other, one))


def _untold_words(missed: Sequence[FleetRun], medium: str) -> list[str]:
    red = [run for run in missed if is_red(run)]
    if not missed:
        return []
    newest = (red or missed)[-1]
    how = newest.failure if newest.failed else f"{_label(newest)}, {newest.headline}"
    more = "" if len(missed) == 1 else f" The same holds for {counted(len(missed) - 1, 'other run')}."
    when = f"{newest.started_at:%Y-%m-%d %H:%M} UTC"
    return [f"No {medium} reported run {newest.run_id} of {when}: {how.rstrip('.')}.{more}"]


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


def _defects(now: FleetRun, then: FleetRun, since: Sequence[FleetRun]) -> list[str]:
    """`since` are the judged runs after `then`, this one the last: each has what is new since the one before it."""
    new, resolved = (sum(run.statuses.get(name, 0) for run in since) for name in ("new", "resolved"))
    found = [f"{counted(new, 'new defect')}."] if new else []
    found += [f"{counted(resolved, 'defect')} resolved."] if resolved else []
    # That there are none is no news after a run that did not compare, nor the other way round.
    if not found and now.defects != then.defects and (now.defects or then.defects):
        found = [f"Defects: {_number(then.defects)} → {_number(now.defects)}."]
    return found


def _number(defects: int | None) -> str:
    return NOT_COMPARED if defects is None else f"{defects:,}"


def _checks(now: FleetRun, then: FleetRun) -> list[str]:
    # A run of an earlier release stored no checks here: all would look new.
    if not then.label:
        return []
    new = [name for name in now.open_checks if name not in then.open_checks]
    gone = [name for name in then.open_checks if name not in now.open_checks]
    unjudged = [name for name in new if then.passed_checks is not None and name not in then.passed_checks]
    passed = gone if now.passed_checks is None else [name for name in gone if name in now.passed_checks]
    found = [
        ("Checks that newly fail or warn", [name for name in new if name not in unjudged]),
        ("Checks that fail or warn and were not judged before", unjudged),
        ("Checks that pass again", passed),
        ("Checks that failed or warned and are no longer judged", [name for name in gone if name not in passed]),
    ]
    return [f"{what}: {listed(names, 8)}." for what, names in found if names]


def _label(run: FleetRun) -> str:
    return (run.label or run.verdict).lower()


def _plain(name: str) -> str:
    return name.replace("_", " ")
