"""`kraft-audit doctor` says what a run would stumble over, without starting Spark."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.commands import doctor
from jobs.exit import OK, USAGE, WARNINGS
from tests.captures import capture
from tests.live.fake import CLUSTER_ID, FakeQuorum, fake_controllers
from tests.live.test_copy import LOG


def conf(tmp_path: Path, **more: object) -> str:
    folder = capture("3.9.1", "5")
    content = {
        "cluster": "c",
        "warehouse": str(tmp_path / "tables"),
        "spark": {"profile": "small"},
        "zookeeper": {"folder": str(folder / "zookeeper")},
        "kraft": {"folders": [str(folder / "kraft")]},
        "report": {"folder": str(tmp_path / "reports")},
        **more,
    }
    path = tmp_path / "conf.yml"
    path.write_text(json.dumps(content))
    return str(path)


@pytest.fixture(autouse=True)
def _roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's free space and memory are not what is asked here."""
    monkeypatch.setattr(doctor, "_LEAST_FREE_BYTES", 1)
    monkeypatch.setattr(doctor, "_MEMINFO", Path("/nowhere"))


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    code = main(["doctor", *arguments])
    return code, capsys.readouterr().out.splitlines()


def test_a_machine_and_a_configuration_that_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = told(capsys, "--conf", conf(tmp_path))
    assert (code, lines[-1]) == (OK, "Nothing is wrong.")
    assert any(line.startswith("ok    Java") for line in lines)
    assert any("c: metadata log" in line and "3 copies" in line for line in lines)
    assert any("c: ZooKeeper's folder" in line and "snapshot" in line for line in lines)
    assert not (tmp_path / "tables").exists(), "it only looks"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"kraft": {"folders": ["/nowhere"]}}, "there is no folder /nowhere"),
        ({"zookeeper": {"dump": "/nowhere.jsonl"}}, "there is no file /nowhere.jsonl"),
        (
            {"secrets": {"fingerprint_key_env": "NOT_SET_ANYWHERE"}},
            "the environment variable NOT_SET_ANYWHERE is not set",
        ),
        ({"warehouse": "s3a://bucket/w"}, "`secrets.fingerprint_key_env` is needed"),
        ({"colour": "red"}, "unknown key `colour`"),
    ],
)
def test_what_would_fail_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: dict[str, object], said: str
) -> None:
    code, lines = told(capsys, "--conf", conf(tmp_path, **more))
    assert (code, lines[-1]) == (USAGE, "A run would fail.")
    assert any(line.startswith("FAIL") and said in line for line in lines)


def test_a_folder_without_kafkas_metadata_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    empty = str(tmp_path / "empty")
    code, lines = told(capsys, "--conf", conf(tmp_path, zookeeper={"folder": empty}, kraft={"folders": [empty]}))
    assert code == USAGE
    assert [line for line in lines if line.startswith("FAIL") and "holds no snapshot" in line]
    assert [line for line in lines if line.startswith("FAIL") and "metadata log" in line]


def test_a_mail_server_that_is_away_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mail = {"host": "127.0.0.1", "port": port, "sender": "a@b.c", "recipients": ["d@e.f"]}
    report = {"folder": str(tmp_path), "mail": mail}
    code, lines = told(capsys, "--conf", conf(tmp_path, report=report))
    assert code == WARNINGS
    assert any(line.startswith("warn  c: mail server") for line in lines)


def test_little_room_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_LEAST_FREE_BYTES", 1 << 60)
    code, lines = told(capsys, "--conf", conf(tmp_path))
    assert code == WARNINGS
    assert any(line.startswith("warn  warehouse") and "would be safe" in line for line in lines)


def test_clusters_that_can_t_be_one_run_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    code, lines = told(capsys, "--conf", conf(first), conf(second))
    assert code == USAGE
    assert any("cluster c is configured twice" in line for line in lines)


def test_secrets_are_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", "hunter2-hunter2")
    code, lines = told(capsys, "--conf", conf(tmp_path, secrets={"fingerprint_key_env": "THE_KEY"}))
    assert code == OK
    assert "hunter2" not in "\n".join(lines)


LIVE_PASSWORD = "open-sesame-4711"


def controllers(quorum: FakeQuorum, **security: object) -> dict[str, object]:
    listed = [str(controller.endpoint) for controller in quorum.controllers]
    kraft: dict[str, object] = {"controllers": listed, "cluster_id": CLUSTER_ID}
    return {"kraft": {**kraft, "security": security} if security else kraft}


def test_controllers_that_answer_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fake_controllers(FakeQuorum.of_log(LOG)) as quorum:
        code, lines = told(capsys, "--conf", conf(tmp_path, **controllers(quorum)))
    assert code == OK, lines
    assert [line for line in lines if line.startswith("ok    c: controllers") and "the log can be read" in line]


def test_controllers_that_are_away_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_CONNECT_SECONDS", 0.5)
    with fake_controllers(FakeQuorum.of_log(LOG)) as quorum:
        given = controllers(quorum)
        for controller in quorum.controllers:
            controller.kill()
        code, lines = told(capsys, "--conf", conf(tmp_path, **given))
    assert code == USAGE
    assert [line for line in lines if line.startswith("FAIL  c: controllers")]


def test_controllers_of_another_cluster_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fake_controllers(FakeQuorum.of_log(LOG)) as quorum:
        given = controllers(quorum)
        kraft = given["kraft"]
        assert isinstance(kraft, dict)
        code, lines = told(capsys, "--conf", conf(tmp_path, kraft=kraft | {"cluster_id": "other"}))
    assert code == USAGE
    assert [line for line in lines if line.startswith("FAIL  c: controllers") and "of another cluster" in line]


def test_the_controllers_password_is_tried_and_its_way_is_doubted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    login = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "ann", "password_env": "LIVE_PASSWORD"}
    with fake_controllers(FakeQuorum.of_log(LOG), password=LIVE_PASSWORD) as quorum:
        path = conf(tmp_path, **controllers(quorum, **login))
        code, lines = told(capsys, "--conf", path)
        assert code == USAGE
        said = "the environment variable LIVE_PASSWORD is not set"
        assert len([line for line in lines if line.startswith("FAIL") and said in line]) == 2, "controllers and secrets"
        monkeypatch.setenv("LIVE_PASSWORD", "wrong-4712")
        code, lines = told(capsys, "--conf", path)
        assert code == USAGE
        assert [line for line in lines if line.startswith("FAIL  c: controllers")]
        monkeypatch.setenv("LIVE_PASSWORD", LIVE_PASSWORD)
        code, right = told(capsys, "--conf", path)
    assert code == WARNINGS
    assert [line for line in right if line.startswith("warn  c: the way to controllers") and "in clear text" in line]
    assert "471" not in "\n".join(line for line in [*lines, *right] if "127.0.0.1" not in line)
