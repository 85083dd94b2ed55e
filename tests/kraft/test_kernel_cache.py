"""Machine code on disk is never used after any of the sources in it has changed, and is used when none has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROBE = """
from transforms.kraft.kernel.text import config_is_plain
from transforms.kraft.kernel import wire as kernel_wire
import numpy as np
data = np.frombuffer(bytes([4, 2, 1]), np.uint8)
print(kernel_wire.uvarint(data, 0, 3)[0], sum(kernel_wire.uvarint.stats.cache_hits.values()))
"""


def probe(folder: Path) -> list[int]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", PROBE]
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=folder).stdout
    return [int(number) for number in out.split()]


def test_a_changed_source_is_compiled_again(tmp_path: Path) -> None:
    for package in ("schemas", "transforms"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    assert probe(tmp_path) == [4, 0]
    assert probe(tmp_path) == [4, 1]
    other = tmp_path / "transforms/kraft/kernel/partitions.py"
    other.write_text(other.read_text() + "\n# changed\n")
    assert probe(tmp_path) == [4, 0]
