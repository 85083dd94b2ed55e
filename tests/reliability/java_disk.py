"""A Java, or a Python, whose disk fails once, or renames late: `disk.c`, made with the C compiler of this machine."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("disk.c")
_INTS = struct.Struct("5i")


class Control:
    """What the disk is told, and tells."""

    def __init__(self, file: Path) -> None:
        # A process that has the file mapped would not survive it shortened.
        if not file.exists():
            file.write_bytes(bytes(_INTS.size))
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), _INTS.size)

    def set(self, fails_at: int = 0, number: int = 0, delay_ms: int = 0) -> None:
        """Count from 0 again; fail at a call, and with what; wait before each rename."""
        self._shared[:] = _INTS.pack(0, fails_at, number, 0, delay_ms)

    @property
    def calls(self) -> int:
        """How many calls were counted."""
        return int(_INTS.unpack(self._shared)[0])

    @property
    def failed(self) -> bool:
        """True when the call that was to fail was made."""
        return bool(_INTS.unpack(self._shared)[3])


def prepared(folder: Path, work: Path) -> tuple[Control, Mapping[str, str]]:
    """The control of a disk below `folder`, and the environment that puts it under a process. Needs `cc`."""
    library, control = work / "disk.so", work / "disk.control"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    made = Control(control)
    return made, {"LD_PRELOAD": str(library), "DISK_FOLDER": str(folder), "DISK_CONTROL": str(control)}


@contextmanager
def environment(more: Mapping[str, str]) -> Iterator[None]:
    """Variables for the processes that are started here."""
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
