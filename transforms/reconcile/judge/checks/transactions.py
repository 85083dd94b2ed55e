"""TXN checks: the writers in ZooKeeper's transaction logs (S§7.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from transforms.outcome import Outcome, found, not_applicable, unknown
from transforms.reconcile.judge.checks.outcome import CheckFunction, sampled
from transforms.reconcile.judge.facts import Facts, Sample
from transforms.reconcile.judge.zookeeper_writes import Election, ZooKeeperWrites

_NO_FOLDER = "ZooKeeper was not read from a data folder, so there are no transaction logs"


def _logs(facts: Facts) -> ZooKeeperWrites | Outcome:
    """The transaction logs, or why there is nothing to judge."""
    if not facts.reads_data_folder:
        return not_applicable(_NO_FOLDER)
    writes = facts.zookeeper_writes
    if writes is None:
        return unknown("the transaction logs were not read")
    if writes.first_zxid is None and not writes.holes:
        return not_applicable("the data folder contains no transaction log")
    return writes


def _foreign(facts: Facts) -> Outcome:
    """TXN-01."""
    logs = _logs(facts)
    return sampled(Sample(*logs.foreign)) if isinstance(logs, ZooKeeperWrites) else logs


def _refused(facts: Facts) -> Outcome:
    """TXN-02."""
    logs = _logs(facts)
    return sampled(Sample(*logs.refused)) if isinstance(logs, ZooKeeperWrites) else logs


def _claims(facts: Facts) -> Outcome:
    """TXN-03. Claims of an earlier quorum, before ZooKeeper brokers were in office again, are not this log's."""
    logs = _logs(facts)
    if not isinstance(logs, ZooKeeperWrites):
        return logs
    claims = logs.current_claims()
    return found([*_not_the_leader(facts, claims), *_not_above(claims)])


def _not_the_leader(facts: Facts, claims: Sequence[Election]) -> Iterator[str]:
    leaders = {leader.epoch: leader.leader_id for leader in facts.epochs}
    if facts.leader is not None:
        leaders.setdefault(facts.leader.epoch, facts.leader.leader_id)
    newest = max(leaders, default=None)
    for claim in claims:
        epoch, node = claim.kraft_controller_epoch, claim.kraft_controller_id
        if epoch is None or node is None:
            yield f"{claim.text}: the claim's data cannot be parsed"
        elif leaders.get(epoch) not in (None, node):
            yield f"{claim.text}: controller {node} claimed with epoch {epoch}, whose leader is {leaders[epoch]}"
        elif newest is not None and epoch > newest and _in_the_log(facts, claim):
            yield f"{claim.text}: controller {node} claimed with epoch {epoch}, but the log has no epoch above {newest}"


def _in_the_log(facts: Facts, claim: Election) -> bool:
    """The log was copied long enough after the claim to contain its epoch: otherwise DUR-02 and CAP-05 report the stale copy."""
    newest = facts.newest_append_time_ms
    return newest is not None and newest - claim.time > facts.capture_skew_limit * 1000


def _not_above(claims: Sequence[Election]) -> Iterator[str]:
    for before, after in pairwise(claims):
        old, new = before.kraft_controller_epoch, after.kraft_controller_epoch
        if old is not None and new is not None and new <= old:
            yield f"{after.text}: claimed with epoch {new}, after a claim with epoch {old} in transaction {before.zxid:#x}"


def _rising(facts: Facts) -> Outcome:
    """TXN-04. What came before the present quorum's claims is over: ZooKeeper brokers have been elected since."""
    logs = _logs(facts)
    if not isinstance(logs, ZooKeeperWrites):
        return logs
    claims = logs.current_claims()
    since = claims[0].zxid if claims else None
    problems, recent = [], False
    for before, after in pairwise(logs.elections):
        old, new = before.controller_epoch, after.controller_epoch
        if new == old + 1 or (new > old and logs.between(before, after)):
            continue
        what = "fell" if new < old else "stayed" if new == old else "leapt"
        problems.append(f"{after.text}: /controller_epoch {what} from {old} to {new}")
        recent = recent or (new <= old and since is not None and after.zxid >= since)
    return found(problems, tolerable=not recent)


def _claimed_back(facts: Facts) -> Outcome:
    """TXN-05. The claim that the load followed must be among those since a broker was in office: epochs show it, and no clock is needed."""
    logs = _logs(facts)
    if not isinstance(logs, ZooKeeperWrites):
        return logs
    loads = [change.offset for change in facts.states if facts.name_of(change) == "MIGRATION"]
    loaded_in = facts.plan.leading.epoch_at(loads[0]) if facts.plan is not None and loads else None
    brokers = [each for each in logs.elections if each.writer.startswith("broker")]
    back = next(iter(logs.current_claims()), None)
    epoch = None if back is None else back.kraft_controller_epoch
    if loaded_in is None or back is None or epoch is None or not brokers or epoch <= loaded_in:
        return found([])
    if back.controller_epoch != brokers[-1].controller_epoch + 1 and logs.between(brokers[-1], back):
        # The claim that the load followed may be in the hole.
        return found([])
    return found(
        [
            f"{brokers[-1].text}: a ZooKeeper broker took over after the load, until controller {back.kraft_controller_id} claimed "
            f"ZooKeeper again in transaction {back.zxid:#x}. Its full sync undid what was changed between them: topics made in that time "
            "are deleted, and those deleted in it are there again"
        ]
    )


CHECKS: dict[str, CheckFunction] = {
    "TXN-01": _foreign,
    "TXN-02": _refused,
    "TXN-03": _claims,
    "TXN-04": _rising,
    "TXN-05": _claimed_back,
}
