"""The rules that single rows break, over tables with one broken row each and its healthy neighbours."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from schemas.bronze import KRAFT_RECORDS, ZK_ZNODES
from tests.reconcile.planted import ALONE, TABLES, frame, of_cluster
from transforms.clusters import CLUSTER, of_clusters
from transforms.reconcile.judge import kraft_queries, queries
from transforms.reconcile.judge.deltas import deltas_of
from transforms.reconcile.judge.left_behind import left_behind
from transforms.reconcile.judge.load import Load

OPEN, KAFKA_ONLY = [(31, "world", "anyone")], [(31, "sasl", "kafka")]
READABLE = [(31, "sasl", "kafka"), (1, "world", "anyone")]
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
        {"source": "kraft", "entity": [("client-id", "still-has-one")], "quota": "producer_byte_rate", "value": 1.0},
        {"source": "kraft", "entity": [("client-id", None)], "quota": "producer_byte_rate", "value": 1.0},
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
    {"path": "/config/topics/d", "acl": [(31, "digest", f"kafka:{'x' * 27}=")], "ctime": 0},
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
    {"controller_id": 3000, "file": "a.log", "position": 99, "problem": "torn tail: 5 bytes, less than a batch header"},
    {
        "controller_id": 3000,
        "file": "b.log",
        "position": 99,
        "problem": "zero-filled: 4096 bytes of preallocated space",
    },
]


# The same rows, as clusters of which less is known, or something else.
FLEET = {
    ALONE: KNOWN,
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


def found_in(
    spark: SparkSession, fleet: dict[str, queries.Known], seen: dict[str, queries.Known]
) -> dict[str, Violations]:
    """Violations by cluster and code, of the planted rows in each cluster of `fleet`; the query is told of `seen`."""

    def rows(planted: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for cluster in fleet for row in of_cluster(cluster, planted)]

    silver = {name: frame(spark, columns, rows(ROWS.get(name, []))) for name, columns in TABLES.items()}
    znodes, records = frame(spark, ZK_ZNODES.struct, rows(ZNODES)), frame(spark, KRAFT_RECORDS.struct, rows(RECORDS))
    found: dict[str, Violations] = {cluster: defaultdict(list) for cluster in fleet}
    for row in queries.violations(silver, znodes, records, seen).collect():
        found[row[CLUSTER]][row["code"]].append(row["text"])
    return {cluster: {code: sorted(texts) for code, texts in mine.items()} for cluster, mine in found.items()}


@pytest.fixture(scope="module")
def of_fleet(spark: SparkSession) -> dict[str, Violations]:
    return found_in(spark, FLEET, FLEET)


@pytest.fixture(scope="module")
def violations(of_fleet: dict[str, Violations]) -> Violations:
    return of_fleet[ALONE]


@pytest.mark.parametrize("cluster", FLEET)
def test_a_cluster_among_others_is_judged_as_it_is_alone(
    spark: SparkSession, of_fleet: dict[str, Violations], cluster: str
) -> None:
    alone = {cluster: FLEET[cluster]}
    assert of_fleet[cluster] == found_in(spark, alone, alone)[cluster]


def test_what_is_known_of_one_cluster_judges_no_other(of_fleet: dict[str, Violations]) -> None:
    assert len({str(sorted(found.items())) for found in of_fleet.values()}) == len(FLEET)
    assert not {"START-16", "RB-03", "DUR-07", "DUR-16", "SEC-02"} & of_fleet["nothing-known"].keys()
    assert of_fleet["starting-elsewhere"]["START-16"] != of_fleet[ALONE]["START-16"]
    assert "RB-03" not in of_fleet["further-on"], "an election has raised the epoch there"


def test_samples_are_the_first_of_each_cluster_and_the_totals_exact(spark: SparkSession) -> None:
    many, few = queries.SAMPLE + 5, 2
    planted = [("many", "DUR-01", f"{n:03}") for n in range(many)]
    planted += [("few", "DUR-01", f"{n:03}") for n in range(few)] + [("many", "DUR-02", "other")]
    rows = spark.createDataFrame(planted, "cluster string, code string, text string")
    told = {
        (row[CLUSTER], row["code"], row["text"]): (row["total"], row["number"])
        for row in queries.samples(rows).collect()
    }
    expected = {("many", "DUR-01", f"{n:03}"): (many, n + 1) for n in range(queries.SAMPLE)}
    expected |= {("few", "DUR-01", f"{n:03}"): (few, n + 1) for n in range(few)}
    assert told == {**expected, ("many", "DUR-02", "other"): (1, 1)}


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
        ("RB-03", ["from-the-future/0 was written in controller epoch 6"]),
        ("DUR-19", ["delete_topic of old (/admin/delete_topics/old)"]),
        ("POST-04", ["/brokers/topics/late/partitions/0/state in transaction 901"]),
        ("RB-07", ["an ACL of GROUP team/app: ZooKeeper has no place for the name"]),
        ("DUR-06", ["CLIENT_METRICS m: k"]),
        (
            "DUR-07",
            [
                "PARTITION_RECORD of version 1 at offset 28: the load writes version 0",
                "TOPIC_RECORD of version 0 at offset 15 is before MIGRATION and outside the load, 20 to 81",
            ],
        ),
        ("DUR-16", ["isr_change of t-0 (/isr_change_notification/1)"]),
        (
            "DUR-17",
            [
                '[{"type":"client-id","name":"gone"}] at offset 250',
                '[{"type":"ip","name":"10.0.0.1"}] at offset 260',
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
    ],
)
def test_only_the_broken_rows_are_found(violations: dict[str, list[str]], code: str, texts: list[str]) -> None:
    assert violations[code] == texts


def test_no_other_code_is_found(violations: dict[str, list[str]]) -> None:
    assert violations["ISR-03"] == ["led-by-nobody/0: leader 9 is no replica of [0, 1, 2]"]
    (moving,) = violations["REASSIGNING"]
    assert moving.startswith("moving-in-kraft/0: adding ")
    assert len(violations) == 27


def test_how_protected_the_tree_is(spark: SparkSession) -> None:
    shut = of_cluster("shut", [{"path": "/config", "acl": KAFKA_ONLY, "mtime": 3}])
    rows = queries.protection(frame(spark, ZK_ZNODES.struct, [*ZNODES, *shut])).collect()
    told = {row[CLUSTER]: (row["znodes"], row["open"], row["time"]) for row in rows}
    assert told == {ALONE: (11, 2, LOADED_AT + 5), "shut": (1, 0, 3)}


def test_partitions_whose_leader_the_controller_in_office_would_not_elect(violations: dict[str, list[str]]) -> None:
    assert sorted(violations["RB-11"]) == [
        "from-the-future/0 was written in controller epoch 6",
        "of-the-next-epoch/0 was written in controller epoch 5",
    ]


def test_who_made_the_znodes(spark: SparkSession) -> None:
    rows = [*ZNODES, {"path": "/brokers/topics", "acl": KAFKA_ONLY}, {"path": "/brokers/ids/0/x", "acl": KAFKA_ONLY}]
    found = {tuple(row)[1:] for row in queries.identities(frame(spark, ZK_ZNODES.struct, rows)).collect()}
    assert found == {("/brokers/ids/0", "sasl", "kafka"), ("/brokers/topics", "sasl", "kafka")}


def test_what_a_rollback_left_behind(spark: SparkSession) -> None:
    def side(zk: bool, entity: str, key: str, row: str, offset: int | None = None) -> tuple[Any, ...]:
        return ALONE, zk, entity, key, row, offset

    rows = [
        side(False, "configs", "kept", "1", 101),
        side(True, "configs", "kept", "1"),
        side(False, "configs", "changed", "2", 102),
        side(True, "configs", "changed", "1"),
        side(False, "topics", "made", "{}", 103),
        side(False, "topics", "deleted since in ZooKeeper", "{}", 100),
        side(False, "partitions", "elected since", "a", 104),
        side(True, "partitions", "elected since", "b"),
        side(False, "partitions", "added", "a", 105),
    ]
    both = spark.createDataFrame(
        rows, "cluster string, zk boolean, entity string, key string, row string, kraft_offset bigint"
    )
    assert sorted(row["text"] for row in left_behind(both, {ALONE: 100}).collect()) == [
        "configs changed, of offset 102",
        "partitions added, of offset 105",
        "topics made, of offset 103",
    ]


def test_replicas_that_are_being_added_are_counted_apart(spark: SparkSession) -> None:
    rows = [{**PARTITION, "topic": "a"}, {**PARTITION, "topic": "b", "adding_replicas": [2]}]
    rows += of_cluster("other", [{**PARTITION, "topic": "a"}, {**PARTITION, "topic": "c", "replicas": [5]}])
    # A topic that is pending deletion in one cluster is not in another one of the same name.
    pending = spark.createDataFrame([(ALONE, "c"), ("other", "a")], "cluster string, topic string")
    counts = queries.replica_counts(frame(spark, TABLES["partitions"], rows), pending).collect()
    assert {(c[CLUSTER], c["broker_id"], c["replicas"], c["adding"]) for c in counts} == {
        (ALONE, 0, 2, 0),
        (ALONE, 1, 2, 0),
        (ALONE, 2, 2, 1),
        ("other", 5, 1, 0),
    }


def test_which_topics_an_unknown_broker_holds(spark: SparkSession) -> None:
    rows = [
        {**PARTITION, "topic": "orders", "partition": 3},
        {**PARTITION, "topic": "orders", "partition": 1},
        {**PARTITION, "topic": "__consumer_offsets"},
    ]
    partitions = frame(spark, TABLES["partitions"], [*rows, *of_cluster("other", rows)])
    found = queries.partitions_on(partitions, {ALONE: [0, 1], "other": [0, 1, 2]}, 5).collect()
    told = sorted((row[CLUSTER], row["broker_id"], row["number"], row["text"]) for row in found)
    assert told == [(ALONE, 2, 1, "orders/1 and 1 more"), (ALONE, 2, 2, "__consumer_offsets/0")]


def test_times_of_the_records_behind_migration_are_each_clusters_own(spark: SparkSession) -> None:
    records = [
        {"offset": offset, "type": type_, "append_time": 100 * offset}
        for offset, type_ in ((5, "NO_OP_RECORD"), (6, "TOPIC_RECORD"), (7, "NO_OP_RECORD"), (8, "TOPIC_RECORD"))
    ]
    fleet = {ALONE: queries.Mirrored(5, 9, 750), "behind": queries.Mirrored(7, 8), "unasked": None}
    rows = frame(spark, KRAFT_RECORDS.struct, [row for cluster in fleet for row in of_cluster(cluster, records)])
    asked = {cluster: mirrored for cluster, mirrored in fleet.items() if mirrored is not None}
    names = ("newest", "oldest_behind", "at_migration", "changes", "before_written")
    told = {row[CLUSTER]: tuple(row[n] for n in names) for row in queries.append_times(rows, asked).collect()}
    assert told == {ALONE: (800, 600, 500, 2, 7), "behind": (700, None, 700, 0, None)}
    for cluster, mirrored in asked.items():
        [row] = queries.append_times(rows.where(of_clusters([cluster])), {cluster: mirrored}).collect()
        assert tuple(row[n] for n in names) == told[cluster]
    assert queries.append_times(rows, {}).collect() == []


def test_the_barriers_around_lost_writes(spark: SparkSession) -> None:
    offsets = [300, 302, 310, 400]
    passed = [(ALONE, n) for n in (290, 295, 305, 306, 350)] + [("other", n) for n in (291, 301, 399, 401)]
    barriers = spark.createDataFrame(passed, "cluster string, kraft_metadata_offset bigint")
    between = queries.barriers_between(barriers, {ALONE: offsets, "other": [400]})
    rows = {cluster: of_one(between.where(F.col(CLUSTER) == cluster)) for cluster in (ALONE, "other")}
    assert deltas_of(offsets, rows[ALONE]) == {300: (295, 305), 302: (295, 305), 310: (306, 350)}
    assert deltas_of([400], rows["other"]) == {400: (399, 401)}


def of_one(between: DataFrame) -> list[tuple[int, int, int]]:
    return [(row["passed"], row["lowest"], row["highest"]) for row in between.collect()]


def test_unclean_elections_are_allowed_however_true_is_spelled(spark: SparkSession) -> None:
    spelled = {"a": "true", "b": "TRUE", "c": "false", "d": "untrue", "e": "true?", "f": None}
    partitions = [{**PARTITION, "topic": name, "source": "kraft", "leader": -1} for name in spelled]
    topic = {"source": "kraft", "resource_type": "TOPIC", "config": "unclean.leader.election.enable"}
    configs = [{**topic, "resource_name": name, "value": value} for name, value in spelled.items()]
    found = kraft_queries.unclean_leaderless(
        frame(spark, TABLES["partitions"], partitions), frame(spark, TABLES["configs"], configs), {}
    )
    assert {row.text.split("/")[0] for row in found.collect()} == {"a", "b"}
