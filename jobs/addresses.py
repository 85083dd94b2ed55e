"""Addresses of servers and people in a configuration: one that nothing can have is refused before anything starts.

No message shows the address: a password may be part of it.
"""

from __future__ import annotations

import re
from email.utils import parseaddr
from ipaddress import ip_address
from urllib.parse import urlsplit

_HOST = re.compile(r"[\w.-]+")
_SERVER = re.compile(r"(?:\[(?P<address>[^\]]+)\]|(?P<name>[^:]+))(?::(?P<port>[0-9]{1,5}))?")
_ZOOKEEPER_PORT = 2181
_HIGHEST_PORT = 65535


def host(text: str) -> str:
    """The name or the IP address of a machine, as it is. Raises ValueError."""
    if not _HOST.fullmatch(text):
        try:
            ip_address(text)
        except ValueError:
            raise ValueError("give the name of a machine or its IP address") from None
    return text


def host_and_port(text: str, default_port: int | None = None) -> tuple[str, int]:
    """A server's host and port, from `host:port` or `[address]:port`; `default_port` if the port may be left out. Raises ValueError."""
    found = _SERVER.fullmatch(text)
    port = default_port if found is None or found["port"] is None else int(found["port"])
    try:
        name = "" if found is None else host(found["name"]) if found["name"] else str(ip_address(found["address"]))
        # Python itself refuses names with an empty or too long part.
        name.encode("idna")
    except ValueError:
        name = ""
    if not name or port is None or not 0 < port <= _HIGHEST_PORT:
        raise ValueError("give host:port, with a port from 1 to 65535")
    return name, port


def server(text: str) -> str:
    """`host:port` or `[address]:port`, as it is. Raises ValueError."""
    host_and_port(text)
    return text


def ensemble(text: str) -> str:
    """ZooKeeper's connect string, without blanks between its servers. Raises ValueError, with the number of the server.

    The first slash begins the chroot (ZooKeeper's ConnectStringParser).
    """
    listed, slash, chroot = text.partition("/")
    servers = [each.strip() for each in listed.split(",")]
    for number, each in enumerate(servers, 1):
        try:
            host_and_port(each, _ZOOKEEPER_PORT)
        except ValueError:
            raise ValueError(
                f"server {number} of {len(servers)} has no valid host:port; the form is zk1:2181,zk2:2181/chroot"
            ) from None
    if "," in chroot or {".", ".."} & set(chroot.split("/")):
        raise ValueError("the chroot is a znode's path, once, after the last server: zk1:2181,zk2:2181/chroot")
    return ",".join(servers) + slash + chroot


def web_address(text: str) -> str:
    """An address with http or https. Raises ValueError."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.port != 0 and bool(host(parts.hostname or ""))
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("give an address such as https://host.example.com/path, with a port from 1 to 65535 if any")
    return text


def mail_domain(text: str) -> str:
    """The domain of a mail address, which may have a person's name before it: `Ann <ann@example.com>`. Raises ValueError."""
    bare = parseaddr(text)[1]
    local, at, domain = bare.rpartition("@")
    if not (local and at and domain) or not text.isprintable() or not bare.isascii() or " " in bare:
        raise ValueError("this is not a mail address (name@domain)")
    return domain


def mail_address(text: str) -> str:
    """A mail address, as it is. Raises ValueError."""
    mail_domain(text)
    return text
