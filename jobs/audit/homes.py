"""Look up the znodes in which rows that ZooKeeper lacks would stand: who took them away is told by their neighbours."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.classes import LOST_WRITE
from transforms.clusters import CLUSTER
from transforms.kraft.replay.events import Cache
from transforms.reconcile.compare.context import Children, Context, Homes
from transforms.reconcile.compare.differing import Written
from transforms.reconcile.compare.divergences import divergences
from transforms.reconcile.compare.home import homes, parent
from transforms.reconcile.judge.queries import as_facts

# More rows than this are not looked up: they stay lost writes, which they are as far as anyone can tell.
_LIMIT = 10_000


def classified(znodes: DataFrame, differing: DataFrame, contexts: Mapping[str, Context], cache_now: Cache) -> DataFrame:
    """Divergences of `differing_rows`, cached by `cache_now`; `znodes` are the trees.

    Where ZooKeeper lacks something for no reason seen yet, a second look at where it should stand.
    """
    current = cache_now(divergences(differing, contexts))
    places = missing_places(current)
    if not places:
        return current
    found = look_up(znodes, places, {name: contexts[name].migration_mzxid for name in places})
    looked = {name: replace(context, homes=found.get(name, context.homes)) for name, context in contexts.items()}
    return cache_now(divergences(differing, looked))


def missing_places(divergences: DataFrame) -> dict[str, set[str]]:
    """Znodes of lost writes that ZooKeeper has nothing of, by cluster: of DIVERGENCE rows, a bounded number."""
    absent = (F.col("class") == LOST_WRITE) & ((F.col("kind") == "kraft_only") | (F.col("zk_value") == "null"))
    rows = divergences.where(absent).select(CLUSTER, "entity", "key").limit(_LIMIT).collect()
    places: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        places[row[CLUSTER]] |= set(homes(row["entity"], _canonical(row["entity"], json.loads(row["key"]))))
    return {name: mine for name, mine in places.items() if mine}


def _canonical(entity: str, key: dict[str, Any]) -> dict[str, Any]:
    """The key as the comparison spells it; a report's spelling of a quota's entity is an object (`report_key`)."""
    if entity != "client_quotas":
        return key
    return {**key, "entity": [{"type": kind, "name": name} for kind, name in key["entity"].items()]}


def look_up(
    znodes: DataFrame, places: Mapping[str, Collection[str]], migration_mzxids: Mapping[str, int | None]
) -> dict[str, Homes]:
    """The places that exist, what is above them, and what of that lost a child after `/migration`'s last write, by cluster.

    A list of children that changed in the transaction that made one of them was added to; else something was removed.
    Stat fields tell the last change only: a removal before a creation is seen in a transaction log alone.
    """
    asked = {name: {*mine, *(parent(path) for path in mine)} for name, mine in places.items()}
    paths = sorted((name, path) for name, mine in asked.items() for path in mine)
    wanted = znodes.sparkSession.createDataFrame(paths, "cluster string, path string")
    columns = (CLUSTER, "path", "czxid", "mzxid", "mtime", "pzxid", "cversion", "num_children")
    there = znodes.join(F.broadcast(wanted), [CLUSTER, "path"], "left_semi")
    # Children made in the transaction in which the list of a parent changed: their parents lost nothing.
    lists = there.select(CLUSTER, F.col("path").alias("above"), F.col("pzxid").alias("czxid"))
    made = znodes.join(F.broadcast(lists), [CLUSTER, "czxid"]).where(
        F.col("path").startswith(F.concat("above", F.lit("/"))) | (F.col("above") == "/")
    )
    answers = {
        "asked": there.select(*columns),
        "made": made.select(*columns),
        "listed": _listed(znodes, there.select(CLUSTER, F.col("path").alias("above"))),
    }
    found: dict[str, dict[str, list[dict[str, Any]]]] = {name: {answer: [] for answer in answers} for name in places}
    for row in as_facts(answers).collect():
        found[row[CLUSTER]][row["fact"]].append(json.loads(row["row"]))
    return {name: _homes(found[name], places[name], migration_mzxids.get(name)) for name in places}


def _listed(znodes: DataFrame, asked: DataFrame) -> DataFrame:
    """How many children the tree lists: where it is fewer than the znode's own number, the numbers say nothing."""
    name = F.substring_index("path", "/", -1)
    above = F.expr("substring(path, 1, length(path) - length(name) - 1)")
    rows = znodes.select(CLUSTER, "path", name.alias("name")).select(CLUSTER, above.alias("above"))
    counted = rows.join(F.broadcast(asked), [CLUSTER, "above"], "left_semi").groupBy(CLUSTER, "above")
    return counted.agg(F.count("*").alias("children"))


def _homes(
    found: Mapping[str, Sequence[Mapping[str, Any]]], places: Collection[str], migration_mzxid: int | None
) -> Homes:
    wanted, above = set(places), {parent(path) for path in places}
    asked = found["asked"]
    listed = {row["above"]: row["children"] for row in found["listed"]}
    written = {row["path"]: Written(row["path"], row["mzxid"], row["mtime"]) for row in asked if row["path"] in wanted}
    touched = {
        row["path"]: row["pzxid"]
        for row in asked
        if row["path"] in above and migration_mzxid is not None and (row["pzxid"] or 0) > migration_mzxid
    }
    parents = {
        row["path"]: _children(row)
        for row in asked
        if row["path"] in above and listed.get(row["path"], 0) == row["num_children"]
    }
    explained = {(parent(row["path"]), row["czxid"]) for row in (*asked, *found["made"])}
    emptied = frozenset(path for path, pzxid in touched.items() if (path, pzxid) not in explained)
    return Homes(written, emptied, parents, looked_up=True)


def _children(row: Mapping[str, Any]) -> Children:
    """ZooKeeper counts each child made and each removed in cversion (`DataNode.copyStat`)."""
    changes, left = row["cversion"], row["num_children"]
    return Children(row["pzxid"], None if changes is None or left is None else (changes - left) // 2)
