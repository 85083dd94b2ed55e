"""A self-signed certificate for servers that tests start on this machine."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Certificate(NamedTuple):
    """PEM files of a certificate for localhost and 127.0.0.1: the certificate, its key, and both in one."""

    file: Path
    key: Path
    both: Path

    def server(self) -> ssl.SSLContext:
        """A context that serves with it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key)
        return context

    def client(self) -> ssl.SSLContext:
        """A context that trusts it and nothing else."""
        return ssl.create_default_context(cafile=str(self.file))


def self_signed(folder: Path) -> Certificate:
    """Make a certificate that signs itself and is valid for a day around now."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    made = Certificate(folder / "certificate.pem", folder / "key.pem", folder / "both.pem")
    for path, content in zip(made, (public, private, private + public), strict=True):
        path.write_bytes(content)
    return made
