"""A healthy KRaft cluster that was audited before, and what can be wrong between two of its runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.reconcile.kraft_clusters import END, EPOCH, HOUR, NODES, NOW, Failing, copy, kraft
from transforms.kraft.quorum import plan_read
from transforms.reconcile.judge.earlier import Claim, EarlierRun, LogKnown
from transforms.reconcile.judge.facts import Facts, LeaderEpoch

# The run before: two days ago, 500 records ago, in the same epoch.
THEN = LogKnown(
    cluster_id="c",
    committed_end_offset=1400,
    log_end_offset=1450,
    newest_append_time=NOW - 48 * HOUR,
    leader_epochs=((EPOCH, 0),),
)
NOW_TOO = replace(THEN, committed_end_offset=END - 1, log_end_offset=END - 1, newest_append_time=NOW)
ELECTED = [LeaderEpoch(EPOCH, 0, 3000, NODES, NOW - 99 * HOUR)]
CLAIM = Claim(now=NOW + HOUR, stale_after=48 * 3600.0, current=True)


def earlier(log: LogKnown = THEN, since_hours: float = 48, **values: Any) -> EarlierRun:
    return EarlierRun("20261122T100000Z-aaaaaa", replace(log, **values), int(NOW - since_hours * HOUR))


def again(before: EarlierRun | None = None, claim: Claim = CLAIM, **values: Any) -> Facts:
    """The cluster audited once more."""
    begun = {"epochs": ELECTED, "log_begun_ms": ELECTED[0].append_time_ms}
    return kraft(earlier=before or earlier(), claim=claim, **{**begun, **values})


def copies(**values: Any) -> dict[str, Any]:
    """Facts of a log whose copies are all otherwise."""
    made = [copy(node, **values) for node in NODES]
    return {"copies": made, "plan": plan_read(made)}


def two_clusters() -> Facts:
    """A copy of another cluster among the others: no plan is made of them."""
    made = [*(copy(node) for node in NODES), copy(3003, cluster_id="another", location="/logs/other")]
    return kraft(copies=made, plan=None, committed=None, plan_problem="the copies of the log are not of one cluster")


def cases() -> Iterator[tuple[str, Failing]]:
    """Check, facts in which it fails and passes, and the verdict."""
    yield "CAP-11", (two_clusters(), kraft(), "fail")
    yield "RUN-01", (again(earlier(cluster_id="another")), again(), "fail")
    yield "RUN-02", (again(earlier(committed_end_offset=END)), again(), "fail")
    yield "RUN-03", (again(earlier(leader_epochs=((EPOCH, 0), (EPOCH + 1, 1300)))), again(), "fail")
    yield "RUN-04", (again(earlier(NOW_TOO)), again(earlier(NOW_TOO, since_hours=1)), "fail")
    yield "RUN-05", (again(claim=replace(CLAIM, now=NOW + 49 * HOUR)), again(), "fail")
