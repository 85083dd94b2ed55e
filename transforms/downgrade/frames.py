"""How many rows of the tables have each persistent format, and where one of them is: all formats in one aggregate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.kraft.enums import DIRECTORY_MIGRATING
from transforms.clusters import CLUSTER
from transforms.downgrade.evidence import TRACES, Trace
from transforms.downgrade.ledger import OF_KRAFT, Seen

_EXAMPLE = "_example"


def formats_of_tree(znodes: DataFrame) -> DataFrame:
    """A row a cluster: for each format of `TRACES` how many znodes have it, and the first one's path (`<id>_example`).

    `znodes` are rows of bronze zk_znodes of one walk a cluster.
    """
    had = [F.when(reduce(or_, [_shown_by(trace) for trace in traces]), F.lit(name)) for name, traces in TRACES.items()]
    # A filter and two aggregates would each parse a znode's JSON anew: what comes out of the first look is its formats.
    found = znodes.select(CLUSTER, "path", F.explode(F.array_compact(F.array(*had))).alias("format"))
    columns = []
    for name in TRACES:
        has = F.col("format") == name
        columns += [F.count_if(has).alias(name), F.min(F.when(has, F.col("path"))).alias(name + _EXAMPLE)]
    return found.groupBy(CLUSTER).agg(*columns)


def _shown_by(trace: Trace) -> Column:
    # Most znodes are ruled out by how their path begins, which costs far less than the pattern.
    prefix = trace.pattern.removeprefix("^").partition("[")[0].removesuffix("$")
    begins, matches = F.col("path").startswith(prefix), F.col("path").rlike(trace.pattern)
    if trace.key is None:
        return begins & matches
    # So are most of the rest by not having the key at all: a tree is mostly states of partitions.
    matched = begins & F.coalesce(F.contains("data", F.lit(f'"{trace.key}"')), F.lit(False)) & matches
    value = F.get_json_object("data", f"$.{trace.key}")
    there = value.isNotNull() & ~value.isin("{}", "[]")
    if trace.least is not None:
        there = F.coalesce(value.try_cast("int") >= trace.least, F.lit(False))
    return matched & F.coalesce(there, F.lit(False))


def formats_of_partitions(partitions: DataFrame) -> DataFrame:
    """The same of KRaft's formats, from silver rows of KRaft's partitions."""
    placed = F.exists("directories", lambda each: each != F.lit(DIRECTORY_MIGRATING))
    held = F.size("eligible_leader_replicas") > 0
    columns = []
    for name, shows in zip(OF_KRAFT, (placed, held), strict=True):
        has = F.coalesce(shows, F.lit(False))
        newest = F.max(F.when(has, F.col("kraft_offset"))).cast("string")
        columns += [
            F.count_if(has).alias(name),
            F.concat(F.lit("PARTITION records, offset "), newest).alias(name + _EXAMPLE),
        ]
    return partitions.groupBy(CLUSTER).agg(*columns)


def seen(row: Mapping[str, Any] | None, formats: Sequence[str]) -> dict[str, Seen]:
    """A collected row of these as the ledger takes it. Without a row nothing was there to have a format."""
    found = row or {}
    return {name: Seen(found.get(name) or 0, found.get(name + _EXAMPLE) or "") for name in formats}
