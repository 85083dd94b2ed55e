"""What a finished run has left of its evidence: its tables answer the same questions, its report has the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from schemas.report import Report
from transforms.kraft.side import KraftSide
from transforms.properties import PropertyFiles
from transforms.reconcile.judge.beside import Beside
from transforms.reconcile.judge.evidence import ClusterFacts, first_facts
from transforms.reconcile.judge.facts import Sample
from transforms.reconcile.judge.first_look import FirstLook
from transforms.reconcile.judge.given import Given, Row, Rows

_UNKNOWN = "unknown"
_WITHOUT_ZOOKEEPER = "kraft_only"
# Places of the log that could not be read, and records that are not known. What they were is in no table that is read here.
_DAMAGED_LOG, _UNKNOWN_RECORDS = "CAP-02", "CAP-12"


def given_of(
    report: Report,
    *,
    copies: Sequence[Row],
    side: KraftSide | None,
    zookeeper: Row | None,
    compared: Row | None,
    walks: int,
    reads_data_folder: bool,
    beside: Beside | None = None,
) -> Given:
    """A finished run's cluster as it was given to that run.

    `copies` are its rows of bronze kraft_log_copies, `side` the plan made of them, `zookeeper` and `compared` its rows
    of silver `migration` with source zookeeper of the newest tree and of the one that was compared (one row stands for
    both), `walks` how many trees gold `runs` names, `reads_data_folder` whether it has rows of bronze zk_transactions,
    `beside` its inputs besides the sources.
    """
    known = Beside() if beside is None else beside
    return Given(
        name=report.cluster,
        kafka_version=None if report.kafka_version == _UNKNOWN else report.kafka_version,
        has_zookeeper=report.mode != _WITHOUT_ZOOKEEPER,
        has_kraft=bool(copies),
        reads_data_folder=reads_data_folder,
        walks=walks,
        captured_at_ms=report.migration.captured_at_ms,
        reading_ms=known.reading_ms,
        thresholds=known.thresholds,
        copies=copies,
        side=side,
        zookeeper=zookeeper,
        compared=compared,
        static_min_isr=known.properties.static_min_isr(),
    )


def finished_facts(report: Report, given: Given, first: Rows, properties: PropertyFiles | None = None) -> ClusterFacts:
    """The facts of a finished run from the first questions about its tables; the other facts are absent.

    Clocks count as measured only if the run counted them so; of the broken rules, only damage of the log and records that are not
    known are included.
    """
    gathered = first_facts(FirstLook(given, first), properties)
    checks = {check.id: check for check in report.checks}
    damaged = checks[_DAMAGED_LOG].violations if _DAMAGED_LOG in checks else 0
    strange = _UNKNOWN_RECORDS in checks and checks[_UNKNOWN_RECORDS].verdict == "unknown"
    facts = replace(
        gathered.facts,
        skew=None if report.migration.clock_skew_ms is None else gathered.facts.skew,
        findings={_DAMAGED_LOG: Sample(damaged), _UNKNOWN_RECORDS: Sample(int(strange))},
    )
    return replace(gathered, facts=facts, answers=first)
