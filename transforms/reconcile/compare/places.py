"""Look up the znodes that would hold rows that ZooKeeper lacks: the znodes around them show who removed them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import polars as pl

from schemas.classes import FOREIGN_WRITE, LOST_WRITE
from transforms.kraft.replay.keys import key_text
from transforms.reconcile.compare.context import Children, Homes
from transforms.reconcile.compare.differing import WrittenAt
from transforms.reconcile.compare.home import ancestors, homes, parent

# More rows than this are not looked up: they stay lost writes, the most likely class without a look-up.
_LIMIT = 10_000
# Entities of which several rows share a znode, which KRaft writes whole.
_SHARED = ("configs", "client_quotas", "scram_credentials", "acls")
_LOOKED_AT = ("entity", "key", "class", "kind", "zk_value", "zk_path", "kraft_offset")
_STAT = ("path", "czxid", "mzxid", "mtime", "pzxid", "cversion", "num_children")


@dataclass(frozen=True)
class Doubtful:
    """Lost writes: keys of the rows (entity, canonical key) and the places of those that ZooKeeper lacks.

    `made` has the znodes of rows that ZooKeeper lacks whole, with the lowest offset of such a row's last record; `rewritten` are znodes
    that hold several rows and were written last by something other than the KRaft controller.
    """

    keys: set[tuple[str, str]] = field(default_factory=set)
    places: set[str] = field(default_factory=set)
    made: dict[str, int] = field(default_factory=dict)
    rewritten: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        """True when something seems lost."""
        return bool(self.keys)


def doubtful(divergences: pl.DataFrame) -> Doubtful:
    """What of DIVERGENCE rows needs a second look: of a bounded number of lost writes; nothing where none was lost."""
    lost = pl.col("class") == LOST_WRITE
    rewritten = (pl.col("class") == FOREIGN_WRITE) & pl.col("entity").is_in(_SHARED) & pl.col("zk_mzxid").is_not_null()
    rows = divergences.filter(lost | rewritten).sort("class", descending=True, maintain_order=True).head(_LIMIT)
    found = Doubtful()
    for row in rows.select(_LOOKED_AT).iter_rows(named=True):
        key = _canonical(row["entity"], json.loads(row["key"]))
        if row["class"] == LOST_WRITE:
            _add_lost(found, row, key)
        elif row["kind"] != "kraft_only" and row["zk_path"] is not None:
            found.rewritten.add(row["zk_path"])
    return found if found.keys else Doubtful()


def _add_lost(found: Doubtful, row: Mapping[str, Any], key: dict[str, Any]) -> None:
    found.keys.add((row["entity"], key_text(key)))
    places, offset = homes(row["entity"], key), row["kraft_offset"]
    if row["kind"] == "kraft_only" or row["zk_value"] == "null":
        found.places.update(places)
    if places and row["kind"] == "kraft_only" and offset is not None:
        found.made[places[-1]] = min(offset, found.made.get(places[-1], offset))


def _canonical(entity: str, key: dict[str, Any]) -> dict[str, Any]:
    """The key as the comparison spells it; a report's spelling of a quota's entity is an object (`report_key`)."""
    if entity != "client_quotas":
        return key
    return {**key, "entity": [{"type": kind, "name": name} for kind, name in key["entity"].items()]}


def look_up(znodes: pl.DataFrame, places: Collection[str], migration_mzxid: int | None) -> Homes:
    """The places that exist, what is above them, and what of that lost a child after `/migration`'s last write.

    `znodes` are those of the tree that is compared: path, czxid, mzxid, mtime, pzxid, cversion, num_children. A list of
    children that changed in the transaction that made one of them was added to; else something was removed. Stat fields show
    only the last change: a removal before a creation is seen in a transaction log alone.
    """
    every = {above for path in places for above in ancestors(path)}
    asked = znodes.filter(pl.col("path").is_in(every.union(places))).select(_STAT)
    rows = asked.to_dicts()
    gone = _gone(places, {row["path"] for row in rows})
    above = {parent(gone.get(path, path)) for path in places}
    explained = {(parent(row["path"]), row["czxid"]) for row in rows} | _made(znodes, asked)
    listed = _listed(znodes, asked)
    written = {row["path"]: WrittenAt(row["path"], row["mzxid"], row["mtime"]) for row in rows if row["path"] in places}
    over = [row for row in rows if row["path"] in above]
    emptied = {
        row["path"]
        for row in over
        if migration_mzxid is not None
        and (row["pzxid"] or 0) > migration_mzxid
        and (row["path"], row["pzxid"]) not in explained
    }
    parents = {
        row["path"]: _children(row, lost=(row["path"], row["pzxid"]) not in explained)
        for row in over
        if listed.get(row["path"], 0) == row["num_children"]
    }
    return Homes(written, frozenset(emptied), parents, gone, looked_up=True)


def _gone(places: Collection[str], there: Collection[str]) -> dict[str, str]:
    """The highest znode that is not there above each place whose parent is not."""
    found = {}
    for path in places:
        for above in takewhile(lambda above: above not in there, ancestors(path)):
            found[path] = above
    return found


def _made(znodes: pl.DataFrame, asked: pl.DataFrame) -> set[tuple[str, int]]:
    """Children made in a transaction in which a list of children changed (parent, zxid): their parents lost nothing."""
    changed = asked.select(czxid="pzxid").drop_nulls().unique()
    made = znodes.select("path", "czxid").join(changed, on="czxid", how="semi")
    return {(parent(path), czxid) for path, czxid in made.iter_rows()}


def _listed(znodes: pl.DataFrame, asked: pl.DataFrame) -> dict[str, int]:
    """Number of children that the tree lists: if it is smaller than the znode's own number, the numbers prove nothing."""
    # The last part of a path begins with its last slash.
    above = znodes.select(above=pl.col("path").str.replace(r"/[^/]*$", ""))
    counted = above.join(asked.select(above="path"), on="above", how="semi").group_by("above").len()
    return dict(counted.iter_rows())


def _children(row: Mapping[str, Any], *, lost: bool) -> Children:
    """ZooKeeper counts each child made and each removed in cversion (`DataNode.copyStat`)."""
    changes, left = row["cversion"], row["num_children"]
    removed = None if changes is None or left is None else (changes - left) // 2
    return Children(row["pzxid"], removed, lost_a_child=lost and bool(removed))
