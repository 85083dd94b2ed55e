"""Writes a finished report next to its run: `report.html` for people, `report.json` for automation."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from jobs.exit import AuditError
from jobs.places import Place, RemotePlace
from jobs.sources.remote import RemoteError, write_file
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

    html: Place
    json: Place


def write_report(
    report: Report, out_dir: Place, tables: TablePlace = _SOMEWHERE, valid_hours: float | None = None
) -> ReportPaths:
    """Write both files into `out_dir`, making it if need be, and return their paths.

    Each file appears whole or not at all; a reader, or a run killed midway, never sees half of one, and the files of an earlier
    run stay until the new ones are complete. Both are rendered before either is written. `tables` say where the run's tables
    are, `valid_hours` is the validity that the page shows. Raises ReportWriteError when the folder cannot be written.
    """
    html, json_text = render_html(report, tables, valid_hours), to_json(report)
    paths = ReportPaths(out_dir / HTML_NAME, out_dir / JSON_NAME)
    try:
        write_whole(paths.html, html)
        write_whole(paths.json, json_text)
    except (OSError, RemoteError) as error:
        reason = unwritten(error)
        raise ReportWriteError(
            f"cannot write the report into {out_dir}: {reason}; the run is stored: "
            f"`kraft-audit report --run {report.run_id} --out FOLDER` writes it elsewhere"
        ) from None
    return paths


def unwritten(error: OSError | RemoteError) -> str:
    """Why a file could not be written."""
    return str(error) if isinstance(error, RemoteError) else error.strerror or type(error).__name__


def write_whole(place: Place, text: str) -> None:
    """Write a UTF-8 file, and the folders above it, so that it is never seen half written. Raises OSError, RemoteError."""
    data = text.encode("utf-8")
    if isinstance(place, RemotePlace):
        write_file(place.uri, data)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        _write_here(place, data)


def _write_here(path: Path, data: bytes) -> None:
    """Write through a temporary neighbour and a rename."""
    # In containers mostly all processes have the id 1.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
