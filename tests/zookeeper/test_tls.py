"""Who is trusted as ZooKeeper: with a `ca_file` nobody else, as with controllers; a public authority could be anybody's."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from jobs.sources.zookeeper.handler import PipeliningHandler
from tests.certificates import Certificate, self_signed


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Certificate:
    """An authority that the system trusts."""
    (tmp_path / "public").mkdir()
    made = self_signed(tmp_path / "public")
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


@pytest.fixture
def own(tmp_path: Path) -> Certificate:
    (tmp_path / "own").mkdir()
    return self_signed(tmp_path / "own")


@contextmanager
def serving(certificate: Certificate) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with suppress(OSError), certificate.server().wrap_socket(connection, server_side=True) as secure:
                        secure.recv(1)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def connect(port: int, **options: Any) -> None:
    """As kazoo asks its handler to."""
    asked = {"keyfile": None, "certfile": None, "ca": None, "keyfile_password": None, "verify_certs": True}
    PipeliningHandler().create_connection(
        address=("127.0.0.1", port),
        hostname="localhost",
        timeout=10.0,
        use_ssl=True,
        **{**asked, "check_hostname": True, **options},
    ).close()


def test_a_ca_file_is_the_only_one_that_is_trusted(public: Certificate, own: Certificate) -> None:
    with serving(own) as port:
        connect(port, ca=str(own.file))
    with serving(public) as port, pytest.raises(ssl.SSLCertVerificationError):
        connect(port, ca=str(own.file))


def test_without_one_the_systems_are_trusted(public: Certificate, own: Certificate) -> None:
    with serving(public) as port:
        connect(port)
    with serving(own) as port, pytest.raises(ssl.SSLCertVerificationError):
        connect(port)


def test_verification_can_be_switched_off(own: Certificate) -> None:
    with serving(own) as port:
        connect(port, verify_certs=False, check_hostname=False)
