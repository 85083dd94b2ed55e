"""What a first run leaves, and what the command line asks of files before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from jobs.audit import inputs
from jobs.audit import run as runs
from jobs.audit.inputs import expects_few_rows, profile_for, profile_of_run
from jobs.exit import UsageError
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
    # A run whose only large part may be a live one begins as a small one.
    large_file, told = "LARGE" in str(sources), any("spark" in each for each in sources)
    few = profile == "small" or (profile == "local" and not large_file and not told)
    assert expects_few_rows(several, profile_of_run(several)) is few


class _Session:
    """Notes what a run asks of its session."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        monkeypatch.setattr(runs, "settings_for_few_rows", self.few)

    def few(self, _: object) -> Callable[[], None]:
        self.asked.append("few")
        return lambda: self.asked.append("many")


@pytest.mark.parametrize(
    ("znodes", "log_bytes", "small"),
    [(10, 10, True), (200_000, 10, False), (10, 65 * 1024 * 1024, False)],
)
def test_a_run_that_reads_more_than_it_expected_goes_on_as_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, znodes: int, log_bytes: int, small: bool
) -> None:
    session = _Session(monkeypatch)
    with (tmp_path / "00000000000000000000.log").open("wb") as file:
        file.truncate(log_bytes)
    run = runs.Run({}, "r", datetime.now(UTC), *[SimpleNamespace()] * 3)
    run.expect_few_rows()
    run.logs = {"c": SimpleNamespace(copies=[SimpleNamespace(location=str(tmp_path))])}
    run.znodes_walked = znodes
    run.measure()
    run.measure()
    assert run.small is small
    assert session.asked == (["few"] if small else ["few", "many"])


def test_who_is_told_that_rows_are_few_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = _Session(monkeypatch)
    run = runs.Run({}, "r", datetime.now(UTC), *[SimpleNamespace()] * 3)
    run.small, run.znodes_walked = True, 1_000_000
    run.measure()
    assert (run.small, session.asked) == (True, [])


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
