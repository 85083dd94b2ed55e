"""ClientQuotaRecord: `remove` deletes the key; an entity is an unordered set of parts (`ClientQuotaControlManager`)."""

from __future__ import annotations

from collections.abc import Iterable

from transforms.kraft.replay.entities.event import DELETE, UPSERT, Body, Event, EventReader


def _quota(body: Body) -> Iterable[Event]:
    parts = sorted(body["entity"], key=lambda part: str(part["entityType"]))
    entity = [{"type": part["entityType"], "name": part["entityName"]} for part in parts]
    flat = [text for part in entity for text in (part["type"], part["name"])]
    key = (*flat, body["key"])
    if body["remove"]:
        yield Event("client_quotas", key, DELETE)
    else:
        yield Event("client_quotas", key, UPSERT, {"entity": entity, "quota": body["key"], "value": body["value"]})


READERS: dict[str, EventReader] = {"CLIENT_QUOTA_RECORD": _quota}
