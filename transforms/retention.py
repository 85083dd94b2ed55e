"""Which runs' rows stay in which tables. Rows that retention removes never change the result of the next run.

People need the parts of a run for different times: details (bronze, silver) are large and needed for weeks, results (gold) are small and
needed for years. Rows that the next run resumes always stay.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

UNTIL_FINALISED = "until-finalised"
# Phases of a cluster that is migrated: `hold: until-finalised` is over.
_FINALISED = ("finalized", "kraft")
# A report shows the course of so many runs, and the fleet's page no more: their rows in gold `runs` stay.
NEWEST_RUNS = 60
_TELLS_TIME = re.compile(r"^[0-9]{8}T[0-9]{6}Z")


class Part(StrEnum):
    """What of a run a table holds."""

    DETAILS = "details"
    # The metadata log: a run that continued from another one's state needs that one's records.
    LOG = "log"
    # Bytes that the next run continues from.
    STATE = "state"
    # Rows of entities: a state is made of several runs' rows.
    CHAIN = "chain"
    JUDGED = "judged"
    # Changes of partitions: of those that go sums by day stay.
    CHANGES = "changes"
    RUN = "run"


@dataclass(frozen=True)
class Retention:
    """How long a cluster's rows stay, in days; `hold` are ids of runs that stay forever, or UNTIL_FINALISED."""

    details_days: float = 30.0
    isr_days: float = 90.0
    judged_days: float = 730.0
    orphans_days: float = 1.0
    hold: tuple[str, ...] = ()


@dataclass(frozen=True)
class KnownRun:
    """A row of gold `runs`. Times are UTC.

    `end` is where its log ended: cluster.id, last offset (None if it was given no log) and append time; None when it was not the
    cluster's own log (`goes_on`). `needs` are the runs whose bytes it has left to continue from, `builds_on` those whose records
    belong to its state, `chain` those whose rows it is made of.
    """

    run_id: str
    started_at: datetime
    finished: bool
    phase: str | None = None
    end: tuple[object, object, object] | None = None
    needs: frozenset[str] = frozenset()
    builds_on: frozenset[str] = frozenset()
    chain: frozenset[str] = frozenset()
    finished_at: datetime | None = None


@dataclass(frozen=True)
class Retained:
    """What stays of a cluster: ids by part of the runs that are `known`; with `held` all of them do.

    Runs that are not known never finished. They stay if they began after `orphans_before`, are `running`, or have no known
    start. Sums by day stay from the day `days_from` (UTC, YYYY-MM-DD) on.
    """

    known: frozenset[str]
    of_part: Mapping[Part, frozenset[str]]
    held: bool
    running: frozenset[str]
    orphans_before: datetime
    days_from: str

    def stays(self, part: Part, run_id: str, begun: datetime | None) -> bool:
        """Whether a run's rows of this part stay; `begun` (UTC) is when a run that is not known was last heard of."""
        if run_id in self.known:
            return self.held or run_id in self.of_part[part]
        return run_id in self.running or begun is None or begun >= self.orphans_before

    @property
    def stay_somewhere(self) -> frozenset[str]:
        """Ids of runs of which something stays."""
        return self.running | (self.known if self.held else self.of_part[Part.RUN])


def is_on_hold(hold: Collection[str], phase: str | None) -> bool:
    """Whether all of a cluster's evidence is held, by the phase its newest finished run saw; None is an unknown one."""
    return UNTIL_FINALISED in hold and phase not in _FINALISED


def retained(
    runs: Sequence[KnownRun],
    rules: Retention,
    now: datetime,
    mailed: Collection[str] = (),
    running: Mapping[str, datetime] | None = None,
) -> Retained:
    """What stays of a cluster with these runs, oldest first, as of `now` (UTC).

    `mailed` are the runs of the newest mails, with which the next mail is compared; `running` are those in progress,
    with when they began (UTC).
    """
    under_way = running or {}
    finished = [run for run in runs if run.finished]
    anchors = [*_continued_from(finished), *(in_use_since(finished, min(under_way.values())) if under_way else ())]
    ids = frozenset(run.run_id for run in anchors)
    always = ids | frozenset(rules.hold) | frozenset(under_way)
    details = _since(runs, now - timedelta(days=rules.details_days)) | always
    needed = frozenset().union(*(run.needs for run in anchors))
    log = _with_what_they_build_on(runs, details)
    chain = details.union(*(run.chain for run in runs if run.run_id in details))
    judged = _since(runs, now - timedelta(days=rules.judged_days)) | details | frozenset(mailed)
    changes = (_since(runs, now - timedelta(days=rules.isr_days)) | always) & judged
    newest = frozenset(run.run_id for run in [*runs[-NEWEST_RUNS:], *finished[-NEWEST_RUNS:]])
    of_part = {
        Part.DETAILS: details,
        Part.LOG: log,
        Part.STATE: details | needed,
        Part.CHAIN: chain,
        Part.JUDGED: judged,
        Part.CHANGES: changes,
        Part.RUN: judged | log | needed | chain | newest | _first_with_the_end(runs, anchors),
    }
    held = is_on_hold(rules.hold, finished[-1].phase if finished else None)
    return Retained(
        known=frozenset(run.run_id for run in runs),
        of_part=of_part,
        held=held,
        running=frozenset(under_way),
        orphans_before=now - timedelta(days=rules.orphans_days),
        days_from="" if held else f"{now - timedelta(days=rules.judged_days):%Y-%m-%d}",
    )


def in_use_since(finished: Sequence[KnownRun], since: datetime) -> list[KnownRun]:
    """Of a cluster's finished runs, oldest first, those that a run which began at `since` or later may continue from.

    Such a run looked for them when it began: it found the runs that had finished by then, or one that has finished since.
    """
    before = [run for run in finished if _had_ended(run, since)]
    return [*_continued_from(before), *(run for run in finished if not _had_ended(run, since))]


def _continued_from(finished: Sequence[KnownRun]) -> list[KnownRun]:
    # A run continues from the newest one whose log was the cluster's own, is held against the newest of these that has read the log, and
    # shows the newest one beside its own.
    own = [run for run in finished if run.end is not None]
    read = [run for run in own if run.end is not None and run.end[1] is not None]
    return [*finished[-1:], *own[-1:], *read[-1:]]


def _had_ended(run: KnownRun, moment: datetime) -> bool:
    return (run.finished_at or run.started_at) <= moment


def _since(runs: Sequence[KnownRun], moment: datetime) -> frozenset[str]:
    return frozenset(run.run_id for run in runs if run.started_at >= moment)


def _with_what_they_build_on(runs: Sequence[KnownRun], ids: frozenset[str]) -> frozenset[str]:
    # A run can have a failed row beside its finished one: a step that was repeated, or a stop while the row was stored.
    built_on: dict[str, frozenset[str]] = {}
    for run in runs:
        built_on[run.run_id] = built_on.get(run.run_id, frozenset()) | run.builds_on
    found: set[str] = set()
    to_look_at = set(ids)
    while to_look_at:
        found |= to_look_at
        following = [built_on.get(each, frozenset()) for each in to_look_at]
        to_look_at = set().union(*following) - found
    return frozenset(found)


def _first_with_the_end(runs: Sequence[KnownRun], anchors: Sequence[KnownRun]) -> frozenset[str]:
    """The first run that saw the log's end shows since when the log has not grown (RUN-04)."""
    first: dict[tuple[object, ...], KnownRun] = {}
    for run in sorted(runs, key=lambda each: each.started_at):
        if run.end is not None:
            first.setdefault(run.end, run)
    return frozenset(first[run.end].run_id for run in anchors if run.end is not None)


def begun_at(run_id: str) -> datetime | None:
    """When a run began (UTC), if its id contains the time; ids of single steps can be any text."""
    if not _TELLS_TIME.match(run_id):
        return None
    try:
        return datetime.strptime(run_id[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


@dataclass(frozen=True)
class Chosen:
    """Ids in few words: `ranges` by first and last (both inclusive), and single `ids`."""

    ranges: tuple[tuple[str, str], ...]
    ids: tuple[str, ...]


def chosen(going: Collection[str], others: Collection[str]) -> Chosen:
    """Ids to remove, as ranges that contain none of the others. Only ids that contain a time are put into ranges: no
    new one can fall into them."""
    ranges: list[tuple[str, str]] = []
    begun = False
    for each in sorted({*going, *others}):
        if each not in going:
            begun = False
        elif _TELLS_TIME.match(each):
            ranges = [*ranges[:-1], (ranges[-1][0], each)] if begun else [*ranges, (each, each)]
            begun = True
    return Chosen(tuple(ranges), tuple(sorted(each for each in going if not _TELLS_TIME.match(each))))
