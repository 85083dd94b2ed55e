"""A real ZooKeeper server with a real cluster's data, changed by a client behind the KRaft controller's back.

The same changes are found by a live walk, and in the server's data folder, whose transaction log names each of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from pyspark.sql import SparkSession

from jobs.cli import main
from jobs.commands.demo.zookeeper_server import zookeeper_server
from jobs.exit import OK, USAGE
from jobs.run.run import new_run_id, open_run
from jobs.settings import load_settings
from jobs.steps.report import stored_report
from schemas.report import Report
from tests.pipeline.audits import audits, settings_content
from tests.pipeline.planted import Fault, assert_nothing_else, assert_shown
from tests.pipeline.rows import (
    HEALTHY,
    acl,
    cell,
    config,
    entry,
    only_kraft,
    only_zk,
    partition,
    place,
    quota,
    topic_id,
    whole,
)
from tests.pipeline.trees import state, topic

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

OTHER_ID = "AAECAwQFBgcICQoLDA0ODw"


def edited(client: KazooClient, path: str, edit: Callable[[Any], object]) -> None:
    """Set a znode's document to what `edit` makes of it in place."""
    document = json.loads(client.get(path)[0])
    edit(document)
    client.set(path, json.dumps(document).encode())


def interfere(client: KazooClient) -> None:
    """What a person, a script or an old broker might do."""
    edited(client, "/config/topics/orders", lambda d: d["config"].update({"flush.ms": "5", "retention.ms": "1"}))
    client.delete("/config/clients/app-9")
    edited(client, "/brokers/topics/orders/partitions/3/state", lambda d: d.update(leader=1))
    client.set("/kafka-acl/Topic/wide", json.dumps({"version": 1, "acls": [entry("User:erin", "Write")]}).encode())
    root = "/brokers/topics/by-hand"
    client.create(root, topic(OTHER_ID, {"0": [0, 1]}).encode())
    client.create(f"{root}/partitions/0/state", state(0, [0, 1]).encode(), makepath=True)
    # Without a transaction log only the last change of a list of children can be told: a deletion, here.
    client.delete("/brokers/topics/audit.log_v1-raw", recursive=True)


def unplanted(_: object) -> None:
    """`interfere` makes all the changes, on the server."""


FAULTS = [
    Fault(
        "configurations set and added",
        unplanted,
        (
            cell("configs", config("TOPIC", "orders", "retention.ms"), "value", "1", "172800000", "foreign_write"),
            only_zk("configs", config("TOPIC", "orders", "flush.ms"), "5", "foreign_write"),
        ),
    ),
    Fault(
        "a quota removed",
        unplanted,
        (only_kraft("client_quotas", quota("producer_byte_rate", client_id="app-9"), 11.0, "foreign_write"),),
    ),
    Fault(
        "a topic deleted",
        unplanted,
        (
            only_kraft("topics", {"topic": "audit.log_v1-raw"}, topic_id("audit.log_v1-raw"), "foreign_write"),
            *[
                only_kraft(
                    "partitions", place("audit.log_v1-raw", n), partition("audit.log_v1-raw", n), "foreign_write"
                )
                for n in range(3)
            ],
        ),
    ),
    Fault(
        "a leader set",
        unplanted,
        (cell("partitions", place("orders", 3), "leader", 1, 0, "foreign_write"),),
    ),
    Fault(
        "an ACL removed",
        unplanted,
        (only_kraft("acls", acl("TOPIC", "wide", "User:dave", "WRITE"), {}, "foreign_write"),),
    ),
    Fault(
        "a topic made",
        unplanted,
        (
            only_zk("topics", {"topic": "by-hand"}, OTHER_ID, "foreign_write"),
            only_zk("partitions", place("by-hand", 0), whole([0, 1], 0, [0, 1]), "foreign_write"),
        ),
    ),
]


@dataclass(frozen=True)
class Interfered:
    """Audits of the server before and after, walked live, and of its data folder."""

    before: Report
    walked: Report
    folder: Report


@contextmanager
def connected(address: str) -> Iterator[KazooClient]:
    client = KazooClient(address)
    client.start(30)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def bracketed_by_single_steps(content: dict[str, object], folder: Path, mirror: Callable[[], object]) -> Report:
    """Two walks around the log, each step a call of its own; without the second walk nothing may be judged.

    `mirror` writes to ZooKeeper between the walks. By the audit's clock all that was captured is old.
    """
    conf, run_id = folder / "bracket.yml", new_run_id(datetime.now(UTC))
    source = content["zookeeper"]
    assert isinstance(source, dict)
    asked = {**content, "zookeeper": {**source, "bracket": True}, "as_of": None}
    conf.write_text(json.dumps(asked))

    def step(name: str) -> int:
        return main([name, "--conf", str(conf), "--run-id", run_id])

    # A scheduler that tries a step again gets what it reads then.
    assert [step(name) for name in ("ingest-zookeeper", "ingest-zookeeper", "ingest-kraft")] == [OK, OK, OK]
    assert step("materialize") == USAGE
    # A second walk elsewhere would leave nothing that stood still, and nothing to judge.
    conf.write_text(
        json.dumps({**asked, "zookeeper": {**asked["zookeeper"], "connect": f"{source['connect']}/config/topics"}})
    )
    assert [step(name) for name in ("ingest-zookeeper", "materialize")] == [OK, USAGE]
    conf.write_text(json.dumps(asked))
    mirror()
    assert [step(name) for name in ("ingest-zookeeper", "materialize", "reconcile")] == [OK, OK, OK]
    settings = load_settings(conf)
    with open_run(settings) as run:
        return stored_report(run, settings.cluster, run_id)


@pytest.fixture(scope="module")
def interfered(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Interfered:
    folder = tmp_path_factory.mktemp("live")
    with zookeeper_server(HEALTHY / "zookeeper") as server:
        # The server holds what was captured long ago: by today's clock dual write would be dead.
        replayed = {"zookeeper": {"connect": server.address}, "as_of": "data"}
        walk = {**settings_content(HEALTHY, folder / "walked"), **replayed}
        with connected(server.address) as client:
            # What a controller does twice a second, whether there is anything to mirror or not.
            before = bracketed_by_single_steps(walk, folder, lambda: edited(client, "/migration", lambda _: None))
            interfere(client)
            # A stand-alone write that moves the offset makes the barrier at which a data folder is read.
            edited(client, "/migration", lambda d: d.update(kraft_metadata_offset=305))
        stored = {**settings_content(HEALTHY, folder / "walked"), "zookeeper": {"folder": str(server.data_folder)}}
        found = audits([{**walk, "cluster": "walked"}, {**stored, "cluster": "stored"}])
    return Interfered(before, found["walked"].report, found["stored"].report)


def test_a_server_that_only_its_controller_writes_to_has_no_difference_and_is_alive(interfered: Interfered) -> None:
    """`/migration` moved between the walks: what the audit's own clock says of it need not be asked."""
    assert interfered.before.mode == "bracket"
    assert interfered.before.lag.state == "live"
    assert interfered.before.divergences.total == 0
    assert interfered.before.exit_code == 0


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_change_behind_the_controllers_back_is_found_live(interfered: Interfered, fault: Fault) -> None:
    assert_shown(interfered.walked, fault)


def test_nothing_else_is_found_live(interfered: Interfered) -> None:
    assert_nothing_else(interfered.walked, FAULTS)
    assert interfered.walked.exit_code == 20


def test_the_transaction_log_tells_the_same(interfered: Interfered) -> None:
    assert interfered.folder.mode == "barrier"
    for fault in FAULTS:
        assert_shown(interfered.folder, fault)
    assert_nothing_else(interfered.folder, FAULTS)
    assert any("were not the KRaft controller's" in note for note in interfered.folder.notes)


def test_the_writes_are_named_with_their_session(interfered: Interfered) -> None:
    """The barrier that the test itself writes is by hand, too, but nobody can tell it from a controller's."""
    [found] = [check for check in interfered.folder.checks if check.id == "TXN-01"]
    assert found.verdict == "warn"
    assert any("delete /config/clients/app-9" in line and "session 0x" in line for line in found.evidence)
    walked = [check.verdict for check in interfered.walked.checks if check.id.startswith("TXN-")]
    assert walked == ["not_applicable"] * 5
    others = [check.verdict for check in interfered.folder.checks if check.id in ("TXN-02", "TXN-03", "TXN-04")]
    assert others == ["pass"] * 3
