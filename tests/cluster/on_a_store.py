"""What holds wherever sources, tables and reports are: what is said there is what is said on a local disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs.exit import ERRORS, OK, WARNINGS
from jobs.sinks.reader import Folder
from schemas.table import Table
from tests.cluster.stores import (
    TABLES,
    Store,
    configuration,
    done,
    kill_when,
    local,
    put_stages,
    report,
    run,
    start,
    table_rows,
)

READING = ("gates", "history", "fleet")


@dataclass(frozen=True)
class Both:
    """A store and a local folder, after the same two runs in each; what the first of them said here."""

    folder: Path
    store: Store
    local: Store
    earlier: dict[str, Any]


def both_of(made: Callable[[Path], AbstractContextManager[Store]], folder: Path, here: Path) -> Iterator[Both]:
    """Make the store, and audit both stages in it and in a local folder. The first run has company where it may."""
    on_disk = local(here)
    with made(folder) as store:
        said = {}
        for each in (on_disk, store):
            put_stages(each)
            beside = not store.single_driver and each is store
            others = [start(_run(folder, each, "earlier", cluster="other"), folder, each)] if beside else []
            first = run(_run(folder, each, "earlier"), folder, each)
            for ran in (first, *map(done, others)):
                assert ran.returncode == OK, ran.stderr[-3000:]
            said[each.root] = report(each)
            ran = run(_run(folder, each, "later"), folder, each)
            assert ran.returncode == WARNINGS, ran.stderr[-3000:]
        assert said[store.root] == said[on_disk.root]
        yield Both(folder, store, on_disk, said[on_disk.root])


def _run(folder: Path, store: Store, stage: str, **more: object) -> list[str]:
    return ["run", "--conf", str(configuration(folder, store, stage, **more))]


class OnAStore:
    """Inherit it beside a fixture `both` of the module."""

    def test_the_next_run_says_what_it_says_on_a_local_disk(self, both: Both) -> None:
        assert report(both.store)["checks"]
        assert report(both.store) == report(both.local)

    @pytest.mark.parametrize("table", TABLES, ids=lambda table: table.full_name)
    def test_tables_are_equal_and_read_without_spark(
        self, both: Both, table: Table, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in both.store.environment.items():
            monkeypatch.setenv(name, value)
        mine = {"cluster": "c"} if "cluster" in table.column_names else {}
        there, here = (Folder(f"{each.root}/tables").rows(table, where=mine) for each in (both.store, both.local))
        assert there.schema == here.schema
        assert table_rows(there, table) == table_rows(here, table)

    def test_the_fleets_page_is_beside_the_reports(self, both: Both) -> None:
        assert 'href="c/report.html' in both.store.read("reports/fleet.html")
        assert both.store.read("reports/c/report.html").startswith("<!doctype html>")
        assert not [name for name in both.store.names("reports") if name.endswith(".part")]

    @pytest.mark.parametrize("command", READING)
    def test_commands_that_read_start_no_spark(self, both: Both, command: str) -> None:
        cluster = [] if command == "fleet" else ["--cluster", "c"]
        arguments = [command, "--warehouse", f"{both.store.root}/tables", *cluster]
        ran = run(arguments, both.folder, both.store, JAVA_HOME="/nowhere")
        assert ran.stderr == ""
        assert ran.returncode in (OK, WARNINGS, ERRORS)
        assert ran.stdout

    def test_a_killed_run_is_as_if_it_had_not_been(self, both: Both) -> None:
        elsewhere = {"warehouse": f"{both.store.root}/killed", "report": {"folder": f"{both.store.root}/again"}}
        arguments = _run(both.folder, both.store, "earlier", **elsewhere)
        killed = start(arguments, both.folder, both.store)
        kill_when(killed, lambda: any("/silver/examined/_delta_log/" in name for name in both.store.names("killed")))
        assert not both.store.names("killed/gold/runs")
        ran = run(arguments, both.folder, both.store)
        assert ran.returncode == OK, ran.stderr[-3000:]
        assert report(both.store, "again") == both.earlier

    def test_doctor_looks_at_sources_and_reports(self, both: Both) -> None:
        ran = run(["doctor", "--conf", str(configuration(both.folder, both.store, "later"))], both.folder, both.store)
        assert f"{both.store.root}/later/kraft can be read" in ran.stdout
        assert f"{both.store.root}/later/zookeeper can be read" in ran.stdout
        assert f"{both.store.root}/reports can be written" in ran.stdout
        assert ran.returncode in (OK, WARNINGS), ran.stdout
