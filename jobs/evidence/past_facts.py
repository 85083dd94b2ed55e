"""The facts of a finished run about its cluster: its given input, and the answers of its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.evidence.past_log import PastKraft, migration_znodes, past_copies, past_kraft
from jobs.evidence.past_run import PastRun
from jobs.exit import UsageError
from schemas.bronze import ZK_TRANSACTIONS
from schemas.examined import EXAMINED
from schemas.zookeeper.trees import NEWEST
from transforms.examination.answers import FIRST
from transforms.examination.made import ANSWERS
from transforms.reconcile.judge.evidence import ClusterFacts
from transforms.reconcile.judge.finished import finished_facts, given_of
from transforms.reconcile.judge.given import Given


@dataclass(frozen=True)
class PastFacts:
    """A finished run's cluster: what was given, the log, all answers by the names of `transforms.examination.examine`, and the facts.

    `kraft` is None where the run had no log that could be used.
    """

    given: Given
    kraft: PastKraft | None
    answers: Mapping[str, Any]
    gathered: ClusterFacts


def past_facts(past: PastRun) -> PastFacts:
    """Gather what a run knew. Raises UsageError where its answers are forgotten."""
    answers = stored_answers(past)
    compared = migration_znodes(past)
    kraft = past_kraft(past, compared)
    given = given_of(
        past.report,
        copies=past_copies(past),
        side=None if kraft is None else kraft.side,
        zookeeper=migration_znodes(past, NEWEST),
        compared=compared,
        walks=len(past.walks),
        reads_data_folder=not past.rows(ZK_TRANSACTIONS, ["run_id"], most=1).is_empty(),
        beside=past.beside,
    )
    return PastFacts(given, kraft, answers, finished_facts(past.report, given, answers[FIRST], past.beside.properties))


def stored_answers(past: PastRun) -> Mapping[str, Any]:
    """What the run's rows answered, as it has stored it. Raises UsageError where it is forgotten."""
    found = past.rows(EXAMINED, ["payload"], {"kind": ANSWERS}, most=1)
    if found.is_empty():
        raise UsageError(
            f"the answers of run {past.run_id} are not stored (any more): look at a newer run, or start one (`kraft-audit run`)"
        )
    answers: Mapping[str, Any] = json.loads(found["payload"][0])["answers"]
    return answers
