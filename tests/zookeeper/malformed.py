"""Znodes that Kafka can't read or reads otherwise than meant, and the finding each of them is."""

from __future__ import annotations

import json
import re
from typing import Any

STATE = "/brokers/topics/t/partitions/0/state"
GOOD_STATE = {"version": 1, "leader": 1, "leader_epoch": 2, "controller_epoch": 3, "isr": [1, 2]}
GOOD_TOPIC = {"version": 3, "topic_id": "_DkeHZlsQVeYPyDZxsC9Mg", "partitions": {"0": [1, 2]}}
ACL = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}
TOKEN = {
    "version": 3,
    "owner": "User%3Aa",
    "tokenRequester": "User%3Ab",
    "renewers": ["User%3Ac"],
    "issueTimestamp": 1,
    "maxTimestamp": 2,
    "expiryTimestamp": 3,
    "tokenId": "id",
}


def js(document: Any, **changes: Any) -> bytes:
    return json.dumps({**document, **changes} if isinstance(document, dict) else document).encode()


DEEP = "[" * 100_000
DIGITS = "9" * 20_000
HALF = "\\ud800"
# Texts that are no text, or far too much of one, in a value of JSON, and what Kafka takes there.
HOSTILE_VALUES: tuple[str, ...] = (
    f'"{HALF}"',
    f'"{HALF}{HALF}\\udc00"',
    '"\\udfff\\u0000\\u202e"',
    '"\\\\ud800"',
    DIGITS,
    f'"{DIGITS}x"',
    "1e999",
    "-0",
    "NaN",
    DEEP,
    '{"a":1,"a":{"b":1,"b":[]}}',
    '"' + "x" * 1_000_000 + '"',
    "null",
    "true",
    "[]",
)


def one_of_each() -> dict[str, str]:
    """A healthy znode's JSON by path: each kind that holds JSON."""
    entries = {"retention.ms": "1", "producer_byte_rate": "1"}
    config = json.dumps({"version": 1, "config": entries})
    acls = json.dumps({"version": 1, "acls": [ACL]})
    return {
        STATE: json.dumps(GOOD_STATE),
        "/brokers/topics/t": json.dumps(GOOD_TOPIC),
        "/brokers/ids/1": '{"version":5,"host":"h","port":1,"jmx_port":-1,"timestamp":"1","endpoints":["P://h:1"],'
        '"listener_security_protocol_map":{"P":"PLAINTEXT"},"features":{}}',
        **{f"/config/{kind}": config for kind in ("topics/t", "brokers/1", "users/u", "clients/c", "ips/1.2.3.4")},
        "/config/users/u/clients/c": config,
        "/config/changes/config_change_0000000000": '{"version":2,"entity_path":"users/u"}',
        "/kafka-acl/Topic/t": acls,
        "/kafka-acl-extended/prefixed/Topic/t": acls,
        "/kafka-acl-changes/acl_changes_0": "Topic:t",
        "/kafka-acl-extended-changes/acl_changes_0": '{"version":1,"resourceType":"Topic","name":"t","patternType":"LITERAL"}',
        "/delegation_token/tokens/id": json.dumps(TOKEN),
        "/delegation_token/token_changes/token_change_0": "id",
        "/latest_producer_id_block": '{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
        "/feature": '{"version":2,"status":1,"features":{"f":{"max_version_level":1}}}',
        "/migration": '{"version":0,"kraft_controller_id":1,"kraft_metadata_offset":1,"kraft_controller_epoch":1,'
        '"kraft_metadata_epoch":1}',
        "/controller": '{"version":2,"brokerid":1,"timestamp":"1","kraftControllerEpoch":-1}',
        "/controller_epoch": "1",
        "/cluster/id": '{"version":"1","id":"abc"}',
        "/admin/delete_topics/t": "",
        "/admin/reassign_partitions": '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}',
        "/admin/preferred_replica_election": '{"version":1,"partitions":[{"topic":"t","partition":0}]}',
        "/isr_change_notification/isr_change_0": '{"version":1,"partitions":[{"topic":"t","partition":0}]}',
        "/log_dir_event_notification/log_dir_event_0": '{"version":1,"broker":1,"event":1}',
    }


def with_hostile_values(text: str, value: str) -> list[str]:
    """A JSON object with `value` in place of each of its values, the nested ones too, and as one more member."""
    replaced = [f"{text[: found.start(1)]}{value}{text[found.end(1) :]}" for found in _VALUE.finditer(text)]
    more = [f'{text[:-1]},"more":{value}}}', f"{text[:-1]},{value if value[0] == chr(34) else chr(34) * 2}:1}}"]
    return [*replaced, *(more if text.startswith("{") else [value])]


_VALUE = re.compile(r'[:\[,] ?("[^"]*"(?![^{}\[\]]*":)|-?[0-9.]+|null|true|false|\[[^\[\]]*\]|\{[^{}]*\})')


# Path, data, codes of what is found.
MALFORMED: tuple[tuple[str, bytes | None, list[str]], ...] = (
    ("/migration", None, ["MIGRATION-NULL"]),
    ("/migration", b"{", ["MIGRATION-DATA"]),
    ("/migration", b'{"version":1}', ["MIGRATION-DATA"]),
    ("/migration", b'{"version":0,"kraft_controller_id":"1"}', ["MIGRATION-DATA"]),
    ("/controller", b"", ["CONTROLLER-DATA"]),
    ("/controller_epoch", b"one", ["START-18"]),
    ("/controller_epoch", None, ["START-18"]),
    ("/cluster/id", b"{}", ["CLUSTER-ID"]),
    ("/brokers/topics/t", b"", ["TOPIC-DATA"]),
    ("/brokers/topics/t", None, ["TOPIC-DATA"]),
    ("/brokers/topics/t", b'{"version":3}', ["TOPIC-DATA"]),
    ("/brokers/topics/t", js(GOOD_TOPIC, topic_id=None), ["START-03"]),
    ("/brokers/topics/t", js(GOOD_TOPIC, topic_id="AAAAAAAAAAAAAAAAAAAAAQ"), ["TOPIC-ID"]),
    ("/brokers/topics/t", js(GOOD_TOPIC, topic_id="short"), ["TOPIC-ID"]),
    ("/brokers/topics/t", js(GOOD_TOPIC, partitions={"x": [1]}), ["PARTITION-KEY"]),
    ("/brokers/topics/t", js(GOOD_TOPIC, partitions={"0": [1, 1]}), ["ASSIGNMENT"]),
    ("/brokers/topics/t", js(GOOD_TOPIC, partitions={"0": [-1]}), ["ASSIGNMENT"]),
    ("/brokers/topics/t", js(GOOD_TOPIC, partitions={"0": []}), ["ASSIGNMENT"]),
    ("/brokers/topics/t", js(GOOD_TOPIC, partitions={"0": ["1"]}), ["ASSIGNMENT"]),
    ("/brokers/topics/t", js(GOOD_TOPIC, partitions={"0": [True]}), ["ASSIGNMENT"]),
    ("/brokers/topics/t", js(GOOD_TOPIC, partitions={"0": [1.0]}), ["ASSIGNMENT"]),
    ("/brokers/topics/t", js(GOOD_TOPIC, partitions={"0": [2**31]}), ["ASSIGNMENT"]),
    ("/brokers/topics/t", js(GOOD_TOPIC, partitions={"0": None}), ["ASSIGNMENT"]),
    ("/brokers/topics/t t", js(GOOD_TOPIC), ["TOPIC-NAME"]),
    ("/brokers/topics/t", js(GOOD_TOPIC)[:-1] + b',"version":3}', ["DUPLICATE-KEY"]),
    ("/brokers/topics/t", js(GOOD_TOPIC) + b"\xff", ["TOPIC-DATA", "NOT-UTF8"]),
    (STATE, None, ["START-04"]),
    (STATE, b"", ["START-04"]),
    (STATE, b"{", ["START-04"]),
    (STATE, b"[]", ["START-04"]),
    (STATE, b"[" * 100_000, ["START-04"]),
    (STATE, js(GOOD_STATE, leader=None), ["START-04"]),
    (STATE, js(GOOD_STATE, leader="1"), ["START-04"]),
    (STATE, js(GOOD_STATE, leader=2**31), ["START-04"]),
    (STATE, js(GOOD_STATE, isr=[1, None]), ["START-04"]),
    (STATE, js(GOOD_STATE) + js(GOOD_STATE), ["START-04"]),
    (STATE, js(GOOD_STATE, leader=-2), ["STATE-DELETING"]),
    (STATE, js(GOOD_STATE, isr=[]), ["ISR-EMPTY"]),
    (STATE, js(GOOD_STATE, leader_recovery_state=7), ["RECOVERY-STATE"]),
    ("/brokers/topics/t/partitions/x/state", js(GOOD_STATE), ["PARTITION-KEY"]),
    ("/config/topics/t", b'{"version":1,"config":{"a":1}}', ["START-13"]),
    ("/config/topics/t", b"garbage", ["CONFIG-DATA"]),
    ("/config/topics/t", b'{"version":1}', []),
    ("/config/topics/t", None, []),
    ("/config/brokers/x", b'{"version":1,"config":{}}', ["START-13"]),
    ("/config/brokers/1", b'{"version":1,"config":{"a.password":5}}', ["START-13"]),
    ("/config/users/a", b'{"version":1,"config":{"producer_byte_rate":"fast"}}', ["START-13"]),
    ("/config/users/a", b'{"version":1,"config":{"producer_byte_rate":"1.5"}}', ["QUOTA-VALUE"]),
    ("/config/users/a", b'{"version":1,"config":{"request_percentage":"NaN"}}', ["QUOTA-VALUE"]),
    ("/config/clients/a", b'{"version":1,"config":{"producer_byte_rate":"2.0E7"}}', ["QUOTA-SPELLING"]),
    ("/config/ips/10.0.0.1", b'{"version":1,"config":{"connection_creation_rate":"5.0"}}', ["QUOTA-SPELLING"]),
    ("/config/users/a", b'{"version":1,"config":{"my_rate":"1"}}', ["QUOTA-KEY"]),
    ("/config/users/a", b'{"version":1,"config":{"SCRAM-SHA-256":"salt=,iterations=1"}}', ["START-13"]),
    ("/config/users/a/clients/b", b'{"version":1,"config":{"SCRAM-SHA-256":"x"}}', ["START-13"]),
    ("/config/users/%zz", b'{"version":1,"config":{"request_percentage":"1"}}', ["START-13"]),
    ("/config/ips/1.2.3.4", b'{"version":1,"config":{"producer_byte_rate":"1"}}', ["QUOTA-KEY"]),
    ("/kafka-acl/Topic/t", b"x", ["ACL-DATA"]),
    ("/kafka-acl/Topic/t", js({"version": 2, "acls": []}), ["START-14"]),
    ("/kafka-acl/Topic/t", js({"version": 1, "acls": [{**ACL, "operation": "Dance"}]}), ["START-14"]),
    ("/kafka-acl/Topic/t", js({"version": 1, "acls": [{**ACL, "principal": "alice"}]}), ["START-14"]),
    ("/kafka-acl/Topic/t/u", js({"version": 1, "acls": [ACL]}), ["START-14"]),
    ("/kafka-acl/Planet", None, ["ACL-TYPE"]),
    ("/kafka-acl-extended/prefixed/Topic/t", js({"version": 1, "acls": [ACL, ACL]}), []),
    ("/delegation_token/tokens/id", None, ["TOKEN-EMPTY"]),
    ("/delegation_token/tokens/id", js(TOKEN, version=4), ["TOKEN-DATA"]),
    ("/delegation_token/tokens/id", js(TOKEN, maxTimestamp="2"), ["TOKEN-DATA"]),
    ("/delegation_token/tokens/other", js(TOKEN), ["TOKEN-DATA"]),
    ("/latest_producer_id_block", None, []),
    ("/latest_producer_id_block", b"{}", ["PRODUCER-BLOCK"]),
    (
        "/latest_producer_id_block",
        b'{"version":1,"broker":1,"block_start":"0","block_end":"99"}',
        ["PRODUCER-WIDTH"],
    ),
    ("/feature", b'{"version":3,"status":1,"features":{}}', ["FEATURE-DATA"]),
    ("/feature", b'{"version":2,"status":1,"features":{"f":{"max_version_level":0}}}', ["FEATURE-DATA"]),
    ("/brokers/ids/1", b"{}", ["BROKER-DATA"]),
    (
        "/brokers/ids/1",
        b'{"version":5,"endpoints":["X://h:1"],"listener_security_protocol_map":{}}',
        ["BROKER-DATA"],
    ),
    ("/admin/reassign_partitions", b"{}", ["ADMIN-DATA"]),
    ("/config/topics/t", b'{"version":1,"config":{"retention.ms":"\\ud800"}}', ["NOT-UTF8"]),
    ("/config/topics/t", b'{"version":1,"config":{"retention.ms":"\\ud83d\\uddddx\\\\ud800"}}', []),
    ("/config/brokers/1", b'{"version":1,"config":{"x.\\udc00.y":"1"}}', ["NOT-UTF8"]),
    ("/config/users/a", b'{"version":1,"config":{"producer_byte_rate":"' + DIGITS.encode() + b'x"}}', ["START-13"]),
    ("/config/users/a", b'{"version":1,"config":{"producer_byte_rate":' + DIGITS.encode() + b"}}", ["CONFIG-DATA"]),
    ("/kafka-acl/Topic/t", js({"version": 1, "acls": [{**ACL, "host": "\ud800"}]}), ["NOT-UTF8"]),
    ("/delegation_token/tokens/id", js(TOKEN, owner="User%3A\ud800"), ["NOT-UTF8"]),
    ("/brokers/topics/t", js(GOOD_TOPIC, more="\ud800"), ["NOT-UTF8"]),
    (STATE, js(GOOD_STATE, more="\ud800"), ["NOT-UTF8"]),
    ("/kafka-acl/Topic/t", b'{"version":1,"acls":[],"more":NaN}', ["ACL-DATA"]),
    ("/feature", b'{"version":2,"status":1,"features":{"\\ud800":{"max_version_level":1}}}', ["NOT-UTF8"]),
    ("/somewhere/else", b"", ["UNKNOWN-PATH"]),
    ("/zookeeper/quota", b"", []),
    ("/consumers/g/offsets", b"", []),
)
