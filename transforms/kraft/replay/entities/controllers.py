"""RegisterControllerRecord: replaces the whole row (`ClusterControlManager.replay`)."""

from __future__ import annotations

from collections.abc import Iterable

from transforms.kraft.replay.entities.brokers import endpoints, feature_ranges
from transforms.kraft.replay.entities.event import UPSERT, Body, Event, EventReader


def _register(body: Body) -> Iterable[Event]:
    row = {
        "controller_id": body["controllerId"],
        "incarnation_id": body["incarnationId"],
        "zk_migration_ready": body["zkMigrationReady"],
        "endpoints": endpoints(body),
        "features": feature_ranges(body),
    }
    yield Event("controllers", (body["controllerId"],), UPSERT, row)


READERS: dict[str, EventReader] = {"REGISTER_CONTROLLER_RECORD": _register}
