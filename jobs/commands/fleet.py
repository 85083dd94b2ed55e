"""`kraft-audit fleet`: every cluster of a warehouse, worst first, on a terminal, as JSON or as a page."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from jobs.commands.options import add_place_arguments, check_stale_after
from jobs.evidence import verified
from jobs.evidence.fleet_runs import fleet_runs
from jobs.evidence.opening import open_tables
from jobs.exit import OK, UsageError
from jobs.places import place_of
from jobs.runtime.output import say, terminal_width
from jobs.settings import ReportSettings
from jobs.steps.fleet import fleet_of, places_of, write_fleet_page
from transforms.report.fleet_text import fleet_objects, fleet_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit fleet`."""
    add_place_arguments(parser, conf="configuration file (YAML) of any cluster of the warehouse")
    parser.add_argument("--html", type=place_of, metavar="FILE", help="write the fleet's page to this file instead")
    parser.add_argument(
        "--reports",
        type=place_of,
        metavar="DIR",
        help="where the clusters' reports are (default: the configured folder)",
    )
    parser.add_argument(
        "--stale-after",
        type=float,
        metavar="HOURS",
        help="call a cluster old if its newest run is older than this (default 48)",
    )
    parser.add_argument(
        "--retired",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="leave out these retired clusters once their newest run is old (also: `report.retired`)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per cluster and line")


def execute(arguments: argparse.Namespace) -> int:
    """Print the fleet, or write its page. Returns 0 regardless of the verdicts shown."""
    check_stale_after(arguments.stale_after)
    with open_tables(arguments.conf, arguments.warehouse) as (warehouse, settings):
        runs, checked = fleet_runs(warehouse), verified.newest(warehouse)
    if not runs:
        raise UsageError("no run is in this warehouse yet; run `kraft-audit run` first")
    configured = settings.report if arguments.conf is not None else ReportSettings()
    retired = [*configured.retired, *arguments.retired]
    standing = fleet_of(runs, arguments.stale_after or configured.stale_after_hours, retired, checked)
    reports = arguments.reports or (configured.folder if arguments.conf is not None else None)
    if arguments.html is not None:
        places = {} if reports is None else places_of(standing, reports, {}, arguments.html.parent)
        print(f"Fleet        {write_fleet_page(standing, arguments.html, places)}")
    elif arguments.json:
        for each in fleet_objects(standing):
            print(json.dumps(each))
    else:
        places = {} if reports is None else places_of(standing, reports, {}, Path())
        for line in fleet_text(standing, places, terminal_width()):
            say(line)
    return OK
