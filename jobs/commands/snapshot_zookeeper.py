"""`kraft-audit snapshot-zookeeper`: dump a live ZooKeeper tree to a file, on a host that Spark can't reach.

Needs kazoo alone. Secrets are replaced by fingerprints before they are written; with the key of the audit's own
configuration (`secrets.fingerprint_key_env`) they still compare with KRaft's.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from jobs.addresses import ensemble
from jobs.exit import OK, USAGE, WARNINGS, UsageError
from jobs.sources.zookeeper.walk import LiveSettings, SaslSettings, TlsSettings, WalkSummary, ZooKeeperWalkError, walk
from transforms.secrets import Fingerprinter
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.read.znode import Znode

_PROGRESS_EVERY = 10_000


def main(argv: Sequence[str] | None = None) -> int:
    """Dump a tree. Returns 0; 10 when some znodes could not be read; 2 for bad usage or an ensemble that refuses."""
    options = _parser().parse_args(argv)
    try:
        summary = _dump(options)
    except (UsageError, ZooKeeperWalkError) as error:
        print(f"kraft-audit snapshot-zookeeper: {error}", file=sys.stderr)
        return USAGE
    except OSError as error:
        print(f"kraft-audit snapshot-zookeeper: {options.out}: {error.strerror or error}", file=sys.stderr)
        return USAGE
    print(
        f"{summary.znodes} znodes to {options.out}, zxid {summary.first_zxid:#x} to {summary.last_zxid:#x}, "
        f"{summary.denied} denied, {summary.vanished} vanished, {summary.reconnects} reconnects",
        file=sys.stderr,
    )
    return WARNINGS if summary.denied else OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kraft-audit snapshot-zookeeper", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--connect", required=True, help="host:port,host:port/chroot")
    parser.add_argument("--out", required=True, type=Path, help="file to write, .jsonl or .jsonl.gz")
    parser.add_argument("--fingerprint-key-env", required=True, help="variable with the audit's fingerprint key")
    parser.add_argument(
        "--password-encoder-secret-env",
        action="append",
        default=[],
        help="variable with a broker's password.encoder.secret (may be repeated)",
    )
    parser.add_argument("--auth", choices=("digest", "sasl-digest-md5", "sasl-gssapi"), help="how to authenticate")
    parser.add_argument("--username", help="user of --auth")
    parser.add_argument("--password-env", help="variable with the password of --auth")
    parser.add_argument("--tls-ca", help="PEM file of trusted certificates; switches TLS on")
    parser.add_argument("--tls-cert", help="PEM file of the client's certificate, for mutual TLS")
    parser.add_argument("--tls-key", help="PEM file of its key")
    parser.add_argument("--tls-key-password-env", help="variable with the key's password")
    parser.add_argument("--read-only", action="store_true", help="accept a server without a quorum")
    parser.add_argument("--window", type=_positive, default=500, help="number of concurrent requests")
    parser.add_argument("--rate", type=_positive, help="highest number of requests per second")
    return parser


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1")
    return number


def _dump(options: argparse.Namespace) -> WalkSummary:
    redactor = Redactor(
        Fingerprinter(_secret(options.fingerprint_key_env).encode()),
        tuple(_secret(name) for name in options.password_encoder_secret_env),
    )
    summary = WalkSummary()
    with _written(options.out) as out:
        for znode in walk(_settings(options), redactor, summary, _progress()):
            out.write(line(znode) + "\n")
    return summary


def _settings(options: argparse.Namespace) -> LiveSettings:
    try:
        connect = ensemble(options.connect)
    except ValueError as error:
        raise UsageError(f"--connect: {error}") from None
    if options.auth in ("digest", "sasl-digest-md5") and not (options.username and options.password_env):
        raise UsageError(f"--auth {options.auth} needs --username and --password-env")
    if (options.tls_key or options.tls_key_password_env) and not options.tls_cert:
        raise UsageError("--tls-key needs --tls-cert")
    password = _secret(options.password_env) if options.password_env else None
    sasl = None
    if options.auth and options.auth.startswith("sasl"):
        mechanism = options.auth.removeprefix("sasl-").upper()
        sasl = SaslSettings(mechanism=mechanism, username=options.username, password=password)
    tls = None
    if options.tls_ca or options.tls_cert:
        key_password = _secret(options.tls_key_password_env) if options.tls_key_password_env else None
        tls = TlsSettings(options.tls_ca, options.tls_cert, options.tls_key, key_password)
    return LiveSettings(
        connect=connect,
        tls=tls,
        sasl=sasl,
        digest=f"{options.username}:{password}" if options.auth == "digest" else None,
        read_only=options.read_only,
        window=options.window,
        requests_per_second=options.rate,
    )


def _secret(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise UsageError(f"the environment variable {name} is not set")
    return value


def _progress() -> Callable[[int], None]:
    shown = sys.stderr.isatty()

    def tell(znodes: int) -> None:
        if znodes % _PROGRESS_EVERY == 0:
            print(f"{znodes} znodes", end="\r" if shown else "\n", file=sys.stderr, flush=True)

    return tell


@contextmanager
def _written(path: Path) -> Iterator[IO[str]]:
    """Open a file that takes its name only when it is whole, readable by its owner alone."""
    part = path.with_name(path.name + ".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.close(descriptor)
    compress = path.suffix == ".gz"
    try:
        with gzip.open(part, "wt", encoding="utf-8") if compress else part.open("w", encoding="utf-8") as out:
            yield cast(IO[str], out)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def line(znode: Znode) -> str:
    """Return a znode as one line of a dump (format: `jobs.sources.zookeeper.dump`)."""
    fields = {name: value for name, value in znode._asdict().items() if name not in ("data_is_null", "acl")}
    if znode.czxid is None:
        return json.dumps({"path": znode.path, "problem": znode.problem})
    if znode.problem is None:
        del fields["problem"]
    return json.dumps({**fields, "acl": [list(entry) for entry in znode.acl or []]})


if __name__ == "__main__":
    sys.exit(main())
