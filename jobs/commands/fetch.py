"""`kraft-audit fetch`: copy the metadata log from running controllers into a folder, on a host that can reach them.

Needs no Spark. A second call copies only what is new. The folder is what `check --kraft` and `kraft.folders` take.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from jobs.exit import OK, UsageError
from jobs.settings import KraftSettings, first_problem
from transforms.report.printable import visible

_SECURITY = (
    ("--security-protocol", "protocol", "PLAINTEXT (default), SSL, SASL_PLAINTEXT or SASL_SSL"),
    ("--mechanism", "mechanism", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
    ("--username", "username", "user of SASL"),
    ("--password-env", "password_env", "environment variable with the user's password"),
    ("--ca-file", "ca_file", "PEM file of trusted certificates"),
    ("--certificate-file", "certificate_file", "PEM file of the client's certificate, for mutual TLS"),
    ("--key-file", "key_file", "PEM file of its key"),
    ("--key-password-env", "key_password_env", "environment variable with the key's password"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit fetch`."""
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder for the copy")
    parser.add_argument(
        "--cluster-id", required=True, metavar="ID", help="cluster.id of the controllers' meta.properties"
    )
    parser.add_argument(
        "--newest",
        action="store_true",
        help="copy the newest checkpoint and what follows it, not everything that is still available",
    )
    parser.add_argument("--rate", type=float, metavar="BYTES", help="highest rate in bytes per second")
    add_controller_arguments(parser, required=True)


def add_controller_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Declare how controllers are reached."""
    parser.add_argument(
        "--controllers",
        required=required,
        action="append",
        metavar="HOST:PORT",
        help="a controller's listener, or several separated by commas; may be repeated",
    )
    for option, key, what in _SECURITY:
        parser.add_argument(option, dest=key, help=what)
    parser.add_argument("--patience", type=float, metavar="SECONDS", help="how long to wait for a leader (default 60)")


def controller_settings(arguments: argparse.Namespace, **values: object) -> KraftSettings:
    """The options as the configuration's section `kraft`. Raises UsageError with one line."""
    security = {key: getattr(arguments, key) for _, key, _ in _SECURITY if getattr(arguments, key) is not None}
    content: dict[str, object] = {
        "controllers": [part.strip() for text in arguments.controllers for part in text.split(",") if part.strip()],
        "security": security,
        **values,
    }
    if arguments.patience is not None:
        content["patience_seconds"] = arguments.patience
    try:
        return KraftSettings.model_validate(content)
    except ValidationError as error:
        raise UsageError(f"command line: {first_problem(error, KraftSettings)}") from None


def execute(arguments: argparse.Namespace) -> int:
    """Copy, and print what was copied and how far it is committed. Needs no Spark."""
    from jobs.sources.kraft.live.fetch import fetch_copy  # noqa: PLC0415 - kafka-python is an extra

    settings = controller_settings(
        arguments, cluster_id=arguments.cluster_id, history=not arguments.newest, bytes_per_second=arguments.rate
    )
    copied = fetch_copy(settings, arguments.out, _progress())
    proof = copied.proof
    resumed = "" if copied.resumed_at is None else f", new since offset {copied.resumed_at}"
    print(f"{copied.bytes_received} bytes in {copied.seconds:.1f} s to {copied.folder}{resumed}")
    print(
        f"committed below offset {proof.log_end}: the high watermark of controller {proof.leader_id}, the leader of epoch "
        f"{proof.leader_epoch}"
    )
    for note in proof.notes:
        print(visible(f"note: {note}", 400))
    return OK


def _progress() -> Callable[[int, int], None] | None:
    if not sys.stderr.isatty():
        return None

    def show(offset: int, target: int) -> None:
        print(f"offset {offset} of {target}", end="\r", file=sys.stderr, flush=True)

    return show
