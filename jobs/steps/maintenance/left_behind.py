"""What killed processes have left beside the tables: staged copies, and half-written reports and notes that a run begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from jobs.evidence.journal import unfinished
from jobs.settings import Settings
from jobs.sources.remote import RemoteError, left_staged, sweep_staged
from jobs.steps.maintenance.files import bytes_of

_LEFT_AFTER = timedelta(days=1)


def sweep(several: Sequence[Settings], now: datetime) -> list[str]:
    """Remove what killed processes have left beside the tables: staged copies and half-written files; what went wrong, a line each."""
    problems = []
    try:
        sweep_staged()
    except (OSError, RemoteError) as error:
        problems.append(_of_staged(error))
    for path in _half_written(several, now):
        with suppress(OSError):
            path.unlink()
    return problems


@dataclass(frozen=True)
class Left:
    """A file or folder that a killed process has left, and its bytes."""

    left: str
    bytes: int


def left_behind(several: Sequence[Settings], now: datetime) -> tuple[list[Left], list[str]]:
    """What `sweep` would remove, and what went wrong, a line each; nothing is changed."""
    problems, staged = [], []
    try:
        staged = left_staged()
    except (OSError, RemoteError) as error:
        problems.append(_of_staged(error))
    return [Left(str(path), _bytes_below(path)) for path in [*staged, *_half_written(several, now)]], problems


def _of_staged(error: Exception) -> str:
    return f"staged copies of killed runs: {error}"


def _half_written(several: Sequence[Settings], now: datetime) -> Iterator[Path]:
    """Reports that killed runs have left half written, and notes that they begin. On an object store there are none."""
    reports = sorted({each.report.folder for each in several if isinstance(each.report.folder, Path)})
    found = [path for folder in reports if folder.is_dir() for path in sorted(folder.rglob(".*.part"))]
    for root, catalog in sorted({(each.warehouse, each.catalog) for each in several}):
        found += unfinished(root, catalog=catalog)
    for path in found:
        with suppress(OSError):
            if datetime.fromtimestamp(path.stat().st_mtime, UTC) < now - _LEFT_AFTER:
                yield path


def _bytes_below(path: Path) -> int:
    return sum(bytes_of(each) for each in path.rglob("*") if each.is_file()) if path.is_dir() else bytes_of(path)
