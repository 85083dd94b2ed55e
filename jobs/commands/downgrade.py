"""`kraft-audit downgrade`: may the cluster of a finished run go back to an older release."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.past import PastRun, add_run_argument, add_warehouse_arguments, open_warehouse, past_run
from jobs.audit.standing import Standing, standing
from jobs.exit import OK, UsageError
from jobs.settings import PropertySettings, load_settings
from jobs.sources.property_files import read_property_files
from schemas.checks import Phase
from schemas.entities.brokers import BROKERS
from schemas.entities.configs import CONFIGS
from schemas.entities.features import FEATURES
from schemas.entities.migration import MIGRATION
from schemas.entities.partitions import PARTITIONS
from schemas.kraft.metadata_versions import FEATURE_NAME
from transforms.downgrade.evidence import MESSAGE_FORMAT, TRACES
from transforms.downgrade.frames import formats_of_partitions, formats_of_tree, seen
from transforms.downgrade.ledger import OF_KRAFT
from transforms.downgrade.ordering import Configurations, violations
from transforms.downgrade.readiness import Mode, State, readiness, render, with_kraft
from transforms.features.levels import UnknownLevelError, release_tuple
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
        help="a broker's property file: the only place that tells its protocol in ZooKeeper mode; can be repeated "
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
    read = read_property_files(PropertySettings(brokers=files)).brokers
    nameless = next((file.location for file in read if file.node_id is None), None)
    if nameless is not None:
        raise UsageError(f"--broker-properties: {nameless} has neither broker.id nor node.id")
    return {file.node_id: file.settings.formats for file in read if file.node_id is not None} or None


def _settings(past: PastRun, configurations: Configurations | None) -> list[str]:
    rows = past.read(CONFIGS.table).where((F.col("resource_type") == "TOPIC") & (F.col("config") == MESSAGE_FORMAT))
    formats = {row["resource_name"]: row["value"] for row in rows.select("resource_name", "value").distinct().collect()}
    return [f"  setting  {text}" for text in violations(configurations, formats)]


def state_of(known: Standing, configurations: Configurations | None) -> State:
    """A finished run's cluster as the judgement of a downgrade asks for it."""
    past, kraft = known.past, known.kraft
    mode = _mode(known)
    found = {} if known.zookeeper is None else seen(_only_row(formats_of_tree(past.walk())), tuple(TRACES))
    if known.log is not None:
        partitions = past.read(PARTITIONS.table).where("source = 'kraft'")
        found |= seen(_only_row(formats_of_partitions(partitions)), OF_KRAFT)
    state = State(
        mode,
        known.release,
        found,
        known.feature_znode,
        _znode_versions(past) if known.zookeeper is not None else None,
        configurations=configurations,
        unread=next((check.violations for check in past.report.checks if check.id == "CAP-02"), 0),
    )
    if kraft is None or mode is Mode.ZOOKEEPER:
        return state
    dual = mode is Mode.DUAL_WRITE
    migrated_at = _migrated_at(past) if dual or known.phase == Phase.FINALIZED.value else None
    return with_kraft(state, kraft, migrated_at, _level_offset(past), migrating=dual)


def _only_row(rows: DataFrame) -> dict[str, Any] | None:
    found = rows.first()
    return None if found is None else found.asDict()


def _mode(known: Standing) -> Mode:
    if known.by_zookeeper:
        return Mode.ZOOKEEPER
    return Mode.DUAL_WRITE if known.phase == Phase.DUAL_WRITE.value else Mode.KRAFT


def _znode_versions(past: PastRun) -> dict[int, int]:
    rows = past.read(BROKERS.table).where("source = 'zookeeper'").select("broker_id", "znode_version").collect()
    return {row["broker_id"]: row["znode_version"] or 0 for row in rows}


def _migrated_at(past: PastRun) -> int | None:
    rows = past.read(MIGRATION.table).where("source = 'kraft'").agg(F.max("kraft_offset")).collect()
    offset: int | None = rows[0][0]
    return offset


def _level_offset(past: PastRun) -> int | None:
    rows = past.read(FEATURES.table).where((F.col("source") == "kraft") & (F.col("feature") == FEATURE_NAME))
    row = rows.select("kraft_offset").first()
    return None if row is None else row["kraft_offset"]
