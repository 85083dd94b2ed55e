"""`kraft-audit downgrade`: may the cluster of a finished run go back to an older release."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import functions as F

from jobs.audit.past import PastRun, add_run_argument, add_warehouse_arguments, open_warehouse, past_run
from jobs.audit.standing import PastStanding, standing
from jobs.exit import OK, UsageError
from jobs.settings import PropertySettings, load_settings
from jobs.sources.property_files import read_property_files
from schemas.entities.configs import CONFIGS
from transforms.downgrade.evidence import MESSAGE_FORMAT
from transforms.downgrade.ordering import Configurations, violations
from transforms.downgrade.readiness import State, readiness, render
from transforms.features.levels import UnknownLevelError, release_tuple
from transforms.reconcile.judge import kip_tables
from transforms.report.printable import visible


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit downgrade`."""
    parser.add_argument("--to", required=True, metavar="RELEASE", help="release to go back to, e.g. 3.6")
    parser.add_argument(
        "--broker-properties",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a broker's property file, which alone has its protocol in ZooKeeper mode; can be repeated "
        "(default: those of --conf)",
    )
    parser.add_argument("--kafka-version", metavar="V", help="the cluster's release (default: the run's)")
    add_warehouse_arguments(parser)
    add_run_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the verdict and its reasons. 0 whatever it is; 2 when the release is none."""
    try:
        target = release_tuple(arguments.to)
    except UnknownLevelError as error:
        raise UsageError(f"--to: {visible(str(error), 120)}") from None
    configurations = _configurations(arguments)
    with open_warehouse(arguments) as run:
        past = past_run(run, arguments.run_id)
        judged = readiness(state_of(standing(past, arguments.kafka_version), configurations), target)
        for line in [*render(judged), *_settings(past, configurations)]:
            print(visible(line, 400))
    return OK


def _configurations(arguments: argparse.Namespace) -> Configurations | None:
    """What property files say of formats, by broker: those given, else those that the configuration names."""
    files = [str(file) for file in arguments.broker_properties]
    if not files and arguments.conf is not None:
        files = list(load_settings(arguments.conf).properties.brokers)
    read = read_property_files(PropertySettings(brokers=files))
    nameless = next((file.location for file in read.brokers if file.node_id is None), None)
    if nameless is not None:
        raise UsageError(f"--broker-properties: {nameless} has neither broker.id nor node.id")
    return kip_tables.configurations_of(read)


def _settings(past: PastRun, configurations: Configurations | None) -> list[str]:
    rows = past.read(CONFIGS.table).where((F.col("resource_type") == "TOPIC") & (F.col("config") == MESSAGE_FORMAT))
    formats = {row["resource_name"]: row["value"] for row in rows.select("resource_name", "value").distinct().collect()}
    return [f"  setting  {text}" for text in violations(configurations, formats)]


def state_of(known: PastStanding, configurations: Configurations | None) -> State:
    """A finished run's cluster as the judgement of a downgrade asks for it."""
    standing = known.standing
    return kip_tables.state_of(known.answers, standing.facts, known.facts.given.side, standing.release, configurations)
