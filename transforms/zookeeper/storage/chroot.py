"""The part of an ensemble that belongs to one Kafka cluster: the subtrees that an audit needs, below the cluster's chroot.

Files have absolute paths, and data of other users of the ensemble, whose secrets the audit can't recognise. Those are not stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from schemas.zookeeper.paths import NEEDED_ROOTS, NEVER_READ
from transforms.zookeeper.storage.transactions import OpCode, Operation, ZkTransaction

# Every cluster has it from its first start on, and nothing else does.
MARK = "/brokers/topics"
# Users choose the names inside a cluster; that of an ACL or a group must not be taken for a chroot.
_KAFKA_OWN = tuple(f"{root}/" for root in (*NEEDED_ROOTS, *NEVER_READ))
# The root itself, and what is needed below it.
_NEEDED = rf"^/((?:{'|'.join(root.removeprefix('/') for root in NEEDED_ROOTS)})(/|$)|$)"
_needed_path = re.compile(_NEEDED).search
_SESSIONS = (OpCode.CREATE_SESSION, OpCode.CLOSE_SESSION)


def chroots(paths: Iterable[str]) -> set[str]:
    """Return the chroots (an empty text for none) of the clusters whose paths these are."""
    names = {path.removesuffix(MARK) for path in paths if path.endswith(MARK)}
    return {name for name in names if not f"{name}/".startswith(_KAFKA_OWN)}


def below(batch: pa.RecordBatch, chroot: str) -> pa.RecordBatch:
    """Return the znodes of one cluster, their paths below the chroot; rows about files (no absolute path) stay."""
    if not chroot:
        return batch
    path = batch["path"]
    inside = pc.or_(pc.equal(path, chroot), pc.starts_with(path, chroot + "/"))
    kept = batch.filter(pc.or_(inside, pc.invert(pc.starts_with(path, "/"))))
    path = kept["path"]
    stripped = pc.if_else(pc.starts_with(path, "/"), pc.utf8_slice_codeunits(path, len(chroot)), path)
    stripped = pc.if_else(pc.equal(stripped, ""), "/", stripped)
    return kept.set_column(kept.schema.get_field_index("path"), kept.schema.field("path"), stripped)


def transaction_below(transaction: ZkTransaction, chroot: str) -> ZkTransaction | None:
    """Return a transaction with paths below the chroot; None when it concerns another cluster alone."""
    if not chroot:
        return transaction
    if transaction.type not in _SESSIONS and all(_is_outside(item, chroot) for item in transaction.operations):
        return None
    return replace(transaction, operations=[_below(operation, chroot) for operation in transaction.operations])


def _below(operation: Operation, chroot: str) -> Operation:
    paths = None if operation.paths is None else [_strip(path, chroot) for path in operation.paths]
    return replace(operation, path=_strip(operation.path, chroot), paths=paths)


def _is_outside(operation: Operation, chroot: str) -> bool:
    # Errors have no path: they may be of this cluster.
    return bool(operation.path) and not f"{operation.path}/".startswith(f"{chroot}/")


def _strip(path: str, chroot: str) -> str:
    return (path.removeprefix(chroot) or "/") if f"{path}/".startswith(f"{chroot}/") else path


def is_needed(path: str) -> bool:
    """Whether a znode, by its path below the chroot, is one that an audit needs (`NEEDED_ROOTS`)."""
    return _needed_path(path) is not None


def needed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the znodes below the roots that an audit needs (`NEEDED_ROOTS`), and the rows about files, for storing."""
    path = batch["path"]
    return batch.filter(pc.or_(pc.match_substring_regex(path, _NEEDED), pc.invert(pc.starts_with(path, "/"))))


def needed_part(transaction: ZkTransaction) -> ZkTransaction | None:
    """Return what of a transaction may be stored: None when it concerns nothing that an audit needs.

    Of one that concerns both, the other operations keep their paths and lose their data.
    """
    other = [bool(item.path) and not is_needed(item.path) for item in transaction.operations]
    if not any(other):
        return transaction
    if transaction.type not in _SESSIONS and all(other):
        return None
    operations = [
        replace(item, data=None) if outside else item
        for item, outside in zip(transaction.operations, other, strict=True)
    ]
    return replace(transaction, operations=operations)
