"""`/brokers/ids/<id>`: brokers registered in ZooKeeper mode right now (`BrokerIdZNode`, S§1.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from transforms.zookeeper.read.reading import MalformedError, StateRow, ZnodeView, finding, integer, parse_object, text

_ENDPOINT = re.compile(r"([^:/]+)://(?:\[([0-9a-zA-Z\-%._:]*)\]|([^\[\]]*)):(-?[0-9]{1,9})")


def read_broker(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield the broker. Its epoch is the znode's czxid; versions 1 to 5 are read."""
    try:
        if not parts[2].isdecimal() or len(parts[2]) > 9:
            raise MalformedError("its name is not a broker id")
        document = parse_object(znode)
        version = integer(document, "version")
        if version < 1:
            raise MalformedError("its version is below 1")
        endpoints = _endpoints(document, version)
        features = _features(document.get("features"))
    except MalformedError as problem:
        yield finding("BROKER-DATA", znode.path, str(problem))
        return
    rack = document.get("rack")
    yield StateRow(
        "brokers",
        {
            "broker_id": int(parts[2]),
            "broker_epoch": znode.czxid,
            "incarnation_id": None,
            "is_migrating_zk_broker": None,
            "fenced": None,
            "in_controlled_shutdown": None,
            "rack": rack if isinstance(rack, str) else None,
            "endpoints": endpoints,
            "features": features,
            "log_dirs": None,
            "cordoned_log_dirs": None,
            "znode_version": version,
        },
    )


def _endpoints(document: dict[str, Any], version: int) -> list[dict[str, Any]]:
    if version == 1:
        host, port = text(document, "host"), integer(document, "port")
        return [{"name": "PLAINTEXT", "host": host, "port": port, "security_protocol": "PLAINTEXT"}]
    listed = document.get("endpoints")
    protocols = document.get("listener_security_protocol_map")
    if not isinstance(listed, list) or not (protocols is None or isinstance(protocols, dict)):
        raise MalformedError("'endpoints' or 'listener_security_protocol_map' is not what Kafka writes")
    return [_endpoint(item, protocols) for item in listed]


def _endpoint(item: Any, protocols: dict[str, Any] | None) -> dict[str, Any]:
    match = _ENDPOINT.fullmatch(item) if isinstance(item, str) else None
    if match is None:
        raise MalformedError("an endpoint is not PROTOCOL://host:port")
    name, host, port = match[1], match[2] or match[3], int(match[4])
    protocol = name if protocols is None else protocols.get(name)
    if not isinstance(protocol, str):
        raise MalformedError(f"listener '{name}' has no security protocol")
    return {"name": name, "host": host, "port": port, "security_protocol": protocol}


def _features(features: Any) -> list[dict[str, Any]]:
    # Older keys inside (`first_active_version`) were never written by a release and are ignored.
    if not isinstance(features, dict):
        return []
    rows = []
    for name, levels in sorted(features.items()):
        if not isinstance(levels, dict):
            raise MalformedError(f"the levels of feature '{name}' are not an object")
        rows.append(
            {"name": name, "min_level": integer(levels, "min_version"), "max_level": integer(levels, "max_version")}
        )
    return rows
