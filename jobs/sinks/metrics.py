"""Writes metrics: to a file for node_exporter's textfile collector, or to a push gateway."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, build_opener

from prometheus_client import push_to_gateway, pushadd_to_gateway

from jobs.exit import AuditError
from jobs.settings import MetricsSettings, secret_from_environment
from jobs.sinks.deadline import within
from jobs.sinks.lock import held
from jobs.sinks.report_files import write_whole
from jobs.sinks.webhook import NoRedirect
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
# A call may take so many times the timeout of its single steps.
_WHOLE_CALL = 2.0
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
    refuses or answers with a redirect, and UsageError when an environment variable the settings name is not set.
    """
    if settings.push_gateway is None:
        return
    login: dict[str, str] = {}
    if settings.username_env is not None and settings.password_env is not None:
        login = _login(settings.username_env, settings.password_env)
    for cluster, samples in now.items():
        send = push_to_gateway if knows_good_run(samples) else pushadd_to_gateway
        key = {CLUSTER_LABEL: cluster}
        try:
            alone, registry = _to_it_alone(login), registry_of(samples)
            call = partial(send, settings.push_gateway, settings.job, registry, key, TIMEOUT_SECONDS, alone)
            within(_WHOLE_CALL * TIMEOUT_SECONDS, call)
        except (OSError, HTTPException, ValueError) as error:
            raise MetricsError(
                f"metrics not pushed to {settings.push_gateway}: {_reason(error)}; check `metrics.push_gateway`"
            ) from None


def _login(username_env: str, password_env: str) -> dict[str, str]:
    username = secret_from_environment(username_env, "metrics settings")
    password = secret_from_environment(password_env, "metrics settings")
    return {"Authorization": f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"}


def _to_it_alone(login: Mapping[str, str]) -> Callable[..., Callable[[], None]]:
    """A handler for the client, whose own one follows redirects, with the password, and takes any page at their end for success."""

    def prepared(
        url: str, method: str, timeout: float | None, headers: list[tuple[str, str]], data: bytes
    ) -> Callable[[], None]:
        request = Request(url, data, {**dict(headers), **login}, method=method)  # noqa: S310 - settings let http and https pass
        return lambda: build_opener(NoRedirect).open(request, timeout=timeout).close()

    return prepared


def _reason(error: Exception) -> str:
    # The gateway's own words are left out: some servers repeat what they were sent.
    if isinstance(error, HTTPError):
        return f"it answered {error.code}{', a redirect, which is not followed' if 300 <= error.code < 400 else ''}"
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, ssl.SSLError):
        return "the encrypted connection failed"
    if isinstance(cause, TimeoutError):
        return "it did not answer in time"
    if isinstance(cause, HTTPException) and not isinstance(cause, OSError):
        return "it did not answer in HTTP"
    return (isinstance(cause, OSError) and cause.strerror) or type(cause).__name__
