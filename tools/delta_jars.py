"""Put Delta's two jars beside Spark's, once, so that runs need neither a resolver nor a network.

They come through Spark's own resolver, so Maven settings of the machine count: local repositories, and
DEFAULT_ARTIFACT_REPOSITORY for a mirror of Maven Central. What arrives must have the SHA-256 kept in
tools/delta_jars.sha256.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import pyspark

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from jobs.spark import DELTA_EXCLUDES, DELTA_PACKAGE, spark_session  # noqa: E402

PINS = Path(__file__).with_suffix(".sha256")
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
    packages = {"spark.jars.packages": DELTA_PACKAGE, "spark.jars.excludes": DELTA_EXCLUDES, "spark.jars.ivy": cache}
    options = " ".join([*_proxy_options(), os.environ.get("SPARK_SUBMIT_OPTS", "")])
    os.environ["SPARK_SUBMIT_OPTS"] = options.strip()
    with spark_session("small", "delta-jars", settings=packages):
        return


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
