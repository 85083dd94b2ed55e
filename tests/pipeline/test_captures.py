"""The pipeline on real migrations: the replayed state, the classes and the gates, stage by stage.

The truth is `expected.json`: an independent replay of the dump that Kafka's own tool printed, against the live tree.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.classes import DEFECTS
from schemas.entities import acls, brokers, client_quotas, configs, features, partitions, scram_credentials, topics
from schemas.entities.delegation_tokens import DELEGATION_TOKENS
from schemas.entities.entity import Entity
from schemas.kraft.enums import SCRAM_MECHANISMS
from tests.captures import capture
from tests.pipeline import expected
from tests.pipeline.audits import Audit
from tests.pipeline.conftest import CAPTURES

STAGES = [pair for pair in CAPTURES if pair != ("3.9.1", "retry-after-join")]
HEALTHY = {"4", "5", "6", "7", "9", "10", "11"}
# 3.5.2 has named defects at every stage from the load on.
WITHOUT_DIFFERENCE = [(version, stage) for version, stage in STAGES if version != "3.5.2" and stage in HEALTHY]

pytestmark = pytest.mark.slow


@pytest.fixture(params=STAGES, ids="/".join)
def stage_audit(request: pytest.FixtureRequest, audit_of: Callable[[str, str], Audit]) -> tuple[str, str, Path, Audit]:
    version, stage = request.param
    return version, stage, capture(version, stage), audit_of(version, stage)


def kraft_rows(result: Audit, entity: Entity) -> list[dict[str, object]]:
    return result.rows(entity.table, "source = 'kraft'")


def test_the_replayed_state_is_what_kafkas_own_dump_replays_to(stage_audit: tuple[str, str, Path, Audit]) -> None:
    _, _, folder, result = stage_audit
    state = expected.load(folder)["state"]
    assert {row["topic"]: row["topic_id"] for row in kraft_rows(result, topics.TOPICS)} == expected.topics(state)
    assert {
        (row["topic"], row["partition"]): {
            "replicas": row["replicas"],
            "adding": row["adding_replicas"],
            "removing": row["removing_replicas"],
            "isr": row["isr"],
            "leader": row["leader"],
            "leader_epoch": row["leader_epoch"],
            "partition_epoch": row["partition_epoch"],
            "recovery": row["leader_recovery_state"],
        }
        for row in kraft_rows(result, partitions.PARTITIONS)
    } == expected.partitions(state)
    clear = {
        (row["resource_type"], row["resource_name"], row["config"]): row["value"]
        for row in kraft_rows(result, configs.CONFIGS)
        if not row["sensitive"]
    }
    wanted = expected.configs(state)
    assert clear == {key: value for key, value in wanted.items() if key in clear}
    assert len(kraft_rows(result, configs.CONFIGS)) == len(wanted)
    assert {row["feature"]: row["level"] for row in kraft_rows(result, features.FEATURES)} == expected.features(state)
    assert {
        row["broker_id"]: {
            "epoch": row["broker_epoch"],
            "fenced": row["fenced"],
            "rack": row["rack"],
            "zk": row["is_migrating_zk_broker"],
        }
        for row in kraft_rows(result, brokers.BROKERS)
    } == expected.brokers(state)


def test_quotas_acls_credentials_and_tokens_replay_to_the_same(stage_audit: tuple[str, str, Path, Audit]) -> None:
    _, _, folder, result = stage_audit
    state = expected.load(folder)["state"]
    assert {
        (tuple((part["type"], part["name"]) for part in row["entity"]), row["quota"]): row["value"]
        for row in kraft_rows(result, client_quotas.CLIENT_QUOTAS)
    } == expected.quotas(state)
    key = acls.ACLS.key
    assert {tuple(row[name] for name in key) for row in kraft_rows(result, acls.ACLS)} == expected.acls(state)
    codes = {name: code for code, name in SCRAM_MECHANISMS.items()}
    assert {
        (row["user"], codes[str(row["mechanism"])], row["iterations"])
        for row in kraft_rows(result, scram_credentials.SCRAM_CREDENTIALS)
    } == expected.scram(state)
    assert {
        row["token_id"]: {name: row[name] for name in DELEGATION_TOKENS.compared}
        for row in kraft_rows(result, DELEGATION_TOKENS)
    } == expected.tokens(state)


def test_counts_of_both_sides(stage_audit: tuple[str, str, Path, Audit]) -> None:
    _, _, folder, result = stage_audit
    truth = expected.load(folder)
    names = {
        "acls": "acls",
        "configs": "configs",
        "partitions": "partitions",
        "quotas": "client_quotas",
        "scram": "scram_credentials",
        "tokens": "delegation_tokens",
        "topics": "topics",
    }
    counts = result.report.counts
    assert {name: counts[entity]["kraft"] for name, entity in names.items()} == truth["counts"]
    assert {name: counts[entity]["zookeeper"] for name, entity in names.items()} == truth["zk_counts"]


@pytest.mark.parametrize("stage_audit", WITHOUT_DIFFERENCE, ids="/".join, indirect=True)
def test_healthy_stages_have_no_defect_and_no_difference(stage_audit: tuple[str, str, Path, Audit]) -> None:
    *_, result = stage_audit
    assert result.report.divergences.total == 0
    assert result.report.divergences.by_class == {}
    assert (result.report.exit_code, result.report.verdict) == (0, "clean")
    assert result.report.lag.records == 0
    assert result.report.gates["dual_write"].verdict == "go"
    assert result.report.gates["rollback"].verdict == "go"
    spoken = {check.id: check.verdict for check in result.report.checks if check.verdict in ("fail", "warn", "unknown")}
    # Brokers still to be rolled are a step of the plan; no property file was given.
    assert {id_ for id_, verdict in spoken.items() if verdict == "fail"} <= {"FIN-01", "FIN-02"}
    told = {"RB-09": "unknown"}
    if stage_audit[0] == "3.6.2":
        # Controllers before 3.7 don't register: only their property files tell whether they have the flag.
        told["CONF-04"] = "unknown"
    assert {id_: verdict for id_, verdict in spoken.items() if verdict != "fail"} == told


def test_what_differs_is_what_differs_in_kafkas_own_state(stage_audit: tuple[str, str, Path, Audit]) -> None:
    """The rows of `expected.json` and no other, where the two sides are to be compared."""
    _, stage, folder, result = stage_audit
    truth = expected.load(folder)
    if stage not in {*HEALTHY, "8", "12", "quota-removal"}:
        assert result.report.divergences.total == 0, "nothing is compared before the load and after a rollback"
        return
    assert result.report.divergences.total == len(truth["divergences"])
    defects = sum(result.report.divergences.by_class.get(name, 0) for name in DEFECTS)
    assert defects == len(truth["divergences_at_migration_offset"])
    assert result.report.migration.committed_end_offset == truth["end_offset"]
    assert result.report.migration.kraft_metadata_offset == truth["migration"]["kraft_metadata_offset"]
