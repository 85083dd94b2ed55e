"""`/migration`, `/controller`, `/controller_epoch`, `/cluster/id`: where the migration stands (S§1.1, S§4.4, S§4.5).

Each znode gives a `migration` row with its own columns only; together they make the one row.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from transforms.zookeeper.read.reading import (
    MalformedError,
    StateRow,
    ZnodeView,
    finding,
    integer,
    long,
    parse_object,
    text,
)

_EPOCH = re.compile(r"[+-]?[0-9]{1,10}")


def read_migration(znode: ZnodeView, _: list[str]) -> Iterator[StateRow]:
    """Yield `/migration` (`MigrationZNode` version 0). One that can't be parsed is a row too: it exists."""
    row = {
        "migration_data": znode.data,
        "migration_present": True,
        "migration_mzxid": znode.mzxid,
        "migration_mtime": znode.mtime,
        "migration_version": znode.version,
    }
    if znode.data_is_null:
        yield StateRow("migration", row)
        yield finding("MIGRATION-NULL", znode.path, "its data is null")
        return
    try:
        document = parse_object(znode)
        if integer(document, "version") != 0:
            raise MalformedError("its version is not 0")
        row |= {
            "kraft_controller_id": integer(document, "kraft_controller_id"),
            "kraft_controller_epoch": integer(document, "kraft_controller_epoch"),
            "kraft_metadata_offset": long(document, "kraft_metadata_offset"),
            "kraft_metadata_epoch": integer(document, "kraft_metadata_epoch"),
        }
    except MalformedError as problem:
        digest = hashlib.sha256((znode.data or "").encode("utf-8", "surrogatepass")).hexdigest()[:16]
        yield finding("MIGRATION-DATA", znode.path, f"{problem} (SHA-256 of the data starts with {digest})")
    yield StateRow("migration", row)


def read_controller(znode: ZnodeView, _: list[str]) -> Iterator[StateRow]:
    """Yield `/controller` (`ControllerZNode` version 1 or 2): persistent once a KRaft controller claimed it."""
    row = {"controller_persistent": znode.ephemeral_owner == 0, "controller_czxid": znode.czxid}
    try:
        document = parse_object(znode)
        row["controller_id"] = integer(document, "brokerid")
        if document.get("kraftControllerEpoch") is not None:
            row["controller_kraft_epoch"] = integer(document, "kraftControllerEpoch")
    except MalformedError as problem:
        yield finding("CONTROLLER-DATA", znode.path, str(problem))
    yield StateRow("migration", row)


def read_controller_epoch(znode: ZnodeView, _: list[str]) -> Iterator[StateRow]:
    """Yield `/controller_epoch`: a decimal text."""
    data = znode.data or ""
    if not _EPOCH.fullmatch(data) or abs(int(data)) >= 2**31:
        yield finding("START-18", znode.path, "its data is not an integer")
        return
    yield StateRow("migration", {"controller_epoch": int(data), "controller_epoch_mzxid": znode.mzxid})


def read_cluster_id(znode: ZnodeView, _: list[str]) -> Iterator[StateRow]:
    """Yield `/cluster/id`."""
    try:
        yield StateRow("migration", {"cluster_id": text(parse_object(znode), "id")})
    except MalformedError as problem:
        yield finding("CLUSTER-ID", znode.path, str(problem))
