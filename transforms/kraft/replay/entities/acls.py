"""AccessControlEntryRecord and its removal: replayed by id, compared by content (`AclControlManager`)."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.kraft.enums import ACL_OPERATIONS, ACL_PERMISSIONS, ACL_RESOURCE_TYPES, PATTERN_TYPES, code_name
from transforms.kraft.replay.entities.event import DELETE, UPSERT, Body, Event, EventReader


def _acl(body: Body) -> Iterable[Event]:
    row = {
        "resource_type": code_name(ACL_RESOURCE_TYPES, body["resourceType"]),
        "resource_name": body["resourceName"],
        "pattern_type": code_name(PATTERN_TYPES, body["patternType"]),
        "principal": body["principal"],
        "host": body["host"],
        "operation": code_name(ACL_OPERATIONS, body["operation"]),
        "permission": code_name(ACL_PERMISSIONS, body["permissionType"]),
        "acl_id": body["id"],
    }
    yield Event("acls", (body["id"],), UPSERT, row)


def _remove(body: Body) -> Iterable[Event]:
    yield Event("acls", (body["id"],), DELETE)


READERS: dict[str, EventReader] = {
    "ACCESS_CONTROL_ENTRY_RECORD": _acl,
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": _remove,
}
