"""No check passes by what it could not look at: facts that were not gathered open no gate and clean no verdict.

Each field of every cluster of the catalogue's tests is taken away in turn, healthy clusters and broken ones alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, replace

import pytest

from schemas.checks import ZOOKEEPER, Phase
from schemas.report import Divergences
from tests.reconcile.test_checks import CASES, HEALTHY
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.facts import Facts
from transforms.reconcile.judge.gates import judge_gates, run_checks

# What is no evidence: where the audit stands, the configured limits, and files that are asked for but optional.
NO_EVIDENCE = {"phase", "alive_limit", "lag_limit", "capture_skew_limit", "properties", "reads_data_folder"}
NO_EVIDENCE |= {"interruption_accepted", "claim"}
# Nothing tells these from a cluster that has none: a log that begins at a snapshot may hold no election, and a first run has
# none before it.
SPARSE = {("QRM-07 fails", "epochs"), ("LOG-04 fails", "previous_end")} | {
    (f"RUN-0{number} fails", "earlier") for number in (1, 2, 3, 4)
}
CLUSTERS = {
    **HEALTHY,
    **{f"{check_id} fails": case.fails for check_id, case in CASES.items()},
    **{f"{check_id} passes": case.passes for check_id, case in CASES.items()},
}
EVIDENCE = [field for field in fields(Facts) if field.name not in NO_EVIDENCE]


def emptied(field: Field[object]) -> object:
    """The value a field has when nobody gathered it."""
    if field.name == "collected":
        return frozenset()
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default


def judged(facts: Facts) -> tuple[set[str], str]:
    """The gates that are open, and the verdict."""
    checks = run_checks(facts)
    gates = judge_gates(checks, facts)
    rows = {name: sample.total for name, sample in (facts.divergences or {}).items()}
    differences = Divergences(total=sum(rows.values()), by_class=rows)
    return {name for name, gate in gates.items() if gate.verdict == "go"}, summary.verdict(
        differences, checks, gates, facts.phase
    )


def mutations() -> Iterator[tuple[str, str]]:
    for name, facts in CLUSTERS.items():
        for field in EVIDENCE:
            if getattr(facts, field.name) != emptied(field):
                yield name, field.name


@pytest.mark.parametrize("name", list(CLUSTERS))
def test_what_was_not_gathered_opens_no_gate_and_cleans_no_verdict(name: str) -> None:
    whole = CLUSTERS[name]
    open_gates, verdict = judged(whole)
    for field in EVIDENCE:
        if getattr(whole, field.name) == emptied(field) or (name, field.name) in SPARSE:
            continue
        without, said = judged(replace(whole, **{field.name: emptied(field)}))  # type: ignore[arg-type]
        assert without <= open_gates, f"without {field.name} a gate opens"
        assert verdict == summary.CLEAN or said != summary.CLEAN, f"without {field.name} the verdict is clean"


def test_every_field_is_taken_away_from_some_cluster() -> None:
    taken = {field for _, field in mutations()}
    untaken = {field.name for field in EVIDENCE} - taken
    # What other parts of the report read, and what only makes a measure finer.
    other = {"moved", "written_while_read", "foreign_writes", "mirrored_offset", "load_time_ms", "at_barrier"}
    assert untaken <= other | {"captured_at_ms", "reading_ms", "skew", "deltas", "compared_at", "newest_zxid"}


@pytest.mark.parametrize(("claimed", "verdict"), [(True, "fail"), (False, "unknown")])
def test_a_log_without_a_batch_is_not_that_of_a_controller_that_has_claimed_zookeeper(
    claimed: bool, verdict: str
) -> None:
    """An empty copy beside a cluster that is written to on both sides said nothing, and the verdict was clean."""
    healthy = HEALTHY["dual_write"]
    empty = replace(healthy.copies[0], log_start=None, log_end=None, checkpoints=())
    facts = replace(
        healthy,
        phase=Phase.ZOOKEEPER,
        collected=frozenset({ZOOKEEPER}),
        zookeeper={**(healthy.zookeeper or {}), "controller_persistent": claimed},
        copies=[empty],
        plan=None,
        committed=None,
        plan_problem="no controller's copy of the metadata log can be used: /logs/3000: no record batch",
    )
    checks = {check.id: check for check in run_checks(facts)}
    assert checks["CAP-03"].verdict == verdict
    ran = run_checks(replace(facts, copies=[replace(healthy.copies[0], problem="torn")]))
    assert next(check.verdict for check in ran if check.id == "CAP-03") == "fail", (
        "it has records, and they can't be used"
    )
    judged_by = list(checks.values())
    assert "start" not in {name for name, gate in judge_gates(judged_by, facts).items() if gate.verdict == "go"}
    if claimed:
        assert summary.verdict(Divergences(), judged_by, judge_gates(judged_by, facts), facts.phase) == "errors"
