"""How a run tells of itself: in full, as JSON, or not at all; and what page and mails do to the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jobs import pipeline
from jobs.exit import CRASH, ERRORS, OK, USAGE, AuditError
from jobs.pipeline import ClusterResult, OutputOptions, audit
from jobs.run.run import Failure
from jobs.settings import Settings
from jobs.sinks.delta import Warehouse
from jobs.sinks.report_files import ReportPaths
from jobs.steps.publishing import Published
from tests.report.samples import defective, healthy

SETTINGS = Settings.model_validate({"cluster": "prod-us", "warehouse": "w", "kraft": {"folders": ["x"]}})
PATHS = ReportPaths(Path("/srv/prod-us/report.html"), Path("/srv/prod-us/report.json"))
LOSING, FINE = ClusterResult(defective(), PATHS), ClusterResult(healthy(), PATHS)
GONE = ClusterResult(failure=Failure("there is no folder /nowhere", USAGE))


@dataclass
class Cluster:
    failure: Failure | None = None
    settings: Settings = SETTINGS


@dataclass
class FakeRun:
    clusters: dict[str, Cluster] = field(default_factory=dict)
    recorded: set[str] = field(default_factory=set)
    # Nothing configured is to be kept small, and a folder has no views: nobody looks at the tables.
    warehouse: Warehouse = field(default_factory=lambda: Warehouse(None, "tables"))  # type: ignore[arg-type]


Told = Callable[..., int]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Told:
    """A run that was: its outcomes or what it raised, and what came after it."""
    monkeypatch.chdir(tmp_path)

    def tell(outcomes: Mapping[str, ClusterResult] | Exception, after: Published | Exception, **how: Any) -> int:
        failed = isinstance(outcomes, Exception)
        names = ["prod-us"] if isinstance(outcomes, Exception) else list(outcomes)
        run = FakeRun({name: Cluster(GONE.failure if failed else None) for name in names})

        @contextmanager
        def opened(*_settings: Any, **_how: Any) -> Iterator[FakeRun]:
            yield run

        def done(*_arguments: Any) -> Any:
            if isinstance(outcomes, Exception):
                raise outcomes
            return outcomes

        def followed(*_arguments: Any) -> Published:
            if isinstance(after, Exception):
                raise after
            return after

        monkeypatch.setattr(pipeline, "open_run", opened)
        monkeypatch.setattr(pipeline, "run_all", done)
        monkeypatch.setattr(pipeline, "publish", followed)
        return audit(SETTINGS, None, OutputOptions(**how))

    return tell


def test_one_cluster_is_told_in_full_with_where_to_look_first(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    after = Published(pages=[Path("/srv/fleet.html")], lines=["Mail         team@example.com"])
    assert told({"prod-us": LOSING}, after) == ERRORS
    out = capsys.readouterr().out
    assert out.startswith("ERRORS: ZooKeeper and KRaft disagree")
    assert "Start here   file:///srv/prod-us/report.html#check-DUR-05" in out
    assert out.endswith("Fleet        /srv/fleet.html\nMail         team@example.com\n")


def test_several_are_one_table(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    assert told({"a": LOSING, "b": GONE}, Published()) == USAGE
    out, err = capsys.readouterr()
    assert out.splitlines()[0].startswith("cluster ")
    assert err == "kraft-audit: cluster b: there is no folder /nowhere\n"


def test_json_is_one_object_and_nothing_else(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    assert told({"a": FINE, "b": GONE}, Published(lines=["Mail  x"]), as_json=True) == USAGE
    said = json.loads(capsys.readouterr().out)
    assert [(each["cluster"], each["verdict"], each["exit_code"]) for each in said["clusters"]] == [
        ("a", "clean", 0),
        ("b", "failed", 2),
    ]


def test_quiet_prints_errors_only(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    assert told({"prod-us": LOSING}, Published(lines=["Mail  x"]), quiet=True) == ERRORS
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("asked", "code"), [(False, OK), (True, CRASH)])
def test_a_mail_that_failed_is_said_and_counts_if_asked(
    told: Told, capsys: pytest.CaptureFixture[str], asked: bool, code: int
) -> None:
    after = Published(problems=["mail to smtp:25 not sent: nothing listens there"], mail_failed=True)
    assert told({"prod-us": FINE}, after, fail_on_mail=asked) == code
    out, err = capsys.readouterr()
    assert out.startswith("CLEAN: ")
    assert err == "kraft-audit: mail to smtp:25 not sent: nothing listens there\n"


def test_the_verdict_is_told_whatever_becomes_of_the_page(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    assert told({"prod-us": LOSING}, ZeroDivisionError("secret")) == CRASH
    out, err = capsys.readouterr()
    assert out.startswith("ERRORS: ")
    assert err.startswith("kraft-audit: after the reports: ZeroDivisionError")
    assert "secret" not in err


def test_what_stops_the_only_cluster_is_raised_after_its_mail(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AuditError, match="out of room"):
        told(AuditError("out of room"), Published(problems=["mail not sent"]), as_json=True)
    out, err = capsys.readouterr()
    assert json.loads(out)["clusters"][0]["failure"] == "there is no folder /nowhere"
    assert err == "kraft-audit: mail not sent\n"
