"""The znodes that contain a row, and the row in a znode's data (S§1.1, S§5.2)."""

from __future__ import annotations

from typing import Any

from schemas.zookeeper.paths import DEFAULT_ENTITY
from transforms.explain.keys import RowKey
from transforms.reconcile.compare.home import homes
from transforms.zookeeper.read.reading import StateRow, ZnodeView
from transforms.zookeeper.read.routes import read

# What a state row is called before the silver tables are assembled.
_STATE_ROWS = {"partitions": ("partition_assignments", "partition_states")}


def znode_paths(row: RowKey) -> list[str]:
    """Every path that could contain the row, the most important first; none for rows that ZooKeeper never has."""
    name, key = row.entity.name, row.key
    if name == "features":
        return ["/feature"]
    if name == "brokers":
        return [f"/brokers/ids/{key['broker_id']}"]
    paths = list(homes(name, key))
    if name == "client_quotas" and [part["type"] for part in key["entity"]] == ["ip"]:
        # kafka-configs.sh writes an IP address as it is, the KRaft controller sanitizes it: IPv6 has two spellings.
        paths.append(f"/config/ips/{key['entity'][0]['name'] or DEFAULT_ENTITY}")
    return list(dict.fromkeys(paths))


def row_in_znode(row: RowKey, path: str, data: str | None, version: int | None) -> dict[str, Any] | None:
    """The row in the data of a znode; None if it is not there.

    Each of a partition's two znodes gives the columns that it contains.
    """
    znode = ZnodeView(path, data, data is None, None, None, None, version, 0, None)
    wanted = _STATE_ROWS.get(row.entity.name, (row.entity.name,))
    for fact in read(znode):
        if fact.entity in wanted and _is_of(row, fact):
            return {name: value for name, value in fact.row.items() if name not in row.entity.key}
    return None


def _is_of(row: RowKey, fact: StateRow) -> bool:
    return all(fact.row.get(name) == value for name, value in row.key.items())
