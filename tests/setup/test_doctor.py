"""`kraft-audit doctor` says what a run would stumble over, without starting Spark."""

from __future__ import annotations

import errno
import fcntl
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


def test_files_that_a_run_reads_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both would fail the cluster: a property file that Java refuses, and a suite that is none."""
    properties, suite = tmp_path / "server.properties", tmp_path / "suite.json"
    properties.write_text("node.id=1\nlog.dirs=\\u12")
    suite.write_text("{}")
    named = {"properties": {"controllers": [str(properties)]}, "expectations": [str(suite)]}
    code, lines = told(capsys, "--conf", conf(tmp_path, **named))
    assert (code, lines[-1]) == (USAGE, "A run would fail.")
    failed = [line for line in lines if line.startswith("FAIL")]
    assert [f"{properties} is not a property file" in failed[0], str(suite) in failed[1]] == [True, True]
    properties.write_text("node.id=1\n")
    assert told(capsys, "--conf", conf(tmp_path, properties={"controllers": [str(properties)]}))[0] == OK


def test_a_folder_without_kafkas_metadata_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    empty = str(tmp_path / "empty")
    code, lines = told(capsys, "--conf", conf(tmp_path, zookeeper={"folder": empty}, kraft={"folders": [empty]}))
    assert code == USAGE
    assert [line for line in lines if line.startswith("FAIL") and "holds no snapshot" in line]
    assert [line for line in lines if line.startswith("FAIL") and "metadata log" in line]


def test_a_mail_server_whose_name_can_be_no_hosts_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mail = {"host": "mail..example.com", "port": 25, "sender": "a@b.c", "recipients": ["d@e.f"]}
    code, lines = told(capsys, "--conf", conf(tmp_path, report={"folder": str(tmp_path), "mail": mail}))
    assert code == WARNINGS
    assert [line for line in lines if line.startswith("warn  c: mail server") and "mail..example.com:25: " in line]


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


def mounted(tmp_path: Path, kind: str, options: str) -> doctor.FileSystem:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        f"23 22 0:44 / /srv/the\\040audit rw,relatime shared:2 - {kind} server:/export rw,{options}\n"
        "24 22 0:45 / /srv/other rw - tmpfs tmpfs rw\n"
    )
    assert doctor.file_system(Path("/var/lib"), mounts) == doctor.FileSystem("ext4", True)
    return doctor.file_system(Path("/srv/the audit/tables"), mounts)


@pytest.mark.parametrize(
    ("kind", "options", "held"),
    [
        ("nfs4", "vers=4.2,local_lock=none", True),
        ("nfs", "vers=3,nolock,local_lock=all", False),
        ("nfs", "vers=3,local_lock=flock", False),
        ("nfs", "vers=3,local_lock=posix", True),
        ("fuse.s3fs", "allow_other", None),
        ("xfs", "attr2", True),
    ],
)
def test_whether_locks_hold_between_machines_is_read_from_the_mount(
    tmp_path: Path, kind: str, options: str, held: bool | None
) -> None:
    assert mounted(tmp_path, kind, options) == doctor.FileSystem(kind, held)


def test_locks_that_hold_on_one_machine_only_are_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any(
        line.startswith("ok    warehouse's locks        locks and renames work (")
        for line in told(capsys, "--conf", conf(tmp_path))[1]
    )
    monkeypatch.setattr(doctor, "file_system", lambda _: doctor.FileSystem("nfs", False))
    code, lines = told(capsys, "--conf", conf(tmp_path))
    assert code == WARNINGS
    assert any("nfs is mounted with locks of this machine only" in line for line in lines)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["conf.yml"], "what was tried is gone"


def test_a_place_without_locks_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    code, lines = told(capsys, "--conf", conf(tmp_path))
    assert code == USAGE
    assert any("no locks there (No locks available)" in line for line in lines)
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    code, lines = told(capsys, "--conf", conf(tmp_path))
    assert code == USAGE
    assert any("a lock is given twice there" in line for line in lines)


def test_s3_is_a_warning_until_somebody_vouches_for_one_run_at_a_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "k" * 32)
    there = {"secrets": {"fingerprint_key_env": "KEY"}, "warehouse": "s3a://bucket/w"}
    code, lines = told(capsys, "--conf", conf(tmp_path, **there))
    assert code == WARNINGS
    assert any(line.startswith("warn  warehouse") and "spark.delta.logStore.s3a.impl" in line for line in lines)
    assert told(capsys, "--conf", conf(tmp_path, **there, warehouse_single_driver=True))[0] == OK
    code, lines = told(capsys, "--conf", conf(tmp_path, **(there | {"warehouse": "oci://bucket/w"})))
    assert any(line.startswith("warn  warehouse") and "it is unknown here" in line for line in lines)
    assert told(capsys, "--conf", conf(tmp_path, **(there | {"warehouse": "abfss://c@a/w"})))[0] == OK


def test_unfinished_tables_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, commit in (("runs", None), ("checks", "00000000000000000000.json")):
        log = tmp_path / "tables" / "gold" / name / "_delta_log"
        log.mkdir(parents=True)
        if commit:
            (log / commit).write_text("{}")
    code, lines = told(capsys, "--conf", conf(tmp_path))
    assert code == OK
    [said] = [line for line in lines if "unfinished tables" in line]
    assert "gold.runs: a first write did not finish; the next run repeats it" in said


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
