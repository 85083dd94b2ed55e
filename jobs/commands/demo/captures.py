"""Captures of real migrations, kept as archives: packing and unpacking.

A capture is a folder with `kraft/<controller>/`, `zookeeper/version-2/` and what Kafka's own tools said about them.
Captures of one version repeat each other almost wholly, so they are kept as one solid `.tar.xz`, with inner `.gz`
files stored plain: 34 MB become half a megabyte. Unpacking compresses them again, so the folder looks as it was
captured.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

# Files that were `.gz` in the capture and lie plain in the archive.
COMPRESSED_SUFFIXES = (".jsonl", ".txt")
# Kafka rebuilds its indexes from the log; the audit never reads them.
INDEX_NAMES = (".index", ".timeindex", ".index.deleted", ".timeindex.deleted")
DEMO_ARCHIVE = Path(__file__).with_name("captures.tar.xz")


def pack(folders: list[Path], archive: Path) -> None:
    """Write capture folders into one solid archive, without indexes; the same input gives the same bytes."""
    with tarfile.open(archive, "w:xz", preset=9, format=tarfile.USTAR_FORMAT) as tar:
        for folder in folders:
            for path in sorted(folder.rglob("*")):
                if path.is_file() and not path.name.endswith(INDEX_NAMES):
                    _add(tar, f"{folder.name}/{path.relative_to(folder).as_posix()}", path.read_bytes())


def extract(archive: Path, folder: Path) -> None:
    """Write the files of one of this project's own archives into `folder`. Raises as `unpack`."""
    with tarfile.open(archive, "r:xz") as tar:
        # Python knows filters from 3.11.4 on; Debian 12 has 3.11.2.
        if hasattr(tarfile, "data_filter"):
            tar.extractall(folder, filter="data")
        else:
            tar.extractall(folder)  # noqa: S202


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack an archive into `folder`, once, and return the folder.

    Another process may do the same at the same time: whoever renames its finished copy first wins. Raises
    `tarfile.TarError` or `OSError` when the archive is damaged or can't be written out.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        extract(archive, draft)
        for path in draft.rglob("*"):
            if path.suffix in COMPRESSED_SUFFIXES:
                _compress(path)
        _rename(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def demo_capture(stage: str, cache: Path) -> Path:
    """Return the folder of a capture that ships with the package, e.g. `8-zookeeper-behind`, unpacked below `cache`."""
    return unpack(DEMO_ARCHIVE, cache / "captures") / stage


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    if name.endswith(".gz"):
        name, content = name.removesuffix(".gz"), gzip.decompress(content)
    entry = tarfile.TarInfo(str(PurePosixPath(name)))
    entry.size = len(content)
    entry.mode = 0o644
    tar.addfile(entry, io.BytesIO(content))


def _compress(path: Path) -> None:
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), compresslevel=6, mtime=0))
    path.unlink()


def _rename(draft: Path, folder: Path) -> None:
    try:
        os.rename(draft, folder)
    except OSError:
        if not folder.is_dir():
            raise
