"""UserScramCredentialRecord and its removal (`ScramControlManager`); the keys are fingerprints already."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.kraft.enums import SCRAM_MECHANISMS, code_name
from transforms.kraft.replay.entities.event import DELETE, UPSERT, Body, Event, EventReader


def _credential(body: Body) -> Iterable[Event]:
    if "mechanism" not in body:
        return  # The body 3.4 declares under this key and never writes (S§2.5, "0*").
    mechanism = code_name(SCRAM_MECHANISMS, body["mechanism"])
    row = {
        "user": body["name"],
        "mechanism": mechanism,
        "salt": body["salt"],
        "stored_key": body["storedKey"],
        "server_key": body["serverKey"],
        "iterations": body["iterations"],
    }
    yield Event("scram_credentials", (body["name"], mechanism), UPSERT, row)


def _remove(body: Body) -> Iterable[Event]:
    yield Event("scram_credentials", (body["name"], code_name(SCRAM_MECHANISMS, body["mechanism"])), DELETE)


READERS: dict[str, EventReader] = {
    "USER_SCRAM_CREDENTIAL_RECORD": _credential,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": _remove,
}
