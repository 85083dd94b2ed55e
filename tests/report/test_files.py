"""Reports reach the disk whole or not at all."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Barrier

import pytest

from jobs.places import place_of
from jobs.sinks.report_files import ReportWriteError, write_report, write_whole
from tests.report.samples import defective, healthy
from transforms.report.json import from_json


def test_both_files_are_written_and_read_back(tmp_path: Path) -> None:
    paths = write_report(defective(), tmp_path / "new" / "folder")
    assert from_json(paths.json.read_text(encoding="utf-8")) == defective()
    assert paths.html.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in paths.html.parent.iterdir()) == ["report.html", "report.json"]


def test_a_write_that_dies_leaves_the_earlier_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = write_report(healthy(), tmp_path).json.read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ReportWriteError, match=f"cannot write the report into {tmp_path}: No space left on device"):
        write_report(defective(), tmp_path)
    assert (tmp_path / "report.json").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["report.html", "report.json"]


def test_a_folder_that_is_a_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(ReportWriteError, match=r"`kraft-audit report --run .* --out FOLDER` writes it elsewhere"):
        write_report(healthy(), tmp_path / "out")


@pytest.mark.parametrize("scheme", ["", "file://"], ids=["a path", "an address"])
def test_writers_with_one_process_id_do_not_write_into_each_others_file(tmp_path: Path, scheme: str) -> None:
    # Threads have one id, and so do processes of containers: mostly 1.
    place = place_of(f"{scheme}{tmp_path / 'pages' / 'fleet.html'}")
    pages = [letter * 3_000_000 for letter in "ab"]
    together = Barrier(len(pages))

    def publish(page: str) -> set[str]:
        seen = set()
        for _ in range(15):
            together.wait()
            write_whole(place, page)
            seen.add((tmp_path / "pages" / "fleet.html").read_text(encoding="utf-8"))
        return seen

    with ThreadPoolExecutor(len(pages)) as pool:
        running = [pool.submit(publish, page) for page in pages]
        for each in running:
            each.add_done_callback(lambda done: together.abort() if done.exception() else None)
    assert set().union(*(each.result() for each in as_completed(running))) <= set(pages)
    assert os.listdir(tmp_path / "pages") == ["fleet.html"]
