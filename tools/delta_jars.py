"""Put Delta's two jars beside Spark's, once, so that runs need neither a resolver nor a network.

They come through Spark's own resolver, so Maven settings of the machine count: local repositories, and
DEFAULT_ARTIFACT_REPOSITORY for a mirror of Maven Central. What arrives must have the SHA-256 kept in
tools/delta_jars.sha256.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import ssl
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import pyspark
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from run_uv import pip_settings

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from jobs.runtime.java import java_home, packaged_home  # noqa: E402
from jobs.runtime.spark import DELTA_EXCLUDES, DELTA_PACKAGE, spark_java  # noqa: E402

PINS = Path(__file__).with_suffix(".sha256")
# Java wants one; what it locks is a copy of public certificates.
TRUST_STORE_WORD = "changeit"
JARS = Path(pyspark.__file__).parent / "jars"


def main() -> int:
    """Install the jars that are missing or differ; 1 with one line of text when what arrives is not what was pinned."""
    pins = {name: digest for digest, name in (line.split() for line in PINS.read_text().splitlines())}
    if all(_sha256(JARS / name) == digest for name, digest in pins.items()):
        return 0
    for stale in [*JARS.glob("delta-spark_*.jar"), *JARS.glob("delta-storage-*.jar")]:
        stale.unlink()
    with tempfile.TemporaryDirectory() as cache:
        _resolve(cache)
        for name, digest in pins.items():
            arrived = Path(cache) / "jars" / f"io.delta_{name}"
            if _sha256(arrived) != digest:
                print(
                    f"{name}: SHA-256 is {_sha256(arrived)}, not {digest} as pinned in {PINS.name}; not installed",
                    file=sys.stderr,
                )
                return 1
            shutil.copyfile(arrived, JARS / name)
    return 0


def _resolve(cache: str) -> None:
    trust_store = _trust_store(Path(cache))
    packages = {"spark.jars.packages": DELTA_PACKAGE, "spark.jars.excludes": DELTA_EXCLUDES, "spark.jars.ivy": cache}
    options = " ".join([*_proxy_options(), *trust_store, os.environ.get("SPARK_SUBMIT_OPTS", "")])
    os.environ["SPARK_SUBMIT_OPTS"] = options.strip()
    with spark_java(packages):
        return


def _trust_store(folder: Path) -> list[str]:
    """The packaged Java knows its maker's authorities only; let it trust those that pip trusts on this machine, too."""
    settings = pip_settings(sys.executable)
    chosen = settings.get("cert") or os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    if java_home() != packaged_home() or not chosen or not Path(chosen).is_file():
        return []
    certificates = x509.load_pem_x509_certificates(Path(chosen).read_bytes())
    entries = [PKCS12Certificate(certificate, str(number).encode()) for number, certificate in enumerate(certificates)]
    file = folder / "trust.p12"
    file.write_bytes(serialize_java_truststore(entries, BestAvailableEncryption(TRUST_STORE_WORD.encode())))
    return [f"-Djavax.net.ssl.trustStore={file}", f"-Djavax.net.ssl.trustStorePassword={TRUST_STORE_WORD}"]


def _proxy_options() -> list[str]:
    """A JVM does not look at HTTPS_PROXY; tell it."""
    proxy = urlsplit(os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy") or "")
    if not proxy.hostname:
        return []
    return [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"


if __name__ == "__main__":
    sys.exit(main())
