"""Warehouses as releases have made them: `unpacked(name, folder)` gives one that may be changed.

    python -m tests.tables --tree DIR --name NAME

has the code in DIR (a checkout of a release, or this one) audit a migration and a KRaft cluster twice each, and packs the tables.
`STAGES` are the captures; the last of each is left for the tests, whose run continues from what is packed. Everything lies in one
folder whose name says nothing of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Collection
from pathlib import Path

from jobs.commands.demo.captures import extract
from tests.captures import capture
from tests.pipeline.audits import Content, settings_content
from tests.reliability.killing import Reports, audit

ARCHIVES = Path(__file__).parent / "data" / "tables"
NAMES = tuple(sorted(path.name.removesuffix(".tar.xz") for path in ARCHIVES.glob("*.tar.xz")))
# The last one that does not know `maintain`, silver `examined` and what is kept in it.
OLDEST = "53b8c72"
NEWEST = "4deb159"
STAGES = {
    "migration": ("3.9.1", ("4-dual-write-fresh", "5-dual-write-changed", "8-zookeeper-behind")),
    "kraft": ("4.3.1-kraft", ("1-healthy", "1-healthy", "2-isr-churn")),
}
_PLACE = Path("/tmp/kraft-audit-tables")
_VERDICTS = (0, 10, 20)
_LARGEST = 400_000


def sources(cluster: str, number: int) -> Path:
    """The folder of a cluster's capture."""
    version, stages = STAGES[cluster]
    return capture(version, stages[number])


def content(cluster: str, source: Path, warehouse: Path) -> Content:
    """The configuration of a cluster's audit, which keeps its state however short the log is."""
    kraft = {"folders": [str(source / "kraft")], "keep_state_every": 1}
    found = settings_content(source, warehouse, cluster=cluster, kraft=kraft)
    found["report"] = {"folder": str(warehouse.parent / "reports")}
    return found


def unpacked(name: str, folder: Path) -> Path:
    """The tables of a release, below the folder."""
    extract(ARCHIVES / f"{name}.tar.xz", folder)
    return folder / "tables"


def gone_on(folder: Path, clusters: Collection[str] = tuple(STAGES)) -> Reports:
    """Have this release go on with the last captures below a folder of tables, or begin with them; the reports."""
    confs = []
    for cluster in clusters:
        conf = folder / f"{cluster}.yml"
        conf.parent.mkdir(exist_ok=True)
        conf.write_text(json.dumps(content(cluster, sources(cluster, 2), folder / "tables")))
        confs.append(conf)
    return audit(confs)


def make(tree: Path, name: str) -> Path:
    """Have the code of a tree make tables, and pack them; the archive. Raises AssertionError where a run does not end well."""
    shutil.rmtree(_PLACE, ignore_errors=True)
    for number in range(2):
        _run(tree, [_configured(cluster, number) for cluster in STAGES])
    archive = ARCHIVES / f"{name}.tar.xz"
    archive.parent.mkdir(exist_ok=True)
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        packed.add(_PLACE / "tables", "tables", filter=_nobodys)
    shutil.rmtree(_PLACE)
    size = archive.stat().st_size
    if size > _LARGEST:
        raise AssertionError(f"{archive} has {size:,} bytes; a checkout is to stay small")
    return archive


def _configured(cluster: str, number: int) -> Path:
    source = _PLACE / "sources" / cluster
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(sources(cluster, number), source)
    path = _PLACE / f"{cluster}.yml"
    path.write_text(json.dumps(content(cluster, source, _PLACE / "tables")))
    return path


def _run(tree: Path, confs: list[Path]) -> None:
    command = [sys.executable, "-m", "jobs.cli", "run", "--quiet", "--conf", *map(str, confs)]
    ended = subprocess.run(command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, check=False)
    if ended.returncode not in _VERDICTS:
        raise AssertionError(f"the run ended with {ended.returncode}")


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without what is of this machine and this moment: owners, locks, and digests that Hadoop keeps of what it has written."""
    if ".locks" in Path(entry.name).parts or entry.name.endswith(".crc"):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def main(argv: list[str] | None = None) -> int:
    """Make an archive and say how large it is."""
    parser = argparse.ArgumentParser(prog="tests.tables", description=__doc__)
    parser.add_argument("--tree", type=Path, required=True, help="checkout whose code makes the tables")
    parser.add_argument("--name", required=True, help="of the archive: the commit")
    arguments = parser.parse_args(argv)
    archive = make(arguments.tree.absolute(), arguments.name)
    print(f"{archive}: {archive.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
