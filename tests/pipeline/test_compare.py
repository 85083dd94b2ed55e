"""`kraft-audit compare` of two captures, against an independent replay of both."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from jobs.cli import main
from tests.captures import capture
from tests.pipeline import expected
from tests.pipeline.audits import Audit
from transforms.reconcile.compare.states import ComparisonRules, state_differences

pytestmark = pytest.mark.slow
Say = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def say(audit_of: Callable[[str, str], Audit], capsys: pytest.CaptureFixture[str]) -> Say:
    place = audit_of("3.9.1", "5").warehouse.root

    def run(first: str, second: str, *argv: str, code: int) -> list[dict[str, Any]]:
        clusters = ["--cluster", f"3.9.1-{first}", "--cluster", f"3.9.1-{second}"]
        capsys.readouterr()
        assert main(["compare", "--warehouse", place, *clusters, "--format", "jsonl", "--limit", "0", *argv]) == code
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def configs(stage: str) -> dict[tuple[str, str, str], str]:
    state = expected.load(capture("3.9.1", stage))["state"]
    return {
        (kind.upper(), name, config): row["value"] for row in state["configs"] for kind, name, config in [row["key"]]
    }


def replicas(stage: str) -> dict[tuple[str, int], list[int]]:
    found = expected.partitions(expected.load(capture("3.9.1", stage))["state"])
    return {key: value["replicas"] for key, value in found.items()}


def changed(first: Mapping[Any, Any], second: Mapping[Any, Any]) -> dict[Any, tuple[Any, Any]]:
    keys = {*first, *second}
    return {key: (first.get(key), second.get(key)) for key in keys if first.get(key) != second.get(key)}


def test_what_differs_is_what_an_independent_replay_of_both_says(say: Say) -> None:
    rows = say("5", "8", code=10)
    of_configs = {
        (row["key"]["resource_type"], row["key"]["resource_name"], row["key"]["config"]): (row["a"], row["b"])
        for row in rows
        if row["entity"] == "configs"
    }
    assert of_configs == changed(configs("5"), configs("8"))
    of_partitions = {(row["key"]["topic"], row["key"]["partition"]) for row in rows if row["entity"] == "partitions"}
    assert of_partitions == set(changed(replicas("5"), replicas("8")))
    assert of_configs
    assert of_partitions


def test_two_states_that_an_independent_replay_calls_equal_do_not_differ(say: Say) -> None:
    assert (configs("8"), replicas("8")) == (configs("9"), replicas("9"))
    assert say("8", "9", code=0) == []


def test_by_another_map_the_same_brokers_are_others(say: Say) -> None:
    rows = say("6", "7", "--broker-map", "0=1,1=0", code=10)
    moved = {(row["key"]["topic"], row["key"]["partition"]) for row in rows if row["entity"] == "partitions"}
    swapped = {key: [{0: 1, 1: 0}.get(broker, broker) for broker in brokers] for key, brokers in replicas("6").items()}
    assert moved == set(changed(swapped, replicas("7")))


def test_leaders_and_epochs_are_no_difference_and_ids_of_a_twin_are_its_own() -> None:
    assert {"leader", "isr", "leader_epoch"} & {c for e in ComparisonRules().entities for c in e.compared} == set()
    assert [e.compared for e in ComparisonRules().entities if e.name == "topics"] == [("topic_id",)]
    assert [e.compared for e in ComparisonRules(twin=True).entities if e.name == "topics"] == [()]
    assert "delegation_tokens" not in {e.name for e in ComparisonRules(twin=True).entities}


def test_equal_rows_are_no_difference() -> None:
    row = {"entity": "partitions", "key": '{"topic":"a","partition":0}', "zk_row": '{"replicas":[1]}'}
    other = '{"replicas":[2]}'
    assert list(state_differences([{**row, "kraft_row": row["zk_row"]}], ComparisonRules(twin=True))) == []
    assert len(list(state_differences([{**row, "kraft_row": other}], ComparisonRules(twin=True)))) == 1


def test_a_row_that_one_state_lacks_is_one_difference_and_a_tolerated_value_is_none() -> None:
    quota = '{"entity":[{"type":"user","name":"ann"}],"quota":"producer_byte_rate"}'
    rows = [
        {"entity": "topics", "key": '{"topic":"a"}', "zk_row": "{}", "kraft_row": None},
        {
            "entity": "client_quotas",
            "key": quota,
            "zk_row": '{"value":1.0}',
            "kraft_row": '{"value":1.0000000000000001}',
        },
        {
            "entity": "partitions",
            "key": '{"topic":"a","partition":0}',
            "zk_row": '{"replicas":[1]}',
            "kraft_row": '{"replicas":[2]}',
        },
    ]
    found = list(state_differences(rows, ComparisonRules(twin=True)))
    assert [(each.entity, each.column, each.left, each.right) for each in found] == [
        ("topics", None, "there", None),
        ("partitions", "replicas", [1], [2]),
    ]
