"""A run over several clusters: each is told what it would be told alone, and one cluster's fault is its own."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Mapping
from email import message_from_bytes
from email.policy import SMTP
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jobs.audit.run import Failure, Run, open_run
from jobs.cli import main
from jobs.exit import CRASH, ERRORS, USAGE, UsageError
from jobs.pipeline import Outcome, run_all
from jobs.settings import validated
from jobs.sinks.delta import Warehouse
from jobs.steps import materialize
from schemas.gold import MAILS, RUNS
from schemas.report import Report
from tests.captures import capture
from tests.pipeline.audits import Audit, audit_all, settings_content
from tests.report.test_smtp import Mailbox, running
from transforms.report.json import to_json
from transforms.zookeeper.read import state as znode_state

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]
OF_THE_RUN = {"run_id", "started_at", "finished_at", "cluster", "history"}


def said(report: Report) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(to_json(report))
    return {name: value for name, value in told.items() if name not in OF_THE_RUN}


@pytest.mark.parametrize("stage", ["8", "blocked-by-missing-broker", "quota-removal"])
def test_a_cluster_is_told_the_same_alone_and_among_others(
    fleet: Mapping[str, Audit | Failure], tmp_path: Path, stage: str
) -> None:
    among = fleet[f"3.9.1-{stage}"]
    (alone,) = audit_all([settings_content(capture("3.9.1", stage), tmp_path)]).values()
    assert isinstance(among, Audit)
    assert isinstance(alone, Audit)
    assert said(among.report) == said(alone.report)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Audit | Failure]]:
    """Healthy clusters among others whose sources are missing, empty, no dump, no log, or hostile."""
    folder = tmp_path_factory.mktemp("faulty")
    good = capture("3.9.1", "5")
    empty, cut, text = folder / "empty.jsonl", folder / "cut.jsonl.gz", folder / "text.jsonl"
    empty.write_text("")
    cut.write_bytes((good / "zookeeper.jsonl.gz").read_bytes()[:2000])
    text.write_text("<html>no dump</html>\n" * 10)
    bare = folder / "bare"
    (bare / "version-2").mkdir(parents=True)
    (bare / "version-2" / "snapshot.1").write_bytes(b"not a snapshot")
    no_log = folder / "no-log"
    (no_log / "3000" / "__cluster_metadata-0").mkdir(parents=True)
    hostile = folder / "hostile.jsonl.gz"
    with gzip.open(good / "zookeeper.jsonl.gz", "rt") as lines, gzip.open(hostile, "wt") as out:
        out.writelines(line.replace("orders", "<script>") for line in lines)

    def content(name: str, **source: object) -> dict[str, object]:
        return settings_content(good, folder, cluster=name, **source)

    contents = [
        content("good-1"),
        content("missing", zookeeper={"dump": str(folder / "nowhere.jsonl")}),
        content("empty", zookeeper={"dump": str(empty)}),
        content("text", zookeeper={"dump": str(text)}),
        content("unreadable", zookeeper={"folder": str(bare)}),
        content("no-log", kraft={"folders": [str(no_log)]}),
        content("hostile", zookeeper={"dump": str(hostile)}),
        content("good-2"),
    ]
    return folder, audit_all(list(contents))


def test_one_clusters_fault_is_its_own(faulty: tuple[Path, dict[str, Audit | Failure]]) -> None:
    _, found = faulty
    for name in ("good-1", "good-2"):
        each = found[name]
        assert isinstance(each, Audit)
        assert (each.report.verdict, each.report.divergences.total) == ("clean", 0)
    failed = {name: each.reason for name, each in found.items() if isinstance(each, Failure)}
    assert {name: each.exit_code for name, each in found.items() if isinstance(each, Failure)} == dict.fromkeys(
        failed, USAGE
    )
    assert "there is no file" in failed["missing"]
    assert "holds no Kafka metadata" in failed["empty"]
    assert "holds no Kafka metadata" in failed["text"]
    assert "no usable snapshot" in failed["unreadable"]
    hostile = found["hostile"]
    assert isinstance(hostile, Audit)
    assert hostile.report.verdict == "errors"


def test_a_failed_cluster_is_in_gold_with_the_reason(faulty: tuple[Path, dict[str, Audit | Failure]]) -> None:
    _, found = faulty
    good = found["good-1"]
    assert isinstance(good, Audit)
    rows = {row["cluster"]: row for row in good.warehouse.read(RUNS).collect()}
    assert rows.keys() == found.keys()
    for name, each in found.items():
        if isinstance(each, Failure):
            assert (rows[name]["verdict"], rows[name]["failure"]) == ("failed", each.reason)
            assert rows[name]["report"] is None
        else:
            assert rows[name]["failure"] is None


def hostile_batches(batches: Any) -> Any:
    """What a fault in the audit's own code looks like: it dies on the content of one cluster."""
    for batch in batches:
        if "to-blame" in pa.compute.unique(batch["cluster"]).to_pylist():
            raise ZeroDivisionError("orders-secret")
        yield from znode_state.state_batches([batch])


def test_when_a_joint_query_dies_the_cluster_to_blame_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(materialize, "state_batches", hostile_batches)
    names = ["a", "b", "to-blame"]
    contents = [settings_content(capture("3.9.1", "3"), tmp_path, cluster=name) for name in names]
    with open_run([validated(content, "test") for content in contents]) as run:
        outcomes = run_all(run)
    assert {name for name, each in outcomes.items() if each.report is not None} == {"a", "b"}
    failure = outcomes["to-blame"].failure
    assert failure is not None
    assert failure.exit_code == CRASH
    assert "orders-secret" not in failure.reason, "what is in an exception may be a secret"


def test_a_fleet_is_told_worst_first_on_the_terminal_as_a_page_and_by_mail(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mailbox = Mailbox()
    tables = tmp_path / "tables"
    with running(mailbox) as port:
        mail = {"host": "127.0.0.1", "port": port, "security": "none", "sender": "audit@example.com"}
        mail |= {"recipients": ["team@example.com"], "send": "on_change"}
        report = {"folder": str(tmp_path / "reports"), "mail": mail}
        confs = []
        for name, stage in (("fine", "5"), ("losing", "quota-removal"), ("gone", "5")):
            source: dict[str, object] = {"zookeeper": {"dump": "/no/dump"}} if name == "gone" else {}
            content = settings_content(capture("3.9.1", stage), tables, cluster=name, report=report, **source)
            path = tmp_path / f"{name}.yml"
            path.write_text(json.dumps(content))
            confs.append(str(path))
        assert main(["run", "--conf", *confs]) == USAGE
        out, err = capsys.readouterr()
        lines = out.splitlines()
        assert [line.split()[0] for line in lines] == ["cluster", "gone", "losing", "fine", "Fleet", "Mail"]
        assert re.search(r"losing +dual_write +errors .*rollback:NO-GO +2 +0 ", lines[2])
        assert "kraft-audit: cluster gone: " in err
        page = (tmp_path / "reports" / "fleet.html").read_text()
        assert '<a href="losing/report.html">' in page
        assert (tmp_path / "reports" / "losing" / "report.html").is_file()
        # Nothing is different in the next run, so nobody is told again.
        assert main(["run", "--conf", *confs[:2], "--json"]) == ERRORS
        told = json.loads(capsys.readouterr().out)
    assert {each["cluster"]: (each["verdict"], each["defects"]) for each in told["clusters"]} == {
        "fine": ("clean", 0),
        "losing": ("errors", 2),
    }
    [(_, recipients, content)] = mailbox.received
    assert recipients == ["team@example.com"]
    assert str(message_from_bytes(content, policy=SMTP)["Subject"]) == (
        "[kraft-audit] FAILED 2 of 3 clusters need repair: gone"
    )
    warehouse = Warehouse(spark, str(tables))
    assert {(row["cluster"], row["reason"], row["problem"]) for row in warehouse.read(MAILS).collect()} == {
        (name, "change", None) for name in ("fine", "losing", "gone")
    }
    assert main(["fleet", "--warehouse", str(tables), "--json"]) == 0
    standing = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["cluster"], each["group"]) for each in standing] == [
        ("gone", "failed"),
        ("losing", "errors"),
        ("fine", "clean"),
    ]
    assert standing[1]["defects_by_status"] == {"persisting": 2}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"cluster": "a"}, "cluster a is configured twice"),
        ({"warehouse": "elsewhere"}, "clusters a and b differ in `warehouse`"),
        ({"spark": {"profile": "local"}}, "clusters a and b differ in `spark`"),
    ],
)
def test_clusters_of_one_run_share_what_a_run_has_once(tmp_path: Path, other: dict[str, object], message: str) -> None:
    first = settings_content(capture("3.9.1", "5"), tmp_path, cluster="a")
    second = {**first, "cluster": "b", **other}
    with pytest.raises(UsageError, match=message), open_run([validated(c, "test") for c in (first, second)]):
        pass


def outcome_of(run: Run) -> Outcome:
    (outcome,) = run_all(run).values()
    return outcome


def test_two_runs_of_one_cluster_at_the_same_time_read_what_they_wrote(spark: SparkSession, tmp_path: Path) -> None:
    """Each step of one run lies between two steps of the other; both find the two lost writes."""
    folder = shutil.copytree(capture("3.9.1", "quota-removal"), tmp_path / "capture")
    conf = tmp_path / "conf.yml"
    conf.write_text(json.dumps(settings_content(folder, tmp_path / "tables")))
    ids = ("20200101T000000Z-bbbbbb", "20200101T000000Z-aaaaaa")
    for step in ("ingest-zookeeper", "ingest-kraft", "materialize"):
        for run_id in ids:
            assert main([step, "--conf", str(conf), "--run-id", run_id]) == 0
    assert [main(["reconcile", "--conf", str(conf), "--run-id", run_id]) for run_id in ids] == [ERRORS, ERRORS]
    settings = validated(settings_content(folder, tmp_path / "tables"), "test")
    with open_run(settings) as run:
        third = outcome_of(run)
    assert third.report is not None
    assert third.report.divergences.by_class == {"lost_write": 2}
    assert [point.defects for point in third.report.history] == [2, 2, 2]
    assert third.report.divergences.by_status == {"persisting": 2}


def test_a_step_whose_rows_are_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "conf.yml"
    conf.write_text(json.dumps(settings_content(capture("3.9.1", "5"), tmp_path / "tables")))
    for step, missing in (("reconcile", "materialize"), ("materialize", "ingest-zookeeper")):
        assert main([step, "--conf", str(conf), "--run-id", "nobody"]) == USAGE
        assert f"has not been through `{missing}` yet" in capsys.readouterr().err
