"""TopicRecord and RemoveTopicRecord (`ReplicationControlManager.replay`). The cascade is in `transforms.kernel.fold`."""

from __future__ import annotations

from collections.abc import Iterable

from transforms.kraft.replay.entities.event import DELETE, UPSERT, Body, Event, EventReader


def _topic(body: Body) -> Iterable[Event]:
    row = {"topic": body["name"], "topic_id": body["topicId"]}
    yield Event("topics", (body["topicId"],), UPSERT, row)


def _remove(body: Body) -> Iterable[Event]:
    yield Event("topics", (body["topicId"],), DELETE)


READERS: dict[str, EventReader] = {"TOPIC_RECORD": _topic, "REMOVE_TOPIC_RECORD": _remove}
