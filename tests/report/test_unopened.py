"""A run that could not even begin has no session and no warehouse, and is told by mail all the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.policy import SMTP
from pathlib import Path
from typing import Any

import pytest

from jobs import pipeline
from jobs.exit import AuditError, UsageError
from jobs.pipeline import OutputOptions
from jobs.settings import Settings
from jobs.steps.publishing import publish_unopened
from tests.report.test_mail import body
from tests.report.test_smtp import Mailbox, free_port, running

FULL = "the warehouse /srv/tables can't be written: No space left on device"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run notes beside its tables that it has begun."""
    monkeypatch.chdir(tmp_path)


def settings(port: int, name: str = "c", **more: Any) -> Settings:
    mail = {
        "host": "127.0.0.1",
        "port": port,
        "security": "none",
        "sender": "audit@example.com",
        "recipients": ["team@example.com"],
        "attempts": 1,
        **more,
    }
    content = {"cluster": name, "warehouse": "w", "kraft": {"folders": ["x"]}, "report": {"mail": mail}}
    return Settings.model_validate(content)


@pytest.mark.parametrize("policy", ["always", "on_change", "when_red"])
def test_it_is_told_under_every_policy(policy: str) -> None:
    mailbox = Mailbox()
    with running(mailbox) as port:
        several = [settings(port, name, send=policy) for name in ("a", "b")]
        made = publish_unopened(several, UsageError(FULL))
    [(_, _, content)] = mailbox.received
    message = message_from_bytes(content, policy=SMTP)
    assert str(message["Subject"]).startswith("[kraft-audit] FAILED 2 of 2 clusters")
    text = " ".join(body(message, "plain").split())
    assert FULL in text
    assert "The run could not start" in text
    assert (made.problems, made.lines) == ([], ["Mail         team@example.com"])


def test_what_was_read_is_in_no_mail() -> None:
    mailbox = Mailbox()
    with running(mailbox) as port:
        publish_unopened([settings(port)], RuntimeError("hunter2"))
    [(_, _, content)] = mailbox.received
    text = body(message_from_bytes(content, policy=SMTP), "plain")
    assert "hunter2" not in text
    assert "RuntimeError inside the audit" in " ".join(text.split())


@pytest.mark.parametrize("listening", [True, False])
def test_the_command_tells_it_and_ends_as_it_would(
    listening: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def opened(*_: Any, **_named: Any) -> Iterator[None]:
        raise AuditError(FULL)
        yield

    monkeypatch.setattr(pipeline, "open_run", opened)
    mailbox = Mailbox()
    with running(mailbox) as port, pytest.raises(AuditError, match="No space left"):
        pipeline.audit(settings(port if listening else free_port()), None, OutputOptions())
    assert len(mailbox.received) == int(listening)
    assert ("nothing listens there" in capsys.readouterr().err) == (not listening)


def test_an_audit_of_files_once_sends_no_mail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @contextmanager
    def opened(*_: Any, **_named: Any) -> Iterator[None]:
        raise UsageError(FULL)
        yield

    monkeypatch.setattr(pipeline, "open_run", opened)
    mailbox = Mailbox()
    with running(mailbox) as port, pytest.raises(UsageError):
        pipeline.audit(settings(port), tmp_path)
    assert mailbox.received == []
