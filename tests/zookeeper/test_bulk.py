"""The fast way gives what the readers give, whatever the znodes hold."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.zookeeper.trees import state_rows, znode
from transforms.zookeeper.read import routes
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.read.reading import ZnodeView
from transforms.zookeeper.read.znode import Znode

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.floats(allow_nan=False), st.text(max_size=3), st.just([])
)
KEYS = st.sampled_from(
    [
        "version",
        "config",
        "acls",
        "principal",
        "host",
        "operation",
        "permissionType",
        "partitions",
        "topic",
        "partition",
        "replicas",
        "features",
        "status",
        "endpoints",
        "host",
        "port",
        "listener_security_protocol_map",
        "brokerid",
        "kraftControllerEpoch",
        "id",
        "broker",
        "block_start",
        "block_end",
        "owner",
        "renewers",
        "tokenId",
        "tokenRequester",
        "issueTimestamp",
        "entity_path",
        "event",
        "SCRAM-SHA-256",
        "request_percentage",
        "ssl.key.password",
        "kraft_metadata_offset",
        "min_version",
        "max_version",
        "max_version_level",
    ]
)
BROKERS = st.one_of(
    st.lists(st.integers(0, 5), max_size=4), st.lists(st.one_of(st.integers(-2, 5), ODD), max_size=3), ODD
)
NUMBER = st.one_of(st.integers(-3, 9), st.integers(-3, 9), st.integers(-3, 9), ODD)
STATES = st.fixed_dictionaries(
    {},
    optional={
        "version": NUMBER,
        "leader": NUMBER,
        "leader_epoch": NUMBER,
        "controller_epoch": NUMBER,
        "isr": BROKERS,
        "leader_recovery_state": NUMBER,
        "extra": ODD,
    },
)
IDS = st.one_of(st.just("_DkeHZlsQVeYPyDZxsC9Mg"), ODD)
PARTITIONS = st.dictionaries(st.one_of(st.integers(0, 12).map(str), st.text(max_size=2)), BROKERS, max_size=4)
TOPICS = st.fixed_dictionaries(
    {"partitions": st.one_of(PARTITIONS, PARTITIONS, PARTITIONS, ODD)},
    optional={
        "topic_id": IDS,
        "version": NUMBER,
        "adding_replicas": st.one_of(PARTITIONS, ODD),
        "removing_replicas": st.one_of(PARTITIONS, ODD),
    },
)


@st.composite
def documents(draw: st.DrawFn, kind: st.SearchStrategy[Any]) -> bytes | None:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.one_of(st.none(), st.binary(max_size=6), st.just(b"{}{}"), st.just(b'{"leader":1,"leader":2}')))
    text = json.dumps(draw(kind), indent=draw(st.sampled_from([None, None, 1])))
    return text.encode("utf-8", "surrogatepass")


def states_and_topics() -> st.SearchStrategy[list[tuple[str, bytes | None]]]:
    return st.tuples(
        st.lists(documents(STATES), max_size=6),
        st.lists(documents(TOPICS), max_size=6),
    ).map(
        lambda found: [
            *((f"/brokers/topics/s{i}/partitions/{i}/state", data) for i, data in enumerate(found[0])),
            *((f"/brokers/topics/t{i}", data) for i, data in enumerate(found[1])),
        ]
    )


def careful(znodes: list[Znode]) -> list[str]:
    views = [ZnodeView._make(getattr(item, name) for name in ZnodeView._fields) for item in znodes]
    return sorted(plain({"entity": fact.entity, **fact.row}) for view in views for fact in routes.read(view))


def fast(znodes: list[Znode]) -> list[str]:
    rows = state_rows([znode_batch(znodes)])
    return sorted(plain({"entity": row["entity"], **(row["row"] or columns(row))}) for row in rows)


def columns(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("zk_")}


def plain(row: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in row.items() if value is not None}, sort_keys=True)


@settings(max_examples=400, deadline=None)
@given(states_and_topics())
def test_the_fast_way_equals_the_careful_one(found: list[tuple[str, bytes | None]]) -> None:
    znodes = [znode(path, data) for path, data in found]
    assert fast(znodes) == careful(znodes)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(
        [
            "/migration",
            "/controller",
            "/controller_epoch",
            "/cluster/id",
            "/feature",
            "/latest_producer_id_block",
            "/brokers/ids/1",
            "/config/users/u",
            "/config/users/u/clients/c",
            "/config/brokers/1",
            "/config/topics/t",
            "/config/changes/c",
            "/kafka-acl/Topic/t",
            "/kafka-acl-changes/a",
            "/kafka-acl-extended-changes/a",
            "/delegation_token/tokens/t",
            "/admin/reassign_partitions",
            "/log_dir_event_notification/l",
        ]
    ),
    st.recursive(
        ODD, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
    ),
)
def test_no_json_makes_a_reader_fail(path: str, document: Any) -> None:
    data = json.dumps(document).encode("utf-8", "surrogatepass")
    state_rows([znode_batch([znode(path, data)])])
