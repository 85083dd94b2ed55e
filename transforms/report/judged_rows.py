"""What a report judges, as rows of gold tables."""

from __future__ import annotations

from typing import Any

from schemas.gold import BROKER_PRESENCE, CHECKS, GATES
from schemas.report import Report
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
