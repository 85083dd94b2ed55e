"""ZkMigrationStateRecord: the newest one is the state (`FeatureControlManager.replay`, KIP-866)."""

from __future__ import annotations

from collections.abc import Iterable

from transforms.kraft.replay.entities.event import UPSERT, Body, Event, EventReader


def _state(body: Body) -> Iterable[Event]:
    yield Event("migration", (), UPSERT, {"state_code": body["zkMigrationState"]})


READERS: dict[str, EventReader] = {"ZK_MIGRATION_STATE_RECORD": _state}
