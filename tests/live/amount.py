"""How many cases a comparison with Kafka's classes makes, and which: ORACLE_CASES and ORACLE_SEED of the environment."""

from __future__ import annotations

import os
from random import Random


def cases(usual: int) -> int:
    """The number of cases of each release."""
    return int(os.environ.get("ORACLE_CASES") or usual)


def chance(release: str) -> Random:
    """What the cases are drawn from: the same in every run of a seed."""
    return Random(f"{release}/{os.environ.get('ORACLE_SEED') or 1}")  # noqa: S311
