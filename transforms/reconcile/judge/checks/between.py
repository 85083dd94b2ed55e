"""RUN checks: is this the cluster, and the log, that the last run audited, and has the log grown since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from schemas.checks import ZOOKEEPER, Phase
from transforms.kraft.quorum import ReadPlan, foreign_copies
from transforms.outcome import Outcome, found, not_applicable, unknown
from transforms.reconcile.judge.checks.outcome import CheckFunction
from transforms.reconcile.judge.earlier import MOST_EPOCHS, EarlierRun, LogKnown
from transforms.reconcile.judge.facts import Facts

# From 3.3-IV1 on an idle leader appends a NoOp every metadata.max.idle.interval.ms, 500 by default (S§2.9).
_NO_OPS = 5
# The controllers' clocks and this machine's may differ by this many seconds.
_CLOCKS_DIFFER = 300
# Before the load and in dual write the controllers may be formatted again for another attempt (S§4.5).
_MAY_BEGIN_ANEW = (Phase.WAITING, Phase.DUAL_WRITE)
_ONE_OFF = "a single audit of files is not compared with earlier runs"
_FIRST = "there is no earlier run of this cluster to compare with"


def known_of(facts: Facts) -> LogKnown:
    """What this run leaves for the next one."""
    plan, committed = facts.plan, facts.committed
    epochs = () if plan is None else plan.leading.epoch_starts
    return LogKnown(
        cluster_id(facts),
        None if committed is None else committed.end_exclusive - 1,
        None if plan is None else plan.leading.end - 1,
        facts.newest_append_time_ms,
        tuple(epochs)[-MOST_EPOCHS:],
    )


def cluster_id(facts: Facts) -> str | None:
    """cluster.id of the copies that name one, else `/cluster/id`; None where neither does, or the copies disagree."""
    named = {copy.cluster_id for copy in facts.copies if copy.cluster_id is not None}
    if len(named) > 1:
        return None
    if named:
        return named.pop()
    found_id = (facts.zookeeper or {}).get("cluster_id") if ZOOKEEPER in facts.collected else None
    return None if found_id is None else str(found_id)


@dataclass(frozen=True)
class _Both:
    """The log's plan and the run that it is compared with; or why it is not."""

    plan: ReadPlan | None = None
    earlier: EarlierRun | None = None
    reason: Outcome | None = None


def _earlier(facts: Facts) -> tuple[EarlierRun | None, Outcome]:
    if facts.claim is not None and facts.claim.one_off:
        return None, not_applicable(_ONE_OFF)
    return facts.earlier, not_applicable(_FIRST)


def _same_cluster(facts: Facts) -> Outcome:
    """RUN-01."""
    earlier, otherwise = _earlier(facts)
    if earlier is None:
        return otherwise
    was, now = earlier.log.cluster_id, cluster_id(facts)
    if was is None:
        return not_applicable(f"run {earlier.run_id} recorded no cluster.id")
    if foreign_copies(facts.copies):
        return not_applicable("the copies belong to several clusters: CAP-11")
    if now is None:
        return unknown(f"the cluster.id, {was} up to run {earlier.run_id}, is unknown: give meta.properties")
    return found(
        []
        if now == was
        else [f"cluster.id is {now}, but was {was} up to run {earlier.run_id}: this is another cluster"]
    )


def _log_and_earlier(facts: Facts) -> _Both:
    earlier, otherwise = _earlier(facts)
    if earlier is None:
        return _Both(reason=otherwise)
    if facts.plan is None:
        return _Both(reason=unknown("no log was planned"))
    if earlier.log.committed_end_offset is None:
        return _Both(reason=not_applicable(f"run {earlier.run_id} did not prove any record committed"))
    now = cluster_id(facts)
    if None not in (now, earlier.log.cluster_id) and now != earlier.log.cluster_id:
        return _Both(reason=not_applicable("the log belongs to another cluster: RUN-01"))
    return _Both(facts.plan, earlier)


def _reaches_earlier_end(facts: Facts) -> Outcome:
    """RUN-02. What was proved committed is not the same in two sets of copies; that the log is there up to it is."""
    both = _log_and_earlier(facts)
    if both.plan is None or both.earlier is None:
        return both.reason or unknown("no log was planned")
    end, was = both.plan.leading.end - 1, both.earlier.log.committed_end_offset or 0
    if end >= was:
        return found([])
    text = f"the log ends at offset {end}, but run {both.earlier.run_id} saw it committed up to offset {was}: "
    if _begun_again(facts, both.earlier):
        return found([f"{text}{_anew(facts)}"], tolerable=facts.phase in _MAY_BEGIN_ANEW)
    if _other_epoch(both.plan, both.earlier) is not None:
        return found([f"{text}its records have other epochs too, so metadata was lost and written again"])
    older = f"{text}the copy is older than that run's copy, or a backup was restored and committed metadata is lost"
    return found([older], tolerable=facts.claim is not None and facts.claim.dated)


def _same_history(facts: Facts) -> Outcome:
    """RUN-03. Two logs with the same epoch at an offset agree below it (Raft's log matching), so one place is enough."""
    both = _log_and_earlier(facts)
    if both.plan is None or both.earlier is None:
        return both.reason or unknown("no log was planned")
    if _begun_again(facts, both.earlier):
        return found([_anew(facts)], tolerable=facts.phase in _MAY_BEGIN_ANEW)
    differs = _other_epoch(both.plan, both.earlier)
    if differs is None:
        return found([])
    offset, now, was = differs
    return found(
        [
            f"the record at offset {offset} has epoch {now}; in run {both.earlier.run_id} it had epoch {was} and was "
            "committed: a backup was restored, or metadata was lost and written again"
        ]
    )


def _other_epoch(plan: ReadPlan, earlier: EarlierRun) -> tuple[int, int, int] | None:
    """The newest offset that both have, with its epoch now and then, where these differ; None where they do not."""
    offset = min(earlier.log.committed_end_offset or 0, plan.leading.end - 1)
    now, was = plan.leading.epoch_at(offset), earlier.log.epoch_at(offset)
    if now is None or was is None or now == was:
        return None
    return offset, now, was


def _begun_again(facts: Facts, earlier: EarlierRun) -> bool:
    """True if the log began later than everything that the earlier run has read of it."""
    newest, begun = earlier.log.newest_append_time, facts.log_begun_ms
    return newest is not None and begun is not None and begun > newest


def _anew(facts: Facts) -> str:
    begun = _moment(facts.log_begun_ms or 0)
    return f"the log was started again at {begun}: the controllers were formatted, and the earlier log is gone"


def _moved(facts: Facts) -> Outcome:
    """RUN-04. A leader appends all the time, so a log that has not grown for hours is an old copy, or there is no leader."""
    claim, (earlier, otherwise) = facts.claim, _earlier(facts)
    if earlier is None or claim is None:
        return otherwise
    if claim.dated:
        return not_applicable("the configuration sets the time of the copies (`as_of`)")
    if facts.plan is None:
        return unknown("no log was planned")
    ends = (facts.plan.leading.end - 1, facts.newest_append_time_ms)
    since = earlier.unmoved_since
    if since is None or ends != (earlier.log.log_end_offset, earlier.log.newest_append_time):
        return found([])
    stood = (claim.now - since) / 1000
    still = f"the log ends at offset {ends[0]}, as it did {_span(stood)} ago: nothing updates its copy, or no controller leads"
    return _stale(facts, still) if stood > claim.stale_after else found([])


def _new_enough(facts: Facts) -> Outcome:
    """RUN-05. Only for a log that should be current: copies that were taken once may be old."""
    claim = facts.claim
    if claim is None or claim.one_off or not claim.current:
        return not_applicable("the log need not be current: it was not read live, and `kraft.current` is not set")
    if claim.dated:
        return not_applicable("the configuration sets the time of the copies (`as_of`)")
    newest = facts.newest_append_time_ms
    if newest is None:
        return unknown("no record of the log has a time")
    ahead = (newest - max(claim.now, claim.read_by or 0)) / 1000
    if ahead > _CLOCKS_DIFFER:
        return _stands_still(facts) or unknown(
            f"the log's newest record is dated {_moment(newest)}, {_span(ahead)} after this machine's clock: one of the two clocks is "
            "wrong, so nothing shows how old the log is"
        )
    age = (claim.now - newest) / 1000
    old = (
        f"the log's newest record was written at {_moment(newest)}, {_span(age)} ago by this machine's clock: the copy is old, or "
        "no controller leads"
    )
    return _stale(facts, old) if age > claim.stale_after else found([])


def _stale(facts: Facts, evidence: str) -> Outcome:
    return _stands_still(facts) or found([evidence])


def _stands_still(facts: Facts) -> Outcome | None:
    if facts.level is not None and facts.level < _NO_OPS:
        return not_applicable("below metadata.version 3.3-IV1 an idle leader appends nothing")
    return None


def _span(seconds: float) -> str:
    number, unit = (seconds / 60, "minute") if seconds < 7200 else (seconds / 3600, "hour")
    return f"{number:.0f} {unit}{'' if round(number) == 1 else 's'}"


def _moment(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"


CHECKS: dict[str, CheckFunction] = {
    "RUN-01": _same_cluster,
    "RUN-02": _reaches_earlier_end,
    "RUN-03": _same_history,
    "RUN-04": _moved,
    "RUN-05": _new_enough,
}
