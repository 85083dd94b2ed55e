"""Sources, tables and reports on an object store that answers as S3 does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.exit import CRASH, USAGE
from tests.cluster.on_a_store import Both, OnAStore, both_of
from tests.cluster.stores import configuration, object_store, run

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    yield from both_of(object_store, tmp_path_factory.mktemp("store"), tmp_path_factory.mktemp("local"))


class TestObjectStore(OnAStore):
    def test_a_bucket_that_is_not_there_is_one_line(self, both: Both) -> None:
        file = configuration(both.folder, both.store, "later", warehouse="s3a://no-such-bucket/tables")
        ran = run(["run", "--conf", str(file)], both.folder, both.store)
        assert ran.returncode == CRASH
        assert "kraft-audit: the warehouse s3a://no-such-bucket/tables: there is no such bucket; make it" in ran.stderr
        assert both.store.environment["AWS_SECRET_ACCESS_KEY"] not in ran.stdout + ran.stderr

    def test_two_drivers_are_refused(self, both: Both) -> None:
        file = configuration(both.folder, both.store, "later", warehouse_single_driver=False)
        ran = run(["run", "--conf", str(file)], both.folder, both.store)
        assert ran.returncode == USAGE
        assert "two runs at a time can overwrite each other's commits" in ran.stderr


def test_without_credentials_one_line_says_which_are_missing(tmp_path: Path) -> None:
    with object_store(tmp_path) as there:
        known = {name: value for name, value in there.environment.items() if "_KEY" not in name}
        store = replace(there, environment=known)
        ran = run(["gates", "--warehouse", f"{store.root}/tables"], tmp_path, store, AWS_EC2_METADATA_DISABLED="true")
    assert ran.returncode == CRASH
    first, last = ran.stderr.splitlines()
    assert "Without Spark it takes AWS_ACCESS_KEY_ID" in first
    said = f"the warehouse {store.root}/tables: Spark has no credentials for it; provide them (docs/storage.md)"
    assert last == f"kraft-audit: {said}"
