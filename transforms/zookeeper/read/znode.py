"""A znode as every source hands it over: plain Python, so that a walk needs nothing but the ZooKeeper client."""

from __future__ import annotations

from typing import NamedTuple


class AclEntry(NamedTuple):
    """One entry of a znode's ACL: the permission bits (1 read … 16 admin), the scheme, the id."""

    perms: int
    scheme: str
    id: str


class Znode(NamedTuple):
    """One znode: the columns of `schemas.bronze.ZNODE_COLUMNS`, in order, secrets already fingerprinted."""

    path: str
    data: str | None
    data_is_null: bool | None
    data_length: int | None
    czxid: int | None
    mzxid: int | None
    pzxid: int | None
    ctime: int | None
    mtime: int | None
    version: int | None
    cversion: int | None
    aversion: int | None
    ephemeral_owner: int | None
    num_children: int | None
    acl: list[AclEntry] | None
    redacted: bool | None
    problem: str | None


def unreadable(path: str, problem: str) -> Znode:
    """Return the row of a znode of which only the path is known; `problem` is the reason."""
    return Znode(path, *(None,) * 15, problem=problem)
