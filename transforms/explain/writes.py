"""ZooKeeper's transactions on a row's znodes: who wrote, what kind of write it was, what the row was afterwards (S§5.1)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transforms.explain.keys import RowKey
from transforms.explain.znodes import row_in_znode
from transforms.zookeeper.storage.transactions import NAMES, OpCode

CREATES = (NAMES[OpCode.CREATE], NAMES[OpCode.CREATE2])
_SILENT = (NAMES[OpCode.CHECK], NAMES[OpCode.ERROR])
_BROKER_IDS = "/brokers/ids/"
# Kinds of writes that silver zookeeper_writes keeps, as a reader sees them.
_KINDS = {
    "foreign": "FOREIGN: behind KRaft's back",
    "envelope_failed": "refused by ZooKeeper, nothing applied",
    "fenced": "refused: another controller had taken over",
    "rollback": "removed by hand",
    "claim": "claim of ZooKeeper by KRaft",
}


@dataclass(frozen=True)
class ZnodeWrite:
    """One operation on one of the row's znodes. `row` is the row in the znode afterwards, or None.

    `known` is false if the operation does not show the content (an ACL change, a refused write).
    """

    zxid: int
    time: int
    path: str
    type: str
    version: int | None
    writer: str
    kind: str
    known: bool
    row: dict[str, Any] | None


def session_writers(creates: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Who owns a session, from the znodes it made (rows of bronze zk_transactions): a broker's id, /controller."""
    found: dict[int, str] = {}
    for row in creates:
        path = row["path"]
        if path.startswith(_BROKER_IDS):
            found.setdefault(row["session"], f"broker {path.removeprefix(_BROKER_IDS)}")
        elif path == "/controller":
            owner = _controller(row["data"])
            if owner is not None:
                found[row["session"]] = owner
    return found


def _controller(data: str | None) -> str | None:
    try:
        document = json.loads(data or "")
        kind = "controller" if document.get("kraftControllerEpoch", -1) >= 0 else "broker"
        return f"{kind} {int(document['brokerid'])}"
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def writes(
    row: RowKey,
    operations: Sequence[Mapping[str, Any]],
    paths: Sequence[str],
    kinds: Mapping[int, str],
    writers: Mapping[int, str],
    claimed_at: int | None,
) -> list[ZnodeWrite]:
    """Operations of bronze zk_transactions to the writes of the row's znodes, in order.

    `operations` are those on `paths` and the first two of each multi they are in; `kinds` silver's kind by zxid; `claimed_at`
    the zxid of KRaft's first claim, None if the logs have none.
    """
    ordered = sorted(operations, key=lambda op: (op["zxid"], op["multi_index"] or 0))
    enveloped = {op["zxid"] for op in ordered if op["multi_index"] == 0 and op["path"] == "/controller_epoch"}
    enveloped &= {op["zxid"] for op in ordered if op["multi_index"] == 1 and op["path"] == "/migration"}
    found = []
    for operation in ordered:
        if operation["path"] in paths and operation["type"] not in _SILENT:
            kind = _kind(operation, kinds, enveloped, claimed_at)
            found.append(_write(row, operation, writers, kind))
    return found


def _kind(operation: Mapping[str, Any], kinds: Mapping[int, str], enveloped: set[int], claimed_at: int | None) -> str:
    known = _KINDS.get(kinds.get(operation["zxid"], ""))
    if known is not None:
        return known
    if operation["failed"]:
        return "refused by ZooKeeper, nothing applied"
    if operation["zxid"] in enveloped:
        return "mirrored by KRaft"
    return "ZooKeeper mode" if claimed_at is None or operation["zxid"] < claimed_at else "not a mirrored change"


def _write(row: RowKey, operation: Mapping[str, Any], writers: Mapping[int, str], kind: str) -> ZnodeWrite:
    kept = operation["type"] in (*CREATES, NAMES[OpCode.SET_DATA], NAMES[OpCode.DELETE]) and not operation["failed"]
    removed = operation["type"] == NAMES[OpCode.DELETE]
    content = None
    if kept and not removed:
        content = row_in_znode(row, operation["path"], operation["data"], operation["version"])
    session = operation["session"]
    return ZnodeWrite(
        zxid=operation["zxid"],
        time=operation["time"],
        path=operation["path"],
        type=operation["type"],
        version=operation["version"],
        writer=writers.get(session, f"session {session & (2**64 - 1):#x}"),
        kind=kind,
        known=kept,
        row=content,
    )
