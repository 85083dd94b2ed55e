"""A report's ISR history, feature matrix and downgrade readiness as rows of their gold tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from schemas.gold import DOWNGRADE_READINESS, FEATURE_MATRIX, ISR_AUDIT
from schemas.report import DowngradeReadiness, IsrHistory, Report
from schemas.table import Table

Row = dict[str, Any]


def rows_of_kips(report: Report) -> dict[Table, list[Row]]:
    """Rows without cluster and run_id; a table without any is left out, so that it costs no write."""
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
