"""Look up the znodes in which rows that ZooKeeper lacks would stand: who took them away is told by their neighbours."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.classes import LOST_WRITE
from transforms.reconcile.compare.differing import Written
from transforms.reconcile.compare.divergences import divergences
from transforms.reconcile.compare.home import homes, parent
from transforms.reconcile.context import Children, Context, Homes

# More rows than this are not looked up: they stay lost writes, which they are as far as anyone can tell.
_LIMIT = 10_000


def classified(znodes: DataFrame, differing: DataFrame, context: Context) -> DataFrame:
    """Divergences of `differing_rows`, cached; `znodes` is the tree.

    Where ZooKeeper lacks something for no reason seen yet, a second look at where it should stand.
    """
    current = divergences(differing, context).persist()
    places = missing_places(current)
    if not places:
        return current
    current.unpersist()
    found = look_up(znodes, places, context.migration_mzxid)
    return divergences(differing, replace(context, homes=found)).persist()


def missing_places(divergences: DataFrame) -> set[str]:
    """Znodes of lost writes that ZooKeeper has nothing of: of DIVERGENCE rows, a bounded number."""
    absent = (F.col("class") == LOST_WRITE) & ((F.col("kind") == "kraft_only") | (F.col("zk_value") == "null"))
    rows = divergences.where(absent).select("entity", "key").limit(_LIMIT).collect()
    return {path for row in rows for path in homes(row["entity"], _canonical(row["entity"], json.loads(row["key"])))}


def _canonical(entity: str, key: dict[str, Any]) -> dict[str, Any]:
    """The key as the comparison spells it; a report's spelling of a quota's entity is an object (`report_key`)."""
    if entity != "client_quotas":
        return key
    return {**key, "entity": [{"type": kind, "name": name} for kind, name in key["entity"].items()]}


def look_up(znodes: DataFrame, places: Iterable[str], migration_mzxid: int | None) -> Homes:
    """The places that exist, what is above them, and the parents that lost a child after `/migration`'s last write.

    A list of children that changed in the transaction that made one of them was added to; else something was removed.
    Stat fields tell the last change only: a removal before a creation is seen in a transaction log alone.
    """
    wanted = set(places)
    above = {parent(path) for path in wanted}
    session = znodes.sparkSession
    asked = session.createDataFrame([(path,) for path in sorted(wanted | above)], "path string")
    told = ("path", "mzxid", "mtime", "pzxid", "cversion", "num_children")
    found = znodes.join(F.broadcast(asked), "path").select(*told).collect()
    written = {row["path"]: Written(row["path"], row["mzxid"], row["mtime"]) for row in found if row["path"] in wanted}
    touched = {
        row["path"]: row["pzxid"]
        for row in found
        if row["path"] in above and migration_mzxid is not None and (row["pzxid"] or 0) > migration_mzxid
    }
    listed = _listed(znodes, above)
    parents = {
        row["path"]: _children(row.asDict())
        for row in found
        if row["path"] in above and listed.get(row["path"], 0) == row["num_children"]
    }
    if not touched:
        return Homes(written, above=parents, looked_up=True)
    made = znodes.where(F.col("czxid").isin(sorted(set(touched.values())))).select("path", "czxid").collect()
    explained = {(parent(row["path"]), row["czxid"]) for row in made}
    emptied = frozenset(path for path, pzxid in touched.items() if (path, pzxid) not in explained)
    return Homes(written, emptied, parents, looked_up=True)


def _listed(znodes: DataFrame, above: Iterable[str]) -> dict[str, int]:
    """How many children the tree lists: where it is fewer than the znode's own number, the numbers say nothing."""
    over = F.substring_index("path", "/", -1)
    parents = F.expr("substring(path, 1, length(path) - length(name) - 1)")
    rows = znodes.select("path", over.alias("name")).select(parents.alias("parent"))
    counted = rows.where(F.col("parent").isin(sorted(above))).groupBy("parent").agg(F.count("*").alias("children"))
    return {row["parent"]: row["children"] for row in counted.collect()}


def _children(row: Mapping[str, Any]) -> Children:
    """ZooKeeper counts each child made and each removed in cversion (`DataNode.copyStat`)."""
    changes, left = row["cversion"], row["num_children"]
    return Children(row["pzxid"], None if changes is None or left is None else (changes - left) // 2)
