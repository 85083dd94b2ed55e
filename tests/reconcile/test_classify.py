"""Every class by its rule (S§5.6): one differing row at a time, with the story that decides it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from schemas import classes
from transforms.reconcile.compare.classify import CLOCK_MARGIN_MS, Clocks, Context, Divergence, Homes, classify
from transforms.reconcile.compare.context import Children
from transforms.reconcile.compare.differing import WrittenAt
from transforms.reconcile.compare.release_limits import limits

LOADED_AT = 1_000_000
CONTEXT = Context(
    frozen=False,
    migration_offset=100,
    migration_mzxid=900,
    committed_end=110,
    load_time_ms=LOADED_AT,
    newest_append_time_ms=2_000_000,
)
TOPIC_KEY = {"topic": "orders"}
PARTITION_KEY = {"topic": "orders", "partition": 3}
STATE: dict[str, Any] = {
    "replicas": [1, 2, 3],
    "adding_replicas": [],
    "removing_replicas": [],
    "isr": [1, 2, 3],
    "leader": 1,
    "leader_epoch": 5,
    "leader_recovery_state": 0,
}


def version(offset: int, row: dict[str, Any], *, removed: bool = False) -> dict[str, Any]:
    return {
        "from_offset": offset,
        "row": json.dumps(row),
        "removed": removed,
        "from_append_time": 1_990_000 + offset,
        "created_offset": None,
    }


def differing(entity: str, key: dict[str, Any], **values: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "entity": entity,
        "key": json.dumps(key),
        "zk_row": None,
        "kraft_row": None,
        "comparable": True,
        "zk_path": "/brokers/topics/orders",
        "zk_mzxid": 500,
        "zk_mtime": LOADED_AT,
        "zk_assignment_mzxid": None,
        "zk_assignment_mtime": None,
        "kraft_offset": None,
        "kraft_created_offset": None,
        "kraft_append_time": None,
        "versions": None,
    }
    for name, value in values.items():
        row[name] = json.dumps(value) if name in ("zk_row", "kraft_row") and value is not None else value
    return row


def one(row: dict[str, Any], context: Context = CONTEXT) -> Divergence:
    found = list(classify(row, context))
    assert len(found) == 1
    return found[0]


def partition(zk: dict[str, Any], kraft: dict[str, Any], **values: Any) -> dict[str, Any]:
    defaults = {"kraft_offset": 60, "kraft_created_offset": 40, "kraft_append_time": LOADED_AT + 5}
    return differing("partitions", PARTITION_KEY, zk_row=zk, kraft_row=kraft, **{**defaults, **values})


def test_lag_is_a_row_changed_past_migrations_offset() -> None:
    new = STATE | {"isr": [1, 2]}
    row = partition(
        STATE, new, kraft_offset=105, kraft_append_time=1_999_000, versions=[version(60, STATE), version(105, new)]
    )
    found = one(row)
    assert (found.class_, found.column, found.severity) == (classes.LAG, "isr", "info")
    assert (found.zk_value, found.kraft_value) == ([1, 2, 3], [1, 2])
    assert one({**row, "kraft_append_time": 1_900_000}).severity == "warning", "a minute and more is late"


def test_lag_of_a_new_row_and_of_a_removed_one() -> None:
    made = differing(
        "topics", TOPIC_KEY, kraft_row={"topic_id": "x"}, kraft_offset=105, versions=[version(105, {"topic_id": "x"})]
    )
    assert (one(made).class_, one(made).kind) == (classes.LAG, "kraft_only")
    gone = [version(60, {"topic_id": "x"}), version(106, {"topic_id": "x"}, removed=True)]
    removed = differing("topics", TOPIC_KEY, zk_row={"topic_id": "x"}, versions=gone)
    assert (one(removed).class_, one(removed).kind) == (classes.LAG, "zk_only")


def test_the_same_after_finalising_is_expected_stale() -> None:
    made = differing(
        "topics", TOPIC_KEY, kraft_row={"topic_id": "x"}, kraft_offset=105, versions=[version(105, {"topic_id": "x"})]
    )
    assert one(made, replace(CONTEXT, frozen=True)).class_ == classes.EXPECTED_STALE


def test_lost_write_is_what_migrations_offset_has_passed() -> None:
    found = one(partition(STATE, STATE | {"leader_epoch": 6}))
    assert (found.class_, found.column, found.severity) == (classes.LOST_WRITE, "leader_epoch", "error")
    assert found.kraft_offset == 60


def test_lost_write_of_a_removal_and_of_a_missing_row() -> None:
    gone = [version(70, {"topic_id": "x"}, removed=True)]
    found = one(differing("topics", TOPIC_KEY, zk_row={"topic_id": "x"}, versions=gone))
    assert (found.class_, found.kind, found.kraft_offset) == (classes.LOST_WRITE, "zk_only", 70)
    missing = differing("topics", TOPIC_KEY, kraft_row={"topic_id": "x"}, kraft_offset=70, kraft_created_offset=70)
    assert (one(missing).class_, one(missing).kind) == (classes.LOST_WRITE, "kraft_only")


def test_only_the_cell_that_lags_is_lag_when_another_is_lost() -> None:
    at_migration = STATE | {"leader_epoch": 6}
    now = at_migration | {"isr": [1]}
    row = partition(STATE, now, kraft_offset=105, versions=[version(60, at_migration), version(105, now)])
    assert {d.column: d.class_ for d in classify(row, CONTEXT)} == {
        "isr": classes.LAG,
        "leader_epoch": classes.LOST_WRITE,
    }


def test_in_flight_is_a_version_newer_than_migrations_offset() -> None:
    middle, newest = STATE | {"isr": [1, 2]}, STATE | {"isr": [1]}
    story = [version(60, STATE), version(104, middle), version(107, newest)]
    assert one(partition(middle, newest, kraft_offset=107, versions=story)).class_ == classes.IN_FLIGHT


def test_a_row_made_after_migrations_offset_may_be_half_written() -> None:
    half = STATE | {"leader": None, "leader_epoch": None, "isr": None}
    row = partition(
        half, STATE, kraft_offset=105, kraft_created_offset=105, zk_mzxid=901, versions=[version(105, STATE)]
    )
    assert {found.class_ for found in classify(row, CONTEXT)} == {classes.IN_FLIGHT}


def test_what_the_transaction_log_calls_foreign_is_foreign() -> None:
    context = replace(CONTEXT, foreign_zxids=frozenset({500}), foreign_paths=frozenset({"/brokers/topics/orders"}))
    found = one(partition(STATE | {"leader": 3}, STATE, zk_mzxid=500), context)
    assert found.class_ == classes.FOREIGN_WRITE
    gone = differing("topics", TOPIC_KEY, kraft_row={"topic_id": "x"}, kraft_offset=70, kraft_created_offset=70)
    assert one(gone, context).class_ == classes.FOREIGN_WRITE
    assert one(gone).class_ == classes.LOST_WRITE


def test_foreign_write_is_newer_than_migrations_own_transaction() -> None:
    found = one(partition(STATE | {"leader": 3}, STATE, zk_mzxid=901))
    assert (found.class_, found.zk_mzxid) == (classes.FOREIGN_WRITE, 901)
    assert "0x385" in found.explanation


def test_a_znode_that_somebody_wrote_again_is_no_removal_that_was_lost() -> None:
    gone = [version(70, {"topic_id": "x"}, removed=True)]
    row = differing("topics", TOPIC_KEY, zk_row={"topic_id": "x"}, zk_mzxid=901, versions=gone)
    assert one(row).class_ == classes.FOREIGN_WRITE
    assert one({**row, "zk_mzxid": 900}).class_ == classes.LOST_WRITE, "/migration's own transaction is KRaft's"
    proved = replace(CONTEXT, foreign_zxids=frozenset({500}))
    assert one({**row, "zk_mzxid": 500}, proved).class_ == classes.FOREIGN_WRITE


def credential(mzxid: int, **context: Any) -> Divergence:
    """A user's credential that KRaft has since offset 50, and whose znode was written without it 200 s later."""
    row = {"user": "dave", "mechanism": "SCRAM-SHA-512"} | dict.fromkeys(("salt", "stored_key", "server_key"), "hmac:1")
    row |= {"iterations": 4096}
    raw = differing("scram_credentials", {"user": "dave", "mechanism": "SCRAM-SHA-512"}, kraft_row=json.dumps(row))
    raw |= {"kraft_offset": 50, "kraft_append_time": 1_600_000, "versions": [version(50, row)]}
    written = {"/config/users/dave": WrittenAt("/config/users/dave", mzxid, 1_800_000)}
    [found] = classify(raw, replace(CONTEXT, homes=Homes(written=written, looked_up=True), **context))
    return found


def test_what_the_transaction_logs_show_as_krafts_own_write_is_no_foreign_one() -> None:
    """Seen in 3.8.1: the full sync of a controller that had lost the credential when it started."""
    known = {"transactions_known": True, "claim_zxid": 800, "known_from": 200}
    assert credential(700).class_ == classes.FOREIGN_WRITE
    by_kraft = credential(700, **known)
    assert by_kraft.class_ == classes.LOST_WRITE
    assert by_kraft.explanation.endswith(
        "the KRaft controller itself wrote /config/users/dave without it in transaction 0x2bc"
    )
    # The barriers around the record are of the mirroring before, which did not fail.
    assert by_kraft.lost_offset is None
    # With clocks that nobody has measured it cannot be told whether the write came after the record: where it was lost is unknown.
    unmeasured = credential(700, **known, clocks=Clocks(margin_ms=300_000))
    assert (unmeasured.class_, unmeasured.lost_offset) == (classes.LOST_WRITE, None)
    surely_before = credential(700, **known, clocks=Clocks(ahead_ms=600_000))
    assert (surely_before.class_, surely_before.lost_offset) == (classes.LOST_WRITE, 50)
    assert credential(700, **known, foreign_zxids=frozenset({700})).class_ == classes.FOREIGN_WRITE
    # What was written before the transaction logs begin may be anybody's.
    assert credential(150, **known).class_ == classes.FOREIGN_WRITE


def test_foreign_write_is_written_long_after_krafts_last_change() -> None:
    late = LOADED_AT + 5 + CLOCK_MARGIN_MS
    assert one(partition(STATE | {"leader": 3}, STATE, zk_mtime=late + 1)).class_ == classes.FOREIGN_WRITE
    assert one(partition(STATE | {"leader": 3}, STATE, zk_mtime=late)).class_ == classes.LOST_WRITE


def test_a_row_kraft_never_had_is_load_loss_or_foreign_by_its_time() -> None:
    before = differing("topics", TOPIC_KEY, zk_row={"topic_id": "x"}, zk_mtime=LOADED_AT - 5)
    assert (one(before).class_, one(before).severity) == (classes.LOAD_LOSS, "error")
    after = differing("topics", TOPIC_KEY, zk_row={"topic_id": "x"}, zk_mtime=LOADED_AT + CLOCK_MARGIN_MS + 1)
    assert one(after).class_ == classes.FOREIGN_WRITE


@pytest.mark.parametrize(
    ("entity", "key", "jira"),
    [
        ("client_quotas", {"entity": [{"type": "user", "name": "carol%40corp"}], "quota": "q"}, "KAFKA-16222"),
        ("client_quotas", {"entity": [{"type": "user", "name": ""}], "quota": "q"}, "KAFKA-16411"),
        ("scram_credentials", {"user": "carol%40corp", "mechanism": "SCRAM-SHA-256"}, "KAFKA-16222"),
    ],
)
def test_mangled_names_are_load_extra_and_name_the_defect(entity: str, key: dict[str, Any], jira: str) -> None:
    row = (
        {"value": 1.0}
        if entity == "client_quotas"
        else {"salt": "a", "stored_key": "b", "server_key": "c", "iterations": 1}
    )
    found = one(differing(entity, key, kraft_row=row, kraft_offset=30, kraft_created_offset=30))
    assert found.class_ == classes.LOAD_EXTRA
    assert jira in found.explanation


def test_pending_deletion_covers_the_topic_its_partitions_and_configs() -> None:
    context = replace(CONTEXT, pending_deletes=frozenset({"orders"}))
    config = {"resource_type": "TOPIC", "resource_name": "orders", "config": "retention.ms"}
    for entity, key, row in (
        ("topics", TOPIC_KEY, {"topic_id": "x"}),
        ("partitions", PARTITION_KEY, STATE),
        ("configs", config, {"value": "1"}),
    ):
        assert one(differing(entity, key, zk_row=row), context).class_ == classes.PENDING_DELETE
    other = {**config, "resource_type": "BROKER"}
    assert one(differing("configs", other, zk_row={"value": "1"}), context).class_ != classes.PENDING_DELETE


def test_ciphertext_is_not_comparable() -> None:
    key = {"resource_type": "BROKER", "resource_name": "1", "config": "sasl.jaas.config"}
    row = differing(
        "configs", key, zk_row={"value": "ciphertext:hmac:1"}, kraft_row={"value": "hmac:2"}, comparable=False
    )
    assert one(row).class_ == classes.NOT_COMPARABLE


def test_a_difference_of_the_tail_alone_is_uncommitted() -> None:
    new = STATE | {"isr": [1, 2]}
    row = partition(STATE, STATE, versions=[version(60, STATE), version(115, new)])
    found = one(row)
    assert (found.class_, found.column, found.severity) == (classes.UNCOMMITTED_TAIL, "isr", "info")


def test_a_tail_that_changes_nothing_is_nothing() -> None:
    assert list(classify(partition(STATE, STATE, versions=[version(60, STATE), version(115, STATE)]), CONTEXT)) == []


def test_quota_values_are_compared_as_floats() -> None:
    key = {"entity": [{"type": "user", "name": None}], "quota": "request_percentage"}
    close = differing(
        "client_quotas", key, zk_row={"value": 35.0}, kraft_row={"value": 35.00000000000001}, kraft_offset=30
    )
    assert list(classify(close, CONTEXT)) == []
    byte_rate = differing(
        "client_quotas", key, zk_row={"value": 17800193.0}, kraft_row={"value": 17800192.0}, kraft_offset=30
    )
    assert one(byte_rate).class_ == classes.LOST_WRITE
    apart = differing("client_quotas", key, zk_row={"value": 35.0}, kraft_row={"value": 35.1}, kraft_offset=30)
    assert one(apart).key == {"entity": {"user": None}, "quota": "request_percentage"}


def test_order_alone_is_told_and_not_alarming() -> None:
    found = one(partition(STATE | {"isr": [3, 2, 1]}, STATE))
    assert (found.column, found.class_, found.severity) == ("isr", classes.IN_SYNC, "info")
    assert not classes.CLASSES[found.class_].defect


def test_a_removal_of_an_earlier_life_says_nothing_of_the_row_that_lives_now() -> None:
    earlier = [version(20, {"topic_id": "old"}, removed=True)]
    row = differing(
        "topics", TOPIC_KEY, kraft_row={"topic_id": "new"}, kraft_offset=60, kraft_created_offset=60, versions=earlier
    )
    assert one(row).class_ == classes.LOST_WRITE


@pytest.mark.parametrize("entity", ["topics", "partitions", "configs", "acls"])
def test_what_was_removed_and_made_again_past_the_offset_is_in_flight_where_zookeeper_has_the_removal(
    entity: str,
) -> None:
    """Whatever the second look finds around its place: KRaft's own removal was seen there."""
    key, content = {
        "topics": (TOPIC_KEY, {"topic_id": "x"}),
        "partitions": (PARTITION_KEY, STATE),
        "configs": (CONFIG_KEY, {"value": "1"}),
        "acls": ({**CONFIG_KEY, "pattern_type": "LITERAL"}, {}),
    }[entity]
    row = differing(
        entity,
        key,
        kraft_row=content,
        kraft_offset=107,
        kraft_created_offset=107,
        versions=[version(60, content), version(105, content, removed=True), version(107, content)],
        zk_mzxid=None,
    )
    emptied = Homes({}, frozenset({"/brokers/topics", "/config/topics", "/kafka-acl/Topic"}), looked_up=True)
    for homes in (Homes(), emptied):
        assert one(row, replace(CONTEXT, homes=homes)).class_ == classes.IN_FLIGHT
        assert one(row, replace(CONTEXT, homes=homes, frozen=True)).class_ == classes.EXPECTED_STALE
    path = "/brokers/topics/orders" if entity in ("topics", "partitions") else "/config/topics/orders"
    if entity != "acls":
        by_hand = replace(CONTEXT, foreign_paths=frozenset({path}))
        assert one(row, by_hand).class_ == classes.FOREIGN_WRITE, "the transaction logs show who removed it"


def test_3_4_does_not_mirror_the_removal_of_a_topic_that_is_there_again() -> None:
    content = {"topic_id": "x"}
    story = [version(60, content), version(105, content, removed=True), version(107, content)]
    row = differing("topics", TOPIC_KEY, kraft_row=content, kraft_offset=107, kraft_created_offset=107, versions=story)
    assert one(row).class_ == classes.IN_FLIGHT
    assert one(row, EARLY).class_ == classes.LOST_WRITE


def test_a_row_made_after_finalising_is_stale_however_much_of_it_was_written() -> None:
    half = STATE | {"leader": None, "leader_epoch": None, "isr": None}
    row = partition(
        half, STATE, kraft_offset=105, kraft_created_offset=105, zk_mzxid=901, versions=[version(105, STATE)]
    )
    frozen = replace(CONTEXT, frozen=True)
    assert {found.class_ for found in classify(row, frozen)} == {classes.EXPECTED_STALE}
    by_hand = replace(frozen, foreign_zxids=frozenset({901}))
    assert {found.class_ for found in classify(row, by_hand)} == {classes.FOREIGN_WRITE}


def test_what_3_4_never_mirrors_is_stale_after_finalising() -> None:
    context = replace(EARLY, frozen=True)
    gone = [version(60, {"topic_id": "x"}), version(106, {"topic_id": "x"}, removed=True)]
    removed = differing("topics", TOPIC_KEY, zk_row={"topic_id": "x"}, versions=gone)
    assert one(removed, context).class_ == classes.EXPECTED_STALE
    moved = STATE | {"replicas": [4, 5, 6]}
    row = partition(STATE, moved, kraft_offset=105, versions=[version(60, STATE), version(105, moved)])
    assert one(row, context).class_ == classes.EXPECTED_STALE
    before = differing("acls", {**CONFIG_KEY, "pattern_type": "LITERAL"}, kraft_row={}, kraft_offset=60)
    assert one(before, context).class_ == classes.LOST_WRITE


CONFIG_KEY = {"resource_type": "TOPIC", "resource_name": "orders", "config": "retention.ms"}
CONFIG_PATH = "/config/topics/orders"


def missing_config() -> dict[str, Any]:
    return differing(
        "configs",
        CONFIG_KEY,
        kraft_row={"value": "1"},
        kraft_offset=60,
        kraft_created_offset=60,
        kraft_append_time=LOADED_AT,
        zk_path=None,
        zk_mzxid=None,
        zk_mtime=None,
    )


@pytest.mark.parametrize(
    ("homes", "class_"),
    [
        (Homes(), classes.LOST_WRITE),
        (Homes({CONFIG_PATH: WrittenAt(CONFIG_PATH, 850, LOADED_AT)}), classes.LOST_WRITE),
        (Homes({CONFIG_PATH: WrittenAt(CONFIG_PATH, 901, LOADED_AT)}), classes.FOREIGN_WRITE),
        (Homes({CONFIG_PATH: WrittenAt(CONFIG_PATH, 850, LOADED_AT + CLOCK_MARGIN_MS + 1)}), classes.FOREIGN_WRITE),
        (Homes({}, frozenset({"/config/topics"})), classes.FOREIGN_WRITE),
        (
            Homes({CONFIG_PATH: WrittenAt(CONFIG_PATH, 850, LOADED_AT)}, frozenset({"/config/topics"})),
            classes.LOST_WRITE,
        ),
        (Homes({}, frozenset({"/config/brokers"})), classes.LOST_WRITE),
    ],
)
def test_a_row_that_is_gone_is_foreign_when_its_znode_shows_another_writer(homes: Homes, class_: str) -> None:
    assert one(missing_config(), replace(CONTEXT, homes=homes)).class_ == class_


def test_an_acl_that_kafka_itself_dropped_later_is_no_foreign_write() -> None:
    """PR 15327: deleting one ACL writes the others wrongly, long after they were made."""
    key = {
        "resource_type": "TOPIC",
        "resource_name": "wide",
        "pattern_type": "LITERAL",
        "principal": "User:erin",
        "host": "*",
        "operation": "WRITE",
        "permission": "ALLOW",
    }
    path = "/kafka-acl/Topic/wide"
    row = differing("acls", key, kraft_row={}, kraft_offset=60, kraft_append_time=LOADED_AT, zk_mzxid=None)
    late = LOADED_AT + 10 * CLOCK_MARGIN_MS
    for zxid, class_ in ((850, classes.LOST_WRITE), (901, classes.FOREIGN_WRITE)):
        homes = Homes({path: WrittenAt(path, zxid, late)})
        assert one(row, replace(CONTEXT, homes=homes)).class_ == class_


def test_a_partitions_columns_are_judged_by_the_znode_they_stand_in() -> None:
    """The topic was written by hand; that says nothing of a state that was lost before, and the other way round."""
    wrong = STATE | {"replicas": [3, 2, 9], "leader": 3}
    at = {"zk_mzxid": 500, "zk_assignment_mzxid": 901, "zk_assignment_mtime": LOADED_AT}
    found = {d.column: d for d in classify(partition(wrong, STATE, **at), CONTEXT)}
    assert {name: d.class_ for name, d in found.items()} == {
        "replicas": classes.FOREIGN_WRITE,
        "leader": classes.LOST_WRITE,
    }
    assert (found["replicas"].zk_path, found["replicas"].zk_mzxid) == ("/brokers/topics/orders", 901)
    assert found["leader"].zk_mzxid == 500
    other = {"zk_mzxid": 901, "zk_assignment_mzxid": 500, "zk_assignment_mtime": LOADED_AT}
    assert {d.column: d.class_ for d in classify(partition(wrong, STATE, **other), CONTEXT)} == {
        "replicas": classes.LOST_WRITE,
        "leader": classes.FOREIGN_WRITE,
    }


def test_what_kraft_never_had_is_foreign_after_the_claim_and_load_loss_before() -> None:
    context = replace(CONTEXT, claim_zxid=400)
    row = differing("topics", TOPIC_KEY, zk_row={"topic_id": "x"}, zk_mtime=LOADED_AT)
    assert one({**row, "zk_mzxid": 401}, context).class_ == classes.FOREIGN_WRITE
    assert one({**row, "zk_mzxid": 399}, context).class_ == classes.LOAD_LOSS


def test_what_kraft_writes_back_under_a_wrong_name_was_still_lost_by_the_load() -> None:
    """3.5 rewrites these znodes at each full sync, long after the load: the znode's time says nothing."""
    key = {"user": "carol@corp", "mechanism": "SCRAM-SHA-256"}
    row = differing(
        "scram_credentials",
        key,
        zk_row={"salt": "a", "stored_key": "b", "server_key": "c", "iterations": 1},
        zk_mzxid=850,
        zk_mtime=LOADED_AT + 100 * CLOCK_MARGIN_MS,
    )
    old, new = replace(CONTEXT, limits=limits("3.5.2")), replace(CONTEXT, limits=limits("3.9.1"))
    assert one(row, old).class_ == classes.LOAD_LOSS
    assert "KAFKA-16222" in one(row, old).explanation
    assert one(row, new).class_ == classes.FOREIGN_WRITE


@pytest.mark.parametrize(("version", "class_"), [("3.7.2", classes.LOST_WRITE), ("3.6", classes.LOAD_EXTRA)])
def test_a_percent_in_a_name_is_a_name_where_the_release_names_rightly(version: str, class_: str) -> None:
    key = {"entity": [{"type": "user", "name": "100%25"}], "quota": "request_percentage"}
    row = differing("client_quotas", key, kraft_row={"value": 1.0}, kraft_offset=30, kraft_created_offset=30)
    assert one(row, replace(CONTEXT, limits=limits(version))).class_ == class_


def test_tokens_of_3_5_are_not_migrated_whoever_writes_them() -> None:
    key = {"token_id": "t"}
    value = dict.fromkeys(("owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiry_timestamp"), 1)
    row = differing("delegation_tokens", key, zk_row=value, zk_mzxid=901)
    assert one(row, replace(CONTEXT, limits=limits("3.5.2"))).class_ == classes.LOAD_LOSS
    assert one(row, replace(CONTEXT, limits=limits("3.6.2"))).class_ == classes.FOREIGN_WRITE


def test_a_new_row_of_the_tail_alone_is_uncommitted() -> None:
    row = differing("topics", TOPIC_KEY, comparable=None, zk_path=None, versions=[version(115, {"topic_id": "x"})])
    assert (one(row).class_, one(row).kind) == (classes.UNCOMMITTED_TAIL, "kraft_only")


EARLY = replace(CONTEXT, limits=limits("3.4.1"), claim_zxid=400)


@pytest.mark.parametrize(
    ("row", "class_"),
    [
        (
            differing("acls", {**CONFIG_KEY, "resource_name": "x", "pattern_type": "LITERAL"}, zk_row={}),
            classes.LOAD_LOSS,
        ),
        (
            differing("acls", {**CONFIG_KEY, "pattern_type": "LITERAL"}, kraft_row={}, kraft_offset=105),
            classes.LOST_WRITE,
        ),
        (
            differing(
                "topics",
                TOPIC_KEY,
                zk_row={"topic_id": "x"},
                versions=[version(60, {"topic_id": "x"}), version(106, {"topic_id": "x"}, removed=True)],
            ),
            classes.LOST_WRITE,
        ),
        (
            partition(
                STATE,
                STATE | {"replicas": [4, 5, 6]},
                kraft_offset=105,
                versions=[version(60, STATE), version(105, STATE | {"replicas": [4, 5, 6]})],
            ),
            classes.LOST_WRITE,
        ),
        (
            partition(
                STATE,
                STATE | {"isr": [1]},
                kraft_offset=105,
                versions=[version(60, STATE), version(105, STATE | {"isr": [1]})],
            ),
            classes.LAG,
        ),
        (partition(STATE, STATE | {"isr": [1]}), classes.LOST_WRITE),
    ],
    ids=["acl-in-zookeeper", "acl-in-kraft", "deleted-topic", "reassignment", "state-since", "state-before"],
)
def test_3_4_is_judged_by_what_it_mirrors(row: dict[str, Any], class_: str) -> None:
    """Offset 100 stands for what /migration's last write shows to be mirrored; later changes may be on their way."""
    found = one(row, EARLY)
    assert found.class_ == class_
    assert "/migration has passed" not in found.explanation


LOAD = (20, 50)
TOLD = replace(CONTEXT, load=LOAD, history_from=0)
STATE_PATH = "/brokers/topics/orders/partitions/3/state"
BY_HAND = "transaction logs would show which"


def test_a_value_that_no_version_of_the_row_had_was_written_by_somebody() -> None:
    """Written a second after KRaft's last change, where no clock can tell."""
    old = STATE | {"leader": 2, "leader_epoch": 4}
    story = [version(30, old), version(60, STATE)]
    edited = partition(STATE | {"leader": 3}, STATE, zk_mtime=LOADED_AT + 1005, earlier=story)
    found = one(edited, TOLD)
    assert (found.class_, found.zk_mzxid) == (classes.FOREIGN_WRITE, 500)
    assert "transaction 0x1f4" in found.explanation
    left = partition(old, STATE, zk_mtime=LOADED_AT + 1005, earlier=story)
    assert {d.class_ for d in classify(left, TOLD)} == {classes.LOST_WRITE}, "KRaft had this leader in this epoch"
    assert one({**edited, "earlier": None}, TOLD).class_ == classes.LOST_WRITE, "not all versions are known"


def test_a_znode_is_one_value_that_kraft_never_had_even_if_it_had_each_part() -> None:
    story = [version(30, STATE | {"leader": 2, "leader_epoch": 4}), version(60, STATE)]
    mixed = partition(STATE | {"leader": 2}, STATE, earlier=story)
    assert one(mixed, TOLD).class_ == classes.FOREIGN_WRITE
    order = partition(STATE | {"leader": 2, "leader_epoch": 4, "isr": [3, 2, 1]}, STATE, earlier=story)
    found = {d.column: d.class_ for d in classify(order, TOLD)}
    assert found == {"isr": classes.IN_SYNC, "leader": classes.LOST_WRITE, "leader_epoch": classes.LOST_WRITE}


def test_a_row_that_one_record_made_had_no_other_value() -> None:
    row = partition(STATE | {"leader": 3}, STATE, kraft_offset=60, kraft_created_offset=60)
    assert one(row, TOLD).class_ == classes.FOREIGN_WRITE
    assert one(row, replace(TOLD, history_from=61)).class_ == classes.LOST_WRITE, "what came before is not known"
    assert one(row, replace(TOLD, history_from=None)).class_ == classes.LOST_WRITE
    twice = {**row, "versions": [version(40, STATE, removed=True)]}
    assert one(twice, TOLD).class_ == classes.LOST_WRITE, "an earlier life may have had the value"


def test_a_value_older_than_the_load_that_kraft_never_had_was_lost_by_the_load() -> None:
    """KAFKA-15552: the load's producer id is not the one that ZooKeeper's block says."""
    row = differing(
        "producer_ids",
        {},
        zk_row={"next_producer_id": 5000},
        kraft_row={"next_producer_id": 4000},
        zk_mzxid=300,
        kraft_offset=45,
        kraft_created_offset=45,
        kraft_append_time=LOADED_AT,
    )
    assert one(row, replace(TOLD, load_claim=400)).class_ == classes.LOAD_LOSS
    assert one(row, replace(TOLD, load_claim=299)).class_ == classes.FOREIGN_WRITE
    before = {**row, "zk_mtime": LOADED_AT - CLOCK_MARGIN_MS - 1}
    assert one(before, TOLD).class_ == classes.LOAD_LOSS


def test_a_block_that_kraft_wrote_in_an_earlier_migration_was_loaded_by_its_end() -> None:
    """ZkMigrationClient.migrateProducerId takes block_end + 1 whoever wrote the block; the full sync then leaves it as it is."""
    loaded, context = {"next_producer_id": 3000}, replace(TOLD, load=(30, 50))
    row = differing(
        "producer_ids",
        {},
        zk_row={"next_producer_id": 2000},
        kraft_row=loaded,
        zk_mzxid=300,
        kraft_offset=45,
        kraft_created_offset=45,
        kraft_append_time=LOADED_AT,
    )
    assert list(classify(row, context)) == []
    [found] = classify(row, replace(context, load=(50, 60)))
    assert found.class_ == classes.FOREIGN_WRITE, "a value that did not come with the load was mirrored by its start"
    [found] = classify({**row, "kraft_row": json.dumps({"next_producer_id": 5000})}, context)
    assert found.class_ == classes.FOREIGN_WRITE
    # The next block is not mirrored yet, and then lost.
    taken = {**row, "kraft_row": json.dumps({"next_producer_id": 4000}), "kraft_offset": 105}
    story = [version(45, loaded), version(105, {"next_producer_id": 4000})]
    assert one({**taken, "versions": story}, context).class_ == classes.LAG
    passed = replace(context, migration_offset=105, committed_end=120)
    assert one({**taken, "versions": story[1:], "earlier": story}, passed).class_ == classes.LOST_WRITE


def loaded_config(**values: Any) -> dict[str, Any]:
    return {**missing_config(), "kraft_offset": 30, "kraft_created_offset": 30, **values}


def looked_up(written: WrittenAt | None = None, **above: Children) -> Homes:
    parents = {"/config/topics": above["topics"]} if above else {}
    return Homes({CONFIG_PATH: written} if written else {}, above=parents, looked_up=True)


@pytest.mark.parametrize(
    ("homes", "class_"),
    [
        (Homes(), classes.LOST_WRITE),
        (looked_up(topics=Children(850, 3)), classes.FOREIGN_WRITE),
        (looked_up(topics=Children(850, None)), classes.FOREIGN_WRITE),
        (looked_up(), classes.FOREIGN_WRITE),
        (looked_up(WrittenAt(CONFIG_PATH, 850, LOADED_AT)), classes.FOREIGN_WRITE),
        (looked_up(WrittenAt(CONFIG_PATH, 399, LOADED_AT)), classes.LOAD_EXTRA),
        (looked_up(topics=Children(850, 0)), classes.LOAD_EXTRA),
        (looked_up(topics=Children(399, 3)), classes.LOAD_EXTRA),
    ],
)
def test_what_came_with_the_load_and_is_gone_was_removed_or_never_there(homes: Homes, class_: str) -> None:
    context = replace(TOLD, load_claim=400, homes=homes)
    assert one(loaded_config(), context).class_ == class_


def test_a_row_that_kraft_changed_since_the_load_may_be_lost_on_the_way() -> None:
    context = replace(TOLD, homes=looked_up(topics=Children(850, 3)))
    assert one(loaded_config(kraft_offset=70), context).class_ == classes.LOST_WRITE
    assert one(loaded_config(kraft_offset=55, kraft_created_offset=55), context).class_ == classes.LOST_WRITE


def test_a_state_znode_that_never_was_is_the_loads_invention() -> None:
    """The load makes up the state of a partition without one, and every later write of it fails."""
    half = STATE | dict.fromkeys(("isr", "leader", "leader_epoch", "leader_recovery_state"))
    above = {"/brokers/topics/orders/partitions/3": Children(100, 0)}
    row = partition(half, STATE, kraft_offset=80, kraft_created_offset=40)
    found = list(classify(row, replace(TOLD, homes=Homes(above=above, looked_up=True))))
    assert {d.class_ for d in found} == {classes.LOAD_EXTRA}
    removed = {"/brokers/topics/orders/partitions/3": Children(100, 1)}
    found = list(classify(row, replace(TOLD, homes=Homes(above=removed, looked_up=True))))
    assert {d.class_ for d in found} == {classes.LOST_WRITE}


def test_an_acl_of_the_load_that_kafka_may_have_dropped_is_not_somebodys_work() -> None:
    key = {
        "resource_type": "TOPIC",
        "resource_name": "wide",
        "pattern_type": "LITERAL",
        "principal": "User:erin",
        "host": "*",
        "operation": "WRITE",
        "permission": "ALLOW",
    }
    path = "/kafka-acl/Topic/wide"
    row = differing(
        "acls", key, kraft_row={}, kraft_offset=30, kraft_created_offset=30, kraft_append_time=LOADED_AT, zk_mzxid=None
    )
    there = Homes({path: WrittenAt(path, 850, LOADED_AT)}, looked_up=True)
    old, new = limits("3.6.1"), limits("3.9.1")
    assert one(row, replace(TOLD, homes=there, limits=old)).class_ == classes.LOST_WRITE
    assert one(row, replace(TOLD, homes=there, limits=new)).class_ == classes.FOREIGN_WRITE
    assert one(row, replace(TOLD, homes=Homes(looked_up=True), limits=old)).class_ == classes.FOREIGN_WRITE


def test_what_cannot_be_decided_is_said_in_the_row() -> None:
    near = partition(STATE | {"leader": 3}, STATE, zk_mtime=LOADED_AT)
    assert BY_HAND in one(near).explanation
    assert BY_HAND in one(missing_config()).explanation
    told = replace(CONTEXT, transactions_known=True)
    assert BY_HAND not in one(near, told).explanation
    assert BY_HAND not in one(missing_config(), told).explanation
    long_before = {**near, "zk_mtime": LOADED_AT - CLOCK_MARGIN_MS - 1}
    assert "not been written since" in one(long_before).explanation
    never = replace(CONTEXT, homes=looked_up(topics=Children(850, 0)))
    assert "never written" in one(missing_config(), never).explanation
    removal = differing(
        "topics", TOPIC_KEY, zk_row={"topic_id": "x"}, versions=[version(70, {"topic_id": "x"}, removed=True)]
    )
    removal["versions"][0]["from_append_time"] = LOADED_AT
    assert BY_HAND in one(removal).explanation


def test_measured_clocks_decide_where_a_minute_does_not() -> None:
    late = partition(STATE | {"leader": 3}, STATE, zk_mtime=LOADED_AT + 5 + 12_000)
    assert one(late).class_ == classes.LOST_WRITE
    assert one(late, replace(CONTEXT, clocks=Clocks(2_000, 5_000))).class_ == classes.FOREIGN_WRITE
    assert one(late, replace(CONTEXT, clocks=Clocks(8_000, 5_000))).class_ == classes.LOST_WRITE
    ahead = replace(CONTEXT, clocks=Clocks(300_000, 5_000))
    row = differing("topics", TOPIC_KEY, zk_row={"topic_id": "x"}, zk_mtime=LOADED_AT + 290_000)
    assert one(row, ahead).class_ == classes.LOAD_LOSS, "ZooKeeper's clock is five minutes ahead"
    assert one(row).class_ == classes.FOREIGN_WRITE


def test_a_log_that_begins_after_the_load_does_not_know_all_that_kraft_had() -> None:
    row = differing("topics", TOPIC_KEY, zk_row={"topic_id": "x"}, zk_mtime=LOADED_AT - 5)
    assert "as far as the log goes back" in one(row, replace(CONTEXT, history_from=80)).explanation
    assert "as far as the log goes back" not in one(row, TOLD).explanation
    above = {**row, "zk_mzxid": 401, "zk_mtime": LOADED_AT}
    assert "as far as the log goes back" in one(above, replace(CONTEXT, history_from=80, claim_zxid=400)).explanation
    after = {**row, "zk_mtime": LOADED_AT + CLOCK_MARGIN_MS + 1}
    assert "as far as the log goes back" in one(after, replace(CONTEXT, history_from=80)).explanation


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize(
    ("entity", "key", "release"),
    [
        ("topics", TOPIC_KEY, "3.9.1"),
        ("scram_credentials", {"user": "carol@corp", "mechanism": "SCRAM-SHA-256"}, "3.5.2"),
        ("delegation_tokens", {"token_id": "t"}, "3.5.2"),
    ],
)
def test_a_log_that_begins_past_the_offset_concludes_nothing_of_what_it_lacks(
    entity: str, key: dict[str, Any], release: str, frozen: bool
) -> None:
    context = replace(CONTEXT, history_from=102, claim_zxid=400, limits=limits(release), frozen=frozen)
    for written in ({"zk_mzxid": 399}, {"zk_mzxid": 401}, {"zk_mzxid": 901}, {"zk_mtime": 10 * LOADED_AT}):
        found = one(differing(entity, key, zk_row={"topic_id": "x"}, **written), context)
        assert found.class_ == (classes.EXPECTED_STALE if frozen else classes.LAG)
        assert "offset 102" in found.explanation
    at = replace(context, history_from=101)
    assert one(differing(entity, key, zk_row={"topic_id": "x"}, zk_mzxid=399), at).class_ == classes.LOAD_LOSS


def test_a_leader_epoch_that_zookeeper_is_ahead_in_is_critical() -> None:
    """ISR-17: brokers would follow the newer epoch after a rollback."""
    assert one(partition(STATE | {"leader_epoch": 6}, STATE)).severity == "critical"
    assert one(partition(STATE | {"leader_epoch": 4}, STATE)).severity == "error"
    newer = partition(STATE | {"leader_epoch": 6}, STATE | {"leader_epoch": 7}, kraft_offset=107)
    newer["versions"] = [version(60, STATE), version(104, STATE | {"leader_epoch": 6}), version(107, STATE)]
    assert one(newer).severity == "info", "in flight"


LOADED_ROW = {"kraft_offset": 60, "kraft_created_offset": 30, "kraft_append_time": LOADED_AT}
THERE = Homes(above={"/brokers/topics": Children(800, 3)}, looked_up=True)


def test_what_came_with_the_load_and_kraft_changed_but_never_removed_was_removed_by_somebody() -> None:
    story = [version(30, STATE | {"isr": [1]}), version(60, STATE)]
    row = differing("partitions", PARTITION_KEY, kraft_row=STATE, **LOADED_ROW, earlier=story)
    looked = replace(TOLD, homes=THERE, load_claim=400)
    assert one(row, looked).class_ == classes.FOREIGN_WRITE
    assert one({**row, "earlier": None}, looked).class_ == classes.LOST_WRITE, (
        "KRaft may have removed it and made it again"
    )
    again = [version(30, STATE), version(50, STATE, removed=True), version(60, STATE)]
    assert one({**row, "earlier": again}, looked).class_ == classes.LOST_WRITE, "making it again was lost"


def test_partitions_go_with_the_topic_that_somebody_removed() -> None:
    row = differing("partitions", PARTITION_KEY, kraft_row=STATE, kraft_offset=60, kraft_created_offset=60)
    looked = replace(TOLD, homes=THERE, load_claim=400)
    assert one(row, looked).class_ == classes.LOST_WRITE, "added since the load: its znode may never have been written"
    found = one(row, replace(looked, removed=frozenset({"/brokers/topics/orders"})))
    assert found.class_ == classes.FOREIGN_WRITE
    assert "topic" in found.explanation


@pytest.mark.parametrize(
    ("above", "class_"),
    [
        (Children(800, 1, lost_a_child=True), classes.FOREIGN_WRITE),
        (Children(800, 1), classes.LOST_WRITE),
        (Children(300, 1, lost_a_child=True), classes.LOST_WRITE),
    ],
    ids=["removed since the claim", "added to last", "removed before the claim"],
)
def test_kafka_never_deletes_the_znode_of_a_quota(above: Children, class_: str) -> None:
    key = {"entity": [{"type": "client-id", "name": "app-9"}], "quota": "producer_byte_rate"}
    row = differing("client_quotas", key, kraft_row={"value": 11.0}, kraft_offset=60, kraft_created_offset=60)
    looked = Homes(above={"/config/clients": above}, looked_up=True)
    assert one(row, replace(TOLD, homes=looked, claim_zxid=400)).class_ == class_
    assert one(row, replace(TOLD, homes=looked, claim_zxid=400, transactions_known=True)).class_ == classes.LOST_WRITE


@pytest.mark.parametrize(
    ("above", "class_"),
    [
        (Children(800, 1, lost_a_child=True), classes.FOREIGN_WRITE),
        (Children(800, 1), classes.LOST_WRITE),
        (Children(300, 1, lost_a_child=True), classes.LOST_WRITE),
        (Children(800, 0), classes.LOST_WRITE),
    ],
    ids=["removed since the claim", "added to last", "removed before the claim", "never written"],
)
def test_kafka_never_deletes_the_state_of_a_partition_that_is_there(above: Children, class_: str) -> None:
    """Made in dual write and gone: the list of children above tells that it was written, and by whom it was not removed."""
    half = STATE | dict.fromkeys(("isr", "leader", "leader_epoch", "leader_recovery_state"))
    row = partition(half, STATE, kraft_offset=80, kraft_created_offset=60)
    looked = Homes(above={"/brokers/topics/orders/partitions/3": above}, looked_up=True)
    found = classify(row, replace(TOLD, homes=looked, claim_zxid=400))
    assert {d.class_ for d in found} == {class_}
    told = classify(row, replace(TOLD, homes=looked, claim_zxid=400, transactions_known=True))
    assert {d.class_ for d in told} == {classes.LOST_WRITE}


def test_a_history_that_begins_too_late_concludes_nothing() -> None:
    """From a base checkpoint on, or with the first records of the row missing, older values are not known."""
    old = STATE | {"leader": 2, "leader_epoch": 4}
    edited = partition(STATE | {"leader": 3}, STATE, earlier=[version(40, old), version(60, STATE)])
    assert one(edited, TOLD).class_ == classes.FOREIGN_WRITE
    assert one(edited, replace(TOLD, history_from=41)).class_ == classes.LOST_WRITE
    late = {**edited, "earlier": [version(60, STATE)]}
    assert one(late, TOLD).class_ == classes.LOST_WRITE, "made at 40, and what was known begins at 60"


def test_a_value_that_the_transaction_logs_show_as_krafts_is_nobody_elses() -> None:
    edited = partition(STATE | {"leader": 3}, STATE, earlier=[version(40, STATE)])
    assert one(edited, TOLD).class_ == classes.FOREIGN_WRITE
    told = replace(TOLD, transactions_known=True, claim_zxid=400)
    assert one(edited, told).class_ == classes.LOST_WRITE
    assert one(edited, replace(told, foreign_zxids=frozenset({500}))).class_ == classes.FOREIGN_WRITE


def test_a_lost_write_names_the_first_record_that_zookeeper_lacks() -> None:
    """Three changes of the leader: ZooKeeper has the first, so that the second was lost, and the third after it."""
    first, second = STATE | {"leader": 2, "leader_epoch": 3}, STATE | {"leader": 3, "leader_epoch": 4}
    story = [version(40, first), version(50, second), version(60, STATE)]
    behind = partition(first, STATE, earlier=story)
    assert {(d.class_, d.lost_offset) for d in classify(behind, TOLD)} == {(classes.LOST_WRITE, 50)}
    unknown = {d.lost_offset for d in classify({**behind, "earlier": None}, TOLD)}
    assert unknown == {60}, "the last one, when that is all that is known"
    gone = differing(
        "topics", TOPIC_KEY, zk_row={"topic_id": "x"}, versions=[version(60, {"topic_id": "x"}, removed=True)]
    )
    told = [version(30, {"topic_id": "x"}), version(60, {"topic_id": "x"}, removed=True)]
    assert one({**gone, "earlier": told}, TOLD).lost_offset == 60
    assert one(partition(STATE | {"leader": 9}, STATE, earlier=story), TOLD).lost_offset is None, "a foreign write"
