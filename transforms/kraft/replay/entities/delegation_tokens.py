"""DelegationTokenRecord and its removal (`DelegationTokenControlManager`, 3.6 and later)."""

from __future__ import annotations

from collections.abc import Iterable

from transforms.kraft.replay.entities.event import DELETE, UPSERT, Body, Event, EventReader


def _token(body: Body) -> Iterable[Event]:
    row = {
        "token_id": body["tokenId"],
        "owner": body["owner"],
        "requester": body.get("requester", body["owner"]),
        "renewers": sorted(body["renewers"]),
        "issue_timestamp": body["issueTimestamp"],
        "max_timestamp": body["maxTimestamp"],
        "expiry_timestamp": body["expirationTimestamp"],
    }
    yield Event("delegation_tokens", (body["tokenId"],), UPSERT, row)


def _remove(body: Body) -> Iterable[Event]:
    yield Event("delegation_tokens", (body["tokenId"],), DELETE)


READERS: dict[str, EventReader] = {
    "DELEGATION_TOKEN_RECORD": _token,
    "REMOVE_DELEGATION_TOKEN_RECORD": _remove,
}
