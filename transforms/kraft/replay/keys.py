"""Canonical keys as text, as both sides of a comparison spell them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from schemas.entities import ENTITIES
from transforms.kraft.replay.entities import UPSERT, Event

_ENTITIES = {entity.name: entity for entity in ENTITIES}


def canonical_key(event: Event) -> str | None:
    """The canonical key of an upsert, in the very text that `transforms.reconcile.compare.canonical.key_json` makes of it."""
    if event.op != UPSERT or event.row is None:
        return None
    row = event.row
    return key_text({name: row[name] for name in _ENTITIES[event.entity].key})


def key_text(key: Mapping[str, object]) -> str:
    """A canonical key as text; its fields must stand in the entity's order."""
    return json.dumps(key, ensure_ascii=False, separators=(",", ":"))
