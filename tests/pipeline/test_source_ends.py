"""Sources that end while they are read: one line of the cluster that it befalls, the others go on, and the next run is right."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from errno import EIO, ENOENT
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from jobs.run.run import Failure
from jobs.settings import ZooKeeperSettings
from jobs.sources import remote
from jobs.sources.remote import RemoteError
from jobs.sources.zookeeper.client import LiveSettings
from jobs.steps import ingest_kraft, ingest_zookeeper
from tests.captures import capture
from tests.pipeline.audits import Audit, audit_all, settings_content
from tests.zookeeper.hostile import hostile_server
from transforms.report.json import to_json

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]
VERSION, EARLIER, LATER = "4.3.1-kraft", "7-elr-cleared", "8-unclean"
# Names of one length and with the same place among others, so that they can stand for each other in a report.
FINE, EARLY, LATE, SHORT, WALKED = "c-fine", "c-gone-early", "c-gone-late", "c-cut-short", "c-walked"
FOLDERS = (FINE, EARLY, LATE, SHORT)
SEGMENTS = "*/__cluster_metadata-0/*.log"


class Place:
    """Clusters with the same log, each in a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def log(self, name: str) -> Path:
        return self.root / name / "kraft"

    def segments(self, name: str) -> list[Path]:
        found = sorted(self.log(name).glob(SEGMENTS))
        assert found
        return found

    def at(self, stage: str) -> None:
        for name in FOLDERS:
            shutil.rmtree(self.log(name), ignore_errors=True)
            shutil.copytree(capture(VERSION, stage) / "kraft", self.log(name))

    def conf(self, name: str, **more: object) -> dict[str, object]:
        return {
            "cluster": name,
            "warehouse": str(self.root / "tables"),
            "spark": {"profile": "small"},
            "report": {"folder": str(self.root / "reports")},
            "kraft": {"folders": [str(self.log(name))], "keep_state_every": 1},
            **more,
        }

    def run(self, *more: Mapping[str, object]) -> dict[str, Audit | Failure]:
        return audit_all([*(self.conf(name) for name in FOLDERS), *more])


def told(audit: Audit | Failure, name: str) -> dict[str, Any]:
    """What a report says, as if it were of another cluster."""
    assert isinstance(audit, Audit), audit
    said: dict[str, Any] = json.loads(to_json(audit.report).replace(name, FINE))
    for point in (said, *said["history"]):
        for key in ("run_id", "started_at", "finished_at"):
            point.pop(key, None)
    return said


def before(monkeypatch: pytest.MonkeyPatch, called: str, first: Callable[[], None]) -> None:
    """Let something happen right before the step calls this."""
    original = getattr(ingest_kraft, called)

    def call(*arguments: Any) -> Any:
        first()
        return original(*arguments)

    monkeypatch.setattr(ingest_kraft, called, call)


def impatient(source: ZooKeeperSettings) -> LiveSettings:
    return LiveSettings(str(source.connect), connect_timeout_seconds=5, patience_seconds=1)


def test_one_clusters_source_ends_and_no_other_one_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.at(EARLIER)
    assert all(isinstance(each, Audit) for each in place.run().values())
    place.at(LATER)

    def gone_early() -> None:
        for path in place.segments(EARLY):
            path.unlink()

    def gone_late() -> None:
        for path in place.segments(LATE):
            path.unlink()
        for path in place.segments(SHORT):
            path.write_bytes(path.read_bytes()[:-1500])

    with monkeypatch.context() as patch, hostile_server(children=1, hangs_up_at="/brokers/c0") as server:
        before(patch, "_continue_or_not", gone_early)
        before(patch, "in_workers", gone_late)
        patch.setattr(ingest_zookeeper, "live_settings", impatient)
        walked = {"zookeeper": {"connect": server.address}, "kraft": None}
        found = place.run({k: v for k, v in place.conf(WALKED, **walked).items() if v is not None})
    reasons = {name: each.reason for name, each in found.items() if isinstance(each, Failure)}
    assert reasons.keys() == {EARLY, LATE, SHORT, WALKED}, "the fine one goes on"
    assert all("\n" not in reason for reason in reasons.values())
    for name in (EARLY, LATE):
        assert f"{place.log(name)}/" in reasons[name]
        assert "No such file or directory, while it was read" in reasons[name]
        assert "Run again" in reasons[name]
    assert f"{place.log(SHORT)}/" in reasons[SHORT]
    assert "became shorter while it was read" in reasons[SHORT]
    assert reasons[WALKED].startswith(f"ZooKeeper {server.address}")
    wanted = told(found[FINE], FINE)

    # What was half read counts for nothing: the next run is as if it were the first one after the earlier stage.
    place.at(LATER)
    after = place.run()
    for name in (EARLY, LATE, SHORT):
        assert told(after[name], name) == wanted


def test_one_clusters_store_goes_away_and_the_others_are_audited(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After its log was looked at: a store that is not reached any more, and a client that fails in words of its own."""
    refused, broken, properties = "c-refused", "c-broken", "c-without-properties"
    place = Place(tmp_path)
    place.at(EARLIER)
    file = tmp_path / "controller.properties"
    file.write_text("process.roles=controller\nnode.id=3000\n")
    stores = {name: tmp_path / name for name in (refused, broken)}
    for store in stores.values():
        shutil.copytree(capture(VERSION, EARLIER) / "kraft", store)
    more = [
        *(
            place.conf(name, kraft={"folders": [f"file://{store}"], "keep_state_every": 1})
            for name, store in stores.items()
        ),
        place.conf(properties, kraft=place.conf(FINE)["kraft"], properties={"controllers": [f"file://{file}"]}),
    ]
    fine = place.conf(FINE)
    assert all(isinstance(each, Audit) for each in audit_all([fine, *more]).values())
    there = remote._resolve

    def resolve(uri: str) -> Any:
        if uri.startswith(f"file://{stores[refused]}"):
            raise remote.RemoteError(f"{uri}: Connection refused")
        return (
            (SimpleNamespace(open_input_file=fails), uri.removeprefix("file://"))
            if uri.startswith("file:///")
            else there(uri)
        )

    def fails(path: str) -> None:
        raise RuntimeError(f"no name node answers for {path}\nCaused by: more")

    with monkeypatch.context() as patch:
        before(patch, "_continue_or_not", lambda: patch.setattr(remote, "_resolve", resolve))
        found = audit_all([fine, *more])
    reasons = {name: each.reason for name, each in found.items() if isinstance(each, Failure)}
    assert reasons.keys() == {refused, broken, properties}, "the fine one goes on"
    assert all("\n" not in reason for reason in reasons.values())
    assert reasons[refused].startswith(f"file://{stores[refused]}/")
    assert reasons[refused].endswith(": Connection refused")
    assert reasons[broken].startswith(f"file://{stores[broken]}/")
    assert ": can't be read: no name node answers for " in reasons[broken]
    assert (
        reasons[properties]
        == f"`properties.controllers`: file://{file}: can't be read: no name node answers for {file}"
    )


def test_zookeepers_logs_that_end_after_the_tree_was_read_fail_their_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each table reads them again, and a remote folder is copied for each: what was half read must not pass as all there is."""
    stage = capture("3.9.1", "10-brokers-rolling")
    lost = stage / "zookeeper" / "version-2" / "log.598"
    errors: dict[str, Exception] = {
        "c-broken": OSError(EIO, "Input/output error", str(lost)),
        "c-purged": FileNotFoundError(ENOENT, "No such file or directory", str(lost)),
        "c-remote": RemoteError("s3://backup/zk: can't be read: No space left on device"),
        "c-secret": RuntimeError("a password"),
    }

    # Of a worker, which has no other name of it.
    class Ending(ingest_zookeeper.TreeFiles):
        def history(self) -> Iterator[pa.RecordBatch]:
            yield next(iter(super().history()))
            raise errors[self.cluster]

    original = ingest_zookeeper._files

    def files(*arguments: Any) -> list[ingest_zookeeper.TreeFiles]:
        return [Ending(**vars(each)) if each.cluster in errors else each for each in original(*arguments)]

    monkeypatch.setattr(ingest_zookeeper, "_files", files)
    whole = settings_content(stage, tmp_path / "tables", data_folder=True)
    found = audit_all([{**whole, "cluster": name} for name in (FINE, *errors)])
    fine = found.pop(FINE)
    assert isinstance(fine, Audit), "the fine one goes on"
    assert [check.verdict for check in fine.report.checks if check.id.startswith("TXN-")] == ["pass"] * 5
    reasons = {name: each.reason for name, each in found.items() if isinstance(each, Failure)}
    assert reasons.keys() == errors.keys()
    for name, reason in reasons.items():
        assert "\n" not in reason
        assert f"ZooKeeper's transaction logs in {stage / 'zookeeper'} could not be read: " in reason, name
    assert f"{lost}: Input/output error, while it was read" in reasons["c-broken"]
    assert f"{lost}: No such file or directory, while it was read" in reasons["c-purged"]
    assert all("Run again" in reasons[name] for name in ("c-broken", "c-purged"))
    assert reasons["c-remote"].endswith("s3://backup/zk: can't be read: No space left on device")
    assert reasons["c-secret"].endswith("RuntimeError")
