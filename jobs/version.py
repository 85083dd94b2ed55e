"""The version of this tool, as reports name it."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

_DISTRIBUTION = "kraft-migration-audit"


@cache
def tool_version() -> str:
    """The installed distribution's version, or, run from a checkout, that of its pyproject.toml; else `unknown`."""
    project = Path(__file__).parent.parent / "pyproject.toml"
    try:
        declared = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        if declared["name"] == _DISTRIBUTION:
            return str(declared["version"])
    except (OSError, ValueError, KeyError):
        pass  # Not a checkout: a wheel has no such file beside it, and somebody else's is not ours.
    try:
        return metadata.version(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"
