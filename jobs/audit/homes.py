"""Look up the znodes in which rows that ZooKeeper lacks would stand: who took them away is told by their neighbours."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.classes import FOREIGN_WRITE, LOST_WRITE
from transforms.clusters import CLUSTER
from transforms.kraft.replay.events import Cache
from transforms.kraft.replay.keys import key_text
from transforms.reconcile.compare.context import Children, Context, Homes
from transforms.reconcile.compare.difference import VERSION_FIELDS
from transforms.reconcile.compare.differing import Written
from transforms.reconcile.compare.divergences import divergences
from transforms.reconcile.compare.home import homes, parent
from transforms.reconcile.compare.writers import topic_removed
from transforms.reconcile.judge.queries import as_facts

# More rows than this are not looked up: they stay lost writes, which they are as far as anyone can tell.
_LIMIT = 10_000
# Entities of which several rows share a znode, which KRaft writes whole.
_SHARED = ("configs", "client_quotas", "scram_credentials", "acls")


@dataclass(frozen=True)
class Doubtful:
    """A cluster's lost writes: keys of the rows (entity, canonical key) and the places of those that ZooKeeper lacks.

    `topics` are those that ZooKeeper lacks whole, with the offset of their record; `rewritten` are znodes that hold several
    rows and were written last by something other than the KRaft controller.
    """

    keys: set[tuple[str, str]] = field(default_factory=set)
    places: set[str] = field(default_factory=set)
    topics: dict[str, int] = field(default_factory=dict)
    rewritten: set[str] = field(default_factory=set)


# What is known of rows up to their cluster's offset (inclusive), from their keys (`transforms.kraft.replay.image.versions_of`).
VersionsOf = Callable[[DataFrame, Mapping[str, int]], DataFrame]


def classified(
    znodes: DataFrame, differing: DataFrame, contexts: Mapping[str, Context], cache_now: Cache, versions: VersionsOf
) -> DataFrame:
    """Divergences of `differing_rows`, cached by `cache_now`; `znodes` are the trees.

    What seems lost is looked at twice: all values that KRaft ever gave those rows, and the places in the tree where those
    that ZooKeeper lacks should stand, tell what somebody wrote or removed.
    """
    current = cache_now(divergences(differing, contexts))
    found = doubtful(current)
    if not found:
        return current
    places = {name: mine.places for name, mine in found.items() if mine.places}
    homes_of = look_up(znodes, places, {name: contexts[name].migration_mzxid for name in places}) if places else {}
    looked = dict(contexts)
    for name, mine in found.items():
        context = replace(contexts[name], homes=homes_of.get(name, contexts[name].homes))
        gone = {topic for topic, made in mine.topics.items() if topic_removed(topic, made, context)}
        foreign = context.foreign_paths | mine.rewritten
        looked[name] = replace(context, foreign_paths=foreign, removed_topics=frozenset(gone))
    keys = sorted((name, *key) for name, mine in found.items() for key in mine.keys)
    asked = differing.sparkSession.createDataFrame(keys, "cluster string, entity string, key string")
    until = {name: contexts[name].migration_offset for name in found}
    return cache_now(divergences(with_earlier(differing, versions(asked, until)), looked))


def with_earlier(differing: DataFrame, versions: DataFrame) -> DataFrame:
    """`differing_rows` with `earlier`: what `versions` (ROW_VERSION) have of a row, by offset; null where they have nothing."""
    row = [CLUSTER, "entity", "key"]
    listed = versions.groupBy(*row).agg(F.array_sort(F.collect_list(F.struct(*VERSION_FIELDS))).alias("earlier"))
    return differing.join(F.broadcast(listed), row, "left")


def doubtful(divergences: DataFrame) -> dict[str, Doubtful]:
    """What of DIVERGENCE rows needs a second look, by cluster: of a bounded number of lost writes."""
    lost = F.col("class") == LOST_WRITE
    rewritten = (F.col("class") == FOREIGN_WRITE) & F.col("entity").isin(list(_SHARED)) & F.col("zk_mzxid").isNotNull()
    rows = divergences.where(lost | rewritten).select(
        CLUSTER,
        "entity",
        "key",
        "class",
        "kind",
        (F.col("zk_value") == "null").alias("nothing"),
        "zk_path",
        "kraft_offset",
    )
    found: dict[str, Doubtful] = defaultdict(Doubtful)
    suspects: dict[str, set[str]] = defaultdict(set)
    for row in rows.orderBy(F.col("class").desc()).limit(_LIMIT).collect():
        key = _canonical(row["entity"], json.loads(row["key"]))
        if row["class"] == LOST_WRITE:
            found[row[CLUSTER]].keys.add((row["entity"], key_text(key)))
            if row["kind"] == "kraft_only" or row["nothing"]:
                found[row[CLUSTER]].places.update(homes(row["entity"], key))
            if row["entity"] == "topics" and row["kind"] == "kraft_only" and row["kraft_offset"] is not None:
                found[row[CLUSTER]].topics[key["topic"]] = row["kraft_offset"]
        elif row["kind"] != "kraft_only" and row["zk_path"] is not None:
            suspects[row[CLUSTER]].add(row["zk_path"])
    return {name: replace(mine, rewritten=suspects[name]) for name, mine in found.items()}


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
    explained = {(parent(row["path"]), row["czxid"]) for row in (*asked, *found["made"])}
    parents = {
        row["path"]: _children(row, lost=(row["path"], row["pzxid"]) not in explained)
        for row in asked
        if row["path"] in above and listed.get(row["path"], 0) == row["num_children"]
    }
    emptied = frozenset(path for path, pzxid in touched.items() if (path, pzxid) not in explained)
    return Homes(written, emptied, parents, looked_up=True)


def _children(row: Mapping[str, Any], *, lost: bool) -> Children:
    """ZooKeeper counts each child made and each removed in cversion (`DataNode.copyStat`)."""
    changes, left = row["cversion"], row["num_children"]
    removed = None if changes is None or left is None else (changes - left) // 2
    return Children(row["pzxid"], removed, lost_a_child=lost and bool(removed))
