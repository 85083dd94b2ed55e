"""Pack folders of captures for the tests and the demonstration.

`python tools/pack_captures.py CAPTURES` reads CAPTURES/<version>/<stage>/ and writes
tests/data/captures/<version>.tar.xz and jobs/commands/demo/captures.tar.xz.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from jobs.commands.demo.captures import DEMO_ARCHIVE, pack  # noqa: E402

DEMO_VERSION = "3.9.1"
DEMO_STAGES = ("5-dual-write-changed", "8-zookeeper-behind")
DEMO_PARTS = ("capture.yaml", "kraft", "zookeeper")


def main(captures: Path) -> None:
    """Write one archive a version for the tests, and one with the demonstration's two captures."""
    for version in sorted(path for path in captures.iterdir() if path.is_dir()):
        pack(sorted(version.iterdir()), ROOT / "tests" / "data" / "captures" / f"{version.name}.tar.xz")
    with tempfile.TemporaryDirectory() as scratch:
        folders = [_demo_part(captures / DEMO_VERSION / stage, Path(scratch)) for stage in DEMO_STAGES]
        pack(folders, DEMO_ARCHIVE)


def _demo_part(stage: Path, scratch: Path) -> Path:
    folder = scratch / stage.name
    folder.mkdir()
    for part in DEMO_PARTS:
        source = stage / part
        if source.is_dir():
            shutil.copytree(source, folder / part)
        else:
            shutil.copyfile(source, folder / part)
    return folder


if __name__ == "__main__":
    main(Path(sys.argv[1]))
