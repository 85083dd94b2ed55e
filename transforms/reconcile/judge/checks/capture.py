"""CAP checks: is what was captured fit to be judged (S§7.1)."""

from __future__ import annotations

from schemas.zookeeper.findings import FINDINGS
from transforms.reconcile.judge.checks.outcome import CheckFunction, Outcome, found, in_tables, sampled, unknown
from transforms.reconcile.judge.facts import Facts


def _one_cluster(facts: Facts) -> Outcome:
    """CAP-01."""
    wanted = (facts.zookeeper or {}).get("cluster_id")
    if wanted is None:
        return unknown("/cluster/id was not read")
    return found(
        f"{copy.location}: cluster.id {copy.cluster_id}, /cluster/id {wanted}"
        for copy in facts.copies
        if copy.cluster_id is not None and copy.cluster_id != wanted
    )


def _whole_log(facts: Facts) -> Outcome:
    """CAP-02."""
    return sampled(facts.damaged_log)


def _log_start(facts: Facts) -> Outcome:
    """CAP-03."""
    return found([] if facts.plan_problem is None else [facts.plan_problem])


def _log_reaches_migration(facts: Facts) -> Outcome:
    """CAP-04."""
    offset = facts.migration_offset
    if offset is None or facts.plan is None:
        return unknown("/migration or the log was not read")
    if offset < 0:
        return found([])
    leading = facts.plan.leading
    if leading.end <= offset:
        return found([f"the log ends at offset {leading.end - 1}, /migration is at {offset}"])
    epoch = leading.epoch_at(offset)
    wanted = (facts.zookeeper or {}).get("kraft_metadata_epoch")
    if epoch is None or epoch == wanted:
        return found([])
    return found([f"the record at offset {offset} is of epoch {epoch}, /migration says epoch {wanted}"])


def _together(facts: Facts) -> Outcome:
    """CAP-05. A tree older than the log cannot be told from one that nobody wrote; that side is DUR-04's."""
    written, appended = facts.newest_znode_time, facts.newest_append_time
    if written is None or appended is None:
        return unknown("no znode or no record has a time")
    skew = (written - appended) / 1000
    if skew <= facts.capture_skew_limit:
        return found([])
    return found([f"ZooKeeper was written {skew:.0f} s after the newest record of the log that was given"])


def _no_open_transaction(facts: Facts) -> Outcome:
    """CAP-06."""
    log = facts.transactions
    if log is None:
        return unknown("no log could be read")
    problems = [
        f"transaction {t.name or 'without a name'} is open since offset {t.begin}"
        for t in log.transactions
        if t.outcome == "open"
    ]
    problems += [f"{marker.type} at offset {marker.offset} has no partner" for marker in log.unmatched]
    return found(problems)


def _readable(facts: Facts) -> Outcome:
    """CAP-07."""
    return sampled(facts.unreadable_znodes)


# Findings that no other check judges: what znodes hold (`schemas.zookeeper.findings`) and what records break.
_OWN_CHECK = ("CAP-", "START-", "STATE-DELETING", "TOKEN-EMPTY", "UNKNOWN-PATH")
_LOG_CODES = ("PARTITION-UNKNOWN", "DIRECTORIES", "BROKER-CHANGE", "REMOVAL-UNKNOWN")
_UNJUDGED_CODES = (*(code for code in FINDINGS if not code.startswith(_OWN_CHECK)), *_LOG_CODES)

CHECKS: dict[str, CheckFunction] = {
    "CAP-01": _one_cluster,
    "CAP-02": _whole_log,
    "CAP-03": _log_start,
    "CAP-04": _log_reaches_migration,
    "CAP-05": _together,
    "CAP-06": _no_open_transaction,
    "CAP-07": _readable,
    "CAP-08": in_tables("CAP-08"),
    "CAP-09": in_tables(*_UNJUDGED_CODES),
}
