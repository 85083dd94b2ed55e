"""`kraft-audit downgrade`: may the cluster of a finished run go back to an older release."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from jobs.commands.options import add_release_argument, add_run_argument, add_warehouse_arguments
from jobs.evidence.opening import open_warehouse
from jobs.evidence.past_cluster import PastCluster, past_cluster
from jobs.evidence.past_run import PastRun, past_run
from jobs.exit import OK, UsageError
from jobs.runtime.output import say
from jobs.settings import PropertySettings
from jobs.sources.property_files import read_property_files
from schemas.entities.configs import CONFIGS
from transforms.downgrade.evidence import MESSAGE_FORMAT
from transforms.downgrade.ordering import Configurations
from transforms.downgrade.readiness import KnownCluster, readiness, render
from transforms.reconcile.judge import kip_tables
from transforms.report.printable import visible


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit downgrade`."""
    add_release_argument(parser, "--to", "release to go back to, e.g. 3.6", required=True)
    parser.add_argument(
        "--broker-properties",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a broker's property file, the only place of its protocol version in ZooKeeper mode; may be repeated "
        "(default: the files that the run read)",
    )
    add_release_argument(parser, "--kafka-version", "the cluster's release (default: the run's)")
    add_warehouse_arguments(parser)
    add_run_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the run, the verdict and its reasons. Returns 0 for every verdict."""
    configurations = _configurations(arguments.broker_properties)
    with open_warehouse(arguments, in_spark=False) as run:
        past = past_run(run, arguments.run_id)
        state = state_of(past_cluster(past, arguments.kafka_version), configurations)
        which = past.standing.lines(run.stale_after_hours)
        for line in [*which, *render(readiness(state, arguments.to)), *settings_of(past, state)]:
            say(visible(line, 400))
    return OK


def _configurations(files: Sequence[Path]) -> Configurations | None:
    """The format settings in the given property files, by broker; None without files."""
    read = read_property_files(PropertySettings(brokers=[str(file) for file in files]))
    nameless = next((file.location for file in read.brokers if file.node_id is None), None)
    if nameless is not None:
        raise UsageError(f"--broker-properties: {nameless} has neither broker.id nor node.id")
    return kip_tables.configurations_of(read)


def settings_of(past: PastRun, state: KnownCluster) -> list[str]:
    """What breaks the order of format settings, by the property files of `state` and the topics' own formats."""
    wanted = {"resource_type": "TOPIC", "config": MESSAGE_FORMAT}
    formats = dict(past.rows(CONFIGS.table, ["resource_name", "value"], wanted).unique(maintain_order=True).rows())
    return [f"  setting  {text}" for text in kip_tables.settings_of(state, formats)]


def state_of(known: PastCluster, configurations: Configurations | None = None) -> KnownCluster:
    """A finished run's cluster as input of a downgrade's judgement, by default with the property files that the run read."""
    facts = known.views.facts
    read = kip_tables.configurations_of(facts.properties) if configurations is None else configurations
    return kip_tables.state_of(known.answers, facts, known.facts.given.side, known.views.release, read)
