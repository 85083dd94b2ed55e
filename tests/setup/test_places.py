"""Places of a configuration that are not on this machine: read, written and named as they are, with a folder in a bucket's place."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.commands import check
from jobs.exit import UsageError
from jobs.places import Place, RemotePlace, place_of
from jobs.settings import Settings, check_files, validated
from jobs.sinks.report_files import ReportWriteError, write_report
from jobs.sources import remote
from jobs.sources.remote import RemoteError, read_range, remote_is_file, staged, write_file
from jobs.steps.fleet import places_of, write_fleet_page
from jobs.steps.ingest_zookeeper import TreeFiles
from tests.captures import capture
from tests.report.fleets import small_fleet
from tests.report.samples import healthy
from transforms.secrets import Fingerprinter
from transforms.zookeeper.read.redact import Redactor

REDACTOR = Redactor(Fingerprinter(b"a key of the tests, as long as one is"), ())


def settings(**more: object) -> Settings:
    return validated({"cluster": "c", "warehouse": "w", "kraft": {"folders": ["k"]}, **more}, "test")


@pytest.mark.parametrize("address", ["s3a://bucket/a/b", "hdfs://node:8020/a/b", "abfss://c@x/a/b", "file:///a/b"])
def test_an_address_stays_as_it_is(address: str) -> None:
    place = place_of(address)
    assert isinstance(place, RemotePlace)
    assert (str(place), place.name, str(place.parent)) == (address, "b", address.removesuffix("/b"))
    assert str(place / "c") == f"{address}/c"


@pytest.mark.parametrize(("given", "path"), [("a/b", "a/b"), ("/a", "/a"), ("dbfs:/x/y", "/dbfs/x/y")])
def test_anything_else_is_a_path(given: str, path: str) -> None:
    assert place_of(given) == Path(path)


def test_a_configuration_takes_addresses_where_files_are() -> None:
    found = settings(zookeeper={"folder": "s3a://b/zk"}, report={"folder": "hdfs://n/reports"})
    assert found.zookeeper is not None
    assert (found.zookeeper.folder, found.report.folder) == (RemotePlace("s3a://b/zk"), RemotePlace("hdfs://n/reports"))
    with pytest.raises(UsageError, match=r"test: `kraft\.folders`: there is no folder k"):
        check_files(found)


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(UsageError, match=r"test: `report\.folder`: Input is not a valid path"):
        settings(report={"folder": 3})


def test_a_file_appears_whole_and_in_place_of_an_older_one(tmp_path: Path) -> None:
    uri = (tmp_path / "new" / "file").as_uri()
    assert not remote_is_file(uri)
    for text in (b"longer than", b"this"):
        write_file(uri, text)
        assert (tmp_path / "new" / "file").read_bytes() == text
    assert remote_is_file(uri)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]


def test_what_can_not_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    uri = (tmp_path / "file").as_uri()
    with pytest.raises(RemoteError, match=f"^{uri}/below: can't be written: .*"):
        write_file(f"{uri}/below", b"x")
    with pytest.raises(ReportWriteError, match=f"^cannot write the report into {uri}: .*kraft-audit report --run"):
        write_report(healthy(), RemotePlace(uri))


def test_a_file_that_is_gone_or_whose_store_fails_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = (tmp_path / "0.log").as_uri()
    (tmp_path / "0.log").write_bytes(b"01234567")
    assert (read_range(uri, 2, 5), read_range(uri, 6, 99), read_range(uri, 9, 99)) == (b"234", b"67", b"")
    (tmp_path / "0.log").unlink()
    with pytest.raises(RemoteError, match=f"^{uri}: can't be read: .*"):
        read_range(uri, 2, 5)

    def fails(_: str) -> None:
        # As hdfs-native does.
        raise RuntimeError("no name node answers\nCaused by: more")

    monkeypatch.setattr(remote, "_resolve", lambda _: (SimpleNamespace(open_input_file=fails), "0.log"))
    with pytest.raises(RemoteError, match=f"^{uri}: can't be read: no name node answers$"):
        read_range(uri, 2, 5)


def test_reports_and_the_fleets_page_are_where_they_are_to_be(tmp_path: Path) -> None:
    folder, standing = RemotePlace(tmp_path.as_uri()), small_fleet()
    name = standing.clusters[0].name
    paths = write_report(healthy(), folder / name)
    assert paths.html == folder / name / "report.html"
    assert places_of(standing, folder, {}) == {name: f"{name}/report.html"}
    # From a folder of this machine no link leads there.
    assert places_of(standing, folder, {}, tmp_path) == {}
    page = write_fleet_page(standing, folder / "fleet.html", {name: "x.html"})
    assert page.is_file()
    assert 'href="x.html' in (tmp_path / "fleet.html").read_text()


def test_a_data_folder_and_a_dump_are_read_from_where_they_are() -> None:
    files = capture("3.9.1", "6")

    def rows(place: Place) -> list[tuple[str | None, list[dict[str, Any]]]]:
        dump = place.name.endswith(".gz")
        read = TreeFiles("c", "s", REDACTOR, place if dump else None, None if dump else place)
        return [(tree, batch.to_pylist()) for tree, batch in read.trees()]

    for path in (files / "zookeeper", files / "zookeeper.jsonl.gz"):
        assert rows(path)
        assert rows(RemotePlace(path.as_uri())) == rows(path)


def test_a_data_folder_that_holds_nothing_is_named_as_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "zk").mkdir()
    uri = (tmp_path / "zk").as_uri()
    with pytest.raises(Exception, match="snapshot") as said:
        list(TreeFiles("c", "s", REDACTOR, folder=RemotePlace(uri)).trees())
    assert "kraft-audit-staged" not in str(said.value)


def test_check_writes_to_this_machine_only(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    check.add_arguments(parser)
    arguments = parser.parse_args(["--kraft", "s3a://b/k", "--zookeeper", "s3a://b/zk", "--out", "s3a://b/out"])
    with pytest.raises(UsageError, match=r"^--out: s3a://b/out is not on this machine"):
        check.settings_for(arguments, arguments.out)
    found = check.settings_for(arguments, tmp_path)
    assert found.zookeeper is not None
    assert found.zookeeper.folder == RemotePlace("s3a://b/zk")


def test_without_a_client_for_hdfs_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RemoteError, match=r"^hdfs://nowhere\.invalid:1/x: .*; install kraft-migration-audit\[hdfs\]$"):
        remote_is_file("hdfs://nowhere.invalid:1/x")


@pytest.mark.parametrize("where", ["name..example.com:8020", "name.example.com:99999"])
def test_an_address_of_hdfs_that_can_be_none_is_one_line(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: "hdfs-native is installed")
    monkeypatch.setitem(sys.modules, "hdfs_native.fsspec", SimpleNamespace())
    with pytest.raises(RemoteError, match=f"^hdfs://{where}/x: .*"):
        remote_is_file(f"hdfs://{where}/x")


def test_a_single_file_is_staged_too(tmp_path: Path) -> None:
    (tmp_path / "dump.jsonl").write_text("x")
    with staged((tmp_path / "dump.jsonl").as_uri()) as file:
        assert (file.name, file.read_text()) == ("dump.jsonl", "x")
