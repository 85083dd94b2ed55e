"""What a metadata record does to state: one event on one row of one entity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

UPSERT = "upsert"
DELETE = "delete"
PATCH = "patch"

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """A change of the row `key` of `entity`.

    `key` is the key Kafka itself replays by (an ACL's id, a topic's id), which need not be the canonical key the two
    sides are compared by. `row` holds the entity's silver columns: all of them for an upsert, some for a patch, none
    for a delete.
    """

    entity: str
    key: tuple[str | int | None, ...]
    op: str
    row: dict[str, Any] | None = None


EventReader = Callable[[Body], Iterable[Event]]
