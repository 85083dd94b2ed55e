"""Whole runs through the functions that users call: what they print, write and send, and runs beside each other."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from email import message_from_bytes
from email.policy import SMTP
from errno import ENOSPC
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.cli import main
from jobs.exit import CRASH, ERRORS, OK, USAGE, UsageError
from jobs.pipeline import run_all
from jobs.run import cluster_pass as passes
from jobs.run import failures
from jobs.run.run import open_run
from jobs.settings import load_settings, validated
from jobs.sinks.delta import Warehouse
from jobs.steps.report import stored_report
from schemas.gold import MAILS, RUNS
from tests.captures import capture
from tests.pipeline.audits import settings_content
from tests.report.test_smtp import Mailbox, running
from transforms.examination.examine import examine
from transforms.examination.made import Made, failure
from transforms.examination.task import ClusterTask
from transforms.units import Feed

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]


def hostile_pass(asked: ClusterTask, feed: Feed) -> Iterator[Made]:
    """What a fault in the audit's own code looks like: it dies on the content of one cluster."""
    if asked.given.name == "to-blame":
        return iter([failure(ZeroDivisionError("orders-secret"))])
    return examine(asked, feed)


def test_a_cluster_whose_pass_dies_is_the_only_one_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "examine", hostile_pass)
    names = ["fine", "to-blame"]
    contents = [settings_content(capture("3.9.1", "3"), tmp_path, cluster=name) for name in names]
    with open_run([validated(content, "test") for content in contents]) as run:
        outcomes = run_all(run)
    assert {name for name, each in outcomes.items() if each.report is not None} == {"fine"}
    found = outcomes["to-blame"].failure
    assert found is not None
    assert found.exit_code == CRASH
    assert "orders-secret" not in found.reason, "what is in an exception may be a secret"
    assert found.reason == "ZeroDivisionError inside the audit; audit this cluster alone to see where"


def test_a_disk_that_is_full_for_the_row_of_a_failed_cluster_hides_no_other_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run makes that row, from the note that the run had begun."""

    def full(*_: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    confs = []
    for name, source in (("fine", {}), ("gone", {"zookeeper": {"dump": "/no/dump"}})):
        confs.append(tmp_path / f"{name}.yml")
        confs[-1].write_text(json.dumps(settings_content(capture("3.9.1", "5"), tmp_path, cluster=name, **source)))
    with monkeypatch.context() as patch:
        patch.setattr(failures, "record", full)
        assert main(["run", "--conf", *map(str, confs), "--quiet"]) == USAGE
    warehouse = Warehouse(SparkSession.active(), str(tmp_path))
    assert [row["cluster"] for row in warehouse.read(RUNS).collect()] == ["fine"]
    assert [path.parent.name for path in tmp_path.rglob("report.html")] == ["fine"]
    assert main(["run", "--conf", str(confs[0]), "--quiet"]) == OK
    verdicts = [(row["cluster"], row["verdict"]) for row in warehouse.read(RUNS).collect()]
    assert sorted(verdicts) == [("fine", "clean"), ("fine", "clean"), ("gone", "failed")]


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


def test_two_runs_of_one_cluster_at_the_same_time_read_what_they_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each step of one run lies between two steps of the other; both find the two lost writes."""
    folder = shutil.copytree(capture("3.9.1", "quota-removal"), tmp_path / "capture")
    conf = tmp_path / "conf.yml"
    conf.write_text(json.dumps(settings_content(folder, tmp_path / "tables")))
    ids = ("20200101T000000Z-bbbbbb", "20200101T000000Z-aaaaaa")
    for step in ("ingest-zookeeper", "ingest-kraft", "materialize"):
        for run_id in ids:
            assert main([step, "--conf", str(conf), "--run-id", run_id]) == 0
    assert [main(["reconcile", "--conf", str(conf), "--run-id", run_id]) for run_id in ids] == [ERRORS, ERRORS]
    with open_run(load_settings(conf)) as run:
        reports = [stored_report(run, "test", run_id) for run_id in ids]
    assert [report.divergences.by_class for report in reports] == [{"lost_write": 2}] * 2
    # Both were examined before either had come to its end.
    assert [report.divergences.by_status for report in reports] == [{"new": 2}, {"new": 2}]
    assert [point.defects for point in reports[1].history] == [2, 2]
    # The folder of reports has the newest one's, which pages and mails link.
    again = ["report", "--conf", str(conf), "--run"]
    assert main([*again, ids[0]]) == USAGE
    assert f"is not the newest: its report would replace that of run {ids[1]}" in capsys.readouterr().err
    assert main([*again, ids[0], "--out", str(tmp_path / "old")]) == ERRORS
    assert main([*again, ids[1]]) == ERRORS


def test_a_step_whose_rows_are_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "conf.yml"
    conf.write_text(json.dumps(settings_content(capture("3.9.1", "5"), tmp_path / "tables")))
    for step, missing in (("reconcile", "materialize"), ("materialize", "ingest-zookeeper")):
        assert main([step, "--conf", str(conf), "--run-id", "nobody"]) == USAGE
        assert f"has not been through `{missing}` yet" in capsys.readouterr().err
