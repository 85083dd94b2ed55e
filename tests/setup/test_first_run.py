"""What a first run leaves, and what the command line asks of files before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.evidence import inputs
from jobs.evidence.inputs import profile_for, profile_of_run
from jobs.exit import UsageError
from jobs.run import run as runs
from jobs.settings import ZooKeeperTls, check_files, validated
from jobs.sources.zookeeper.client import LiveSettings, TlsSettings, make_client
from jobs.steps.ingest_zookeeper import _tls


def test_a_key_that_was_half_written_is_never_the_warehouses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "warehouse" / ".fingerprint-key"
    monkeypatch.setattr(runs.os, "fsync", _killed)
    with pytest.raises(KeyboardInterrupt):
        runs._generated_key(path)
    assert list(path.parent.iterdir()) == []
    monkeypatch.undo()
    key = runs._generated_key(path)
    assert (len(key), runs._generated_key(path)) == (32, key)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def _killed(_: int) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("links", [True, False])
def test_the_key_of_the_run_that_was_first_is_the_warehouses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    path = tmp_path / "key"

    def raced(part: Path, target: Path) -> None:
        target.write_bytes(b"x" * 32)
        if links:
            raise FileExistsError(target)
        raise PermissionError("no hard links here")

    monkeypatch.setattr(runs.os, "link", raced)
    assert runs._generated_key(path) == b"x" * 32


def test_a_file_system_without_hard_links_has_a_key_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(part: Path, target: Path) -> None:
        raise PermissionError("no hard links here")

    monkeypatch.setattr(runs.os, "link", refused)
    key = runs._generated_key(tmp_path / "key")
    assert (len(key), [path.name for path in tmp_path.iterdir()]) == (32, ["key"])


def test_a_remote_log_is_measured_and_not_taken_for_a_small_one(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with (tmp_path / "log" / "00000000000000000000.log").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    assert profile_for([f"file://{tmp_path}"]) == "local"
    assert profile_for([str(tmp_path)]) == "local"
    assert profile_for([f"file://{tmp_path}/nothing"]) == "small"


FILES: dict[str, object] = {"zookeeper": {"folder": "/no/tree"}, "kraft": {"folders": ["/no/log"]}}
LIVE_ZOOKEEPER: dict[str, object] = {"zookeeper": {"connect": "zk:2181"}}
LIVE_KRAFT: dict[str, object] = {"kraft": {"controllers": ["c:9093"], "cluster_id": "x"}}


@pytest.mark.parametrize(
    ("sources", "given", "profile"),
    [
        ([FILES], False, "small"),
        # Who wants a profile has it, and a session that somebody else has made is taken as it is.
        ([{**FILES, "spark": {"profile": "local"}}], False, "local"),
        ([FILES], True, "cluster"),
        ([{**FILES, "spark": {"profile": "small"}}], True, "small"),
        # One of them is enough.
        ([FILES, LIVE_ZOOKEEPER], False, "local"),
        ([FILES, LIVE_KRAFT], False, "local"),
        ([FILES, {"kraft": {"folders": ["LARGE"]}}], False, "local"),
    ],
)
def test_the_profile_follows_what_all_clusters_of_a_run_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sources: list[dict[str, object]],
    given: bool,
    profile: str,
) -> None:
    monkeypatch.setattr(inputs, "session_is_given", lambda: given)
    with (tmp_path / "00000000000000000000.log").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    large = {"kraft": {"folders": [str(tmp_path)]}}
    several = [
        validated({"cluster": f"c{number}", "warehouse": "w", **(large if "LARGE" in str(each) else each)}, "test")
        for number, each in enumerate(sources)
    ]
    assert profile_of_run(several) == profile


def test_tls_verifies_the_host_name_unless_told_not_to() -> None:
    assert _tls(ZooKeeperTls()).check_hostname
    assert not _tls(ZooKeeperTls(verify_hostname=False)).check_hostname
    for tls, checked in (
        (TlsSettings(), True),
        (TlsSettings(check_hostname=False), False),
        (TlsSettings(verify_certificates=False), False),
    ):
        client = make_client(LiveSettings("zk:2281", tls=tls))
        assert client.check_hostname is checked


def test_a_report_folder_in_whose_place_a_file_is_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("")
    content = {
        "cluster": "c",
        "warehouse": "w",
        "zookeeper": {"connect": "zk:2181"},
        "report": {"folder": str(tmp_path / "reports" / "prod")},
    }
    with pytest.raises(UsageError, match=r"`report\.folder`: .*reports is a file; name a folder"):
        check_files(validated(content, "test"))
