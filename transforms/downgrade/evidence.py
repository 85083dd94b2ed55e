"""Where a tree and KRaft's partitions show each persistent format: how many rows have it, and where one of them is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.checks.codes import CLEAR_REMOVED
from schemas.kraft.enums import DIRECTORY_MIGRATING
from schemas.kraft.new_configs import NEW_CONFIGS
from transforms.downgrade.ledger import OF_NEW_CONFIGS, FeatureZnode, Seen, config_format
from transforms.zookeeper.read.reading import MalformedError, parse_text

FEATURE_PATH = "/feature"
_BROKER = r"^/brokers/ids/[0-9]{1,10}$"
MESSAGE_FORMAT = "message.format.version"
_EXAMPLE = "_example"
_CLEARED = "clear_elr_after_removal"
_EMPTY = ("{}", "[]")
_NEW_NAMES = pl.DataFrame(
    [
        (kind, name, config_format(kind, release))
        for kind, of_kind in NEW_CONFIGS.items()
        for release, names in of_kind.items()
        for name in sorted(names)
    ],
    schema=["resource_type", "config", "format"],
    orient="row",
)


@dataclass(frozen=True)
class Trace:
    """Znodes that have a format: by path, and by a key of their JSON that is there and not empty, or at least `least`."""

    pattern: str
    key: str | None = None
    least: int | None = None


_TOPIC = r"^/brokers/topics/[^/]+$"
TRACES: Mapping[str, tuple[Trace, ...]] = {
    "broker_znode_v5": (Trace(_BROKER, "version", 5),),
    "reassignment_keys": (Trace(_TOPIC, "adding_replicas"), Trace(_TOPIC, "removing_replicas")),
    "topic_id": (Trace(_TOPIC, "topic_id"),),
    "leader_recovery_state": (Trace(r"^/brokers/topics/[^/]+/partitions/[0-9]+/state$", "leader_recovery_state"),),
    "prefixed_acls": (Trace(r"^/kafka-acl-extended/prefixed/[^/]+/.+$"),),
    "token_v3": (Trace(r"^/delegation_token/tokens/[^/]+$", "version", 3),),
    "controller_v2": (Trace(r"^/controller$", "version", 2),),
}


def document_of(data: str | None) -> Mapping[str, Any] | None:
    """The JSON object of a znode; None for anything else, which is another check's to name."""
    try:
        return parse_text(data) if data else None
    except MalformedError:
        return None


def feature_znode(document: Mapping[str, Any]) -> FeatureZnode | None:
    """`/feature` as the ledger needs it; None when it is not what Kafka writes."""
    version, features = document.get("version"), document.get("features")
    if not isinstance(version, int) or not isinstance(features, dict):
        return None
    said = {name: value.get("max_version_level", 0) for name, value in features.items() if isinstance(value, dict)}
    levels = {name: level for name, level in said.items() if isinstance(level, int)}
    return FeatureZnode(version, document.get("status") == 1, levels)


class TreeFormats:
    """The formats of `TRACES` that the znodes of one tree have, counted as the tree is read."""

    def __init__(self) -> None:
        """Nothing was read."""
        self._seen = dict.fromkeys(TRACES, Seen(0))

    def add(self, znodes: pl.DataFrame) -> None:
        """Take in some of the tree's znodes (path, data), each once."""
        # Most znodes are ruled out by how their path begins, which costs far less than a pattern.
        begin = {_prefix(trace) for traces in TRACES.values() for trace in traces}
        likely = {prefix: znodes.filter(pl.col("path").str.starts_with(prefix)) for prefix in begin}
        for name, traces in TRACES.items():
            paths = [_showing(likely[_prefix(trace)], trace) for trace in traces]
            # A znode may show one format in two ways.
            new = paths[0] if len(paths) == 1 else pl.concat(paths).unique()
            if len(new):
                known = self._seen[name]
                first = str(new.min())
                self._seen[name] = Seen(known.total + len(new), min(known.example or first, first))

    def answer(self) -> list[dict[str, Any]]:
        """One row, for `seen`: how many znodes have a format, and the first one's path (`<id>_example`); none without any."""
        if not any(each.total for each in self._seen.values()):
            return []
        row: dict[str, Any] = {}
        for name, each in self._seen.items():
            row |= {name: each.total, name + _EXAMPLE: each.example or None}
        return [row]


def _prefix(trace: Trace) -> str:
    """How the path of a znode with a format begins."""
    return trace.pattern.removeprefix("^").partition("[")[0].removesuffix("$")


def _showing(znodes: pl.DataFrame, trace: Trace) -> pl.Series:
    """Paths of the znodes that show a format, of those whose path begins as theirs."""
    path, data = pl.col("path"), pl.col("data")
    if trace.key is not None and not znodes.is_empty():
        # Most do not have the key at all: a tree is mostly states of partitions.
        znodes = znodes.filter(data.str.contains(f'"{trace.key}"', literal=True))
    if not znodes.is_empty():
        znodes = znodes.filter(path.str.contains(trace.pattern))
    if trace.key is not None and not znodes.is_empty():
        value = data.str.json_path_match(f"$.{trace.key}")
        there = ~value.is_in(_EMPTY) if trace.least is None else value.cast(pl.Int32, strict=False) >= trace.least
        znodes = znodes.filter(there)
    return znodes["path"]


def formats_of_log(
    partitions: pl.DataFrame, configs: pl.DataFrame, acls: pl.DataFrame, findings: pl.DataFrame
) -> list[dict[str, Any]]:
    """The same of KRaft's formats, from silver rows of KRaft's partitions, configurations and ACLs, and of findings; none without any."""
    cleared = findings.filter(pl.col("code") == CLEAR_REMOVED)
    if all(rows.is_empty() for rows in (partitions, configs, acls, cleared)):
        return []
    placed = pl.col("directories").list.eval(pl.element() != DIRECTORY_MIGRATING).list.any()
    held = pl.col("eligible_leader_replicas").list.len() > 0
    of_type = pl.col("resource_type")
    having = {
        "directory_ids": ("PARTITION", partitions.filter(placed)),
        "eligible_leader_replicas": ("PARTITION", partitions.filter(held)),
        "client_metrics_configs": ("CONFIG", configs.filter(of_type == "CLIENT_METRICS")),
        "group_configs": ("CONFIG", configs.filter(of_type == "GROUP")),
        "two_phase_commit_acls": ("ACCESS_CONTROL_ENTRY", acls.filter(pl.col("operation") == "TWO_PHASE_COMMIT")),
    }
    counted: dict[str, tuple[str, int, Any]] = {
        name: (records, rows.height, rows["kraft_offset"].max()) for name, (records, rows) in having.items()
    }
    # One look for all new names: one each would cost a small cluster's pass more than all others.
    new = configs.join(_NEW_NAMES, on=["resource_type", "config"]).group_by("format")
    counted |= dict.fromkeys(OF_NEW_CONFIGS, ("CONFIG", 0, None))
    counted |= {name: ("CONFIG", *told) for name, *told in new.agg(pl.len(), pl.col("kraft_offset").max()).rows()}
    row: dict[str, Any] = {}
    for name, (records, total, newest) in counted.items():
        row |= {name: total, name + _EXAMPLE: None if newest is None else f"{records} records, offset {newest}"}
    places = [f"CLEAR_ELR records, {place}" for place in cleared["place"]]
    row |= {_CLEARED: len(places), _CLEARED + _EXAMPLE: places[-1] if places else None}
    return [row]


def seen(row: Mapping[str, Any] | None, formats: Sequence[str]) -> dict[str, Seen]:
    """A row of these as the ledger takes it. Without a row nothing was there to have a format.

    A format that the row of an earlier release of this audit does not have was not looked for, and is left out.
    """
    if row is None:
        return dict.fromkeys(formats, Seen(0))
    return {name: Seen(row[name], row[name + _EXAMPLE] or "") for name in formats if name in row}
