"""How large the inputs of a run are, and what Spark profile that asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from jobs.exit import UsageError
from jobs.sources.remote import RemoteError, is_remote, local_path, remote_size

# Below the output folder of `kraft-audit check`.
TABLES_FOLDER = "tables"
_SMALL_BYTES = 64 * 1024 * 1024


def profile_for(paths: Sequence[str]) -> Literal["small", "local"]:
    """A few thousand rows need little: Spark's settings follow the size of what is read."""
    return "small" if sum(_size(path) for path in paths) < _SMALL_BYTES else "local"


def _size(location: str) -> int:
    if is_remote(location):
        try:
            return remote_size(location)
        except RemoteError as error:
            raise UsageError(str(error)) from None
    path = Path(local_path(location))
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
