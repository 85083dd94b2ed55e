"""Options that several commands have."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from jobs.exit import UsageError
from transforms.features.levels import Release, UnknownLevelError, known_release
from transforms.report.printable import visible


def add_warehouse_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Declare the options that name the warehouse of a reading command, and one of its clusters."""
    add_place_arguments(parser, required=required)
    parser.add_argument("--cluster", metavar="NAME", help="with --warehouse: which cluster (default: the only one)")


def add_place_arguments(
    parser: argparse.ArgumentParser, *, required: bool = True, conf: str = "configuration file (YAML)"
) -> None:
    """Declare the options that name a warehouse: a configuration (`conf` is its help), or a folder of tables."""
    where = parser.add_mutually_exclusive_group(required=required)
    where.add_argument("--conf", type=Path, help=conf)
    where.add_argument(
        "--warehouse", metavar="DIR", help="folder of the tables, or the one given to `kraft-audit check --out`"
    )


_LIMIT = 100


def add_limit_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the option for how many rows are shown; 0 is all of them."""
    parser.add_argument(
        "--limit", type=_limit, default=_LIMIT, metavar="N", help=f"show at most N rows, 0 for all ({_LIMIT})"
    )


def _limit(text: str) -> int:
    number = int(text)
    if number < 0:
        raise UsageError(f"--limit: {number} is below 0; give a number of rows, or 0 for all")
    return number


def add_release_argument(parser: argparse.ArgumentParser, option: str, meaning: str, *, required: bool = False) -> None:
    """Declare an option that takes a known Kafka release."""

    def release(text: str) -> Release:
        try:
            return known_release(text)
        except UnknownLevelError as error:
            raise UsageError(f"{option}: {visible(str(error), 160)}") from None

    parser.add_argument(option, type=release, required=required, metavar="RELEASE", help=meaning)


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    """Declare which run a command looks at."""
    parser.add_argument(
        "--run", dest="run_id", help="run to show, as `kraft-audit history` lists it (default: the newest)"
    )


def check_stale_after(hours: float | None) -> None:
    """Raise UsageError for an age (`--stale-after`) that no run, or every run, is below."""
    if hours is not None and not 0 < hours < math.inf:
        raise UsageError("--stale-after: give a number of hours above 0")
