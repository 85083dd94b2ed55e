"""Metrics of a run: what is told of which cluster, in a file that several runs share and at a push gateway."""

from __future__ import annotations

import base64
import json
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families as prometheus_format
from pydantic import ValidationError

from jobs.exit import UsageError
from jobs.run.run import ClusterRun, Run
from jobs.settings import MetricsSettings, Settings
from jobs.sinks.metrics import TEXTFILE_NAME, MetricsError, push, write_textfile
from jobs.steps import metrics, publishing
from jobs.steps.publishing import publish_stopped, publish_unopened
from schemas.checks import Phase
from tests.report.fleets import failed, run_of
from tests.report.samples import defective, healthy, lagging, uncompared
from transforms.report.fleet_model import FleetRun
from transforms.report.metrics import FAMILIES, LAST_GOOD_RUN, RUN_FAILED, MetricSample, read_text, samples_of, text_of

CONF = Path(__file__).parents[2] / "conf" / "metrics"
GOOD = run_of(healthy(), "a", hours_ago=5)
Told = dict[tuple[str, ...], float]


def told(samples: list[MetricSample]) -> Told:
    return {(sample.name, *(value for _, value in sample.labels)): sample.value for sample in samples}


def in_file(folder: Path) -> Told:
    return told(read_text((folder / TEXTFILE_NAME).read_text()))


def settings(cluster: str, **more: Any) -> Settings:
    content = {"cluster": cluster, "warehouse": "w", "kraft": {"folders": ["k"]}} | more
    return Settings.model_validate(content)


def test_a_good_run_tells_verdict_gates_defects_lag_and_when_it_ended() -> None:
    run = run_of(defective(), "a")
    found = told(samples_of(run, run))
    assert found["kraft_audit_verdict", "a", "errors"] == 1
    assert found["kraft_audit_verdict", "a", "clean"] == 0
    assert found["kraft_audit_defects", "a"] == run.defects > 0
    assert found["kraft_audit_defects_new", "a"] == run.statuses["new"] > 0
    assert found[LAST_GOOD_RUN, "a"] == run.finished_at.timestamp()
    assert found["kraft_audit_run_seconds", "a"] == 40
    assert found[RUN_FAILED, "a"] == 0
    for gate, verdict in run.gates.items():
        set_ = [each for (name, *labels), value in found.items() if name == "kraft_audit_gate" and value
                for each in [labels] if labels[1] == gate]  # fmt: skip
        assert set_ == [["a", gate, verdict]]


def test_a_run_that_compared_nothing_tells_no_number_of_defects() -> None:
    run = run_of(uncompared(), "a")
    found = told(samples_of(run, run))
    assert found["kraft_audit_verdict", "a", "errors"] == 1
    assert not [name for name, *_ in found if "defects" in name or "divergences" in name]


def test_lag_is_absent_where_it_does_not_apply() -> None:
    behind = run_of(lagging(), "a")
    assert told(samples_of(behind, behind))["kraft_audit_lag_records", "a"] == behind.lag_records
    without = replace(behind, lag_records=None, lag_seconds=None)
    assert not [name for name, *_ in told(samples_of(without, without)) if "lag" in name]


def test_the_text_is_read_alike_as_openmetrics_and_in_the_older_format() -> None:
    text = text_of(samples_of(GOOD, GOOD))
    older = [each for family in prometheus_format(text) for each in family.samples]
    assert {(each.name, *dict(sorted(each.labels.items())).values()): each.value for each in older} == told(
        read_text(text)
    )
    assert text.endswith("# EOF\n")


def test_a_failed_run_does_not_look_fresh(tmp_path: Path) -> None:
    write_textfile(tmp_path, {"a": samples_of(GOOD, GOOD)})
    before = in_file(tmp_path)
    newer = failed("a", hours_ago=1)
    # Once knowing the last good run, once with a warehouse that can't be read.
    for judged in (GOOD, None):
        write_textfile(tmp_path, {"a": samples_of(newer, judged)})
        now = in_file(tmp_path)
        assert now[RUN_FAILED, "a"] == 1
        assert now["kraft_audit_last_run_timestamp_seconds", "a"] == newer.finished_at.timestamp()
        assert now[LAST_GOOD_RUN, "a"] == GOOD.finished_at.timestamp()
        assert now.keys() == before.keys()


def test_a_cluster_without_any_good_run_claims_none(tmp_path: Path) -> None:
    write_textfile(tmp_path, {"a": samples_of(failed("a"), None)})
    assert in_file(tmp_path)[RUN_FAILED, "a"] == 1
    assert (LAST_GOOD_RUN, "a") not in in_file(tmp_path)


def test_clusters_of_other_runs_stay_and_retired_ones_go(tmp_path: Path) -> None:
    write_textfile(tmp_path, {"a": samples_of(GOOD, GOOD)})
    other, old = run_of(defective(), "b"), run_of(healthy(), "old")
    write_textfile(tmp_path, {"b": samples_of(other, other), "old": samples_of(old, old)})
    assert {labels[1] for labels in in_file(tmp_path)} == {"a", "b", "old"}
    write_textfile(tmp_path, {"b": samples_of(other, other)}, retired={"old", "b"})
    assert {labels[1] for labels in in_file(tmp_path)} == {"a", "b"}
    assert [path.name for path in tmp_path.glob("*.prom")] == [TEXTFILE_NAME]


def test_what_is_no_longer_so_is_no_longer_told(tmp_path: Path) -> None:
    behind = run_of(lagging(), "a", hours_ago=9)
    write_textfile(tmp_path, {"a": samples_of(behind, behind)})
    later = replace(behind, lag_records=None, lag_seconds=None, phase="kraft")
    write_textfile(tmp_path, {"a": samples_of(later, later)})
    assert ("kraft_audit_lag_records", "a") not in in_file(tmp_path)
    assert [key for key in in_file(tmp_path) if key[0] == "kraft_audit_phase"] == [("kraft_audit_phase", "a", "kraft")]


def test_runs_that_end_at_once_lose_no_cluster(tmp_path: Path) -> None:
    runs = [run_of(healthy(), f"c{number}") for number in range(12)]
    threads = [
        threading.Thread(target=write_textfile, args=(tmp_path, {run.cluster: samples_of(run, run)})) for run in runs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {labels[1] for labels in in_file(tmp_path)} == {run.cluster for run in runs}


def test_a_file_that_is_no_openmetrics_is_written_anew_and_said(tmp_path: Path) -> None:
    (tmp_path / TEXTFILE_NAME).write_bytes(b"\xff\xfe{half")
    with pytest.raises(MetricsError, match="written again"):
        write_textfile(tmp_path, {"a": samples_of(GOOD, GOOD)})
    assert in_file(tmp_path)[RUN_FAILED, "a"] == 0


def test_a_folder_that_is_not_there_is_said_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(MetricsError, match="there is no folder"):
        write_textfile(tmp_path / "typo", {"a": samples_of(GOOD, GOOD)})
    assert not (tmp_path / "typo").exists()


@dataclass
class Gateway:
    """What a push gateway was sent: method, path, login, text."""

    received: list[tuple[str, str, str | None, str]] = field(default_factory=list)
    answer: int = 200
    leads_to: str | None = None


@contextmanager
def listening(gateway: Gateway) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def _take(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
            gateway.received.append((self.command, self.path, self.headers["Authorization"], body))
            self.send_response(gateway.answer)
            if gateway.leads_to is not None:
                self.send_header("Location", gateway.leads_to)
            self.end_headers()

        do_GET = do_PUT = do_POST = _take  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_gateway_gets_a_group_for_each_cluster_and_keeps_what_the_last_good_run_told() -> None:
    gateway = Gateway()
    with listening(gateway) as url:
        push(MetricsSettings(push_gateway=url), {"a": samples_of(GOOD, GOOD), "b": samples_of(failed("b"), None)})
    assert [each[:2] for each in gateway.received] == [
        ("PUT", "/metrics/job/kraft_audit/cluster/a"),
        ("POST", "/metrics/job/kraft_audit/cluster/b"),
    ]
    assert f'{RUN_FAILED}{{cluster="b"}} 1.0' in gateway.received[1][3]
    assert LAST_GOOD_RUN not in gateway.received[1][3]


def test_a_gateway_that_drips_its_answer_keeps_no_run_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.sinks.metrics.TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection = server.accept()[0]
            with suppress(OSError):
                while True:
                    connection.sendall(b"H")
                    time.sleep(0.05)

        threading.Thread(target=drip, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(MetricsError, match="it did not answer in time"):
            push(MetricsSettings(push_gateway=url), {"a": samples_of(GOOD, GOOD)})


def test_a_login_goes_to_the_gateway_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUSH_USER", "ann")
    monkeypatch.setenv("PUSH_PASSWORD", "hunter2-secret")
    gateway = Gateway(answer=401)
    with listening(gateway) as url:
        # Settings would refuse a login without https, which a test's server does not have.
        names = {"username_env": "PUSH_USER", "password_env": "PUSH_PASSWORD"}
        configured = MetricsSettings(push_gateway=url).model_copy(update=names)
        with pytest.raises(MetricsError, match="it answered 401") as error:
            push(configured, {"a": samples_of(GOOD, GOOD)})
    assert base64.b64decode((gateway.received[0][2] or "").removeprefix("Basic ")) == b"ann:hunter2-secret"
    assert "hunter2" not in str(error.value)
    with pytest.raises(ValidationError, match="https"):
        MetricsSettings(push_gateway="http://h", username_env="PUSH_USER", password_env="PUSH_PASSWORD")


@pytest.mark.parametrize("known", [GOOD, None], ids=["a good run", "no good run"])
@pytest.mark.parametrize("answer", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_its_target_gets_nothing(
    answer: int, known: FleetRun | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUSH_USER", "ann")
    monkeypatch.setenv("PUSH_PASSWORD", "hunter2-secret")
    names = {"username_env": "PUSH_USER", "password_env": "PUSH_PASSWORD"}
    login_page, gateway = Gateway(), Gateway(answer=answer)
    with listening(login_page) as elsewhere, listening(gateway) as url:
        gateway.leads_to = f"{elsewhere}/login"
        configured = MetricsSettings(push_gateway=url)
        for login in ({}, names):
            with pytest.raises(MetricsError, match=f"it answered {answer}, a redirect, which is not followed"):
                push(configured.model_copy(update=login), {"a": samples_of(failed("a"), known)})
    assert login_page.received == []
    assert len(gateway.received) == 2


def test_an_answer_that_is_no_http_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_answers_with, args=(server, b"220 mail.example.com ESMTP\r\n"))
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        try:
            with pytest.raises(MetricsError, match=f"not pushed to {url}: it did not answer in HTTP; check"):
                push(MetricsSettings(push_gateway=url), {"a": samples_of(GOOD, GOOD)})
        finally:
            thread.join()


def _answers_with(server: socket.socket, answer: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


def test_a_run_writes_one_file_for_its_clusters_and_a_dead_gateway_is_one_line(tmp_path: Path) -> None:
    dead = {"textfile": str(tmp_path), "push_gateway": "http://127.0.0.1:1"}
    of_run = {name: settings(name, metrics=dead) for name in ("a", "b")} | {"c": settings("c")}
    began = GOOD.started_at
    runs = [replace(GOOD, cluster=name) for name in of_run]
    (problem,) = metrics.write_metrics(of_run, runs, began)
    assert problem.startswith("metrics not pushed to http://127.0.0.1:1: Connection refused")
    assert {labels[1] for labels in in_file(tmp_path)} == {"a", "b"}


def test_a_run_without_a_row_is_the_newest_all_the_same(tmp_path: Path) -> None:
    of_run = {"a": settings("a", metrics={"textfile": str(tmp_path)})}
    unstored = replace(failed("a", hours_ago=1), sequence=8)
    assert metrics.write_metrics(of_run, [unstored, replace(GOOD, sequence=7)], unstored.started_at) == []
    assert in_file(tmp_path)[RUN_FAILED, "a"] == 1
    assert in_file(tmp_path)[LAST_GOOD_RUN, "a"] == GOOD.finished_at.timestamp()


def test_a_run_that_could_not_begin_or_was_stopped_is_told_as_failed(tmp_path: Path) -> None:
    configured = settings("a", metrics={"textfile": str(tmp_path)})
    write_textfile(tmp_path, {"a": samples_of(GOOD, GOOD)})
    assert publish_unopened([configured], UsageError("no session")).problems == []
    assert in_file(tmp_path)[RUN_FAILED, "a"] == 1
    write_textfile(tmp_path, {"a": samples_of(GOOD, GOOD)})
    assert publish_stopped(_run(configured)).problems == []
    assert in_file(tmp_path)[RUN_FAILED, "a"] == 1
    assert in_file(tmp_path)[LAST_GOOD_RUN, "a"] == GOOD.finished_at.timestamp()


def test_metrics_are_handed_on_after_a_run_whether_the_warehouse_can_be_read_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured = settings("a", metrics={"textfile": str(tmp_path)}, report={"folder": str(tmp_path / "reports")})
    run = _run(configured, failing=False)
    stored = replace(GOOD, started_at=run.started_at, finished_at=run.started_at)
    monkeypatch.setattr(publishing, "fleet_runs", lambda *_, **__: [stored])
    monkeypatch.setattr(publishing.verified, "newest_in", lambda _: {})
    assert publishing.publish(run, {}, {}).problems == []
    assert in_file(tmp_path)[RUN_FAILED, "a"] == 0

    def unreadable(*_: object, **__: object) -> list[FleetRun]:
        raise UsageError("gone")

    monkeypatch.setattr(publishing, "fleet_runs", unreadable)
    publishing.publish(_run(configured), {}, {})
    assert in_file(tmp_path)[RUN_FAILED, "a"] == 1
    assert in_file(tmp_path)[LAST_GOOD_RUN, "a"] == stored.finished_at.timestamp()


def _run(configured: Settings, *, failing: bool = True) -> Run:
    run = Run({"a": ClusterRun(configured)}, "r", datetime.now(UTC), cast(Any, None), cast(Any, None), cast(Any, None))
    run.mails_looked_up = True
    if failing:
        run.fail("a", UsageError("there is no folder /nowhere"))
    return run


RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((CONF / "rules.yml").read_text())["groups"] for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((CONF / "dashboard.json").read_text())
EXPRESSIONS = [rule["expr"] for rule in RULES] + [
    target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_rules_and_dashboard_ask_for_what_is_written(expression: str) -> None:
    names = set(re.findall(r"kraft_audit_\w+", expression))
    assert names
    assert names <= FAMILIES.keys()
    run = run_of(lagging(), "a")
    known: dict[str, set[str]] = {}
    for sample in samples_of(run, run):
        for label, value in sample.labels:
            known.setdefault(f"{sample.name}.{label}", set()).add(value)
    known["kraft_audit_phase.phase"] = set(Phase)
    for name, matchers in re.findall(r"(kraft_audit_\w+)\{([^}]*)\}", expression):
        for label, values in re.findall(r'(\w+)=~?"([^"]*)"', matchers):
            assert f"{name}.{label}" in known
            assert label == "cluster" or set(values.split("|")) <= known[f"{name}.{label}"]
    assert expression.count("(") == expression.count(")")


def test_every_alert_is_there_and_says_what_to_do() -> None:
    alerts = {rule["alert"] for rule in RULES}
    wanted = {"KraftAuditGateClosed", "KraftAuditDefectNew", "KraftAuditNotAuditedLately", "KraftAuditRunFailed"}
    assert wanted <= alerts
    assert all(rule["annotations"].keys() == {"summary", "description"} for rule in RULES)


def test_finalising_a_migration_raises_no_alarm_by_closing_its_way_back() -> None:
    # Seen on captures of 3.6.2 and 3.9.1: with all brokers in KRaft rollback is go, once finalised it is no_go.
    [closed] = [rule["expr"] for rule in RULES if rule["alert"] == "KraftAuditGateClosed"]
    kept, excepted = closed.split("unless on (cluster, gate)")
    assert 'verdict=~"no_go|unknown"' in kept
    assert excepted.split() == [
        'label_replace(kraft_audit_phase{phase="finalized"}',
        *("==", "1,", '"gate",', '"rollback",', '"cluster",', '".*")'),
    ]


def test_metrics_of_one_cluster_can_be_missed_while_others_are_there() -> None:
    [missing] = [rule["expr"] for rule in RULES if rule["alert"] == "KraftAuditMetricsMissing"]
    of_one, of_all = missing.split(" or on () ")
    had, has = of_one.split(" unless on (cluster) ")
    assert had == f"max by (cluster) (max_over_time({has}[7d]))"
    assert of_all == "absent(kraft_audit_run_failed)"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool on PATH")
def test_promtool_takes_the_rules() -> None:
    subprocess.run(["promtool", "check", "rules", str(CONF / "rules.yml")], check=True)


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        (-100_000, "red dated in the future"),
        (-301, "red dated in the future"),
        (-300, "green now"),
        (-1, "green now"),
        (3_600, "green"),
        (130_000, "orange"),
        (180_000, "red"),
    ],
)
def test_no_age_is_shown_as_negative(age: int, shown: str) -> None:
    """As Grafana chooses: the first range that has the value, else the last threshold that is not above it."""
    (panel,) = [each for each in DASHBOARD["panels"] if each["title"] == "Age of the last good run"]
    defaults = panel["fieldConfig"]["defaults"]
    for mapping in defaults["mappings"]:
        between, floor, ceiling = mapping["options"], mapping["options"]["from"], mapping["options"]["to"]
        if (floor is None or age >= floor) and (ceiling is None or age <= ceiling):
            assert f"{between['result']['color']} {between['result']['text']}" == shown
            return
    reached = [
        step["color"] for step in defaults["thresholds"]["steps"] if step["value"] is None or age >= step["value"]
    ]
    assert reached[-1] == shown


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    cells = [
        (x, y)
        for each in DASHBOARD["panels"]
        for x in range(each["gridPos"]["x"], each["gridPos"]["x"] + each["gridPos"]["w"])
        for y in range(each["gridPos"]["y"], each["gridPos"]["y"] + each["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({each["id"] for each in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
