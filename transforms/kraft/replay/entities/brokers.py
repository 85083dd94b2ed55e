"""Broker registrations and their changes (`ClusterControlManager.replay`, S§3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from schemas.kraft.enums import SECURITY_PROTOCOLS, code_name
from transforms.kraft.replay.entities.event import DELETE, PATCH, UPSERT, Body, Event, EventReader


def endpoints(body: Body) -> list[dict[str, Any]]:
    """Listeners of a registration, by name: Kafka keeps them in a map, their order means nothing."""
    listeners = [
        {
            "name": endpoint["name"],
            "host": endpoint["host"],
            "port": endpoint["port"],
            "security_protocol": code_name(SECURITY_PROTOCOLS, endpoint["securityProtocol"]),
        }
        for endpoint in body["endPoints"]
    ]
    return sorted(listeners, key=lambda listener: str(listener["name"]))


def feature_ranges(body: Body) -> list[dict[str, Any]]:
    """Supported feature ranges of a registration, by name."""
    ranges = [
        {
            "name": feature["name"],
            "min_level": feature["minSupportedVersion"],
            "max_level": feature["maxSupportedVersion"],
        }
        for feature in body["features"]
    ]
    return sorted(ranges, key=lambda supported: str(supported["name"]))


def _register(body: Body) -> Iterable[Event]:
    row = {
        "broker_id": body["brokerId"],
        "broker_epoch": body["brokerEpoch"],
        "incarnation_id": body["incarnationId"],
        "is_migrating_zk_broker": body.get("isMigratingZkBroker", False),
        "fenced": body["fenced"],
        "in_controlled_shutdown": body.get("inControlledShutdown", False),
        "rack": body["rack"],
        "endpoints": endpoints(body),
        "features": feature_ranges(body),
        "log_dirs": body.get("logDirs", []),
        "cordoned_log_dirs": body.get("cordonedLogDirs") or [],
    }
    yield Event("brokers", (body["brokerId"],), UPSERT, row)


def _unregister(body: Body) -> Iterable[Event]:
    yield Event("brokers", (body["brokerId"],), DELETE)


_FENCED = {1: True, -1: False}


def _change(body: Body) -> Iterable[Event]:
    row: dict[str, Any] = {"broker_id": body["brokerId"], "broker_epoch": body["brokerEpoch"]}
    fenced = _FENCED.get(body.get("fenced", 0))
    if fenced is not None:
        row["fenced"] = fenced
    if body.get("inControlledShutdown", 0) == 1:
        row["in_controlled_shutdown"] = True
    if body.get("logDirs"):
        row["log_dirs"] = body["logDirs"]
    if body.get("cordonedLogDirs") is not None:
        row["cordoned_log_dirs"] = body["cordonedLogDirs"]
    yield Event("brokers", (body["brokerId"],), PATCH, row)


def _fence(fenced: bool) -> EventReader:
    def read(body: Body) -> Iterable[Event]:
        row = {"broker_id": body["id"], "broker_epoch": body["epoch"], "fenced": fenced}
        yield Event("brokers", (body["id"],), PATCH, row)

    return read


READERS: dict[str, EventReader] = {
    "REGISTER_BROKER_RECORD": _register,
    "UNREGISTER_BROKER_RECORD": _unregister,
    "BROKER_REGISTRATION_CHANGE_RECORD": _change,
    "FENCE_BROKER_RECORD": _fence(True),
    "UNFENCE_BROKER_RECORD": _fence(False),
}
