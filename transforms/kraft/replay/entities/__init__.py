"""Records to events, one module per entity. Partitions are folded in columns, by `transforms.kernel`."""

from transforms.kraft.replay.entities import (
    acls,
    brokers,
    client_quotas,
    configs,
    controllers,
    delegation_tokens,
    features,
    migration,
    producer_ids,
    scram_credentials,
    topics,
)
from transforms.kraft.replay.entities.event import DELETE, PATCH, UPSERT, Event, EventReader

_MODULES = (
    topics,
    configs,
    client_quotas,
    acls,
    scram_credentials,
    delegation_tokens,
    features,
    producer_ids,
    brokers,
    controllers,
    migration,
)
READERS: dict[str, EventReader] = {name: reader for module in _MODULES for name, reader in module.READERS.items()}
# Entity to the record types that act on it.
RECORDS_OF: dict[str, tuple[str, ...]] = {
    module.__name__.rpartition(".")[2]: tuple(module.READERS) for module in _MODULES
}

__all__ = ["DELETE", "PATCH", "READERS", "RECORDS_OF", "UPSERT", "Event", "EventReader"]
