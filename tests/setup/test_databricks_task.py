"""The entry point of a wheel task: it returns where the audit is good, fails in one line where not, and finds its secrets."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from jobs import cli
from jobs.exit import UsageError
from jobs.runtime.databricks import take_secrets

SECRET = "hunter2-hunter2-hunter2"


def test_success_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["kraft-audit-task", "--help"])
    cli.task()


@pytest.mark.parametrize(
    ("code", "meaning"), [(20, "errors were found"), (1, "could not be finished"), (2, "wrong call")]
)
def test_failure_is_one_line_with_the_code(monkeypatch: pytest.MonkeyPatch, code: int, meaning: str) -> None:
    monkeypatch.setattr(cli, "main", lambda _arguments: code)
    monkeypatch.setattr(sys, "argv", ["kraft-audit-task", "run"])
    with pytest.raises(cli.TaskFailedError, match=f"exit code {code} .*{meaning}") as failed:
        cli.task()
    assert "\n" not in str(failed.value)


@pytest.fixture
def scopes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Databricks' own module, with one scope."""

    def get(scope: str, key: str) -> str:
        return {("kraft-audit", "fingerprint-key"): SECRET}[scope, key]

    runtime = ModuleType("databricks.sdk.runtime")
    runtime.dbutils = SimpleNamespace(secrets=SimpleNamespace(get=get))  # type: ignore[attr-defined]
    for name in ("databricks", "databricks.sdk"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "databricks.sdk.runtime", runtime)


@pytest.mark.usefixtures("scopes")
def test_a_secret_of_a_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUDIT_KEY", raising=False)
    rest = take_secrets(["--secret", "AUDIT_KEY=kraft-audit/fingerprint-key", "run", "--conf", "a.yml"])
    assert rest == ["run", "--conf", "a.yml"]
    assert os.environ.pop("AUDIT_KEY") == SECRET


def test_a_secret_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{SECRET}\n")
    assert take_secrets(["--secret", f"AUDIT_KEY={tmp_path / 'key'}"]) == []
    assert os.environ.pop("AUDIT_KEY") == SECRET


@pytest.mark.usefixtures("scopes")
@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("AUDIT_KEY=kraft-audit/none", "can't be read"),
        ("AUDIT_KEY=kraft-audit", "NAME=SCOPE/KEY"),
        ("AUDIT_KEY", "NAME=SCOPE/KEY"),
    ],
)
def test_what_is_not_there_is_one_line(wanted: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        take_secrets(["--secret", wanted])


def test_elsewhere_a_scope_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="on Databricks only"):
        take_secrets(["--secret", "AUDIT_KEY=kraft-audit/key"])
    (tmp_path / "empty").write_text("\n")
    for path in (tmp_path / "none", tmp_path / "empty"):
        with pytest.raises(UsageError, match=str(path)):
            take_secrets(["--secret", f"AUDIT_KEY={path}"])
