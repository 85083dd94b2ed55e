"""ConfigRecord: a null value deletes the key (`ConfigurationControlManager.replay`)."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.kraft.enums import CONFIG_RESOURCE_TYPES, code_name
from transforms.kraft.replay.entities.event import DELETE, UPSERT, Body, Event, EventReader
from transforms.secrets import CIPHERTEXT_PREFIX, is_sensitive_config


def _config(body: Body) -> Iterable[Event]:
    resource_type = code_name(CONFIG_RESOURCE_TYPES, body["resourceType"])
    resource_name, config, value = body["resourceName"], body["name"], body["value"]
    key = (resource_type, resource_name, config)
    if value is None:
        yield Event("configs", key, DELETE)
        return
    row = {
        "resource_type": resource_type,
        "resource_name": resource_name,
        "config": config,
        "value": value,
        "sensitive": is_sensitive_config(config),
        "comparable": not value.startswith(CIPHERTEXT_PREFIX),
    }
    yield Event("configs", key, UPSERT, row)


READERS: dict[str, EventReader] = {"CONFIG_RECORD": _config}
