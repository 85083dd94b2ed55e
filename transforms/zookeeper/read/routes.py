"""Which reader reads which path (S§1.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from schemas.zookeeper.findings import TORN_ENTRY, TREE_DIGEST, TREE_UNPROVED
from schemas.zookeeper.paths import CONTAINERS, NEVER_READ
from transforms.zookeeper.read.entities import (
    acls,
    admin_operations,
    brokers,
    client_quotas,
    configs,
    delegation_tokens,
    features,
    migration,
    partitions,
    producer_ids,
    topics,
)
from transforms.zookeeper.read.reading import Reader, StateRow, ZnodeView, finding, whole_characters

# A pattern is a path's segments; None stands for any one name.
_Pattern = tuple[str | None, ...]
_ROUTES: dict[_Pattern, Reader] = {
    ("brokers", "ids", None): brokers.read_broker,
    ("brokers", "topics", None): topics.read_topic,
    ("brokers", "topics", None, "partitions", None, "state"): partitions.read_state,
    ("config", "topics", None): configs.read_topic_config,
    ("config", "brokers", None): configs.read_broker_config,
    ("config", "users", None): client_quotas.read_quotas,
    ("config", "users", None, "clients", None): client_quotas.read_quotas,
    ("config", "clients", None): client_quotas.read_quotas,
    ("config", "ips", None): client_quotas.read_quotas,
    ("config", "changes", None): admin_operations.read_config_change,
    ("admin", "delete_topics", None): admin_operations.read_delete_topic,
    ("admin", "reassign_partitions"): admin_operations.read_reassignments,
    ("admin", "preferred_replica_election"): admin_operations.read_preferred_election,
    ("isr_change_notification", None): admin_operations.read_isr_change,
    ("log_dir_event_notification", None): admin_operations.read_log_dir_event,
    ("kafka-acl-changes", None): admin_operations.read_acl_change,
    ("kafka-acl-extended-changes", None): admin_operations.read_extended_acl_change,
    ("delegation_token", "token_changes", None): admin_operations.read_token_change,
    ("delegation_token", "tokens", None): delegation_tokens.read_token,
    ("latest_producer_id_block",): producer_ids.read_producer_block,
    ("feature",): features.read_features,
    ("migration",): migration.read_migration,
    ("controller",): migration.read_controller,
    ("controller_epoch",): migration.read_controller_epoch,
    ("cluster", "id"): migration.read_cluster_id,
}
# The znodes whose facts make the migration's one row together.
MIGRATION_PATHS = tuple(
    "/" + "/".join(str(part) for part in pattern)
    for pattern, reader in _ROUTES.items()
    if reader.__module__ == migration.__name__
)
_HALF = "a \\u escape is half of a surrogate pair and not a character: Kafka writes `?` for it"
# Parents whose children hold the facts.
_BRANCHES: frozenset[_Pattern] = frozenset(
    {
        ("brokers", "topics", None, "partitions"),
        ("brokers", "topics", None, "partitions", None),
        ("config", "users", None, "clients"),
    }
)
# A transaction log's name, or all of them (`jobs.sources.zookeeper.folder`).
_OF_A_LOG = re.compile(r"log\.[0-9a-f]{1,16}|transaction logs")


def read(znode: ZnodeView) -> Iterator[StateRow]:
    """Yield the facts of one znode of any path, findings included."""
    if znode.path.startswith(NEVER_READ):
        return
    if znode.problem and znode.data is None and not znode.data_is_null:
        # A damaged file that an older one could replace: the tree is complete.
        yield finding(_of_a_file(znode.path, znode.problem), znode.path, znode.problem)
        return
    if znode.path == TREE_DIGEST:
        code = "TREE-UNPROVED" if (znode.data or "").startswith(TREE_UNPROVED) else "TREE-PROVED"
        yield finding(code, znode.path, znode.data or "")
        return
    if znode.path in CONTAINERS:
        return
    parts = znode.path[1:].split("/")
    reader = _reader(parts)
    if reader is not None:
        yield from reader(znode, parts)
        if znode.problem:
            yield finding("NOT-UTF8", znode.path, znode.problem)
        elif znode.data and whole_characters(znode.data) != znode.data:
            yield finding("NOT-UTF8", znode.path, _HALF)
    elif not any(pattern in _BRANCHES for pattern in _patterns(parts)):
        yield finding("UNKNOWN-PATH", znode.path, "Kafka keeps nothing here")


def _of_a_file(path: str, problem: str) -> str:
    if path.startswith("snapshot."):
        return "SOURCE-FALLBACK"
    if not _OF_A_LOG.fullmatch(path):
        return "CAP-07"
    return "TORN-ENTRY" if problem.startswith(TORN_ENTRY) else "CAP-20"


def _reader(parts: list[str]) -> Reader | None:
    if parts[0] == "kafka-acl" and len(parts) > 1:
        return acls.read_literal_acls
    if parts[:2] == ["kafka-acl-extended", "prefixed"] and len(parts) > 2:
        return acls.read_prefixed_acls
    for pattern in _patterns(parts):
        if pattern in _ROUTES:
            return _ROUTES[pattern]
    return None


def _patterns(parts: list[str]) -> Iterator[_Pattern]:
    yield tuple(parts)
    # Names stand at every second place from the third; one-level notification trees are the exception.
    yield (
        (parts[0], None)
        if len(parts) == 2
        else tuple(None if index >= 2 and index % 2 == 0 else part for index, part in enumerate(parts))
    )
