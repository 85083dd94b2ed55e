"""The clusters of one run as a table for a terminal: worst first, a line each; or as JSON for automation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from schemas.report import Report
from transforms.reconcile.judge import summary
from transforms.report.compared import counts_of, phase_of, without_lag
from transforms.report.fleet_text import gates_text
from transforms.report.printable import visible
from transforms.report.table import fitted

_HEAD = ("cluster", "phase", "verdict", "gates", "defects", "lag", "report")
_BADNESS = ("failed", "errors", "warnings", "clean")


def fleet_table(
    reports: Mapping[str, Report], places: Mapping[str, str], failures: Mapping[str, str], width: int | None = None
) -> list[str]:
    """Lines of text, fit for a terminal of that `width`: failed clusters, then errors, warnings, clean.

    `places` are where the reports are, `failures` why there is none.
    """
    rows = [(_rank(report), _row(report, places.get(name, ""))) for name, report in reports.items()]
    rows += [((0, 0, name), (name, "-", "failed", "-", "-", "-", visible(why, 80))) for name, why in failures.items()]
    cells = [tuple(visible(cell, 200) for cell in row) for _, row in sorted(rows)]
    return fitted([_HEAD, *cells], frozenset({4, 5}), width)


def run_json(
    reports: Mapping[str, Report],
    places: Mapping[str, str],
    failures: Mapping[str, str],
    exit_codes: Mapping[str, int],
    pages: Sequence[str],
) -> str:
    """What became of a run's clusters as one JSON object, ASCII, for automation; `pages` are the fleet's pages.

    Each cluster has verdict and exit_code, a failed one also why, an audited one phase, gates, numbers and the report.
    """
    clusters = [
        {
            "cluster": name,
            "exit_code": exit_codes[name],
            **({"failure": failures[name]} if name in failures else {}),
            **(_judged(reports[name], places.get(name)) if name in reports else {"verdict": "failed"}),
        }
        for name in sorted(exit_codes)
    ]
    return json.dumps({"clusters": clusters, "fleet_pages": list(pages)}, indent=1)


def _judged(report: Report, place: str | None) -> dict[str, Any]:
    defects, divergences = counts_of(report)
    return {
        "verdict": report.verdict,
        "run_id": report.run_id,
        "phase": report.migration.phase,
        "gates": {gate: judged.verdict for gate, judged in report.gates.items()},
        "defects": defects,
        "divergences": divergences,
        "lag_records": report.lag.records,
        "report": place,
    }


def _rank(report: Report) -> tuple[int, int, str]:
    return (_BADNESS.index(report.verdict), -summary.defects(report.divergences), report.cluster)


def _row(report: Report, place: str) -> tuple[str, ...]:
    defects, _ = counts_of(report)
    lag = without_lag(phase_of(report), "-") if report.lag.records is None else str(report.lag.records)
    return (
        report.cluster,
        report.migration.phase,
        report.verdict,
        gates_text({name: gate.verdict for name, gate in report.gates.items()}),
        "-" if defects is None else str(defects),
        lag,
        place,
    )
