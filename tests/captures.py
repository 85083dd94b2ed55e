"""Real captures for tests: `capture("3.9.1", "8-zookeeper-behind")` is a folder laid out as it was captured.

`python -m tests.captures 3.9.1 8` prints that folder.
"""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from pathlib import Path

from jobs.commands.demo.captures import unpack

ARCHIVES = Path(__file__).parent / "data" / "captures"
CACHE = Path(__file__).parents[1] / ".cache" / "captures"
_PACKED = tuple(sorted((path.name.removesuffix(".tar.xz") for path in ARCHIVES.glob("*.tar.xz")), reverse=True))
# Releases with captures of a migration; and of clusters without ZooKeeper.
VERSIONS = tuple(name for name in _PACKED if not name.endswith("-kraft"))
KRAFT_VERSIONS = tuple(name for name in _PACKED if name.endswith("-kraft"))


@cache
def version_folder(version: str) -> Path:
    """Folder with every capture of a Kafka version, unpacked once per checkout; copy before changing anything in it."""
    archive = ARCHIVES / f"{version}.tar.xz"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:12]
    return unpack(archive, CACHE / f"{version}-{digest}")


def stages(version: str) -> list[str]:
    """Names of the captures of a version, numbered stages first and in order."""
    names = [path.name for path in version_folder(version).iterdir()]
    return sorted(names, key=lambda name: (int(name.split("-")[0]) if name[0].isdigit() else 99, name))


def capture(version: str, stage: str) -> Path:
    """Folder of one capture; `stage` is its full name or its number (`"8"`)."""
    found = [name for name in stages(version) if name == stage or (stage.isdigit() and name.startswith(f"{stage}-"))]
    if len(found) != 1:
        raise LookupError(f"no capture {stage!r} of {version}; there are: {', '.join(stages(version))}")
    return version_folder(version) / found[0]


if __name__ == "__main__":
    print(capture(*sys.argv[1:]))
