"""Look up the znodes in which rows that ZooKeeper lacks would stand: who took them away is told by their neighbours."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.classes import LOST_WRITE
from transforms.reconcile.compare.classify import Context, Homes
from transforms.reconcile.compare.differing import Written
from transforms.reconcile.compare.divergences import divergences
from transforms.reconcile.compare.home import homes, parent

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
    """The places that exist, and their parents that lost a child after `/migration`'s last write.

    A list of children that changed in the transaction that made one of them was added to; else something was removed.
    Stat fields tell the last change only: a removal before a creation is seen in a transaction log alone.
    """
    wanted = set(places)
    above = {parent(path) for path in wanted}
    session = znodes.sparkSession
    asked = session.createDataFrame([(path,) for path in sorted(wanted | above)], "path string")
    found = znodes.join(F.broadcast(asked), "path").select("path", "mzxid", "mtime", "pzxid").collect()
    written = {row["path"]: Written(row["path"], row["mzxid"], row["mtime"]) for row in found if row["path"] in wanted}
    touched = {
        row["path"]: row["pzxid"]
        for row in found
        if row["path"] in above and migration_mzxid is not None and (row["pzxid"] or 0) > migration_mzxid
    }
    if not touched:
        return Homes(written)
    made = znodes.where(F.col("czxid").isin(sorted(set(touched.values())))).select("path", "czxid").collect()
    explained = {(parent(row["path"]), row["czxid"]) for row in made}
    return Homes(written, frozenset(path for path, pzxid in touched.items() if (path, pzxid) not in explained))
