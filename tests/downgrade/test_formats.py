"""Persistent formats, counted in the znodes of a tree and in KRaft's partitions."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from schemas.checks.codes import CLEAR_REMOVED
from schemas.entities.acls import ACLS
from schemas.entities.configs import CONFIGS
from schemas.entities.partitions import PARTITIONS
from schemas.kraft.enums import DIRECTORY_MIGRATING
from schemas.silver import FINDINGS
from tests.downgrade.trees import of_tree
from tests.zookeeper.trees import dump_batches
from transforms.downgrade.evidence import TRACES, TreeFormats, formats_of_log, seen
from transforms.downgrade.ledger import OF_KRAFT, Seen
from transforms.frames import columns_of, frame

ZNODES = pl.Schema({"path": pl.String, "data": pl.String})


def shown(*znodes: tuple[str, str | None], at_once: int = 100) -> dict[str, Seen]:
    formats = TreeFormats()
    for batch in pl.DataFrame(znodes, schema=ZNODES, orient="row").iter_slices(at_once):
        formats.add(batch)
    return seen(next(iter(formats.answer()), None), tuple(TRACES))


@pytest.mark.parametrize("stage", ["1", "5-dual-write-changed", "12-finalized"])
def test_a_real_tree_shows_what_its_znodes_show_one_by_one(stage: str) -> None:
    rows = [row for batch in dump_batches("3.9.1", stage) for row in batch.to_pylist()]
    znodes = [(row["path"], row["data"]) for row in rows]
    expected = of_tree(znodes).seen
    assert shown(*znodes) == shown(*znodes, at_once=7) == expected
    assert expected["topic_id"].total > 5


def test_a_znode_that_shows_a_format_twice_counts_once() -> None:
    moving = '{"adding_replicas":{"0":[1]},"removing_replicas":{"0":[2]},"topic_id":null}'
    still = '{"adding_replicas":{},"removing_replicas": { }}'
    found = shown(("/brokers/topics/b", moving), ("/brokers/topics/a", moving), ("/brokers/topics/c", still))
    assert found["reassignment_keys"] == Seen(2, "/brokers/topics/a")
    assert found["topic_id"] == Seen(0)


@pytest.mark.parametrize("data", [None, "", "{", "[]", '{"version":4}', '{"version":"x"}', '{"version":1e400}'])
def test_what_is_not_the_format_or_no_json_at_all_is_none(data: str | None) -> None:
    assert shown(("/brokers/ids/0", data)) == dict.fromkeys(TRACES, Seen(0))
    assert shown(("/brokers/ids/0", data), ("/brokers/ids/1", '{"version":5}'))["broker_znode_v5"].total == 1


def test_a_tree_without_any_has_no_row() -> None:
    assert TreeFormats().answer() == []


def test_formats_of_the_log_are_told_with_their_newest_record() -> None:
    rows: list[dict[str, Any]] = [
        {"kraft_offset": 5, "directories": [DIRECTORY_MIGRATING, "d"], "eligible_leader_replicas": []},
        {"kraft_offset": 9, "directories": ["d"], "eligible_leader_replicas": None},
        {"kraft_offset": 12, "directories": [DIRECTORY_MIGRATING], "eligible_leader_replicas": []},
        {"kraft_offset": 13, "directories": None},
    ]
    partitions = frame(rows, columns_of(PARTITIONS.row_columns))
    of_types = (("TOPIC", 20), ("GROUP", 21), ("GROUP", 22), ("BROKER", 23))
    configs = frame(
        [{"kraft_offset": offset, "resource_type": kind} for kind, offset in of_types], columns_of(CONFIGS.row_columns)
    )
    acls = frame(
        [{"kraft_offset": at, "operation": operation} for at, operation in ((25, "TWO_PHASE_COMMIT"), (26, "WRITE"))],
        columns_of(ACLS.row_columns),
    )
    cleared = [{"code": CLEAR_REMOVED, "place": f"offset {at}"} for at in (7, 31)]
    findings = frame([{"code": "CLEAR-ALL", "place": "offset 40"}, *cleared], columns_of(FINDINGS.columns))
    (answer,) = formats_of_log(partitions, configs, acls, findings)
    assert {name: found for name, found in seen(answer, OF_KRAFT).items() if "_configs_" not in name} == {
        "directory_ids": Seen(2, "PARTITION records, offset 9"),
        "eligible_leader_replicas": Seen(0),
        "client_metrics_configs": Seen(0),
        "group_configs": Seen(2, "CONFIG records, offset 22"),
        "two_phase_commit_acls": Seen(1, "ACCESS_CONTROL_ENTRY records, offset 25"),
        "clear_elr_after_removal": Seen(2, "CLEAR_ELR records, offset 31"),
    }
    nothing = (partitions.clear(), configs.clear(), acls.clear(), findings.clear())
    assert formats_of_log(*nothing) == []
    for place, some, name, total in (
        (1, configs, "group_configs", 2),
        (2, acls, "two_phase_commit_acls", 1),
        (3, findings, "clear_elr_after_removal", 2),
    ):
        (answer,) = formats_of_log(*nothing[:place], some, *nothing[place + 1 :])
        assert seen(answer, OF_KRAFT)[name].total == total


def test_configurations_are_told_by_the_release_that_they_came_with() -> None:
    """A name may be of two types, and of one type alone it may be new."""
    of_types = {
        ("TOPIC", "retention.ms"): "",
        ("TOPIC", "errors.deadletterqueue.group.enable"): "topic_configs_4_4",
        ("TOPIC", "compression.zstd.level"): "topic_configs_3_8",
        ("BROKER", "compression.zstd.level"): "broker_configs_3_8",
        ("BROKER", "errors.deadletterqueue.topic.name.prefix"): "broker_configs_4_4",
        ("GROUP", "errors.deadletterqueue.topic.name"): "group_configs_4_4",
        ("GROUP", "share.isolation.level"): "group_configs_4_1",
        ("GROUP", "share.auto.offset.reset"): "",
    }
    rows = [
        {"kraft_offset": offset, "resource_type": kind, "config": name}
        for offset, (kind, name) in enumerate(of_types, 1)
    ]
    partitions = frame([], columns_of(PARTITIONS.row_columns))
    findings = frame([], columns_of(FINDINGS.columns))
    acls, configs = frame([], columns_of(ACLS.row_columns)), frame(rows, columns_of(CONFIGS.row_columns))
    (answer,) = formats_of_log(partitions, configs, acls, findings)
    found = {name: each.example for name, each in seen(answer, OF_KRAFT).items() if each.total and "_configs_" in name}
    assert found == {name: f"CONFIG records, offset {at}" for at, name in enumerate(of_types.values(), 1) if name}


def test_what_an_earlier_release_of_this_audit_did_not_look_for_is_not_absent() -> None:
    earlier = {"directory_ids": 1, "directory_ids_example": "x"}
    assert seen(earlier, OF_KRAFT) == {"directory_ids": Seen(1, "x")}
    assert seen(None, OF_KRAFT) == dict.fromkeys(OF_KRAFT, Seen(0))
