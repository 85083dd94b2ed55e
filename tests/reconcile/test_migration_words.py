"""Why `/migration` shows nothing is told as it is: ZooKeeper was not given, the znode is absent, or it cannot be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from schemas.checks import KRAFT, Phase
from tests.reconcile.test_checks import ONE, dual_write, rolled_back, zookeeper
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.facts import Facts, Sample
from transforms.report.banner import reach

OF_THE_LOG = replace(dual_write(), collected=frozenset({KRAFT}), zookeeper=None, lag=None, compared=False)


def without_offset(**values: Any) -> Facts:
    return replace(dual_write(), zookeeper=zookeeper(kraft_metadata_offset=None, **values), lag=None, compared=False)


DENIED = Sample(1, ("/migration: NoAuth: the znode may not be read with this identity",))


@pytest.mark.parametrize(
    ("facts", "znode", "explanation"),
    [
        (OF_THE_LOG, "ZooKeeper was not given", "ZooKeeper was not given: nothing shows how far it is behind"),
        (
            without_offset(),
            "there, but not readable",
            "/migration cannot be read: nothing shows how far ZooKeeper is behind",
        ),
        (
            replace(without_offset(migration_present=None), findings={"CAP-07": DENIED}),
            "there, but not readable",
            "/migration cannot be read: nothing shows how far ZooKeeper is behind",
        ),
        (
            without_offset(migration_present=None),
            "not there",
            "/migration does not exist: nothing shows how far ZooKeeper is behind",
        ),
        (
            replace(without_offset(migration_present=None), findings={"CAP-07": ONE}),
            "not there",
            "/migration does not exist: nothing shows how far ZooKeeper is behind",
        ),
    ],
    ids=["not-given", "not-parsed", "denied", "absent", "absent-and-others-denied"],
)
def test_the_report_says_why_there_is_no_offset(facts: Facts, znode: str, explanation: str) -> None:
    assert reach(summary.migration(facts)) == znode
    assert summary.lag(facts).explanation == explanation


def test_a_load_that_is_not_recorded_and_other_phases_are_told_as_before() -> None:
    begun = replace(dual_write(), zookeeper=zookeeper(kraft_metadata_offset=-1), lag=None)
    assert summary.lag(begun).explanation == "/migration has no offset yet: nothing shows how far ZooKeeper is behind"
    assert reach(summary.migration(begun)) == "nothing copied yet"
    assert summary.lag(rolled_back()).explanation == "the cluster is not in dual write"
    assert summary.lag(replace(OF_THE_LOG, phase=Phase.FINALIZED)).explanation == "the cluster is not in dual write"


def test_reports_of_before_name_no_reason() -> None:
    assert reach(replace(summary.migration(OF_THE_LOG), migration_znode="")) == "not there"
