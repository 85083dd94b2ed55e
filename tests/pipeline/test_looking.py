"""`diff`, `explain`, `history` and `gates` on a finished audit: the two quotas whose removal was never mirrored.

All the while a later run of the same cluster is under way in the same tables, and sees another state of it.

The truth is in the capture's dump: set at offset 267, removed at 327 (README tells the same story).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from jobs.commands import explain
from jobs.evidence.opening import Finished
from jobs.evidence.past_log import migration_znodes, past_kraft
from jobs.evidence.past_run import past_run
from jobs.run.run import Failure, new_run_id
from schemas.entities.partitions import PARTITIONS
from schemas.gold import DIVERGENCES
from tests.captures import capture
from tests.pipeline import expected
from tests.pipeline.audits import Audit, Content, in_fleet, settings_content
from transforms.explain.keys import parse_key
from transforms.explain.row_evidence import explanation_of
from transforms.explain.text import render

pytestmark = pytest.mark.slow
QUOTA = '{"entity": {"client-id": "app-9"}, "quota": "producer_byte_rate"}'

SUPPRESSIONS = f"""
- {{entity: client_quotas, key: {QUOTA}, class: lost_write, who: Ann, why: set again on Monday, until: 9999-12-31}}
- {{entity: topics, class: lag, who: Bob, why: never seen, until: 9999-12-31}}
- {{entity: client_quotas, class: lost_write, who: Cid, why: was to be gone by then, until: 2020-01-01}}
"""


@in_fleet("looking")
def prepare(folder: Path) -> Content:
    """The capture's data folder, and what somebody knows of its differences."""
    (folder / "known.yml").write_text(SUPPRESSIONS)
    lost = capture("3.9.1", "quota-removal")
    return settings_content(lost, folder, data_folder=True, suppressions=str(folder / "known.yml"))


@pytest.fixture(scope="module")
def audited(fleet: Mapping[str, Audit | Failure], tmp_path_factory: pytest.TempPathFactory) -> Audit:
    finished = fleet["looking"]
    assert isinstance(finished, Audit)
    conf = tmp_path_factory.mktemp("looking") / "later.yml"
    warehouse = Path(finished.warehouse.root)
    conf.write_text(json.dumps(settings_content(capture("3.9.1", "5"), warehouse, cluster="looking")))
    run_id = new_run_id(datetime.now(UTC))
    for step in ("ingest-zookeeper", "ingest-kraft", "materialize"):
        assert main([step, "--conf", str(conf), "--run-id", run_id]) == 0
    # What is in the tables now, not what was held of them before the later run.
    return Audit(finished.report, finished.warehouse)


class Shell:
    """Runs commands on the audit's warehouse and keeps what they print."""

    def __init__(self, audited: Audit, capsys: pytest.CaptureFixture[str]) -> None:
        self.place = ["--warehouse", audited.warehouse.root, "--cluster", audited.cluster]
        self.capsys = capsys

    def run(self, command: str, *argv: str, code: int = 0) -> str:
        self.capsys.readouterr()
        assert main([command, *self.place, *argv]) == code
        said = self.capsys.readouterr()
        return said.out if code == 0 else said.err

    def rows(self, *argv: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run("diff", "--format", "jsonl", "--limit", "0", *argv).splitlines()]


@pytest.fixture
def shell(audited: Audit, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(audited, capsys)


def test_diff_lists_what_the_report_lists(audited: Audit, shell: Shell) -> None:
    rows = shell.rows()
    listed = audited.report.divergences.rows
    assert {row["fingerprint"]: (row["key"], row["class"], row["kraft_offset"]) for row in rows} == {
        row.fingerprint: (row.key, row.class_, row.kraft_offset) for row in listed
    }
    assert len(rows) == 2
    assert shell.rows("--class", "lag") == []
    assert shell.rows("--entity", "topics") == []
    assert shell.rows("--entity", "client_quotas", "--run", audited.run_id) == rows
    text = shell.run("diff")
    assert "2 differences between ZooKeeper (/migration at 329) and KRaft after offset 329 (inclusive)" in text
    assert "client-id=app-9 · producer_byte_rate" in text


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--entity", "client_quota"], "--entity: there is no `client_quota`; did you mean `client_quotas`?"),
        (["--class", "lost-write"], "--class: there is no `lost-write`; did you mean `lost_write`?"),
        (["--limit", "-1"], "--limit: -1 is below 0"),
        (["--run", "nope"], "has no finished run nope"),
        (["--as-of", "330"], "offset 330 is not in the run's log; give one from 0 to 329 (inclusive)"),
        (["--cluster", "loking"], "no finished run of `loking`; did you mean `looking`?"),
    ],
)
def test_wrong_filters_get_one_line(shell: Shell, argv: list[str], message: str) -> None:
    said = shell.run("diff", *argv, code=2)
    assert message in said
    assert len(said.strip().splitlines()) == 1


def test_diff_at_an_offset_is_inclusive(shell: Shell) -> None:
    """The first quota is removed at 327, the second at 328; ZooKeeper kept both."""
    assert [row["class"] for row in shell.rows("--as-of", "329")] == ["lost_write", "lost_write"]
    at_327 = shell.rows("--as-of", "327")
    assert [(row["key"]["entity"], row["class"]) for row in at_327] == [({"client-id": "app-9"}, "lost_write")]
    assert shell.rows("--as-of", "326") == []


def test_diff_below_migrations_offset_shows_what_came_later(audited: Audit, shell: Shell) -> None:
    """Before 267 KRaft had no such quota. Everything it shows is explained by a later record: nothing is lost."""
    rows = shell.rows("--as-of", "266")
    assert {row["class"] for row in rows} == {"in_flight"}
    assert {"client-id": "app-9"} in [row["key"].get("entity") for row in rows]
    assert all("after offset 266" in row["explanation"] for row in rows)
    assert audited.rows(PARTITIONS.table), "nothing of the run was overwritten"


def test_explain_tells_the_whole_story_of_the_lost_removal(shell: Shell) -> None:
    text = shell.run("explain", "client_quotas", QUOTA)
    story = [" ".join(line.split()) for line in text[text.index("What happened") :].splitlines() if "  offset" in line]
    assert [line[24:] for line in story] == [
        "offset 267 KRaft, epoch 3 CLIENT_QUOTA_RECORD: made, 11.0",
        "offset 327 KRaft, epoch 3 CLIENT_QUOTA_RECORD: removed",
    ]
    for told in (
        "/config/clients/app-9, written last by zxid 0x4d7",
        "lost_write  whole row: KRaft removed it at offset 327, /migration has passed 329",
        "create /config/clients/app-9 version 0: made, 11.0",
        "controller 3001, mirrored by KRaft",
        "/migration at 329: everything up to it (inclusive)",
    ):
        assert told in text
    assert text.index("offset 267 ") < text.index("zxid 0x4d7  controller") < text.index("offset 327  KRaft")


def test_the_state_at_an_offset_is_inclusive(audited: Audit, shell: Shell) -> None:
    past, row = (
        past_run(Finished(audited.warehouse, audited.cluster), audited.run_id),
        parse_key("client_quotas", QUOTA),
    )
    # Gathered once for all offsets: that takes two seconds.
    found = explain._found(past, row, past_kraft(past, migration_znodes(past)))
    for offset, value in ((266, "absent"), (267, "11.0"), (326, "11.0"), (327, "absent")):
        text = render(explanation_of(row, found, offset))
        assert f"KRaft after offset {offset} (inclusive)  {value}\n" in text
    shown, told = shell.run("explain", "client_quotas", QUOTA, "--as-of", "327"), f"Run {audited.run_id} of cluster"
    assert shown[: shown.index(told)] == text


def test_a_partition_at_the_end_of_the_log_is_what_kafkas_dump_replays_to(shell: Shell) -> None:
    folder = capture("3.9.1", "quota-removal")
    truth = expected.partitions(expected.load(folder)["state"])["orders", 3]
    text = shell.run("explain", "partitions", "orders/3", "--as-of", "329")
    line = next(line for line in text.splitlines() if line.startswith("KRaft after offset 329"))
    assert f"isr={truth['isr']} leader={truth['leader']} leader_epoch={truth['leader_epoch']}" in line
    assert f"partition_epoch={truth['partition_epoch']}" in line


def test_a_record_is_in_force_when_its_transaction_ends(shell: Shell) -> None:
    text = shell.run("explain", "partitions", "orders/3", "--as-of", "100")
    assert "KRaft after offset 100 (inclusive)  absent" in text
    assert "were not in force: their transaction ended at offset 165" in text


def test_secrets_stay_fingerprints(shell: Shell) -> None:
    text = shell.run("explain", "scram_credentials", "alice/SCRAM-SHA-256")
    assert text.count("stored_key=hmac:") >= 4
    assert "stored_key=" not in text.replace("stored_key=hmac:", "")


def test_a_row_that_never_was_names_its_neighbours(shell: Shell) -> None:
    said = shell.run("explain", "partitions", "orders/333", code=2)
    assert "there never was a row orders-333; nearest: orders/3, " in said
    assert len(said.strip().splitlines()) == 1
    assert "a key of partitions is TOPIC/PARTITION" in shell.run("explain", "partitions", "orders", code=2)


def test_history_and_gates_find_the_same_warehouse(audited: Audit, shell: Shell, tmp_path: Path) -> None:
    assert audited.run_id in shell.run("history")
    shown = shell.run("gates")
    assert shown.startswith(f"Run {audited.run_id} of cluster looking, finished ")
    assert "dual_write  NO-GO\n  DUR-05" in shown
    assert "gate start is NOT-APPLICABLE" in shell.run("gates", "--gate", "start", "--run", audited.run_id, code=20)
    shell.run("gates", "--gate", "start", "--allow-unknown")
    assert "gate dual_write is NO-GO" in shell.run("gates", "--gate", "dual_write", "--allow-unknown", code=20)
    assert shell.run("history", "--trend").splitlines()[0].split() == [
        "run_id",
        "verdict",
        "lag_records",
        "divergences",
        "defects",
        "lost_write",
    ]
    shell.place = ["--warehouse", str(tmp_path)]
    assert f"{tmp_path} holds no finished run" in shell.run("history", code=2)


def test_a_suppression_decides_where_a_row_is_shown_and_no_count_or_verdict(audited: Audit) -> None:
    report = audited.report
    assert (report.divergences.total, report.divergences.by_class) == (2, {"lost_write": 2})
    assert (report.divergences.suppressed, report.divergences.suppressed_by_class) == (1, {"lost_write": 1})
    assert [row.suppressed.who if row.suppressed else None for row in report.divergences.rows] == [None, "Ann"]
    check = next(check for check in report.checks if check.id == "DUR-05")
    assert (check.verdict, check.violations) == ("fail", 2)
    assert report.gates["rollback"].verdict == "no_go"
    assert (report.verdict, report.exit_code) == ("errors", 20)
    assert report.unsuppressed_verdict == "errors", "one of the two is known to nobody"
    assert report.history[-1].defects == 2
    assert len(audited.rows(DIVERGENCES)) == 2
    notes = " ".join(report.notes)
    assert "suppression 2 (topics lag) of Bob matches nothing: remove it" in notes
    assert "suppression 3 (client_quotas lost_write) of Cid expired on 2020-01-01" in notes
    assert "of Ann" not in notes
