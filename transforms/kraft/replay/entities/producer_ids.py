"""ProducerIdsRecord: one row for the cluster (`ProducerIdControlManager.replay`)."""

from __future__ import annotations

from collections.abc import Iterable

from transforms.kraft.replay.entities.event import UPSERT, Body, Event, EventReader


def _next_block(body: Body) -> Iterable[Event]:
    row = {
        "next_producer_id": body["nextProducerId"],
        "broker_id": body["brokerId"],
        "broker_epoch": body["brokerEpoch"],
    }
    yield Event("producer_ids", (), UPSERT, row)


READERS: dict[str, EventReader] = {"PRODUCER_IDS_RECORD": _next_block}
