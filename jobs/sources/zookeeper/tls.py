"""TLS to ZooKeeper. kazoo trusts every public CA in addition to the given one; here a given CA is the only one."""

from __future__ import annotations

import socket
import ssl
from typing import Any


def tls_connection(
    address: tuple[str, int], hostname: str | None, timeout: float | None, **options: Any
) -> ssl.SSLSocket:
    """Connect as kazoo's `create_tcp_connection` does, from its own keyword arguments.

    Raises OSError (ssl.SSLError is one) when there is no connection, or a file of the settings can't be used.
    """
    context = _context(options)
    connection = socket.create_connection(address, timeout)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return context.wrap_socket(connection, server_hostname=hostname)
    except BaseException:
        connection.close()
        raise


def _context(options: dict[str, Any]) -> ssl.SSLContext:
    # With a file of its own a context trusts nothing else; without one, the system's authorities.
    context = ssl.create_default_context(cafile=options.get("ca"))
    context.check_hostname = bool(options.get("check_hostname"))
    context.verify_mode = ssl.CERT_REQUIRED if options.get("verify_certs", True) else ssl.CERT_NONE
    if options.get("certfile"):
        # Never ask a terminal for a password.
        password = options.get("keyfile_password") or ""
        context.load_cert_chain(options["certfile"], options.get("keyfile"), password=password)
    return context
