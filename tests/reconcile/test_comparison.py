"""A cluster's comparison from its tables to the report's lists: the second look, barriers, suppressions."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import polars as pl
import pytest

from schemas.bronze import ZK_ZNODES
from schemas.classes import CLASSES, LOST_CREDENTIAL, MISSING_FOLDER, MISSING_STATE
from schemas.report import DivergenceRow, Suppression
from schemas.silver import BARRIERS
from tests.reconcile.silver import kraft, tables, version, versions, zk
from tests.reconcile.test_checks import dual_write
from transforms.frames import columns_of, frame
from transforms.reconcile.compare.comparison import Answers, Compared, Inputs, compare
from transforms.reconcile.compare.context import Context
from transforms.reconcile.compare.difference import Ends
from transforms.reconcile.compare.divergences import FOLLOWED, listed
from transforms.reconcile.compare.release_limits import limits
from transforms.reconcile.compare.suppressions import SuppressionRule
from transforms.reconcile.judge.evidence import with_differences
from transforms.reconcile.judge.facts import Sample
from transforms.reconcile.judge.gates import run_checks
from transforms.report.comparison import NOTHING, ReportRequest, comparison, divergence_row, shown
from transforms.zookeeper.storage.limits import MAX_ZNODE_BYTES

LOADED_AT = 1_000_000
CONTEXT = Context(
    frozen=False,
    migration_offset=100,
    migration_mzxid=900,
    committed_end=110,
    load_time_ms=LOADED_AT,
    newest_append_time_ms=2_000_000,
    history_from=0,
)
TODAY = date(2026, 11, 21)
WORD = Suppression("Ann", "known", "2026-12-31")
ZNODES = pl.DataFrame(schema=columns_of(ZK_ZNODES.columns, "cluster", "run_id", "data"))
FIRST = pl.DataFrame(schema=FOLLOWED)


def config(name: str, value: str) -> dict[str, Any]:
    return {
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "config": name,
        "value": value,
        "comparable": not value.startswith("ciphertext"),
    }


ACL = {
    "resource_type": "TOPIC",
    "pattern_type": "LITERAL",
    "resource_name": "orders",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
IN_ZOOKEEPER = {"zk_path": "/config/topics/orders", "zk_mzxid": 500, "zk_mtime": LOADED_AT}
IN_KRAFT = {"kraft_offset": 60, "kraft_created_offset": 40, "kraft_append_time": LOADED_AT + 5}
TABLES = tables(
    configs=[
        zk(**config("lost", "1"), **IN_ZOOKEEPER),
        kraft(**config("lost", "2"), **IN_KRAFT),
        zk(**config("secret", "ciphertext:hmac:1"), **IN_ZOOKEEPER),
        kraft(**config("secret", "hmac:1"), **IN_KRAFT),
    ],
    topics=[kraft(topic="late", topic_id="x", kraft_offset=105, kraft_append_time=1_990_000)],
)
MADE = version("topics", '{"topic":"late"}', 105, '{"topic_id":"x"}')


def compared(
    previous: pl.DataFrame = FIRST,
    barriers: pl.DataFrame | None = None,
    rules: Sequence[SuppressionRule] = (),
    asked: list[Collection[tuple[str, str]]] | None = None,
    told: pl.DataFrame | None = None,
) -> Compared:
    def tell(keys: Collection[tuple[str, str]]) -> pl.DataFrame:
        if asked is not None:
            asked.append(keys)
        return versions() if told is None else told

    inputs = Inputs(TABLES, versions(MADE), ZNODES, previous, tell, barriers=barriers)
    found = compare(inputs, CONTEXT, Ends(110, 110), "run-2", 10, rules)
    assert found.rows.schema == FOLLOWED
    return found


def as_json(answers: Answers) -> Answers:
    """As they come back from where they were made."""
    found: Answers = json.loads(json.dumps(answers))
    return found


def test_rows_are_classified_followed_and_told_and_ciphertext_is_left_out() -> None:
    found = compared()
    assert found.rows.select("entity", "class", "status").sort("class").rows() == [
        ("topics", "lag", "new"),
        ("configs", "lost_write", "new"),
    ]
    told = comparison(as_json(found.answers), 10)
    assert (told.compared, told.duplicated) == (True, Sample())
    assert (told.summary.total, told.summary.by_class) == (2, {"lag": 1, "lost_write": 1})
    assert [(row.entity, row.column, row.zk_value, row.kraft_value) for row in told.summary.rows] == [
        ("configs", "value", "1", "2"),
        ("topics", None, None, "x"),
    ]
    assert told.samples["lost_write"].total == 1
    [text] = told.samples["lost_write"].examples
    assert text.startswith("lost_write: configs ")
    again = comparison(as_json(compared(previous=found.rows).answers), 10)
    assert again.summary.by_status == {"persisting": 2}


@pytest.mark.parametrize(
    ("path", "unread"),
    [
        ("/config/users/alice", {"credentials"}),
        ("/config/users", {"credentials"}),
        ("/brokers/topics/orders/partitions/0/state", {"partitions"}),
        ("/brokers/topics/orders/partitions", {"partitions"}),
        ("/brokers/topics/made", {"topics"}),
        ("/config/users/alice/clients", set()),
    ],
)
def test_what_could_not_be_read_in_zookeeper_is_not_lost(path: str, unread: set[str]) -> None:
    """CAP-07 tells of the znodes. An identity that may not read credentials has not lost them."""
    known = {"kraft_offset": 60, "kraft_created_offset": 40, "kraft_append_time": LOADED_AT + 5}
    assigned = {"topic": "orders", "partition": 0, "replicas": [0], "adding_replicas": [], "removing_replicas": []}
    state = {"isr": [0], "leader": 0, "leader_epoch": 0, "leader_recovery_state": 0}
    rows = tables(
        scram_credentials=[kraft(user="alice", mechanism="SCRAM-SHA-256", salt="hmac:1", **known)],
        partitions=[
            zk(**assigned, zk_mzxid=500, zk_path="/brokers/topics/orders"),
            kraft(**assigned, **state, **known),
        ],
        topics=[kraft(topic="made", topic_id="x", **known)],
    )

    def lost(*znodes: dict[str, object]) -> set[str]:
        shown = frame(znodes, columns_of(ZK_ZNODES.columns, "cluster", "run_id", "data"))
        found = compare(
            Inputs(rows, versions(), shown, FIRST, lambda keys: versions()), CONTEXT, Ends(110, 110), "r", 10
        )
        return {name.removeprefix("scram_") for name in found.rows["entity"]}

    every = lost({"path": "/config/users", "mzxid": 1, "num_children": 0})
    assert every == {"credentials", "partitions", "topics"}
    denied = {"path": path, "problem": "NoAuth: the znode may not be read with this identity"}
    assert lost(denied) == every - unread
    assert lost({"path": path, "mzxid": 1}, denied) == every - unread, "its children could not be listed"
    assert lost({**denied, "mzxid": 1, "data_length": MAX_ZNODE_BYTES + 1, "problem": "too large"}) == every - unread
    assert lost({**denied, "mzxid": 1, "data_length": 5, "problem": "data is not UTF-8"}) == every


def test_what_is_gone_is_resolved_and_listed_apart() -> None:
    before = compared().rows
    other = before.with_columns(fingerprint=pl.format("{}-", "fingerprint"), key=pl.lit('{"topic": "gone"}'))
    told = comparison(as_json(compared(previous=pl.concat([before, other])).answers), 10)
    assert told.summary.by_status == {"persisting": 2, "resolved": 2}
    assert [row.key for row in told.resolved] == [{"topic": "gone"}] * 2
    assert told.summary.total == 2


def test_what_seems_lost_is_looked_at_again_with_all_that_the_log_tells_of_it() -> None:
    asked: list[Collection[tuple[str, str]]] = []
    key = '{"resource_type":"TOPIC","resource_name":"orders","config":"lost"}'
    whole = {"resource_type": "TOPIC", "resource_name": "orders", "config": "lost"}
    told = versions(
        version("configs", key, 40, json.dumps({**whole, "value": "0"})),
        version("configs", key, 60, json.dumps({**whole, "value": "2"})),
    )
    first = compared(asked=asked).rows.filter(pl.col("entity") == "configs")
    assert asked == [[("configs", key)]]
    assert first["class"].item() == "lost_write"
    second = compared(told=told).rows.filter(pl.col("entity") == "configs")
    assert second["class"].item() == "foreign_write", "KRaft never gave it the value that ZooKeeper has"


def test_a_loss_lies_between_barriers_of_its_own_migration() -> None:
    marks = [(LOADED_AT + 1, 700, 59), (LOADED_AT + 2, 800, 60), (1, 100, 59)]
    columns = columns_of(BARRIERS.columns, "cluster", "run_id")
    barriers = frame(
        [{"time": time, "zxid": zxid, "kraft_metadata_offset": offset} for time, zxid, offset in marks], columns
    )
    lost = compared(barriers=barriers).rows.filter(pl.col("class") == "lost_write")
    assert lost.select("lost_after_zxid", "lost_until_zxid").row(0) == (700, 800)
    assert "between transactions 0x2bc and 0x320" in lost["explanation"].item()


def test_suppressed_rows_are_last_and_no_count_is_smaller() -> None:
    rules = [
        SuppressionRule(1, WORD, None, "configs", None, None, "lost_write"),
        SuppressionRule(2, replace(WORD, until="2026-01-01"), None, "topics", None, None, "lag"),
        SuppressionRule(3, WORD, None, "acls", None, None, "lag"),
    ]
    found = compared(rules=[rules[0], rules[2]])
    whole = comparison(as_json(found.answers), 10)
    facts = replace(dual_write(), divergences=whole.samples, defect_rows=tuple(whole.summary.rows))
    told = shown(whole, as_json(found.answers), rules, TODAY, facts, ReportRequest(10))
    assert [(row.entity, row.suppressed) for row in told.summary.rows] == [("topics", None), ("configs", WORD)]
    assert (told.summary.total, told.summary.by_class) == (2, {"lag": 1, "lost_write": 1})
    assert (told.summary.suppressed, told.summary.suppressed_by_class) == (1, {"lost_write": 1})
    assert told.samples == whole.samples
    assert told.notes == [
        "suppression 2 (topics lag) of Ann expired on 2026-01-01: its rows are shown like all others",
        "suppression 3 (acls lag) of Ann matches nothing: remove it",
    ]
    assert told.unsuppressed_verdict == "clean", "nothing else is wrong"
    of_gate = shown(whole, as_json(found.answers), rules, TODAY, facts, ReportRequest(10, "finalize"))
    assert of_gate.unsuppressed_verdict == "errors", "nor is the gate that was asked for open"
    short = shown(comparison(as_json(found.answers), 1), as_json(found.answers), rules, TODAY, facts, ReportRequest(1))
    assert [row.entity for row in short.summary.rows] == ["topics"]


def test_how_many_rows_a_report_lists_changes_no_check() -> None:
    """Rows of the list's other entities are graver: a report of two rows has no topic, and no producer id."""
    gone = {"replicas": [0], "isr": [0], "leader": 0, "leader_epoch": 0}
    known = {"kraft_offset": 60, "kraft_created_offset": 40, "kraft_append_time": LOADED_AT + 5}
    rows = tables(
        acls=[kraft(**ACL, principal=f"User:{name}", **known) for name in "abc"],
        partitions=[kraft(topic="orders", partition=number, **gone, **known) for number in range(3)],
        producer_ids=[zk(next_producer_id=1000, zk_mzxid=500), kraft(next_producer_id=2000, **known)],
        topics=[zk(topic="orders", topic_id="x", zk_mzxid=500), kraft(topic="orders", topic_id="y", **known)],
    )
    seen = {}
    for limit in (2, 1000):
        inputs = Inputs(rows, versions(), ZNODES, FIRST, lambda keys: versions())
        whole = comparison(as_json(compare(inputs, CONTEXT, Ends(110, 110), "r", limit).answers), limit)
        assert len(whole.summary.rows) == min(limit, 8)
        facts = with_differences(
            dual_write(), compared=True, samples=whole.samples, rows=whole.known, duplicated=Sample(), deltas={}
        )
        seen[limit] = {check.id: check.verdict for check in run_checks(facts) if check.id in ("DUR-14", "DUR-15")}
    assert seen[2] == seen[1000] == {"DUR-14": "fail", "DUR-15": "fail"}


def test_words_that_match_nothing_and_sides_that_were_not_compared_leave_all_as_it_is() -> None:
    idle = SuppressionRule(1, WORD, None, "acls", None, None, "lag")
    found = compared(rules=[idle])
    whole = comparison(as_json(found.answers), 10)
    told = shown(whole, as_json(found.answers), [idle], TODAY, dual_write(), ReportRequest(10))
    assert told == replace(whole, notes=["suppression 1 (acls lag) of Ann matches nothing: remove it"])
    assert shown(NOTHING, {}, [idle], TODAY, dual_write(), ReportRequest(10)) == NOTHING
    assert shown(whole, as_json(compared().answers), [], TODAY, dual_write(), ReportRequest(10)) == whole


def test_defects_are_counted_by_status_however_few_rows_are_listed() -> None:
    def row(number: int, class_: str, status: str) -> dict[str, Any]:
        known = {"fingerprint": f"{number:016x}", "entity": "topics", "key": json.dumps({"topic": f"t{number}"})}
        more = {"kind": "kraft_only", "zk_value": "null", "kraft_value": "{}", "severity": "error", "explanation": "x"}
        return dict.fromkeys(FOLLOWED.names()) | known | more | {"class": class_, "status": status}

    statuses = [("lost_write", "new")] * 5 + [("lost_write", "persisting")] * 3 + [("load_loss", "resolved")] * 4
    statuses += [("lag", "new")] * 6
    rows = frame([row(number, *each) for number, each in enumerate(statuses)], FOLLOWED)
    told = comparison({"row": listed(rows, 2).to_dicts(), "twice": []}, 2)
    assert len(told.summary.rows) == 2
    assert told.summary.defects_by_status == {"new": 5, "persisting": 3, "resolved": 4}


def without_folder(folder: str, znodes: Sequence[str]) -> pl.DataFrame:
    """Divergences of an ACL of the load, one made since, and a token made since, where `znodes` are all that is there."""
    since = IN_KRAFT | {"kraft_created_offset": 60}
    loaded = {**IN_KRAFT, "kraft_offset": 5, "kraft_created_offset": 5}
    rows = tables(
        acls=[
            kraft(**{**ACL, "resource_name": "old"}, principal="User:a", **loaded),
            kraft(**{**ACL, "resource_name": "new"}, principal="User:a", **since),
        ],
        delegation_tokens=[kraft(token_id="t", owner="User:a", renewers=[], **since)],
    )
    stat = {"czxid": 5, "mzxid": 5, "pzxid": 500, "cversion": 2, "num_children": 0}
    tree = frame([{"path": path, **stat} for path in znodes], ZNODES.schema)
    inputs = Inputs(rows, versions(), tree, FIRST, lambda keys: versions())
    context = replace(CONTEXT, load=(1, 9), load_claim=400)
    found = compare(inputs, context, Ends(110, 110), "r", 10).rows
    assert folder not in znodes
    return found


@pytest.mark.parametrize("folder", ["/kafka-acl", "/kafka-acl/Topic"])
def test_what_went_with_a_folder_that_held_rows_of_the_load_has_one_story(folder: str) -> None:
    """Kafka makes the folders of ACLs (`KafkaZkClient.createAclPaths`) and removes none."""
    znodes = ["/brokers", *(["/kafka-acl"] if folder.count("/") > 1 else []), "/delegation_token"]
    found = without_folder(folder, znodes)
    told = {(row["entity"], row["class"]) for row in found.iter_rows(named=True)}
    assert told == {("acls", "foreign_write"), ("delegation_tokens", "lost_write")}, "no token came with the load"
    of_acls = found.filter(pl.col("entity") == "acls")["explanation"]
    assert of_acls.len() == 2
    assert of_acls.str.contains(f"removed {folder}, which was there at the load", literal=True).all()


@pytest.mark.parametrize(
    ("release", "left", "load_claim", "class_"),
    [
        ("3.5.2", [], 400, "lost_write"),
        ("3.5", [], 400, "lost_write"),
        ("3.5.2", [{"path": "/brokers/topics/made-since", "czxid": 450, "ctime": LOADED_AT + 1}], 400, "lost_write"),
        ("3.5.2", [{"path": "/brokers/topics/loaded", "czxid": 399, "ctime": LOADED_AT - 1}], 400, "foreign_write"),
        ("3.5.2", [{"path": "/brokers/topics/loaded", "czxid": 399, "ctime": LOADED_AT - 1}], None, "foreign_write"),
        ("3.6.1", [], 400, "foreign_write"),
        ("3.9.1", [], 400, "foreign_write"),
    ],
)
def test_only_a_full_sync_of_an_empty_state_deletes_all_topics_of_a_load(
    release: str, left: list[dict[str, Any]], load_claim: int | None, class_: str
) -> None:
    """KAFKA-15825: `SyncKRaftMetadataEvent` of 3.5.0 to 3.6.0 does not look whether its image has the load."""
    loaded = {**IN_KRAFT, "kraft_offset": 5, "kraft_created_offset": 5}
    rows = tables(topics=[kraft(topic=name, topic_id=name, **loaded) for name in ("a", "b")])
    over = {"path": "/brokers/topics", "czxid": 2, "mzxid": 2, "pzxid": 500, "cversion": 5, "num_children": len(left)}
    tree = frame([over, *left], ZNODES.schema)
    inputs = Inputs(rows, versions(), tree, FIRST, lambda keys: versions())
    context = replace(CONTEXT, load=(1, 9), load_claim=load_claim, limits=limits(release))
    found = compare(inputs, context, Ends(110, 110), "r", 10).rows
    assert found["class"].to_list() == [class_, class_]
    assert found["explanation"].str.contains("KAFKA-15825").all() is (class_ == "lost_write")


@pytest.mark.parametrize(
    ("written", "class_"),
    [(LOADED_AT + 60_001, "foreign_write"), (LOADED_AT + 60_000, "lost_write")],
    ids=["after the load", "not surely after it"],
)
def test_a_state_znode_that_was_deleted_before_a_failover_was_deleted_by_somebody(written: int, class_: str) -> None:
    """The claim before the load is not in the tree any more: that the deletion (500) came after it, other znodes (450) show."""
    state = {"isr": [0], "leader": 0, "leader_epoch": 0, "leader_recovery_state": 0}
    assigned = {"topic": "orders", "partition": 3, "replicas": [0], "adding_replicas": [], "removing_replicas": []}
    above = "/brokers/topics/orders/partitions"
    znodes = [
        {"path": "/brokers/topics/orders", "czxid": 10, "mzxid": 10, "mtime": 1},
        {"path": above, "czxid": 11, "mzxid": 11, "mtime": 1, "pzxid": 12, "cversion": 1, "num_children": 1},
        {"path": f"{above}/3", "czxid": 12, "mzxid": 12, "mtime": 1, "pzxid": 500, "cversion": 2, "num_children": 0},
        {"path": "/config/topics/orders", "czxid": 13, "mzxid": 450, "mtime": written},
    ]
    rows = tables(
        partitions=[
            zk(**assigned, zk_path="/brokers/topics/orders", zk_assignment_mzxid=10, zk_assignment_mtime=1),
            kraft(**assigned, **state, **IN_KRAFT),
        ]
    )
    inputs = Inputs(rows, versions(), frame(znodes, ZNODES.schema), FIRST, lambda keys: versions())
    failed_over = replace(CONTEXT, load=(1, 39), claim_zxid=800)
    assert set(compare(inputs, failed_over, Ends(110, 110), "r", 10).rows["class"]) == {class_}


def test_a_folder_that_is_missing_is_made_before_any_full_sync() -> None:
    """Without the znode a set fails, without the folder a create: `ZkAclMigrationClient.writeResourceAcls` throws, each time."""
    znodes = ["/brokers", "/delegation_token"]
    found = [
        divergence_row({**row, "status": "new"}) for row in without_folder("/kafka-acl", znodes).iter_rows(named=True)
    ]
    assert {(row.entity, row.zk_path) for row in found} == {
        ("acls", "/kafka-acl"),
        ("delegation_tokens", "/delegation_token/tokens"),
    }
    assert {row.remedy for row in found} == {MISSING_FOLDER}
    [some, *_] = without_folder("/kafka-acl", znodes).iter_rows(named=True)
    credential = {
        **some,
        "status": "new",
        "entity": "scram_credentials",
        "key": "{}",
        "zk_path": None,
        "kind": "kraft_only",
    }
    for class_, remedy in (("lost_write", LOST_CREDENTIAL), ("foreign_write", CLASSES["foreign_write"].remedy)):
        assert divergence_row({**credential, "class": class_}).remedy == remedy
    whole = [*znodes, "/kafka-acl", "/kafka-acl/Topic", "/delegation_token/tokens"]
    for row in without_folder("/", whole).iter_rows(named=True):
        there = divergence_row(row)
        assert (there.zk_path, there.remedy) == (None, CLASSES[there.class_].remedy)


def test_a_state_znode_that_is_missing_is_written_before_any_full_sync() -> None:
    """Seen in 3.8.1 and 3.9.1: no full sync ends without it, so that the class's own remedy would stop dual write for good."""

    def row(class_: str, column: str | None, value: object) -> DivergenceRow:
        known = {"entity": "partitions", "key": json.dumps({"topic": "t", "partition": 0}), "class": class_}
        more = {"column": column, "zk_value": json.dumps(value), "kraft_value": "1"}
        return divergence_row(dict.fromkeys(FOLLOWED.names()) | known | more)

    for class_ in ("lost_write", "foreign_write", "load_extra"):
        assert row(class_, "leader", None).remedy == MISSING_STATE
        assert row(class_, "leader", 0).remedy == row(class_, None, None).remedy == CLASSES[class_].remedy
    assert row("lag", "leader", None).remedy == CLASSES["lag"].remedy
