"""A configured quorum, copied: settings to a copy in a folder, with secrets from the environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jobs.exit import AuditError, UsageError
from jobs.settings import KraftSecurity, KraftSettings, secret_from_environment
from jobs.sources.kraft.live.connection import Security, parse_endpoint
from jobs.sources.kraft.live.copy import CopyResult, copy_quorum
from jobs.sources.kraft.live.errors import NoLeaderError, QuorumError
from jobs.sources.kraft.live.quorum import QuorumSettings


def fetch_copy(kraft: KraftSettings, folder: Path, progress: Callable[[int, int], None] | None = None) -> CopyResult:
    """Copy the quorum's log into `folder`, or what is new since the copy there. Raises UsageError with one line,
    AuditError where no controller leads.
    """
    settings = quorum_settings(kraft)
    try:
        return copy_quorum(settings, folder, history=kraft.history, progress=progress)
    except QuorumError as error:
        # Nothing of the configuration is wrong where controllers answer and none leads.
        kind = AuditError if isinstance(error, NoLeaderError) else UsageError
        raise kind(f"the controllers' log could not be copied: {error}") from None


def quorum_settings(kraft: KraftSettings) -> QuorumSettings:
    """The client's settings. Raises UsageError naming what is wrong, or a variable that is not set."""
    try:
        controllers = tuple(parse_endpoint(text) for text in kraft.controllers)
    except ValueError as error:
        raise UsageError(f"`kraft.controllers`: {error}") from None
    return QuorumSettings(
        controllers=controllers,
        cluster_id=kraft.cluster_id,
        security=_security(kraft.security),
        request_seconds=kraft.request_seconds,
        patience_seconds=kraft.patience_seconds,
        answer_seconds=kraft.answer_seconds,
        bytes_per_second=kraft.bytes_per_second,
    )


def described(copied: CopyResult) -> list[str]:
    """Notes for the report about a copy; the first line is also for a log."""
    proof = copied.proof
    since = "from its start" if copied.resumed_at is None else f"what is new since offset {copied.resumed_at}"
    return [
        f"the log was copied live from controller {proof.leader_id}, the leader of epoch {proof.leader_epoch}, {since}: "
        f"{copied.bytes_received} bytes in {copied.seconds:.1f} s; everything below offset {proof.log_end} is committed "
        "by its high watermark",
        *proof.notes,
    ]


def _security(security: KraftSecurity) -> Security:
    return Security(
        protocol=security.protocol,
        mechanism=security.mechanism,
        username=security.username,
        password=_secret(security.password_env, "password_env"),
        ca_file=security.ca_file,
        certificate_file=security.certificate_file,
        key_file=security.key_file,
        key_password=_secret(security.key_password_env, "key_password_env"),
        verify=security.verify,
        verify_hostname=security.verify_hostname,
    )


def _secret(name: str | None, key: str) -> str | None:
    return None if name is None else secret_from_environment(name, f"`kraft.security.{key}`")
