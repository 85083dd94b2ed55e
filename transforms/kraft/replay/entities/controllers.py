"""RegisterControllerRecord replaces the whole row, UnregisterControllerRecord removes it (`ClusterControlManager.replay`)."""

from __future__ import annotations

from collections.abc import Iterable

from transforms.kraft.replay.entities.brokers import endpoints, feature_ranges
from transforms.kraft.replay.entities.event import DELETE, UPSERT, Body, Event, EventReader


def _register(body: Body) -> Iterable[Event]:
    row = {
        "controller_id": body["controllerId"],
        "incarnation_id": body["incarnationId"],
        "zk_migration_ready": body["zkMigrationReady"],
        "endpoints": endpoints(body),
        "features": feature_ranges(body),
    }
    yield Event("controllers", (body["controllerId"],), UPSERT, row)


def _unregister(body: Body) -> Iterable[Event]:
    yield Event("controllers", (body["controllerId"],), DELETE)


READERS: dict[str, EventReader] = {
    "REGISTER_CONTROLLER_RECORD": _register,
    "UNREGISTER_CONTROLLER_RECORD": _unregister,
}
