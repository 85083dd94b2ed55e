"""CAP checks: can the capture be judged (S§7.1)."""

from __future__ import annotations

from schemas.checks import KRAFT, START_PHASES, ZOOKEEPER, Phase
from schemas.checks.codes import CONFIG_SKIPPED, POISON
from schemas.classes import LAG
from schemas.zookeeper.findings import FINDINGS, STOP_THE_FULL_SYNC, STOP_THE_LOAD
from transforms.kraft.quorum import foreign_copies
from transforms.kraft.release import before
from transforms.outcome import Outcome, found, not_applicable, passed, unknown
from transforms.reconcile.judge.absent import absent
from transforms.reconcile.judge.checks.outcome import CheckFunction, sampled
from transforms.reconcile.judge.facts import Facts
from transforms.reconcile.judge.liveness import LivenessState, captured, clocks, ends_long_before, liveness
from transforms.reconcile.judge.load import history_from

# So many records are named where a text must be short.
_LISTED = 3


def _one_cluster(facts: Facts) -> Outcome:
    """CAP-01."""
    wanted = (facts.zookeeper or {}).get("cluster_id")
    if wanted is None:
        return unknown("/cluster/id was not read")
    named = [copy for copy in facts.copies if copy.cluster_id is not None]
    if not named and not _holds_what_migration_names(facts):
        return unknown("no copy has a meta.properties with a cluster.id: give the one beside the log folder")
    return found(
        f"{copy.location}: cluster.id {copy.cluster_id}, /cluster/id {wanted}"
        for copy in named
        if copy.cluster_id != wanted
    )


def _holds_what_migration_names(facts: Facts) -> bool:
    """The log has the record that `/migration` names, of that epoch: rows of another cluster would differ."""
    offset = facts.compared_offset
    if offset is None or offset <= 0 or facts.plan is None or facts.phase is Phase.WAITING:
        return False
    return facts.plan.leading.epoch_at(offset) == (facts.compared_znodes or {}).get("kraft_metadata_epoch")


def _whole_log(facts: Facts) -> Outcome:
    """CAP-02."""
    return sampled(facts.damaged_log)


def _known_records(facts: Facts) -> Outcome:
    """CAP-12. Their checksums are right, so that newer software wrote them; what they change is unknown, and so is the state."""
    records = facts.unknown_records
    if not records.total:
        return passed()
    listed = "; ".join(records.examples[:_LISTED])
    return unknown(f"records that this audit does not know ({records.total}): {listed}")


def _log_start(facts: Facts) -> Outcome:
    """CAP-03. A log folder without a batch is that of a controller that never ran, unless one has claimed ZooKeeper."""
    if KRAFT in facts.collected:
        return found([] if facts.plan_problem is None else [facts.plan_problem])
    never_ran = all(copy.log_end is None and not copy.checkpoints for copy in facts.copies)
    if not facts.copies and facts.plan_problem is None:
        return unknown("the controllers' metadata log was not given")
    problem = facts.plan_problem or "no copy of the log can be used"
    claimed = (facts.zookeeper or {}).get("controller_persistent")
    if facts.copies and never_ran and not claimed:
        return unknown(problem)
    return found([f"{problem}, and a KRaft controller holds /controller" if claimed else problem])


def _log_reaches_migration(facts: Facts) -> Outcome:
    """CAP-04. Rows of a data folder are compared at a barrier, so that its tree may be some seconds newer than the log."""
    offset = facts.compared_offset
    if offset is None or facts.plan is None:
        return unknown("/migration or the log was not read")
    if offset < 0:
        return found([])
    leading = facts.plan.leading
    if leading.end <= offset:
        return found([f"the log ends at offset {leading.end - 1}, /migration is at {offset}"])
    epoch = leading.epoch_at(offset)
    wanted = (facts.compared_znodes or {}).get("kraft_metadata_epoch")
    if epoch is None or epoch == wanted:
        return _undecided_lag(facts, offset) or _short_of_the_newest_tree(facts)
    return found([f"the record at offset {offset} has epoch {epoch}, but /migration has epoch {wanted}"])


def _undecided_lag(facts: Facts, offset: int) -> Outcome | None:
    """After finalising nothing depends on it: ZooKeeper is no longer used."""
    mirrored = offset if facts.mirrored_offset is None else facts.mirrored_offset
    begins, late = history_from(facts.plan), facts.differing(LAG).total
    if facts.phase is not Phase.DUAL_WRITE or begins is None or begins <= mirrored + 1 or not late:
        return None
    return unknown(
        f"the log begins at offset {begins}, after /migration's offset {mirrored}: which of {late} differing rows are late, and "
        "which were lost, is unknown; give a controller's log that reaches back to that offset"
    )


def _short_of_the_newest_tree(facts: Facts) -> Outcome:
    if facts.ends_early is None:
        return passed()
    long_before = ends_long_before(facts)
    if long_before is not None:
        return unknown(long_before)
    end, offset = 0 if facts.plan is None else facts.plan.leading.end - 1, facts.migration_offset
    return passed(
        f"the log ends at offset {end}, /migration is at {offset}: rows are compared as of offset {facts.compared_offset}"
    )


def _together(facts: Facts) -> Outcome:
    """CAP-05. Before dual write, and in 3.4, a quiet ZooKeeper is older than the log; it cannot be distinguished from an old copy."""
    written, appended = facts.newest_znode_time_ms, facts.newest_append_time_ms
    if written is None or appended is None:
        return unknown("no znode or no record has a time")
    apart = (written - appended - clocks(facts).ahead_ms) / 1000
    moment = captured(facts)
    read = 0.0 if moment is None else (moment - appended) / 1000
    limit, problems = facts.capture_skew_limit, []
    if apart > limit:
        problems.append(f"ZooKeeper was written {apart:.0f} s after the newest record of the log")
    elif read > limit:
        problems.append(f"the log ends {read:.0f} s before ZooKeeper was read: {_why_so_early(facts)}")
    if apart < -limit and facts.phase is Phase.DUAL_WRITE and not before(facts.kafka_version, 3, 5):
        problems.append(
            f"ZooKeeper's newest write is {-apart:.0f} s older than the log's end: the tree is an older copy, or "
            "nothing is mirrored"
        )
    return found(problems)


def _why_so_early(facts: Facts) -> str:
    """/migration is written as long as the controllers run, even if the copy of their log is old."""
    now = liveness(facts)
    if now is None:
        return "the copy is old, or the controllers are not running"
    if now.state is LivenessState.STOPPED:
        return "/migration was not written after that either, so the controllers are not running"
    return "/migration was written after that, so the copy of the log is old"


def _no_open_transaction(facts: Facts) -> Outcome:
    """CAP-06. Of copies that were taken one after the other, the leader's alone may have the transaction's end."""
    log = facts.transactions
    if log is None:
        return unknown("no log could be read")
    problems = [
        f"transaction {t.name or 'without a name'} is open since offset {t.begin_inclusive}"
        for t in log.transactions
        if t.outcome == "open"
    ]
    problems += [f"{marker.type} at offset {marker.offset} has no partner" for marker in log.unmatched]
    waiting = None if problems or facts.committed is None else log.open_at(facts.committed.proved_exclusive)
    if waiting is not None:
        return unknown(
            f"transaction {waiting.name or 'without a name'}, open since offset {waiting.begin_inclusive}, ends at offset "
            f"{waiting.end_inclusive}, which is not proved committed: give the logs of a majority of the voters, copied at one time"
        )
    return found(problems)


def _readable(facts: Facts) -> Outcome:
    """CAP-07."""
    return sampled(facts.unreadable_znodes)


def _as_the_checkpoint(facts: Facts) -> Outcome:
    """CAP-08. From 4.3 on Kafka skips configurations that it does not support: they are in no checkpoint.

    Without the release nothing passes; what differs in every release is a fault nevertheless.
    """
    kept = (CONFIG_SKIPPED,) if before(facts.kafka_version, 4, 3) else ()
    return sampled(facts.found("CAP-08", *kept))


# Findings that no other check judges: what znodes hold (`schemas.zookeeper.findings`) and what records break.
_OWN_CHECK = ("CAP-", "START-", "STATE-DELETING", "TOKEN-EMPTY", "TORN-ENTRY", "TREE-", "UNKNOWN-PATH")
# What the checks of the start judge while the load is still to come. Later the next full sync reads these znodes, and a rollback's
# brokers.
_OF_THE_START = (*STOP_THE_LOAD, *STOP_THE_FULL_SYNC, "START-13", "START-14")
_CODES = ("START-13", "START-14", *(code for code in FINDINGS if not code.startswith(_OWN_CHECK)), *POISON)


def _parsed(facts: Facts) -> Outcome:
    """CAP-09. What stops a load that is still to come is START-13's, START-14's and START-20's."""
    judged = _OF_THE_START if facts.phase in START_PHASES and ZOOKEEPER in facts.collected else ()
    return sampled(facts.found(*(code for code in _CODES if code not in judged)))


def _whole_tree(facts: Facts) -> Outcome:
    """CAP-20. A live server has its own tree, and a dump is what its client read."""
    missing = facts.found("CAP-20")
    if missing.total:
        return sampled(missing)
    if not facts.reads_data_folder:
        return not_applicable("the tree was not read from a data folder")
    proved, unproved = facts.found("TREE-PROVED"), facts.found("TREE-UNPROVED")
    if unproved.total or not proved.total:
        return unknown(next(iter(unproved.examples), "the tree was not compared with ZooKeeper's digest"))
    return passed(*proved.examples)


def _complete(facts: Facts) -> Outcome:
    """CAP-10."""
    return found(absent(facts).values())


def _copies_of_one_cluster(facts: Facts) -> Outcome:
    """CAP-11. Without it the longest log would win, and a majority be counted over both clusters."""
    if not facts.copies:
        return (
            not_applicable("no copy of a log was given")
            if KRAFT not in facts.collected
            else unknown("no copy was found")
        )
    others = [copy for copy in facts.copies if copy.other_log]
    return found([*foreign_copies(facts.copies), *(f"{copy.location}: {copy.problem}" for copy in others)])


CHECKS: dict[str, CheckFunction] = {
    "CAP-01": _one_cluster,
    "CAP-02": _whole_log,
    "CAP-03": _log_start,
    "CAP-04": _log_reaches_migration,
    "CAP-05": _together,
    "CAP-06": _no_open_transaction,
    "CAP-07": _readable,
    "CAP-08": _as_the_checkpoint,
    "CAP-09": _parsed,
    "CAP-10": _complete,
    "CAP-11": _copies_of_one_cluster,
    "CAP-12": _known_records,
    "CAP-20": _whole_tree,
}
