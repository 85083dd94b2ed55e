"""Ten runs over one cluster whose ZooKeeper and log change between them: history, changes, and mails by each policy.

A real ZooKeeper server, a real mail server, and a log that grows. Three configurations of the same cluster differ in their
mail policy only. Run by `make test-live`: ten audits one after the other take minutes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from pyspark.sql import SparkSession

from jobs.commands.demo.zookeeper_server import zookeeper_server
from jobs.pipeline import run_all
from jobs.run.run import open_run
from jobs.settings import validated
from jobs.sinks.delta import Warehouse
from jobs.steps import mails
from jobs.steps.publishing import publish
from schemas.gold import DIVERGENCES, MAILS, RUNS
from schemas.report import Report
from tests.pipeline.audits import settings_content
from tests.pipeline.logs import append, record, writable_copy
from tests.pipeline.rows import HEALTHY
from tests.report.test_smtp import Mailbox, running

pytestmark = pytest.mark.live

POLICIES = ("always", "on_change", "when_red")
RUNS_MADE = 10
TOPIC = 2


@dataclass
class Scene:
    """The cluster as it is: its ZooKeeper's client and its controllers' logs."""

    client: KazooClient
    logs: Path
    mirrored: int = 0

    def edit(self, path: str, change: Callable[[Any], object]) -> None:
        """Set a znode's document to what `change` makes of it in place."""
        document = json.loads(self.client.get(path)[0])
        change(document)
        self.client.set(path, json.dumps(document).encode())

    def set_config(self, topic: str, key: str, value: str) -> None:
        self.edit(f"/config/topics/{topic}", lambda document: document["config"].update({key: value}))

    def beat(self) -> None:
        """What a controller does twice a second: a no-op, which ZooKeeper is told of."""
        self.mirrored = append(self.logs, [record("NO_OP_RECORD")], _now())
        self._tell_zookeeper()

    def append_config(self, value: str) -> None:
        """What a controller does for a request: a record, which is mirrored later."""
        change = record("CONFIG_RECORD", resourceType=TOPIC, resourceName="orders", name="segment.bytes", value=value)
        append(self.logs, [change], _now())

    def mirror_config(self, value: str) -> None:
        self.set_config("orders", "segment.bytes", value)
        self.beat()

    def _tell_zookeeper(self) -> None:
        self.edit("/migration", lambda document: document.update(kraft_metadata_offset=self.mirrored))


def _now() -> int:
    return int(time.time() * 1000)


@dataclass(frozen=True)
class Step:
    """What is done before a run, and what the run must say: defects by status, lagging rows, and who is mailed."""

    name: str
    do: Callable[[Scene], None]
    verdict: str
    statuses: Mapping[str, int]
    lag: int = 0
    mailed: tuple[str, ...] = ("always",)
    changes: tuple[str, ...] = field(default=())
    # Whether ZooKeeper has everything before it.
    beats: bool = True


def nothing(_: Scene) -> None:
    """The cluster stays as it is."""


def original() -> str:
    """The value that KRaft has all along."""
    document = json.loads((HEALTHY / "expected.json").read_text())
    found = [each["value"] for each in document["state"]["configs"] if each["key"][1:] == ["orders", "retention.ms"]]
    return str(found[0])


STEPS = (
    Step("healthy", nothing, "clean", {}, mailed=("always", "on_change"), changes=("This is the first run.",)),
    Step("the same again", nothing, "clean", {}),
    Step(
        "one edit behind the controller's back",
        lambda scene: scene.set_config("orders", "retention.ms", "1"),
        "errors",
        {"new": 1},
        mailed=POLICIES,
        changes=("1 new defect.",),
    ),
    Step("nobody did anything", nothing, "errors", {"persisting": 1}, mailed=("always", "when_red")),
    Step(
        "another edit",
        lambda scene: scene.set_config("orders", "flush.ms", "5"),
        "errors",
        {"persisting": 1, "new": 1},
        mailed=POLICIES,
        changes=("1 new defect.",),
    ),
    Step(
        "the first is put right",
        lambda scene: scene.set_config("orders", "retention.ms", original()),
        "errors",
        {"persisting": 1, "resolved": 1},
        mailed=POLICIES,
        changes=("1 defect resolved.",),
    ),
    Step(
        "a change that is not mirrored yet",
        lambda scene: scene.append_config("7000000"),
        "errors",
        {"persisting": 1},
        lag=1,
        mailed=("always", "when_red"),
    ),
    Step(
        "it is mirrored",
        lambda scene: scene.mirror_config("7000000"),
        "errors",
        {"persisting": 1},
        mailed=("always", "when_red"),
        beats=False,
    ),
    Step(
        "the other edit is put right",
        lambda scene: scene.edit("/config/topics/orders", lambda document: document["config"].pop("flush.ms")),
        "clean",
        {"resolved": 1},
        mailed=("always", "on_change"),
        changes=("1 defect resolved.",),
    ),
    Step("all is well", nothing, "clean", {}),
)


@dataclass(frozen=True)
class Made:
    """A run: the report of each policy's cluster, who was mailed, and what was said to have changed."""

    reports: Mapping[str, Report]
    mailed: tuple[str, ...]
    texts: Mapping[str, str]


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Made], Path]]:
    folder = tmp_path_factory.mktemp("ten")
    logs = writable_copy(HEALTHY / "kraft", folder / "kraft")
    mailbox = Mailbox()
    runs: list[Made] = []
    with zookeeper_server(HEALTHY / "zookeeper") as server, running(mailbox) as port:
        client = KazooClient(server.address)
        client.start(30)
        contents = [content(policy, folder, server.address, logs, port) for policy in POLICIES]
        scene = Scene(client, logs)
        for step in STEPS:
            if step.beats:
                scene.beat()
            step.do(scene)
            runs.append(run_of(contents, mailbox))
        client.stop()
        client.close()
        yield runs, folder / "tables"


def content(policy: str, folder: Path, address: str, logs: Path, port: int) -> dict[str, object]:
    mail = {"host": "127.0.0.1", "port": port, "security": "none", "sender": "a@example.com", "send": policy}
    return {
        **settings_content(HEALTHY, folder / "tables", cluster=policy),
        "zookeeper": {"connect": address},
        # The controller is played by hand: by the clock dual write would be dead when the third cluster is read.
        "as_of": "data",
        "kraft": {"folders": [str(logs)]},
        "report": {"folder": str(folder / "reports"), "mail": {**mail, "recipients": [f"{policy}@example.com"]}},
    }


def run_of(contents: list[dict[str, object]], mailbox: Mailbox) -> Made:
    mailbox.received.clear()
    with open_run([validated(each, "test") for each in contents]) as run:
        mails.note_owed(run)
        outcomes = run_all(run)
        reports = {name: each.report for name, each in outcomes.items() if each.report is not None}
        after = publish(run, reports, {name: each.paths.html for name, each in outcomes.items() if each.paths})
    assert not after.problems
    texts = {}
    for _, recipients, raw in mailbox.received:
        plain = message_from_bytes(raw).get_payload(0)
        texts[recipients[0].partition("@")[0]] = plain.get_payload(decode=True).decode()  # type: ignore[union-attr]
    return Made(reports, tuple(policy for policy in POLICIES if policy in texts), texts)


@pytest.mark.parametrize("number", range(RUNS_MADE), ids=[step.name for step in STEPS])
def test_a_run_says_what_is_and_tells_whom_it_concerns(made: tuple[list[Made], Path], number: int) -> None:
    step, run = STEPS[number], made[0][number]
    for report in run.reports.values():
        statuses = {name: n for name, n in report.divergences.by_status.items() if n and name != "resolved"}
        gone = [row for row in report.resolved if row.class_ != "lag"]
        resolved = {"resolved": len(gone)} if gone else {}
        lagging = report.divergences.by_class.get("lag", 0)
        assert report.verdict == step.verdict
        assert lagging == step.lag
        counted = {**statuses, **resolved}
        counted["new"] = counted.get("new", 0) - lagging
        assert {name: count for name, count in counted.items() if count > 0} == dict(step.statuses)
    assert run.mailed == step.mailed, run.texts
    for change in step.changes:
        assert change in run.texts["on_change"]


def test_the_history_is_what_happened(made: tuple[list[Made], Path], spark: SparkSession) -> None:
    last = made[0][-1].reports["always"]
    assert [point.verdict for point in last.history] == [step.verdict for step in STEPS]
    assert [point.defects for point in last.history] == [0, 0, 1, 1, 2, 1, 1, 1, 0, 0]


def test_the_tables_keep_every_run_and_every_mail(made: tuple[list[Made], Path], spark: SparkSession) -> None:
    runs, tables = made
    warehouse = Warehouse(spark, str(tables))
    assert warehouse.read(RUNS).count() == RUNS_MADE * len(POLICIES)
    told = warehouse.read(MAILS).groupBy("cluster").count().collect()
    assert dict(map(tuple, told)) == {policy: sum(policy in run.mailed for run in runs) for policy in POLICIES}
    kept = warehouse.read(DIVERGENCES).where("cluster = 'always'")
    assert kept.select("fingerprint").distinct().count() == 3, "two edits, and one change on its way"
