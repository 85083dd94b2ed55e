"""`kraft-audit downgrade`: may the cluster of a finished run go back to an older release."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import Column
from pyspark.sql import functions as F

from jobs.audit.past import PastRun, add_run_argument, add_warehouse_arguments, open_warehouse, past_run
from jobs.audit.standing import Standing, standing
from jobs.exit import OK, UsageError
from schemas.checks import Phase
from schemas.entities.brokers import BROKERS
from schemas.entities.configs import CONFIGS
from schemas.entities.features import FEATURES
from schemas.entities.migration import MIGRATION
from schemas.entities.partitions import PARTITIONS
from schemas.kraft.metadata_versions import FEATURE_NAME
from transforms.downgrade.evidence import MESSAGE_FORMAT, TRACES, Trace
from transforms.downgrade.ledger import Seen
from transforms.downgrade.ordering import IBP, PERSISTENT, Configurations, violations
from transforms.downgrade.ordering import MESSAGE_FORMAT as LOG_MESSAGE_FORMAT
from transforms.downgrade.readiness import Mode, State, readiness, render
from transforms.features.levels import UnknownLevelError, release_tuple
from transforms.features.matrix import BROKER
from transforms.kraft.replay.partitions import MIGRATING_DIRECTORY
from transforms.properties import MalformedPropertiesError, parse
from transforms.report.printable import visible

# Of a property file, which holds secrets too.
_KEPT = (IBP, LOG_MESSAGE_FORMAT, PERSISTENT)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit downgrade`."""
    parser.add_argument("--to", required=True, metavar="RELEASE", help="release to go back to, e.g. 3.6")
    parser.add_argument(
        "--broker-properties",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a broker's property file: the only place that tells its protocol in ZooKeeper mode; can be repeated",
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
    configurations = _configurations(arguments.broker_properties)
    with open_warehouse(arguments) as run:
        past = past_run(run, arguments.run_id)
        judged = readiness(state_of(standing(past, arguments.kafka_version), configurations), target)
        for line in [*render(judged), *_settings(past, configurations)]:
            print(visible(line, 400))
    return OK


def _configurations(files: list[Path]) -> Configurations | None:
    """What the files say of formats, by broker; nothing else of them is kept."""
    found = {}
    for file in files:
        try:
            values = parse(file.read_text("latin-1"))
        except OSError as error:
            raise UsageError(f"--broker-properties: {file} can't be read: {error.strerror}") from error
        except MalformedPropertiesError as error:
            raise UsageError(f"--broker-properties: {file} is no property file: {error}") from None
        node = values.get("node.id", values.get("broker.id", ""))
        if not node.strip().isdigit():
            raise UsageError(f"--broker-properties: {file} has neither broker.id nor node.id")
        found[int(node)] = {key: values[key].strip() for key in _KEPT if key in values}
    return found or None


def _settings(past: PastRun, configurations: Configurations | None) -> list[str]:
    rows = past.read(CONFIGS.table).where((F.col("resource_type") == "TOPIC") & (F.col("config") == MESSAGE_FORMAT))
    formats = {row["resource_name"]: row["value"] for row in rows.select("resource_name", "value").distinct().collect()}
    return [f"  setting  {text}" for text in violations(configurations, formats)]


def state_of(known: Standing, configurations: Configurations | None) -> State:
    """A finished run's cluster as the judgement of a downgrade asks for it."""
    past, kraft = known.past, known.kraft
    mode = _mode(known)
    seen = {} if known.zookeeper is None else _of_tree(past)
    if known.log is not None:
        seen |= _of_partitions(past)
    state = State(
        mode,
        known.release,
        seen,
        known.feature_znode,
        _znode_versions(past) if known.zookeeper is not None else None,
        configurations=configurations,
    )
    if kraft is None or mode is Mode.ZOOKEEPER:
        return state
    brokers = [node for node in kraft.nodes if node.kind == BROKER]
    dual = mode is Mode.DUAL_WRITE
    return replace(
        state,
        protocols={node.node_id: node.supports(FEATURE_NAME)[1] for node in brokers if node.migrating_zk},
        finalised=kraft.finalised,
        nodes=tuple(kraft.nodes),
        voters=kraft.voters,
        local=kraft.local,
        migration_state=kraft.migration_state,
        migrated_at=_migrated_at(past) if dual or known.phase == Phase.FINALIZED.value else None,
        level_offset=_level_offset(past),
        kraft_brokers=tuple(node.node_id for node in brokers if not node.migrating_zk) if dual else (),
    )


def _mode(known: Standing) -> Mode:
    if known.by_zookeeper:
        return Mode.ZOOKEEPER
    return Mode.DUAL_WRITE if known.phase == Phase.DUAL_WRITE.value else Mode.KRAFT


def _of_tree(past: PastRun) -> dict[str, Seen]:
    """How many znodes have each format, counted where they are."""
    znodes = past.walk()
    columns = []
    for name, traces in TRACES.items():
        has = reduce(or_, [_shown_by(trace) for trace in traces])
        columns += [F.count_if(has).alias(name), F.min(F.when(has, F.col("path"))).alias(f"{name}_example")]
    row = znodes.agg(*columns).collect()[0]
    return {name: Seen(row[name], row[f"{name}_example"] or "") for name in TRACES}


def _shown_by(trace: Trace) -> Column:
    matched = F.col("path").rlike(trace.pattern)
    if trace.key is None:
        return matched
    value = F.get_json_object("data", f"$.{trace.key}")
    there = value.isNotNull() & ~value.isin("{}", "[]")
    if trace.least is not None:
        there = F.coalesce(value.try_cast("int") >= trace.least, F.lit(False))
    return matched & F.coalesce(there, F.lit(False))


def _of_partitions(past: PastRun) -> dict[str, Seen]:
    rows = past.read(PARTITIONS.table).where("source = 'kraft'")
    placed = F.exists("directories", lambda each: each != F.lit(MIGRATING_DIRECTORY))
    found = {}
    for name, has in (("directory_ids", placed), ("eligible_leader_replicas", F.size("eligible_leader_replicas") > 0)):
        kept = rows.where(F.coalesce(has, F.lit(False)))
        row = kept.agg(F.count("*").alias("total"), F.max("kraft_offset").alias("offset")).collect()[0]
        found[name] = Seen(row["total"], f"PARTITION records, offset {row['offset']}" if row["total"] else "")
    return found


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
