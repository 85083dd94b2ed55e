"""Every code that a check asks the tables for is made by a run's own queries, and decides the check.

Which codes those are is not listed here: each check is run over facts that note what it asks for. A check whose code no
planted row leads to fails this test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from schemas.checks import CHECKS
from schemas.checks.codes import CHURN_PAST, CLEAR_REMOVED, HEALED_ELECTION, ISR_ORDER, NO_LEADER_FOR_GOOD, REASSIGNING
from schemas.report import CheckResult
from tests.reconcile import planted_history, planted_kraft
from tests.reconcile.planted import (
    BROKEN_LOG,
    HEALTHY_LOG,
    Row,
    checkpoint,
    gathered,
    log_findings,
    samples,
    table,
    znode_findings,
)
from tests.reconcile.test_checks import CASES, HEALTHY
from tests.reconcile.test_checks_queries import KNOWN, RECORDS, ROWS, ZNODES
from transforms.reconcile.judge.checks import FUNCTIONS
from transforms.reconcile.judge.facts import Facts, Sample
from transforms.reconcile.judge.gates import run_checks


class Noting(Mapping[str, Sample]):
    """Findings that hold nothing and note every code that was looked for."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def __contains__(self, code: object) -> bool:
        self.asked.add(str(code))
        return False

    def __getitem__(self, code: str) -> Sample:
        self.asked.add(code)
        raise KeyError(code)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def asked_codes(check_id: str) -> set[str]:
    """Codes that a check looks up in any cluster of the tests."""
    findings = Noting()
    for facts in (*HEALTHY.values(), CASES[check_id].fails, CASES[check_id].passes):
        FUNCTIONS[check_id](replace(facts, findings=findings))
    return findings.asked


ASKED = [(check.id, code) for check in CHECKS for code in sorted(asked_codes(check.id))]

# Neighbours of the broken rows of every kind, none of which breaks a rule.
HEALTHY_ROWS: dict[str, list[Row]] = {
    "topics": ROWS["topics"][:1],
    "partitions": ROWS["partitions"][:2],
    "configs": [ROWS["configs"][0], {**ROWS["configs"][4], "comparable": True}],
    "scram_credentials": ROWS["scram_credentials"][:1],
    "acls": ROWS["acls"][:1],
    "client_quotas": ROWS["client_quotas"],
    "admin_operations": ROWS["admin_operations"][3:4],
    "row_versions": [row for row in ROWS["row_versions"] if "still-has-one" in row["key"] or "alice" in row["key"]],
}


KRAFT_ROWS = {
    "partitions": planted_kraft.PARTITIONS,
    "configs": planted_kraft.CONFIGS,
    "findings": planted_kraft.FINDINGS,
    "admin_operations": planted_kraft.OPERATIONS,
    "acls": planted_kraft.ACLS,
    "scram_credentials": planted_kraft.CREDENTIALS,
    "delegation_tokens": planted_kraft.TOKENS,
}
IN_KRAFT = replace(KNOWN, health=planted_kraft.HEALTH, newest_znode_time_ms=planted_kraft.END_MS)
# What is told in a check's evidence and is no violation, or is one in a release that no case is of (CLEAR-REMOVED).
REMARKS = {
    CLEAR_REMOVED,
    CHURN_PAST,
    HEALED_ELECTION,
    ISR_ORDER,
    NO_LEADER_FOR_GOOD,
    REASSIGNING,
    "TREE-PROVED",
    "TREE-UNPROVED",
}


@pytest.fixture(scope="module")
def planted() -> dict[str, Sample]:
    found = [log_findings(BROKEN_LOG, checkpoint(BROKEN_LOG, without=30)), table("findings", znode_findings())]
    names = {*ROWS, *KRAFT_ROWS}
    rows = {name: [*ROWS.get(name, ()), *KRAFT_ROWS.get(name, ())] for name in names}
    of_rows = samples(gathered(rows, found, (ZNODES, RECORDS), IN_KRAFT))
    past = planted_history.history_samples(planted_history.HISTORIES)
    return {**of_rows, **past, **planted_kraft.other_samples()}


@pytest.fixture(scope="module")
def nothing_planted() -> dict[str, Sample]:
    found = [log_findings(HEALTHY_LOG, checkpoint(HEALTHY_LOG))]
    rows = {**HEALTHY_ROWS, "partitions": [*HEALTHY_ROWS["partitions"], *planted_kraft.HEALTHY]}
    of_rows = samples(gathered(rows, found, (ZNODES[:1], RECORDS[:4]), IN_KRAFT))
    return {**of_rows, **planted_history.history_samples(planted_history.HEALTHY)}


def counted(facts: Facts, planted: dict[str, Sample]) -> Facts:
    """The facts with as many partitions without a leader as the tables list: ISR-16 holds one against the other."""
    counts = {
        side: replace(each, leaderless=planted["ISR-16"].total) for side, each in (facts.partition_counts or {}).items()
    }
    return replace(facts, partition_counts=counts)


def judged(check_id: str, facts: Facts) -> CheckResult:
    return next(result for result in run_checks(facts) if result.id == check_id)


def test_many_checks_ask_the_tables() -> None:
    assert len({check_id for check_id, _ in ASKED}) > 25


@pytest.mark.parametrize(("check_id", "code"), ASKED)
def test_the_tables_lead_to_what_a_check_asks_for(check_id: str, code: str, planted: dict[str, Sample]) -> None:
    assert code in planted
    if code in REMARKS:
        return
    for case in (CASES[check_id].passes, CASES[check_id].fails):
        facts = counted(case, planted) if code == "ISR-16" else case
        without = judged(check_id, replace(facts, findings={}))
        result = judged(check_id, replace(facts, findings={code: planted[code]}))
        if result.verdict in ("fail", "warn") and result != without:
            assert result.violations > 0
            return
        if (result.verdict, without.verdict) == ("unknown", "pass"):
            return
    pytest.fail(f"{code} changes nothing in {check_id}")


@pytest.mark.parametrize("check_id", sorted({check_id for check_id, _ in ASKED}))
def test_healthy_tables_lead_to_nothing(check_id: str, nothing_planted: dict[str, Sample]) -> None:
    assert nothing_planted == {}
    passes = CASES[check_id].passes
    proofs = {code: sample for code, sample in (passes.findings or {}).items() if code in REMARKS}
    assert judged(check_id, replace(passes, findings=proofs)).verdict == "pass"


def test_an_isr_is_too_small_only_where_the_least_is_known(planted: dict[str, Sample]) -> None:
    assert planted["ISR-09"] == Sample(1, ("short/0: ISR [0], min.insync.replicas 2",))
