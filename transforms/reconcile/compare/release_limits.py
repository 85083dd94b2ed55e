"""What a Kafka release does not migrate, mirror or record (S§4.2, S§4.4, S§12.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from transforms.kraft.release import before
from transforms.reconcile.compare.differing import ASSIGNMENT, DifferingRow
from transforms.reconcile.compare.exposure import has

_UNMIGRATED_IN_3_4 = {
    "acls": "Kafka 3.4 does not migrate ACLs (KAFKA-14796)",
    "scram_credentials": "Kafka 3.4 does not migrate SCRAM credentials (KAFKA-14859)",
    "client_quotas": "Kafka 3.4 loads quotas under the folder's name (users, clients, ips) instead of the entity's type",
}
_TOKENS = {"delegation_tokens": "Kafka before 3.6 does not migrate delegation tokens"}
_NAMES = "KAFKA-16222"
_ACLS = "PR 15327"
_EMPTIES = "KAFKA-15825"


@dataclass(frozen=True)
class Limits:
    """`unmigrated`: entities the load leaves out, and why. `mangles_names`: quota and SCRAM names may be stored wrongly.

    `mirrors_all` is false in 3.4, which mirrors new topics, partition states, configurations, quotas and producer ids only;
    `offset_moves` is false there too: `/migration` keeps the load's offset forever. `drops_acls`: deleting one ACL of a
    resource may take away others of it in ZooKeeper. `empties`: the full sync after the load may delete all that was loaded.
    """

    unmigrated: Mapping[str, str] = field(default_factory=dict)
    mangles_names: bool = True
    mirrors_all: bool = True
    offset_moves: bool = True
    drops_acls: bool = True
    empties: bool = True

    def unmirrored(self, row: DifferingRow, column: str | None) -> str | None:
        """Why the release never writes this change to ZooKeeper; None when it does. `column` is None for a whole row."""
        if self.mirrors_all:
            return None
        if row.entity.name in ("acls", "scram_credentials", "delegation_tokens"):
            return f"Kafka 3.4 does not mirror changes of {row.entity.name.replace('_', ' ')}"
        if row.kraft is None and row.entity.name in ("topics", "partitions"):
            return "Kafka 3.4 does not mirror the deletion of a topic"
        if row.entity.name == "partitions" and column in ASSIGNMENT:
            return "Kafka 3.4 does not mirror changed assignments (KAFKA-15003)"
        return None


def limits(kafka_version: str | None) -> Limits:
    """The limits of a release such as `3.5.2`; for an unknown release or patch, those that it may have."""
    early = before(kafka_version, 3, 5)
    unmigrated = (_UNMIGRATED_IN_3_4 if early else {}) | (_TOKENS if before(kafka_version, 3, 6) else {})
    return Limits(
        unmigrated=unmigrated,
        mangles_names=_may_have(_NAMES, kafka_version),
        drops_acls=_may_have(_ACLS, kafka_version),
        empties=_may_have(_EMPTIES, kafka_version),
        mirrors_all=not early,
        offset_moves=not early,
    )


def _may_have(jira: str, kafka_version: str | None) -> bool:
    return has(jira, kafka_version) is not False
