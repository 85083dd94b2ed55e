"""Writes a finished report beside its run: `report.html` for people, `report.json` for automation."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from jobs.exit import AuditError
from schemas.report import Report
from transforms.report.follow_up import TablePlace
from transforms.report.html import render_html
from transforms.report.json import to_json

HTML_NAME = "report.html"
JSON_NAME = "report.json"
_SOMEWHERE = TablePlace()


class ReportWriteError(AuditError):
    """The report could not be written; the message names the file and what to do."""


@dataclass(frozen=True)
class ReportPaths:
    """Where a report was written."""

    html: Path
    json: Path


def write_report(
    report: Report, out_dir: Path, tables: TablePlace = _SOMEWHERE, valid_hours: float | None = None
) -> ReportPaths:
    """Write both files into `out_dir`, making it if need be, and return their paths.

    Each file appears whole or not at all; a reader, or a run killed midway, never sees half of one, and the files of an
    earlier run stay until the new ones are complete. Both are rendered before either is written. `tables` say where the
    run's tables are, `valid_hours` how long the page says that it holds.
    Raises ReportWriteError when the folder cannot be written.
    """
    html, json_text = render_html(report, tables, valid_hours), to_json(report)
    paths = ReportPaths(out_dir / HTML_NAME, out_dir / JSON_NAME)
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        write_whole(paths.html, html)
        write_whole(paths.json, json_text)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ReportWriteError(
            f"cannot write the report into {out_dir}: {reason}; the run is stored: "
            f"`kraft-audit report --run {report.run_id} --out FOLDER` writes it elsewhere"
        ) from None
    return paths


def write_whole(path: Path, text: str) -> None:
    """Write a UTF-8 file through a temporary neighbour and a rename, so that it is never seen half written."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
