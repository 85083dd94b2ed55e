"""What dashboards should show, and how the migration's states are spelled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.version import tool_version
from schemas.checks import ZOOKEEPER, Phase
from schemas.report import Lag
from tests.reconcile.test_checks import PRE_MIGRATION, controllers, dual_write, finalized, rolled_back, waiting
from transforms.reconcile.judge.dashboard import metrics, state_spellings
from transforms.reconcile.judge.facts import Facts, ReplicaUse, StateChange

NO_LAG = Lag(None, None, None)


def shown(facts: Facts, lag: Lag = NO_LAG) -> dict[str, str | None]:
    return {metric.name.partition("name=")[2].partition(",")[0]: metric.value for metric in metrics(facts, lag)}


@pytest.mark.parametrize(
    ("facts", "type_", "state", "behind", "migrating"),
    [
        (waiting(), "1 (ZooKeeper)", "2 (PRE_MIGRATION)", "0", "3"),
        (dual_write(), "3 (Dual)", "1 (MIGRATION)", "7", "2"),
        (finalized(), "2 (KRaft)", "3 (POST_MIGRATION)", "0", "0"),
        (rolled_back(), "1 (ZooKeeper)", "4 (ZK)", "0", "2"),
    ],
)
def test_the_kips_metrics_by_phase(facts: Facts, type_: str, state: str, behind: str, migrating: str) -> None:
    lag = Lag(7, 0.1, True) if facts.phase is Phase.DUAL_WRITE else NO_LAG
    found = shown(facts, lag)
    assert [
        found[name] for name in ("MetadataType", "ZkMigrationState", "ZkWriteBehindLag", "MigratingZkBrokerCount")
    ] == [
        type_,
        state,
        behind,
        migrating,
    ]
    assert found["Features"] == "21"


def test_what_files_do_not_tell_has_no_value() -> None:
    alone = replace(waiting(), phase=Phase.ZOOKEEPER, collected=frozenset({ZOOKEEPER}), states=(), features={})
    found = shown(alone)
    for name in ("MigratingZkBrokerCount", "Features", "MigrationIneligibleBrokerCount", "ZkWriteDeltaTimeMs"):
        assert found[name] is None
    assert shown(replace(dual_write(), kafka_version="3.4.1"), Lag(7, 0.1, True))["ZkWriteBehindLag"] is None
    assert shown(dual_write())["ZkWriteBehindLag"] is None, "it was not measured"


def test_what_keeps_the_load_from_starting_is_counted() -> None:
    absent = replace(
        waiting(), replicas=[ReplicaUse(9, 1, ("t/0",)), *waiting().replicas], controllers=controllers(unready=3000)
    )
    found = shown(absent)
    assert (found["MigrationIneligibleBrokerCount"], found["MigrationIneligibleControllerCount"]) == ("1", "1")
    assert shown(dual_write())["MigrationIneligibleBrokerCount"] == "0"


def test_each_state_has_its_byte_in_each_release() -> None:
    bytes_ = {state.code: (state.byte_3_4, state.byte_since_3_5) for state in state_spellings(dual_write())}
    assert bytes_ == {
        "NONE": (0, 0),
        "ZK": (None, 4),
        "PRE_MIGRATION": (1, 2),
        "MIGRATION": (2, 1),
        "POST_MIGRATION": (3, 3),
    }


def test_the_present_state_is_marked_by_its_meaning_in_the_release() -> None:
    assert [state.code for state in state_spellings(dual_write()) if state.current] == ["MIGRATION"]
    early = replace(waiting(), kafka_version="3.4.1", states=[StateChange(3, PRE_MIGRATION, 0)])
    assert [state.code for state in state_spellings(early) if state.current] == ["MIGRATION"]
    assert shown(early)["ZkMigrationState"] == "2 (MIGRATION)"
    assert [state.code for state in state_spellings(rolled_back()) if state.current] == ["ZK"]


def test_a_report_names_the_tools_version() -> None:
    assert tool_version()[0].isdigit()
