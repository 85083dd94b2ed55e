"""RB checks: may the migration be rolled back (S§7.5)."""

from __future__ import annotations

from schemas.classes import DEFECTS, LAG
from schemas.kraft.metadata_versions import level_name
from transforms.outcome import Outcome, found, listed_ids, not_applicable, passed, unknown
from transforms.reconcile.judge.checks.between import cluster_id
from transforms.reconcile.judge.checks.brokers import other_protocols, zookeeper_brokers
from transforms.reconcile.judge.checks.dual_write import storable
from transforms.reconcile.judge.checks.outcome import CheckFunction, sampled
from transforms.reconcile.judge.facts import Facts, Sample
from transforms.reconcile.judge.liveness import LivenessState, clocks, liveness

# 3.9-IV0: the newest level that a broker in ZooKeeper mode supports.
LAST_ZOOKEEPER_LEVEL = 21


def _not_finalized(facts: Facts) -> Outcome:
    """RB-01."""
    done = [change for change in facts.states if facts.state_name == "POST_MIGRATION"]
    return found([f"finalised at offset {done[-1].offset}"] if done else [])


def _nothing_lost(facts: Facts) -> Outcome:
    """RB-02. A busy healthy cluster always has rows in flight; only rows that will not arrive would be lost."""
    if not facts.compared:
        return unknown("the two sides could not be compared")
    lost, under_way, now = facts.differing(*DEFECTS), facts.differing(LAG), liveness(facts)
    may_be_lost = facts.ends_early
    if may_be_lost is not None and not lost.total:
        return unknown(may_be_lost)
    if not lost.total and (not under_way.total or (now is not None and now.state is LivenessState.LIVE)):
        return passed(*_under_way(under_way))
    return sampled(lost, under_way)


def _under_way(rows: Sample) -> list[str]:
    if not rows.total:
        return []
    return [
        f"a rollback at this moment would lose {rows.total} row{'' if rows.total == 1 else 's'} that ZooKeeper is about to "
        "receive: stop the controllers cleanly first, then audit copies made after that (RB-08)"
    ]


def _controller_epochs(facts: Facts) -> Outcome:
    """RB-03. Without /controller_epoch the next ZooKeeper controller begins at epoch 1, which every partition has passed."""
    if (facts.zookeeper or {}).get("controller_epoch") is None:
        return found(["/controller_epoch is missing or not a number: a ZooKeeper controller would start at epoch 1"])
    return sampled(facts.found("RB-03"))


def _protocols(facts: Facts) -> Outcome:
    """RB-04."""
    if facts.level is None:
        return unknown("the log has no metadata.version")
    if facts.level > LAST_ZOOKEEPER_LEVEL:
        return found([f"the cluster is at {level_name(facts.level)}; brokers in ZooKeeper mode support up to 3.9-IV0"])
    protocols, quotas = other_protocols(facts, facts.level), facts.found("QUOTA-SPELLING")
    return sampled(Sample(len(protocols), tuple(protocols)), quotas)


def _cleaned_up(facts: Facts) -> Outcome:
    """RB-05. Without an offset it is of no earlier migration: a controller that was started since made it."""
    offset = facts.migration_offset
    if not (facts.zookeeper or {}).get("migration_present") or (offset is not None and offset < 0):
        return found([])
    return found([f"/migration still exists, with offset {facts.migration_offset}"])


def _producer_ids(facts: Facts) -> Outcome:
    """RB-06."""
    following, end = facts.next_producer_id, facts.producer_block_end
    if not following or (end is not None and end + 1 >= following):
        return found([])
    where = "has no producer id block" if end is None else f"would hand out ids from {end + 1}"
    return found([f"ZooKeeper {where}, KRaft has handed out everything below {following}"])


def _reached_the_end(facts: Facts) -> Outcome:
    """RB-08. What follows the last change of a stopped quorum are no-ops and leader changes, which ZooKeeper never gets."""
    if facts.lag is None or facts.plan is None:
        return unknown("the lag could not be measured")
    if facts.ends_early is not None:
        return unknown(facts.ends_early)
    if not facts.lag.changes:
        return found([])
    behind = f"{facts.lag.changes} changes after /migration's offset {facts.migration_offset} are not in ZooKeeper"
    if facts.plan.leading.stopped_cleanly:
        return found([f"the controllers are stopped, and {behind}"])
    return unknown(f"the controllers were running, and {behind} yet: stop them, then copy both sides and audit again")


def _readable_in_zookeeper_mode(facts: Facts) -> Outcome:
    """RB-09. A broker with the migration enabled takes both versions of meta.properties."""
    files = facts.properties
    if not files.broker_meta:
        return unknown("give the brokers' meta.properties (properties.broker_meta)")
    own = cluster_id(facts)
    foreign = [file for file in files.broker_meta if None not in (own, file.cluster_id) and file.cluster_id != own]
    if foreign:
        return found(
            f"{file.location} belongs to cluster {file.cluster_id}, but this is cluster {own}" for file in foreign
        )
    wrong = [file for file in files.broker_meta if file.version != 0]
    if wrong:
        migrating = {file.node_id for file in files.brokers if file.migration_enabled}
        return found(
            (f"broker {file.broker_id}: {file.location} has version {file.version}" for file in wrong),
            tolerable=all(file.broker_id in migrating for file in wrong),
        )
    absent = {broker["broker_id"] for broker in facts.brokers_in_kraft} - {file.broker_id for file in files.broker_meta}
    if absent:
        return unknown(f"give meta.properties of broker {listed_ids(absent)} (properties.broker_meta)")
    return found([])


def _brokers_back(facts: Facts) -> Outcome:
    """RB-10."""
    if not facts.replicas:
        return unknown("no assignment was read")
    back = zookeeper_brokers(facts)
    away = [use for use in facts.replicas if use.broker_id not in back]
    return found(f"broker {use.broker_id} holds {use.replicas} replicas and is not in /brokers/ids" for use in away)


def epochs_too_high(facts: Facts) -> Outcome:
    """RB-11, and before the migration ISR-14."""
    if (facts.zookeeper or {}).get("controller_epoch") is None:
        return unknown("/controller_epoch was not read")
    return sampled(facts.found("RB-11"))


# An idle quorum that runs appends twice a second; the clocks of the two sides differ.
_STOPPED_SECONDS = 60


def _quorum_stopped(facts: Facts) -> Outcome:
    """RB-12. A tree without later writes cannot distinguish a running quorum from one that has just stopped."""
    written, appended = facts.newest_znode_time_ms, facts.newest_append_time_ms
    if facts.plan is None or written is None or appended is None:
        return unknown("no log or no znode has a time")
    silence = (written - appended - clocks(facts).ahead_ms) / 1000
    if facts.plan.leading.stopped_cleanly or silence > _STOPPED_SECONDS:
        return found([])
    text = f"controller {facts.plan.leading.controller_id}'s log was not closed, and its newest record is "
    return found(
        [text + (f"{silence:.0f} s older" if silence >= 0 else f"{-silence:.0f} s newer") + " than ZooKeeper's"]
    )


def _lost_by_rollback(facts: Facts) -> Outcome:
    """RB-13."""
    if facts.left_behind is None:
        is_gone = facts.migration_offset is None
        why = "/migration is gone" if is_gone else "/migration was made again"
        return not_applicable(f"{why}, so it is unknown up to which offset ZooKeeper had everything")
    return sampled(facts.left_behind)


def _formatted_again(facts: Facts) -> Outcome:
    """RB-14. "KRaft controller indicates an active migration, but the ZK state does not.": the driver stays INACTIVE (S§4.1)."""
    offset = facts.migration_offset
    if offset is None or offset > 0:
        return found([])
    text = (
        f"/migration has offset {offset}: a controller made it after the rollback. The log still has the state of the earlier "
        "migration, and a controller that has this log waits forever: it neither loads ZooKeeper nor mirrors anything"
    )
    return found([text])


CHECKS: dict[str, CheckFunction] = {
    "RB-01": _not_finalized,
    "RB-02": _nothing_lost,
    "RB-03": _controller_epochs,
    "RB-04": _protocols,
    "RB-05": _cleaned_up,
    "RB-06": _producer_ids,
    "RB-07": storable,
    "RB-08": _reached_the_end,
    "RB-09": _readable_in_zookeeper_mode,
    "RB-10": _brokers_back,
    "RB-11": epochs_too_high,
    "RB-12": _quorum_stopped,
    "RB-13": _lost_by_rollback,
    "RB-14": _formatted_again,
}
