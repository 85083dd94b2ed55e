"""`kraft-audit demo --live`: a real migration on this machine, audited while it runs, with both sides read live.

ZooKeeper, three controllers and a broker of Kafka 3.9.1 on loopback: loaded, in dual write under load, and finalised.
"""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from jobs.commands.demo.kafka_servers import DEMO_JARS, kafka_jars
from jobs.commands.demo.migration import Migration, load, migration
from jobs.exit import CRASH, OK, AuditError
from jobs.pipeline import run_all
from jobs.run.run import open_run
from jobs.runtime.spark import spark_session
from jobs.settings import Settings, validated
from jobs.sinks.report_files import ReportPaths
from jobs.sources.kraft.live.connection import parse_endpoint
from jobs.sources.kraft.live.quorum import QuorumClient, QuorumSettings
from schemas.classes import DEFECTS
from schemas.report import Report
from transforms.report.text import render_text

CLUSTER = "live-demo"
# An idle leader appends a NoOp twice a second.
_SETTLED_RECORDS, _SETTLED_SECONDS = 6, 60


@dataclass(frozen=True)
class LiveScene:
    """One audit of the demonstration: its folder, what it shows, and the migration's state that it must find."""

    folder: str
    title: str
    state: str


UNDER_LOAD = LiveScene("1-dual-write", "Dual write under load, both sides read live", "MIGRATION")
FINALIZED = LiveScene("2-finalized", "Finalised: ZooKeeper is history", "POST_MIGRATION")


def execute(out: Path) -> int:
    """Migrate and audit. Returns 0 if both audits found what is there, else 1 after one line."""
    # The client that makes the load warns when this machine is busy.
    logging.getLogger("kafka").setLevel(logging.ERROR)
    print("Fetching Kafka 3.9.1, once …", flush=True)
    jars = kafka_jars(DEMO_JARS)
    results: list[tuple[LiveScene, Report, ReportPaths]] = []
    with migration(jars) as cluster, spark_session("small"):
        _migrated(cluster)
        with load(cluster.broker):
            results.append((UNDER_LOAD, *_audited(UNDER_LOAD, cluster, out)))
        _announce("finalising: the controllers are restarted without ZooKeeper")
        cluster.finalize()
        _wait_for_records(cluster)
        results.append((FINALIZED, *_audited(FINALIZED, cluster, out)))
    print("\nReports:")
    for scene, _, paths in results:
        print(f"  {paths.html}   {scene.title}")
    surprises = [line for scene, report, _ in results for line in surprises_in(scene, report)]
    for line in surprises:
        print(f"kraft-audit demo: {line}", file=sys.stderr)
    return CRASH if surprises else OK


def surprises_in(scene: LiveScene, report: Report) -> list[str]:
    """What the audit found that is not so: nothing, or the program is broken."""
    lines = []
    defects = sum(count for name, count in report.divergences.by_class.items() if name in DEFECTS)
    if defects:
        lines.append(f"{scene.title}: found {defects} defects in a healthy migration")
    if report.migration.state != scene.state:
        lines.append(f"{scene.title}: found the state {report.migration.state} instead of {scene.state}")
    return lines


def live_settings(cluster: Migration, out: Path) -> Settings:
    """The configuration that reads both sides of a running cluster; tables below `out`."""
    content: dict[str, object] = {
        "cluster": CLUSTER,
        "warehouse": str(out / "tables"),
        "zookeeper": {"connect": cluster.zookeeper},
        "kraft": {"controllers": cluster.servers.bootstrap, "cluster_id": cluster.servers.cluster_id},
        "report": {"folder": str(out)},
        "spark": {"profile": "small"},
    }
    return validated(content, "demonstration")


def _migrated(cluster: Migration) -> None:
    _announce("starting a broker in ZooKeeper mode")
    cluster.start_broker_in_zookeeper_mode()
    _announce("starting three controllers, waiting for the brokers")
    cluster.start_controllers()
    _announce("restarting the broker with the migration enabled: the load, then dual write")
    cluster.migrate()
    _announce("restarting the broker in KRaft mode")
    cluster.move_broker_to_kraft()


def _wait_for_records(cluster: Migration) -> None:
    """Wait until the new leader has committed some records: its first records contain the end of the migration."""
    settings = QuorumSettings(tuple(map(parse_endpoint, cluster.servers.bootstrap)), cluster.servers.cluster_id)
    with QuorumClient(settings) as quorum:
        before = quorum.describe()
        deadline = time.monotonic() + _SETTLED_SECONDS
        while quorum.describe().high_watermark < before.high_watermark + _SETTLED_RECORDS:
            if time.monotonic() > deadline:
                raise AuditError(f"the controllers committed nothing for {_SETTLED_SECONDS} s after finalising")
            time.sleep(0.2)


def _audited(scene: LiveScene, cluster: Migration, out: Path) -> tuple[Report, ReportPaths]:
    print(f"\n── {scene.title}\n", flush=True)
    with open_run(live_settings(cluster, out)) as run:
        outcome = run_all(run, out / scene.folder)[CLUSTER]
    if outcome.report is None or outcome.paths is None:
        raise AuditError(f"the live cluster could not be audited: {outcome.failure.reason if outcome.failure else ''}")
    print(render_text(outcome.report), end="")
    return outcome.report, outcome.paths


def _announce(what: str) -> None:
    print(f"   {what}", flush=True)
