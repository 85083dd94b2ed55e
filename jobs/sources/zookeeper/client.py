"""A kazoo client for a walk: where, with what identity, over what kind of connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from jobs.sources.zookeeper.handler import PipeliningHandler
from schemas.zookeeper.paths import NEEDED_ROOTS


class ZooKeeperWalkError(Exception):
    """The walk cannot start or continue. One line: which server, what happened, what to do."""


@dataclass(frozen=True)
class TlsSettings:
    """TLS to the ensemble. Paths are PEM files; `cert_file` and `key_file` are for mutual TLS."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    verify_certificates: bool = True
    check_hostname: bool = True


@dataclass(frozen=True)
class SaslSettings:
    """SASL to the ensemble: DIGEST-MD5 with user and password, or GSSAPI with the ticket of the environment."""

    mechanism: str = "DIGEST-MD5"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    service: str = "zookeeper"


@dataclass(frozen=True)
class LiveSettings:
    """Where and how to walk.

    `connect` is ZooKeeper's connect string, `host:port,host:port/chroot`. `digest` is `user:password` of a digest identity.
    `window` bounds the concurrent requests, `requests_per_second` their rate (None: no limit). `patience_seconds` is how long
    no znode may be completed, lost connections included. `max_depth`, `max_znodes` and `max_minutes` bound the walk as a whole.
    `read_only` accepts a server without a quorum.
    """

    connect: str
    tls: TlsSettings | None = None
    sasl: SaslSettings | None = None
    digest: str | None = field(default=None, repr=False)
    read_only: bool = False
    window: int = 500
    requests_per_second: float | None = None
    session_timeout_seconds: float = 15.0
    connect_timeout_seconds: float = 30.0
    patience_seconds: float = 120.0
    max_depth: int = 32
    max_znodes: int = 20_000_000
    max_minutes: float = 240.0
    roots: tuple[str, ...] = NEEDED_ROOTS


def make_client(settings: LiveSettings) -> KazooClient:
    """Return a client that is not connected yet; its handler is a `PipeliningHandler`."""
    options: dict[str, Any] = {
        "hosts": settings.connect,
        "timeout": settings.session_timeout_seconds,
        "read_only": settings.read_only,
        "handler": PipeliningHandler(),
    }
    if settings.digest:
        options["auth_data"] = [("digest", settings.digest)]
    if settings.sasl:
        options["sasl_options"] = {
            "mechanism": settings.sasl.mechanism,
            "service": settings.sasl.service,
            "username": settings.sasl.username,
            "password": settings.sasl.password,
        }
    if settings.tls:
        options |= {
            "use_ssl": True,
            "ca": settings.tls.ca_file,
            "certfile": settings.tls.cert_file,
            "keyfile": settings.tls.key_file,
            "keyfile_password": settings.tls.key_password,
            "verify_certs": settings.tls.verify_certificates,
            # Without a verified certificate a name in it proves nothing, and kazoo refuses the combination.
            "check_hostname": settings.tls.verify_certificates and settings.tls.check_hostname,
        }
    return KazooClient(**options)


def start(client: KazooClient, settings: LiveSettings) -> None:
    """Connect. Raises ZooKeeperWalkError when the ensemble can't be reached or refuses the identity."""
    for host, _ in client.hosts:
        try:
            # Python itself refuses names with an empty or too long part, which would end kazoo's thread.
            host.encode("idna")
        except UnicodeError:
            raise ZooKeeperWalkError(f"ZooKeeper at {settings.connect}: {host}: no such host") from None
    try:
        client.start(timeout=settings.connect_timeout_seconds)
    except KazooTimeoutError:
        raise ZooKeeperWalkError(
            f"ZooKeeper at {settings.connect} did not answer within {settings.connect_timeout_seconds:g} s: check the "
            "address, the port (TLS or not) and the identity"
        ) from None
    except (KazooException, OSError) as error:
        raise ZooKeeperWalkError(f"ZooKeeper at {settings.connect}: {type(error).__name__}: {error}") from None
