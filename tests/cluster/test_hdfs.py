"""Sources, tables and reports on a real HDFS; its first run has another cluster's for company."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.exit import OK, WARNINGS
from tests.cluster.on_a_store import Both, OnAStore, both_of
from tests.cluster.standalone import standalone
from tests.cluster.stores import configuration, environment_of, hdfs, in_python, report, run

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    yield from both_of(hdfs, tmp_path_factory.mktemp("hdfs"), tmp_path_factory.mktemp("local"))


class TestHdfs(OnAStore):
    def test_of_two_runs_at_a_time_none_loses_anything(self, both: Both) -> None:
        assert report(both.store, cluster="other") == both.earlier
        ran = run(["fleet", "--warehouse", f"{both.store.root}/tables"], both.folder, both.store)
        assert "other" in ran.stdout

    def test_two_workers_say_what_is_said_on_a_local_disk_in_the_next_run_too(self, both: Both) -> None:
        folder = both.folder / "workers"
        folder.mkdir()
        elsewhere = {
            "warehouse": f"{both.store.root}/of-workers",
            "report": {"folder": f"{both.store.root}/reports-of-workers"},
            "spark": {"profile": "cluster"},
        }
        with standalone(folder) as cluster:
            for stage, code, said in (("earlier", OK, both.earlier), ("later", WARNINGS, report(both.local))):
                file = configuration(both.folder, both.store, stage, **elsewhere)
                ran = cluster.submit(file, environment_of(both.store))
                assert ran.returncode == code, ran.stderr[-3000:]
                assert report(both.store, "reports-of-workers") == said
            assert all(cluster.finished_tasks()), "a worker did nothing"

    def test_who_has_looked_there_can_start_other_programs(self, both: Both) -> None:
        """As Spark is started, which forks: an audit that had read a file of HDFS before waited for ever."""
        there = f"{both.store.root}/reports/c/report.json"
        in_python(
            f"import os, subprocess; from jobs.sources.remote import remote_is_file; assert remote_is_file({there!r}); "
            "subprocess.run(['true'], preexec_fn=os.getpid, check=True)",
            both.store,
        )

    def test_where_nothing_answers_one_line_says_so(self, both: Both) -> None:
        nowhere = "hdfs://localhost:1/log"
        file = configuration(both.folder, both.store, "later", kraft={"folders": [nowhere]})
        ran = run(["doctor", "--conf", str(file)], both.folder, both.store)
        (line,) = (each for each in ran.stdout.splitlines() if "metadata log" in each)
        assert line.split(maxsplit=4) == ["FAIL", "c:", "metadata", "log", f"{nowhere}: Connection refused"]
