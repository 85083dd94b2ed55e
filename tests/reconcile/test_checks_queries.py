"""The rules that single rows break, over tables with one broken row each and its healthy neighbours."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from schemas.checks.codes import ENCODED_NAME, HALF_LOADED, SCRAM_LEFT_OUT
from tests.reconcile.planted import gathered, sides_of, table, trees_of
from transforms.reconcile.compare.home import homes
from transforms.reconcile.judge import kraft_queries, queries
from transforms.reconcile.judge.load import Load
from transforms.reconcile.judge.rules import VIOLATIONS, broken
from transforms.reconcile.judge.samples import SAMPLE, Samples, samples


def entry(permissions: int, scheme: str, identity: str) -> dict[str, Any]:
    """One entry of an ACL."""
    return {"perms": permissions, "scheme": scheme, "id": identity}


OPEN, KAFKA_ONLY = [entry(31, "world", "anyone")], [entry(31, "sasl", "kafka")]
READABLE = [*KAFKA_ONLY, entry(1, "world", "anyone")]
LOADED_AT = 1_000_000
KNOWN = queries.Known(
    starting=True,
    live=[0, 1],
    down=[2],
    controller_epoch=4,
    claim=700,
    loaded_at=LOADED_AT,
    epoch_start=200,
    load=Load(10, 80, (20, 81), discarded=((11, 13),)),
    mirrored_until=900,
)
PARTITION = {
    "source": "zookeeper",
    "partition": 0,
    "replicas": [0, 1, 2],
    "adding_replicas": [],
    "removing_replicas": [],
    "leader": 0,
    "controller_epoch": 4,
}
PASSWORD = {"source": "kraft", "resource_type": "BROKER", "config": "pw", "comparable": True, "sensitive": True}
IN_ZOOKEEPER = {"source": "zookeeper", "value": "ciphertext:hmac:0af1"}
SECRETS = ("salt", "stored_key", "server_key")


def _leaked(value: str) -> str:
    """A configuration znode's data with a value that somebody should have replaced."""
    return json.dumps({"version": 1, "config": {"a": value}})


ROWS: dict[str, list[dict[str, Any]]] = {
    "topics": [
        {"source": "zookeeper", "topic": "orders", "topic_id": "a"},
        {"source": "zookeeper", "topic": "without-id"},
        {"source": "kraft", "topic": "half-loaded", "kraft_created_offset": 199},
        {"source": "kraft", "topic": "being-loaded", "kraft_created_offset": 200},
    ],
    "partitions": [
        {**PARTITION, "topic": "healthy"},
        {**PARTITION, "topic": "healthy", "source": "kraft", "controller_epoch": None},
        {**PARTITION, "topic": "no-state", "leader": None, "controller_epoch": None},
        {**PARTITION, "topic": "being-deleted", "leader": -2},
        {**PARTITION, "topic": "moving", "adding_replicas": [2]},
        {**PARTITION, "topic": "moving-in-kraft", "source": "kraft", "removing_replicas": [2]},
        {**PARTITION, "topic": "offline", "leader": -1, "isr": [1]},
        {**PARTITION, "topic": "led-by-nobody", "leader": 9},
        {**PARTITION, "topic": "offline-in-kraft", "source": "kraft", "leader": -1},
        {**PARTITION, "topic": "down-on-purpose", "source": "kraft", "leader": -1, "replicas": [2]},
        {**PARTITION, "topic": "from-the-future", "controller_epoch": 6},
        {**PARTITION, "topic": "of-the-next-epoch", "controller_epoch": 5},
        {**PARTITION, "topic": "out-of-sync", "isr": [0]},
        {**PARTITION, "topic": "old", "leader": -1, "isr": []},
    ],
    "configs": [
        {"source": "kraft", "resource_type": "TOPIC", "resource_name": "t", "config": "k", "comparable": True},
        {"source": "kraft", "resource_type": "CLIENT_METRICS", "resource_name": "m", "config": "k", "comparable": True},
        {"source": "kraft", "resource_type": "BROKER", "resource_name": "0", "config": "pw", "comparable": False},
        {"source": "zookeeper", "resource_type": "BROKER", "resource_name": "0", "config": "pw", "comparable": False},
        {**PASSWORD, "resource_name": "hidden", "value": "hmac:0af1"},
        {**PASSWORD, "resource_name": "encrypted", "value": "ciphertext:hmac:0af1"},
        {**PASSWORD, "resource_name": "not-decoded", "value": "ciphertext:undecodable:hmac:0af1"},
        {**PASSWORD, "resource_name": "removed", "value": None},
        {**PASSWORD, **IN_ZOOKEEPER, "resource_name": "0", "config": "listener.name.sasl.ssl.Key.Password"},
        {**PASSWORD, **IN_ZOOKEEPER, "resource_name": "0", "config": "some.secret"},
        {**PASSWORD, **IN_ZOOKEEPER, "resource_name": "t", "config": "ssl.key.password", "resource_type": "TOPIC"},
        {**PASSWORD, "resource_name": "shown", "value": "hunter2"},
    ],
    "scram_credentials": [
        {"user": "alice", "mechanism": "SCRAM-SHA-256", **dict.fromkeys(SECRETS, "hmac:0af1")},
        {"user": "bob", "mechanism": "SCRAM-SHA-512", **dict.fromkeys(SECRETS, "hmac:0af1"), "salt": "c2FsdA=="},
    ],
    "acls": [
        {"source": "kraft", "resource_type": "TOPIC", "resource_name": "orders"},
        {"source": "kraft", "resource_type": "GROUP", "resource_name": "team/app"},
    ],
    "client_quotas": [
        {
            "source": "kraft",
            "entity": [{"type": "client-id", "name": "still-has-one"}],
            "quota": "producer_byte_rate",
            "value": 1.0,
        },
        {
            "source": "kraft",
            "entity": [{"type": "client-id", "name": None}],
            "quota": "producer_byte_rate",
            "value": 1.0,
        },
    ],
    "findings": [
        {"source": "zookeeper", "code": "START-13", "subject": "/config/users/x", "detail": "bad", "place": "p"},
        {
            "source": "zookeeper",
            "code": "START-13",
            "subject": "x",
            "detail": "PlainLoginModule required x",
            "place": "p",
        },
        {"source": "zookeeper", "code": "START-04", "subject": "told by the partitions", "detail": "d", "place": "p"},
        *(
            {"source": "kraft", "code": "DUR-08", "subject": name, "detail": detail, "place": f"offset {offset}"}
            for name, detail, offset in (
                ("loaded-over", "made 2 times with the same id", 60),
                ("loaded-since", "made 2 times with the same id", 82),
                ("two-ids", "a topic of this name was made while another was still there", 60),
            )
        ),
    ],
    "admin_operations": [
        {"kind": "delete_topic", "subject": "old", "zk_path": "/admin/delete_topics/old", "zk_czxid": 100},
        {"kind": "isr_change", "subject": "t-0", "zk_path": "/isr_change_notification/1", "zk_czxid": 701},
        {"kind": "isr_change", "subject": "t-1", "zk_path": "/isr_change_notification/0", "zk_czxid": 699},
        {"kind": "config_change", "subject": "topics/t", "zk_path": "/config/changes/0", "zk_czxid": 701},
        {
            "kind": "config_change",
            "subject": "topics/t",
            "detail": "PlainLoginModule required password=x",
            "zk_path": "/config/changes/1",
            "zk_czxid": 701,
        },
    ],
    "row_versions": [
        {"entity": "client_quotas", "removed": removed, "from_offset": offset, "key": f'{{"entity":{key},"quota":"q"}}'}
        for key, offset, removed in (
            ('[{"type":"client-id","name":"gone"}]', 250, True),
            ('[{"type":"ip","name":"10.0.0.1"}]', 260, True),
            ('[{"type":"client-id","name":"synced-since"}]', 150, True),
            ('[{"type":"client-id","name":"still-has-one"}]', 250, True),
            ('[{"type":"client-id","name":null}]', 250, True),
            ('[{"type":"client-id","name":"changed"}]', 250, False),
            ('[{"type":"user","name":"alice"}]', 250, True),
        )
    ],
}
ZNODES: list[dict[str, Any]] = [
    {"path": "/config/users/alice", "acl": KAFKA_ONLY, "ctime": LOADED_AT + 1},
    {"path": "/config/users/before", "acl": READABLE, "ctime": LOADED_AT - 1},
    {"path": "/config/brokers/0", "acl": READABLE, "ctime": LOADED_AT + 1},
    {"path": "/delegation_token/tokens/t", "acl": READABLE, "ctime": LOADED_AT + 1},
    {"path": "/config/topics/t", "acl": READABLE, "ctime": LOADED_AT + 1, "mtime": LOADED_AT + 5},
    {"path": "/migration", "acl": OPEN, "ctime": LOADED_AT},
    {"path": "/controller", "acl": READABLE, "ctime": LOADED_AT},
    {"path": "/brokers/topics/t", "acl": OPEN, "ctime": LOADED_AT},
    {"path": "/zookeeper/quota", "acl": OPEN, "ctime": LOADED_AT},
    {"path": "/brokers/topics/late/partitions/0/state", "acl": KAFKA_ONLY, "ctime": LOADED_AT, "mzxid": 901},
    {"path": "/brokers/topics/kept/partitions/0/state", "acl": KAFKA_ONLY, "ctime": LOADED_AT, "mzxid": 900},
    {"path": "/config/changes/config_change_1", "acl": KAFKA_ONLY, "ctime": LOADED_AT, "mzxid": 901},
    {"path": "/brokers/ids/0", "acl": READABLE, "ctime": LOADED_AT, "mzxid": 901},
    {"path": "/config/clients/c", "acl": [], "problem": "NoAuth", "ctime": LOADED_AT},
    {
        "path": "/config/users/leaked",
        "acl": [],
        "ctime": 0,
        "data": _leaked("salt=c2Fs,stored_key=c3Q=,server_key=c2U="),
    },
    {"path": "/config/users/masked", "acl": [], "ctime": 0, "data": _leaked("salt=hmac:0a,stored_key=hmac:0b")},
    # As it was at the barrier: it lies in the table, though nothing else is judged by it.
    {
        "path": "/config/brokers/1",
        "tree": "barrier",
        "acl": OPEN,
        "ctime": 0,
        "data": _leaked("encryptedPassword:c2Vj"),
    },
    {"path": "/config/topics/d", "acl": [entry(31, "digest", f"kafka:{'x' * 27}=")], "ctime": 0},
]
RECORDS: list[dict[str, Any]] = [
    {"controller_id": 3000, "file": "a.log", "position": 0},
    *[
        {"offset": offset, "type": type_, "version": version}
        for offset, type_, version in (
            (25, "PARTITION_RECORD", 0),
            (26, "BROKER_REGISTRATION_CHANGE_RECORD", 2),
            (27, "PARTITION_CHANGE_RECORD", 1),
            (28, "PARTITION_RECORD", 1),
            (15, "TOPIC_RECORD", 0),
            (14, "REGISTER_BROKER_RECORD", 3),
            (12, "TOPIC_RECORD", 0),
            (9, "USER_SCRAM_CREDENTIAL_RECORD", 0),
            (95, "PARTITION_RECORD", 1),
        )
    ],
    {"offset": 30, "type": "PARTITION_RECORD", "version": 1, "checkpoint_offset": 40},
    {"offset": 98, "type": "CONFIG_RECORD", "data": '{"name":"ssl.key.password","value":"clear"}'},
    {"offset": 99, "type": "CONFIG_RECORD", "data": '{"name":"ssl.key.password","value":"hmac:0af1"}'},
    {"controller_id": 3000, "file": "a.log", "position": 61, "problem": "its checksum does not match"},
    {"controller_id": 3000, "file": "a.log", "position": 75, "problem": "unknown: record type 300"},
    {"controller_id": 3000, "file": "a.log", "position": 99, "problem": "torn tail: 5 bytes, less than a batch header"},
    {
        "controller_id": 3000,
        "file": "b.log",
        "position": 99,
        "problem": "zero-filled: 4096 bytes of preallocated space",
    },
]


# The same rows, in clusters of which less is known, or something else.
CLUSTERS = {
    "known": KNOWN,
    "nothing-known": queries.Known(),
    "further-on": queries.Known(
        live=[0, 1, 2, 9],
        controller_epoch=5,
        claim=50,
        loaded_at=LOADED_AT + 2,
        epoch_start=255,
        load=Load(13, 97, discarded=((25, 28),)),
    ),
    "starting-elsewhere": queries.Known(starting=True, live=[9], down=[0, 1, 2], load=Load(8, 13, (8, 11))),
}
Violations = dict[str, list[str]]


def found_in(known: queries.Known, at_once: int = 1000) -> Violations:
    """Violations of the planted rows by code, in the order of their texts."""
    found: Violations = defaultdict(list)
    for row in gathered(ROWS, (), (ZNODES, RECORDS), known, at_once).rows():
        found[row["code"]].append(row["text"])
    return found


@pytest.fixture(scope="module")
def found() -> dict[str, Violations]:
    return {name: found_in(known) for name, known in CLUSTERS.items()}


@pytest.fixture(scope="module")
def violations(found: dict[str, Violations]) -> Violations:
    return found["known"]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_how_many_rows_are_read_at_once_does_not_matter(found: dict[str, Violations], cluster: str) -> None:
    assert found_in(CLUSTERS[cluster], at_once=1) == found[cluster]


def test_what_is_known_of_a_cluster_decides_what_its_rows_break(found: dict[str, Violations]) -> None:
    assert len({str(sorted(each.items())) for each in found.values()}) == len(CLUSTERS)
    assert not {"START-16", "RB-03", "DUR-07", "DUR-16", "SEC-02"} & found["nothing-known"].keys()
    assert found["starting-elsewhere"]["START-16"] != found["known"]["START-16"]
    assert "RB-03" not in found["further-on"], "an election has raised the epoch there"
    assert HALF_LOADED not in found["further-on"], "the load is over"
    assert found["further-on"]["DUR-07"] == ["PARTITION_RECORD of version 1 at offset 95: the load writes version 0"]
    assert found["starting-elsewhere"]["DUR-07"] == [
        "TOPIC_RECORD of version 0 at offset 12 is before MIGRATION and outside the load, 8 to 11"
    ]


def test_a_failover_does_not_make_a_request_old_that_came_after_the_load() -> None:
    """Each leader claims ZooKeeper anew, and nobody has read or removed what a broker sent to the one before."""
    made = {"before": LOADED_AT - 1, "near": LOADED_AT + 60_000, "since": LOADED_AT + 60_001}
    rows = [
        {"kind": "log_dir_event", "subject": name, "zk_path": f"/{name}", "zk_czxid": 650, "zk_mtime": time}
        for name, time in made.items()
    ]

    def of(known: queries.Known) -> list[str]:
        found = gathered({**ROWS, "admin_operations": rows}, (), ((), ()), known).rows()
        return [row["text"] for row in found if row["code"] == "DUR-16"]

    assert of(KNOWN) == ["log_dir_event of since (/since)"]
    assert of(replace(KNOWN, claim=649)) == [f"log_dir_event of {name} (/{name})" for name in made]
    assert of(replace(KNOWN, loaded_at=None)) == []
    assert of(replace(KNOWN, claim=None)) == []


def test_what_zookeeper_has_no_place_for_is_what_its_paths_refuse() -> None:
    """`PathUtils.validatePath` of ZooKeeper, by Java's characters: one beyond 16 bits is two surrogates."""
    refused = ["a/b", ".", "..", "a\nb", "a\x7fb", "a\x9fb", "\ue000", "\uf8ff", "\ufff0", "rocket \U0001f680"]
    stored = ["*", "...", ".a", "a.b", "a b", "\xa0", "\u4e2d\u6587", "\ud7ff", "\uf900", "\uffef", "e\u0301"]
    rows = [{"source": "kraft", "resource_type": "GROUP", "resource_name": name} for name in (*refused, *stored)]
    found = gathered({**ROWS, "acls": rows}, (), ((), ()), KNOWN).rows()
    assert sorted(row["text"] for row in found if row["code"] == "RB-07") == sorted(
        f"an ACL of GROUP {name}: ZooKeeper has no place for the name" for name in refused
    )
    for name in (*refused, *stored):
        key = {"resource_type": "GROUP", "pattern_type": "LITERAL", "resource_name": name}
        assert homes("acls", key) == (() if name in refused else (f"/kafka-acl/Group/{name}",))


def test_a_quota_or_credential_without_a_name_of_a_znode_stops_the_full_sync() -> None:
    """Names are encoded, but for dots. An empty one is a load's before KAFKA-16411 was fixed, and its default in those releases."""

    def quota(**entity: str | None) -> dict[str, Any]:
        parts = [{"type": kind, "name": name} for kind, name in entity.items()]
        return {"source": "kraft", "entity": parts, "quota": "producer_byte_rate", "value": 1.0}

    names = ("", ".", "..", "...", "a/b", None)
    rows = {
        "client_quotas": [*(quota(user=name) for name in names), quota(**{"client-id": ".", "user": "alice"})],
        "scram_credentials": [
            {"source": "kraft", "user": name, "mechanism": "SCRAM-SHA-256"} for name in ("..", "a/b")
        ],
    }

    def of(known: queries.Known) -> set[str]:
        found = gathered({**ROWS, "acls": [], **rows}, (), ((), ()), known).rows()
        return {
            row["text"].removesuffix(": ZooKeeper has no place for the name") for row in found if row["code"] == "RB-07"
        }

    dots = {"a quota of user=.", "a quota of user=..", "a quota of client-id=.,user=alice", "a credential of user .."}
    assert of(KNOWN) == dots
    assert of(replace(KNOWN, default_is_empty=False)) == dots | {"a quota of user="}
    assert of(replace(KNOWN, default_is_empty=True)) == dots | {"a quota of user=<default>"}, (
        "toZkEntityName throws on null"
    )


def test_a_credential_that_was_set_again_after_the_checkpoint_that_lacks_it_is_no_longer_lost() -> None:
    """A node that starts from that checkpoint reads it (seen in 3.8.1: the checkpoint stays for days)."""
    finding = {
        "source": "kraft",
        "code": SCRAM_LEFT_OUT,
        "subject": r'scram_credentials ["dave \u00e9", "SCRAM-SHA-512"]',
        "detail": "in the replay, not in the checkpoint",
    }
    findings = [{**finding, "place": f"checkpoint {offset}"} for offset in (53, 60)]
    credential = {"source": "kraft", "user": "dave é", "mechanism": "SCRAM-SHA-512"}

    def lost(*credentials: dict[str, Any]) -> list[str]:
        rows = {
            **ROWS,
            "findings": findings,
            "scram_credentials": [{**each, "iterations": 4096} for each in credentials],
        }
        found = gathered(rows, (), ((), ()), KNOWN).rows()
        return sorted(row["text"][-3:-1] for row in found if row["code"] == SCRAM_LEFT_OUT)

    assert lost({**credential, "kraft_offset": 24}) == ["53", "60"]
    assert lost({**credential, "kraft_offset": 55}) == ["60"]
    assert lost({**credential, "kraft_offset": 60}) == []
    assert lost() == [], "it was removed since"


def test_a_name_that_a_load_stored_encoded_applies_to_nobody() -> None:
    """Later releases mirror it as it is, so that both sides are equal (KAFKA-16222, 16411).

    Whether a load made it is not known: a cluster of 4.4.0 that never migrated takes a quota of the client `%40`, which applies to it.
    """
    names = ("my%20app", "", "100%", "a%zz", "plain", None)
    quota = {"source": "kraft", "quota": "producer_byte_rate", "value": 1.0}
    rows = {
        "client_quotas": [{**quota, "entity": [{"type": "client-id", "name": name}]} for name in names],
        "scram_credentials": [
            {"source": side, "user": name, "mechanism": "SCRAM-SHA-256"}
            for side in ("kraft", "zookeeper")
            for name in ("carol%40corp.example", "carol@corp.example")
        ],
    }
    found = gathered({**ROWS, **rows}, (), ((), ()), KNOWN).rows()
    encoded = (
        ": spelled as a load of Kafka 3.4 to 3.7.0 stores names; it applies to nobody whose name is not spelled so"
    )
    empty = ": a load of Kafka 3.4 to 3.7.0 stores a default so, and it applies to nobody"
    assert sorted(row["text"] for row in found if row["code"] == ENCODED_NAME) == [
        f"a credential of user carol%40corp.example{encoded}",
        f"a quota of client-id={empty}",
        f"a quota of client-id=my%20app{encoded}",
    ]


def test_a_quota_that_kafka_3_4_stored_under_a_folders_name_applies_to_nobody() -> None:
    """Brokers know no such type (`ClientQuotaMetadataManager`), and once ZooKeeper was gone nothing showed it."""
    kinds = (("users", "alice"), ("clients", None), ("ips", "10.0.0.1"), ("user", "alice"), ("client-id", None))
    quota = {"quota": "producer_byte_rate", "value": 1.0}
    rows = [
        {**quota, "source": side, "entity": [{"type": kind, "name": name}]}
        for side in ("kraft", "zookeeper")
        for kind, name in kinds
    ]
    found = gathered({**ROWS, "client_quotas": rows}, (), ((), ()), KNOWN).rows()
    assert sorted(row["text"] for row in found if row["code"] == ENCODED_NAME) == [
        "a quota of clients=<default>: Kafka 3.4 stored it under the folder's name, and it applies to nobody",
        "a quota of ips=10.0.0.1: Kafka 3.4 stored it under the folder's name, and it applies to nobody",
        "a quota of users=alice: Kafka 3.4 stored it under the folder's name, and it applies to nobody",
    ]


def violations_of(code: str, *texts: str | None) -> pl.DataFrame:
    return pl.DataFrame({"code": [code] * len(texts), "text": texts}, schema=VIOLATIONS)


def test_samples_are_the_first_texts_of_each_code_and_the_totals_exact() -> None:
    many = [f"{n:03}" for n in range(SAMPLE + 5)]
    added = Samples()
    # The last ones come first, and some of them twice.
    for each in (*reversed(many), "024"):
        added.add(violations_of("DUR-01", each))
    added.add(violations_of("DUR-02", "other"))
    expected = [
        {"code": "DUR-01", "total": SAMPLE + 6, "text": text, "number": number}
        for number, text in enumerate(many[:SAMPLE], 1)
    ]
    assert added.rows() == [*expected, {"code": "DUR-02", "total": 1, "text": "other", "number": 1}]
    assert samples(violations_of("DUR-01", *many, "024"), violations_of("DUR-02", "other")) == added.rows()
    halves = [Samples([violations_of("DUR-01", *part)]) for part in (many[::2], [*many[1::2], "024"])]
    halves[0].merge(halves[1])
    assert halves[0].rows() == expected
    assert (added.total("DUR-01", "DUR-02"), added.total("DUR-03")) == (SAMPLE + 7, 0)


def test_texts_are_in_the_order_of_their_bytes_and_what_has_none_is_first() -> None:
    found = samples(violations_of("C", "\U00010000", "\uffff", "b", None, "B"))
    assert [row["text"] for row in found] == [None, "B", "b", "\uffff", "\U00010000"]


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ("START-03", ["without-id"]),
        ("START-04", ["no-state/0"]),
        ("START-12", ["delete_topic of old (/admin/delete_topics/old)", "moving/0 is being reassigned"]),
        ("START-13", ["/config/users/x: bad (p)", "x: PlainLoginModule required x (p)"]),
        ("START-16", ["led-by-nobody/0 has leader 9", "offline/0 has leader -1"]),
        ("UNDER-REPLICATED", ["broker 1 is not in the ISR of 1 partition"]),
        (
            "OFFLINE-BY-BROKER",
            [f"broker {node} has replicas of 1 partition without a leader" for node in (0, 1)],
        ),
        ("FIN-05", ["moving-in-kraft/0 is being reassigned", "offline-in-kraft/0 has no leader"]),
        ("LOADED-AGAIN", ["loaded-over: made 2 times with the same id (offset 60)"]),
        (
            "DUR-08",
            [
                "loaded-since: made 2 times with the same id (offset 82)",
                "two-ids: a topic of this name was made while another was still there (offset 60)",
            ],
        ),
        ("RB-03", ["from-the-future/0 was written in controller epoch 6"]),
        ("DUR-19", ["delete_topic of old (/admin/delete_topics/old)"]),
        ("POST-04", ["/brokers/topics/late/partitions/0/state in transaction 0x385"]),
        ("RB-07", ["an ACL of GROUP team/app: ZooKeeper has no place for the name"]),
        ("DUR-06", ["CLIENT_METRICS m: k"]),
        (
            "DUR-07",
            [
                "PARTITION_RECORD of version 1 at offset 28: the load writes version 0",
                "TOPIC_RECORD of version 0 at offset 15 is before MIGRATION and outside the load, 20 to 81",
            ],
        ),
        (
            HALF_LOADED,
            ["topic half-loaded is in the log since offset 199: the load of an earlier leader ended halfway"],
        ),
        ("DUR-16", ["isr_change of t-0 (/isr_change_notification/1)"]),
        (
            "DUR-17",
            [
                "quotas of client-id=gone, removed at offset 250",
                "quotas of ip=10.0.0.1, removed at offset 260",
            ],
        ),
        ("SEC-04", ["0: pw"]),
        (
            "SEC-05",
            [
                "BROKER shown: pw",
                "SCRAM-SHA-512 of bob",
                "admin_operations: /config/changes/1",
                "findings: START-13",
                "kraft_records: 98",
                "zk_znodes: /config/brokers/1",
                "zk_znodes: /config/users/leaked",
                "zk_znodes: the ACL of /config/topics/d",
            ],
        ),
        ("CIPHERTEXT", ["BROKER 0: pw"]),
        ("TO-DECODE", ["BROKER 0: listener.name.sasl.ssl.Key.Password"]),
        (
            "SEC-01",
            [
                "/config/brokers/0 can be read by everybody: setAcl /config/brokers/0 auth::cdrwa",
                "/config/users/before can be read by everybody: setAcl /config/users/before auth::cdrwa",
                "/delegation_token/tokens/t can be read by everybody: setAcl /delegation_token/tokens/t auth::cdrwa",
            ],
        ),
        ("SEC-02", ["/config/brokers/0 can be read by everybody: setAcl /config/brokers/0 auth::cdrwa"]),
        ("SEC-03", ["/migration can be written by everybody: setAcl /migration auth::cdrwa,world:anyone:r"]),
        ("CAP-02", ["controller 3000, a.log at byte 61: its checksum does not match"]),
        ("CAP-12", ["controller 3000, a.log at byte 75: record type 300"]),
    ],
)
def test_only_the_broken_rows_are_found(violations: dict[str, list[str]], code: str, texts: list[str]) -> None:
    assert violations[code] == texts


def test_no_other_code_is_found(violations: dict[str, list[str]]) -> None:
    assert violations["ISR-03"] == ["led-by-nobody/0: leader 9 is not a replica of [0, 1, 2]"]
    (moving,) = violations["REASSIGNING"]
    assert moving.startswith("moving-in-kraft/0: adding ")
    assert len(violations) == 31


@pytest.mark.parametrize("at_once", [1, 1000])
def test_how_protected_the_tree_is(at_once: int) -> None:
    def told(rows: list[dict[str, Any]]) -> list[tuple[int, int, int, int]]:
        answers = trees_of(rows, at_once).look.answers()["protection"]
        return [(row["znodes"], row["open"], row["time"], row["zxid"]) for row in answers]

    # What was open at the barrier and is gone counts no more.
    assert told(ZNODES) == [(10, 1, LOADED_AT + 5, 901)]
    assert told([{"path": "/config", "acl": KAFKA_ONLY, "mtime": 3, "mzxid": 1, "pzxid": 7}]) == [(1, 0, 3, 7)]
    assert told([]) == []


def test_partitions_whose_leader_the_controller_in_office_would_not_elect(violations: dict[str, list[str]]) -> None:
    assert sorted(violations["RB-11"]) == [
        "from-the-future/0 was written in controller epoch 6",
        "of-the-next-epoch/0 was written in controller epoch 5",
    ]


def test_who_made_the_znodes() -> None:
    rows = [*ZNODES, {"path": "/brokers/topics", "acl": KAFKA_ONLY}, {"path": "/brokers/ids/0/x", "acl": KAFKA_ONLY}]
    expected = [("/brokers/ids/0", "sasl", "kafka"), ("/brokers/topics", "sasl", "kafka")]
    for at_once in (1, 1000):
        found = trees_of(rows, at_once).look.answers()["identities"]
        assert [(row["path"], row["scheme"], row["id"]) for row in found] == expected


def test_replicas_that_are_being_added_are_counted_apart() -> None:
    rows = [{**PARTITION, "topic": "a"}, {**PARTITION, "topic": "b", "adding_replicas": [2]}]
    rows += [{**PARTITION, "topic": "pending", "replicas": [0, 5]}]
    pending = pl.DataFrame({"topic": ["pending"]})
    counts = queries.replica_counts(table("partitions", rows), pending)
    assert counts.select("broker_id", "replicas", "adding").rows() == [(0, 2, 0), (1, 2, 0), (2, 2, 1)]


def test_which_topics_an_unknown_broker_holds() -> None:
    rows = [
        {**PARTITION, "topic": "orders", "partition": 3},
        {**PARTITION, "topic": "orders", "partition": 1},
        {**PARTITION, "topic": "__consumer_offsets"},
    ]
    partitions = table("partitions", rows)
    found = queries.partitions_on(partitions, [0, 1], 5)
    assert found.select("broker_id", "number", "text").rows() == [
        (2, 1, "orders/1 and 1 more"),
        (2, 2, "__consumer_offsets/0"),
    ]
    assert queries.partitions_on(partitions, [0, 1], 1).height == 1
    assert queries.partitions_on(partitions, [0, 1, 2], 5).is_empty()


def test_rows_are_counted_by_table_and_side() -> None:
    tables = sides_of({"topics": ROWS["topics"], "acls": ROWS["acls"]}).tables
    counts = queries.row_counts({name: tables[name] for name in ("topics", "acls", "configs")})
    assert counts.rows() == [("acls", "kraft", 2), ("topics", "kraft", 2), ("topics", "zookeeper", 2)]


@pytest.mark.parametrize(
    ("value", "refused"), [("500000", True), (" 1048575 ", True), ("1048576", False), ("x", False), (None, False)]
)
def test_segments_that_kafka_4_1_refuses_are_those_below_a_mebibyte(value: str | None, refused: bool) -> None:
    """A broker of 4.1.0 and one of 4.4.0 ended while they started with 500000, and one of 4.0.1 did not."""
    config = {"source": "kraft", "config": "segment.bytes", "value": value}
    rows = [
        {**config, "resource_type": "TOPIC", "resource_name": "t"},
        {**config, "resource_type": "BROKER", "resource_name": "0"},
        {**config, "resource_type": "TOPIC", "resource_name": "t", "source": "zookeeper"},
    ]
    found = broken(table("configs", rows), kraft_queries.topic_config_rules())
    start = f"topic t: segment.bytes is {value}, and Kafka 4.1"
    assert [(rule, text.startswith(start)) for rule, text in found.select("code", "text").rows()] == (
        [("CFG-04", True)] if refused else []
    )


def test_configurations_that_kafka_4_0_removed_are_those_of_topics() -> None:
    """A broker of 4.0.1 took changes beside log.message.timestamp.difference.max.ms, and refused them to such topics."""
    names = ["message.downconversion.enable", "message.format.version", "message.timestamp.difference.max.ms"]
    rows = [
        {"source": "kraft", "resource_type": "TOPIC", "resource_name": "t", "config": name, "value": "1"}
        for name in [*names, "retention.ms"]
    ]
    rows.append({**rows[0], "resource_type": "BROKER", "config": "log.message.timestamp.difference.max.ms"})
    found = broken(table("configs", rows), kraft_queries.topic_config_rules())
    assert sorted(found["text"]) == [f"topic t: {name}" for name in names]


def test_unclean_elections_are_allowed_however_true_is_spelled() -> None:
    spelled = {"a": "true", "b": "TRUE", "c": "false", "d": "untrue", "e": "true?", "f": None}
    partitions = [{**PARTITION, "topic": name, "source": "kraft", "leader": -1} for name in spelled]
    topic = {"source": "kraft", "resource_type": "TOPIC", "config": "unclean.leader.election.enable"}
    configs = [{**topic, "resource_name": name, "value": value} for name, value in spelled.items()]
    asked = (table("partitions", partitions), table("configs", configs))
    found = kraft_queries.unclean_leaderless(*asked, [2, 3], everywhere=False)
    assert {text.split("/")[0] for text in found["text"]} == {"a", "b"}
    assert kraft_queries.unclean_leaderless(*asked, [3], everywhere=True).is_empty(), "nobody could be elected"
