"""Writes metrics: to a file for node_exporter's textfile collector, or to a push gateway."""

from __future__ import annotations

import ssl
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

from prometheus_client import push_to_gateway, pushadd_to_gateway
from prometheus_client.exposition import basic_auth_handler

from jobs.exit import AuditError
from jobs.settings import MetricsSettings, secret_from_environment
from jobs.sinks.lock import held
from jobs.sinks.report_files import write_whole
from transforms.report.metrics import (
    CLUSTER_LABEL,
    MetricSample,
    knows_good_run,
    merged,
    read_text,
    registry_of,
    text_of,
)

TEXTFILE_NAME = "kraft_audit.prom"
TIMEOUT_SECONDS = 10.0
_LOCK_NAME = ".kraft_audit.lock"


class MetricsError(AuditError):
    """Metrics were not written; the text is one line: where to, why, what to do."""


def write_textfile(folder: Path, now: Mapping[str, Sequence[MetricSample]], retired: Collection[str] = ()) -> None:
    """Put the clusters of a run (`now`, by name) into the folder's one file, whole or not at all; other clusters stay in it.

    Runs that end at the same time wait for each other. A file that cannot be parsed is written again, which is reported. Raises
    MetricsError.
    """
    if not folder.is_dir():
        raise MetricsError(
            f"metrics not written: there is no folder {folder}; create it, and give it to node_exporter as "
            "--collector.textfile.directory"
        )
    path = folder / TEXTFILE_NAME
    try:
        # Between reading and renaming, another run's clusters would be lost.
        with held(folder / _LOCK_NAME, TIMEOUT_SECONDS):
            earlier, problem = _earlier(path)
            write_whole(path, text_of(merged(earlier, now, retired)))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise MetricsError(f"metrics not written to {path}: {reason}; let this user write there") from None
    if problem:
        raise MetricsError(problem)


def _earlier(path: Path) -> tuple[list[MetricSample], str]:
    """The content of the file, and what is wrong with it."""
    try:
        return read_text(path.read_text(encoding="utf-8")), ""
    except FileNotFoundError:
        return [], ""
    except ValueError:
        return [], (
            f"{path} was not OpenMetrics text and has been written again; clusters of other runs appear in it after their "
            "next run"
        )


def push(settings: MetricsSettings, now: Mapping[str, Sequence[MetricSample]]) -> None:
    """Push each cluster into a group of its own, by the labels job and cluster; other groups are left alone.

    If no good run is known, the group keeps the values of the last one. Raises MetricsError at the first group that the gateway
    refuses, and UsageError when an environment variable the settings name is not set.
    """
    if settings.push_gateway is None:
        return
    more: dict[str, Any] = {}
    if settings.username_env is not None and settings.password_env is not None:
        more["handler"] = _logged_in(settings.username_env, settings.password_env)
    for cluster, samples in now.items():
        send = push_to_gateway if knows_good_run(samples) else pushadd_to_gateway
        key = {CLUSTER_LABEL: cluster}
        try:
            send(settings.push_gateway, settings.job, registry_of(samples), key, timeout=TIMEOUT_SECONDS, **more)
        except (OSError, ValueError) as error:
            raise MetricsError(
                f"metrics not pushed to {settings.push_gateway}: {_reason(error)}; check `metrics.push_gateway`"
            ) from None


def _logged_in(username_env: str, password_env: str) -> Any:
    username = secret_from_environment(username_env, "metrics settings")
    password = secret_from_environment(password_env, "metrics settings")

    def handler(url: str, method: str, timeout: float | None, headers: list[tuple[str, str]], data: bytes) -> Any:
        return basic_auth_handler(url, method, timeout, headers, data, username, password)

    return handler


def _reason(error: Exception) -> str:
    # The gateway's own words are left out: some servers repeat what they were sent.
    if isinstance(error, HTTPError):
        return f"it answered {error.code}"
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, ssl.SSLError):
        return "the encrypted connection failed"
    if isinstance(cause, TimeoutError):
        return "it did not answer in time"
    return (isinstance(cause, OSError) and cause.strerror) or type(cause).__name__
