"""Who took ZooKeeper over when, and whether it may: claims against the log's leader epochs, and /controller_epoch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from schemas.checks import Phase
from schemas.report import CheckResult
from schemas.silver import ZOOKEEPER_WRITES
from tests.reconcile.test_checks import CLAIM, EPOCH, NOW, dual_write, election, with_transactions
from transforms.frames import columns_of, frame
from transforms.reconcile.judge import zookeeper_writes as module
from transforms.reconcile.judge.facts import Facts, LeaderEpoch
from transforms.reconcile.judge.gates import judge_gates, run_checks
from transforms.reconcile.judge.zookeeper_writes import Election, Logged, ZooKeeperWrites, of_answers, questions

VOTERS = (3000, 3001, 3002)
FAILED_OVER = replace(
    dual_write(),
    epochs=[LeaderEpoch(1, 0, 3000, VOTERS, NOW - 90_000), LeaderEpoch(2, 200, 3001, VOTERS, NOW - 50_000)],
)


def judged(check_id: str, facts: Facts) -> CheckResult:
    return next(result for result in run_checks(facts) if result.id == check_id)


def claims(*elections: Election, facts: Facts = FAILED_OVER) -> CheckResult:
    return judged("TXN-03", with_transactions(facts, elections=elections))


def rising(*elections: Election) -> CheckResult:
    return judged("TXN-04", with_transactions(dual_write(), elections=elections))


FIRST = election(CLAIM, 4, "controller 3000", 1)


def test_a_failover_is_two_claims_by_the_leaders_of_two_epochs() -> None:
    assert claims(FIRST, election(900, 5, "controller 3001", 2)).verdict == "pass"


def test_the_newest_leaders_claim_is_right_however_long_ago_it_was() -> None:
    assert claims(FIRST, election(900, 5, "controller 3001", 2, time=NOW - 100_000)).verdict == "pass"


def test_a_claim_by_another_node_than_the_epochs_leader_is_named() -> None:
    found = claims(FIRST, election(900, 5, "controller 3002", 2))
    assert (found.verdict, found.violations) == ("fail", 1)
    assert "transaction 0x384 by controller 3002, session 0x1000" in found.evidence[0]
    assert "whose leader is 3001" in found.evidence[0]


def test_a_claim_whose_epoch_does_not_rise_is_named() -> None:
    found = claims(FIRST, election(900, 5, "controller 3000", 1))
    assert "claimed with epoch 1, after a claim with epoch 1 in transaction 0x2bc" in found.evidence[0]


def test_an_epoch_that_the_log_never_had_is_another_quorums() -> None:
    early = election(900, 5, "controller 3001", 9, time=NOW - 100_000)
    assert "the log has no epoch above 2" in claims(FIRST, early).evidence[0]
    late = replace(early, time=NOW)
    assert claims(FIRST, late).verdict == "pass", "the log may have been copied before the election"


def test_claims_of_a_quorum_that_was_rolled_back_are_not_this_logs() -> None:
    before = [election(100, 1, "controller 3002", 1), election(200, 2, "controller 3000", 8)]
    back = election(300, 3, "broker 1")
    assert claims(*before, back, FIRST).verdict == "pass"
    assert claims(*before, FIRST).verdict == "fail"


def test_a_claim_that_cannot_be_parsed_is_named() -> None:
    assert "cannot be parsed" in claims(replace(FIRST, kraft_controller_epoch=None)).evidence[0]


@pytest.mark.parametrize(("value", "word"), [(4, "stayed"), (2, "fell")])
def test_an_epoch_that_does_not_rise_since_the_claim_closes_the_gates(value: int, word: str) -> None:
    elections = (election(600, 3, "broker 0"), FIRST, election(900, value, "controller 3001", 2))
    found = rising(*elections)
    assert found.verdict == "fail"
    assert f"/controller_epoch {word} from 4 to {value}" in found.evidence[0]
    facts = with_transactions(dual_write(), elections=elections)
    assert judge_gates(run_checks(facts), facts)["finalize"].verdict == "no_go"


def test_what_happened_before_the_brokers_were_elected_last_is_a_warning() -> None:
    """A rollback as the KIP tells it deletes the znode, which begins again at 1."""
    found = rising(election(100, 9, "broker 0"), election(200, 1, "broker 1"), election(300, 2, "broker 1"), FIRST)
    assert found.verdict == "warn", "it leapt from 2 to 4, too"
    assert found.violations == 2


def test_without_a_data_folder_there_is_nothing_to_judge_and_without_its_logs_nothing_is_known() -> None:
    for number in range(1, 5):
        check_id = f"TXN-0{number}"
        assert judged(check_id, dual_write()).verdict == "not_applicable"
        empty = with_transactions(dual_write(), first_zxid=None)
        assert judged(check_id, empty).verdict == "not_applicable"
        unread = replace(empty, zookeeper_writes=None)
        assert judged(check_id, unread).verdict == "unknown"
        assert judge_gates(run_checks(unread), unread)["dual_write"].verdict == "unknown"


HOLE = "log.9: transactions are missing"


def with_hole(at: int, *elections: Election, facts: Facts = FAILED_OVER, **values: Any) -> list[CheckResult]:
    known = {"elections": elections} if elections else {}
    found = run_checks(with_transactions(facts, holes=((at, HOLE),), **known, **values))
    return [result for result in found if result.id.startswith("TXN-")]


def test_what_a_hole_since_the_claim_hides_is_unknown_and_closes_the_gates() -> None:
    for result in with_hole(CLAIM + 1):
        assert result.verdict == "unknown", result.id
        assert HOLE in result.evidence[0]
    facts = with_transactions(dual_write(), holes=((CLAIM + 1, HOLE),))
    gates = judge_gates(run_checks(facts), facts)
    assert [gates[name].verdict for name in ("dual_write", "rollback")] == ["unknown"] * 2


def test_what_is_found_beside_a_hole_is_told() -> None:
    by_hand = (1, ("transaction 1200: setData /config/topics/orders",))
    found = with_hole(CLAIM + 1, foreign=by_hand)[0]
    assert (found.verdict, found.evidence[1:]) == ("unknown", [*by_hand[1]])
    fallen = with_hole(CLAIM + 1, FIRST, election(900, 2, "controller 3001", 2))[3]
    assert fallen.verdict == "fail", "a fall is one, whatever lies between"


def test_a_hole_before_kraft_took_over_hides_nothing() -> None:
    """A follower that was away takes the leader's snapshot, and its own old logs stay where they are."""
    brokers = [election(30 * n, n, f"broker {n % 3}") for n in (1, 2, 3)]
    assert [each.verdict for each in with_hole(45, *brokers, FIRST)] == ["pass"] * 5, "a broker was elected after it"
    assert [each.verdict for each in with_hole(95, *brokers, FIRST)] == ["pass"] * 5, "no election is missing in it"
    gone = [brokers[0], brokers[2]]
    assert [each.verdict for each in with_hole(45, *gone, FIRST)] == ["pass"] * 5, (
        "that the number leapt is the hole's work"
    )
    assert [each.verdict for each in with_hole(75, *brokers[:2], FIRST)] == ["unknown"] * 5, (
        "who was third is in the hole"
    )
    assert [each.verdict for each in with_hole(0, FIRST)] == ["unknown"] * 5


def test_a_hole_is_nothing_to_a_cluster_that_kraft_has_not_taken_over() -> None:
    owned = replace(dual_write(), phase=Phase.WAITING)
    by_broker = replace(owned, zookeeper={**(owned.zookeeper or {}), "controller_persistent": False})
    hole = ((CLAIM + 1, HOLE),)
    told = {
        name: [each.verdict for each in run_checks(with_transactions(facts, holes=hole)) if each.id == "TXN-03"]
        for name, facts in (("kraft", owned), ("broker", by_broker), ("dual write", dual_write()))
    }
    assert (told["kraft"], told["dual write"]) == (["unknown"], ["unknown"])
    assert told["broker"] != ["unknown"]


def row(zxid: int, **values: Any) -> dict[str, Any]:
    return {"zxid": zxid, "time": NOW, "session": -1, "writer": "unknown", "type": "setData", "path": "/a", **values}


def test_evidence_names_transaction_session_time_and_path() -> None:
    answers: dict[str, list[dict[str, Any]]] = {
        "logged": [{"first": 1, "last": 9}],
        "elections": [],
        "foreign": [row(8, error=None, total=2), row(7, error=None, total=2)],
        "refused": [row(5, error=-103, total=1, writer="controller 3000", type="check+error+error")],
    }
    found = of_answers(lambda name: answers[name])
    assert found.foreign == (
        2,
        (
            "transaction 0x7, session 0xffffffffffffffff, 2026-11-21T03:52:51.000Z: setData /a",
            "transaction 0x8, session 0xffffffffffffffff, 2026-11-21T03:52:51.000Z: setData /a",
        ),
    )
    assert found.refused[1][0].endswith("refused with BadVersion (check+error+error)")
    assert "by controller 3000" in found.refused[1][0]
    assert found == ZooKeeperWrites(1, (), found.refused, found.foreign)


def writes(*rows: dict[str, Any]) -> pl.DataFrame:
    return frame([row(**each) for each in rows], columns_of(ZOOKEEPER_WRITES.columns, "cluster", "run_id"))


def test_of_all_writes_the_answers_are_bounded_and_their_totals_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FOREIGN", 2)
    monkeypatch.setattr(module, "MOST_ELECTIONS", 2)
    foreign = [{"zxid": zxid, "kind": "foreign"} for zxid in (9, 7, 8)]
    refused = [{"zxid": zxid, "kind": "envelope_failed", "error": error} for zxid, error in enumerate(ERRORS, 20)]
    elected = [{"zxid": zxid, "kind": "claim", "controller_epoch": zxid} for zxid in (3, 1, 2)]
    found = questions(writes(*foreign, *refused, *elected, {"zxid": 4, "kind": "fenced", "error": -103}))
    assert [(each["zxid"], each["total"]) for each in found["foreign"]] == [(7, 3), (8, 3)], "the oldest ones"
    assert [(each["zxid"], each["error"], each["total"]) for each in found["refused"]] == [(20, -103, 2), (21, None, 2)]
    assert [each["zxid"] for each in found["elections"]] == [2, 3], "the newest ones"
    told = of_answers(lambda name: found.get(name, []))
    assert (told.foreign[0], told.refused[0], [each.zxid for each in told.elections]) == (3, 2, [2, 3])


# Kafka writes another way when a znode is there already, or is not there.
ERRORS = (-103, None, -110, -101)


def test_the_logs_are_known_from_their_first_transaction_to_their_last() -> None:
    logged = Logged()
    lost = [{"zxid": 7, "file": "log.8", "why": "it is not there"}]
    assert of_answers(lambda name: logged.answers(lost).get(name, [])) == ZooKeeperWrites(
        holes=((7, "log.8: it is not there"),)
    )
    assert logged.answers() == {"logged": [], "transactions": []}
    for batch in ([(5, 50), (4, 70)], [], [(9, 60)]):
        logged.add(pl.DataFrame(batch, schema={"zxid": pl.Int64, "time": pl.Int64}, orient="row"))
    assert logged.answers() == {"logged": [{"first": 4, "last": 9}], "transactions": [{"time": 70, "zxid": 9}]}
    found = of_answers(lambda name: logged.answers().get(name, []))
    assert (found.first_zxid, found.holes) == (4, ())
    assert of_answers(lambda name: logged.answers(lost).get(name, [])).holes == ((7, "log.8: it is not there"),)


def test_holes_are_those_of_the_writes_the_newest_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_HOLES", 2)
    rows = [{"zxid": zxid, "kind": "missing", "path": "log.9", "type": "gone"} for zxid in (9, 7, 8)]
    found = module.holes_of(writes(*rows, {"zxid": 10, "kind": "foreign"}))
    assert found == [{"zxid": zxid, "file": "log.9", "why": "gone"} for zxid in (8, 9)]


def test_epochs_of_the_healthy_cluster_are_those_of_the_log() -> None:
    assert judged("TXN-03", with_transactions(dual_write())).verdict == "pass"
    assert dual_write().epochs[0].epoch == EPOCH


def test_a_quorum_that_took_zookeeper_back_after_a_rollback_has_undone_what_was_changed_since() -> None:
    """Seen in 3.8.1: the controller was started again with its old log and /migration at 82; a topic made since was gone within seconds."""
    back = election(300, 3, "broker 0")
    again = election(900, 4, "controller 3000", 2)
    told = judged(
        "TXN-05", with_transactions(FAILED_OVER, elections=(election(200, 2, "controller 3000", 1), back, again))
    )
    assert (told.verdict, told.violations) == ("fail", 1)
    assert "broker 0" in told.evidence[0]
    assert "controller 3000 claimed ZooKeeper again in transaction 0x384" in told.evidence[0]
    later = election(900, 5, "controller 3000", 2)
    again_alone = with_transactions(FAILED_OVER, elections=(back, later), holes=((400, HOLE),))
    assert judged("TXN-05", again_alone).verdict == "unknown", "the load's own claim may be in the hole"
    first_purged = judged("TXN-05", with_transactions(FAILED_OVER, elections=(back, again)))
    assert first_purged.verdict == "fail"
    for healthy in ((back, FIRST), (back, FIRST, again), (again,), (FIRST, again)):
        assert judged("TXN-05", with_transactions(FAILED_OVER, elections=healthy)).verdict == "pass"
