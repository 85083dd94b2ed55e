"""A report as rows of gold tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from schemas.gold import BROKER_PRESENCE, CHECKS, DOWNGRADE_READINESS, FEATURE_MATRIX, GATES, ISR_AUDIT
from schemas.report import DowngradeReadiness, IsrHistory, Report
from schemas.table import Table

Row = dict[str, Any]


def judged_rows(report: Report) -> dict[Table, list[Row]]:
    """Rows of gold checks, gates and broker_presence, without the columns `cluster` and `run_id`."""
    return {
        CHECKS: [
            {
                "check_id": check.id,
                "gates": check.gates,
                "severity": check.severity,
                "verdict": check.verdict,
                "violations": check.violations,
                "evidence": check.evidence,
                "title": check.title,
            }
            for check in report.checks
        ],
        GATES: [
            {"gate": name, "verdict": gate.verdict, "blocking": gate.blocking} for name, gate in report.gates.items()
        ],
        BROKER_PRESENCE: [
            {name: getattr(entry, name) for name in BROKER_PRESENCE.column_names if hasattr(entry, name)}
            for entry in report.broker_presence
        ],
    }


def rows_of_kips(report: Report) -> dict[Table, list[Row]]:
    """Rows of its ISR history, feature matrix and downgrade readiness, without cluster and run_id.

    A table without any is left out, so that it costs no write.
    """
    found = {
        ISR_AUDIT: [] if report.isr_history is None else _isr(report.isr_history),
        FEATURE_MATRIX: [asdict(line) for line in report.features],
        DOWNGRADE_READINESS: [] if report.downgrade is None else _downgrade(report.downgrade),
    }
    return {table: rows for table, rows in found.items() if rows}


def _isr(history: IsrHistory) -> list[Row]:
    return [{**asdict(line), "total": history.totals[line.subject]} for line in history.lines]


def _downgrade(readiness: DowngradeReadiness) -> list[Row]:
    reasons = [
        {
            "mode": readiness.mode,
            "release": target.release,
            "verdict": target.verdict,
            "outcome": reason.outcome,
            "reason": reason.reason,
            "evidence": reason.evidence,
            "place": place,
        }
        for target in readiness.targets
        for place, reason in enumerate(target.reasons, 1)
    ]
    settings = [
        {"mode": readiness.mode, "outcome": "setting", "reason": text, "place": place}
        for place, text in enumerate(readiness.settings, 1)
    ]
    return [*reasons, *settings]
