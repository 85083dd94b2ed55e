"""An answer that is missing is refused: it must never pass for "nothing found"."""

from __future__ import annotations

import pytest

from jobs.exit import AuditError
from jobs.steps.reconcile import _found
from tests.reconcile.test_evidence import ANSWERS, PROPERTIES, SECOND, given
from transforms.examination.made import failure
from transforms.reconcile.judge import kip_tables
from transforms.reconcile.judge.cluster import zookeeper_cluster
from transforms.reconcile.judge.evidence import facts_of
from transforms.reconcile.judge.facts import Facts
from transforms.reconcile.judge.first_look import FirstLook
from transforms.reconcile.judge.given import FIRST_ANSWERS, Answers, MissingAnswerError, Rows, every_answer


@pytest.mark.parametrize("name", sorted(ANSWERS.keys() - {"restarts"}))
def test_facts_are_not_made_without_one_of_the_first_answers(name: str) -> None:
    stored = {each: rows for each, rows in ANSWERS.items() if each != name}
    with pytest.raises(MissingAnswerError, match=rf"from another release \({name} is missing\): run the audit again$"):
        facts_of(given(reads_data_folder=True), stored, SECOND, PROPERTIES)


def test_nor_are_the_rules_of_partitions_without_the_brokers_restarts() -> None:
    stored = {name: rows for name, rows in ANSWERS.items() if name != "restarts"}
    with pytest.raises(MissingAnswerError, match=r"from another release \(restarts is missing\): run the audit again$"):
        FirstLook(given(reads_data_folder=True), stored).known()


@pytest.mark.parametrize("name", ["samples", "fallen", "earlier_epochs", "examples"])
def test_nor_without_what_breaks_a_rule(name: str) -> None:
    stored = {each: rows for each, rows in SECOND.items() if each != name}
    with pytest.raises(MissingAnswerError, match=name):
        facts_of(given(), ANSWERS, stored, PROPERTIES)


def tables_of(answers: Rows, facts: Facts) -> None:
    """All that is made of the answers beside the facts."""
    kip_tables.isr_history(answers, facts)
    kip_tables.downgrade(answers, facts, given().side)


@pytest.mark.parametrize(
    "name", ["isr_audit", "topic_formats", "kraft_formats", "formats", "feature_znode", "features"]
)
def test_nor_are_the_tables_of_kips(name: str) -> None:
    whole = facts_of(given(), ANSWERS, SECOND, PROPERTIES)
    stored = {each: rows for each, rows in whole.answers.items() if each != name}
    with pytest.raises(MissingAnswerError, match=name):
        tables_of(stored, whole.facts)


def test_zookeepers_cluster_has_the_levels_that_were_answered() -> None:
    whole = facts_of(given(), ANSWERS, SECOND, PROPERTIES)
    assert zookeeper_cluster(whole, (3, 8), None).finalised == {}


def test_the_reason_is_told_to_people() -> None:
    with pytest.raises(MissingAnswerError) as raised:
        Answers({}).of("counts")
    assert b"run the audit again" in failure(raised.value).payload


def test_an_answer_under_an_undeclared_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not declared: count$"):
        every_answer(FIRST_ANSWERS, {"count": []})


def test_a_cluster_without_stored_answers_fails_with_a_remedy() -> None:
    with pytest.raises(AuditError, match="run the step materialize first"):
        _found("prod", {})
