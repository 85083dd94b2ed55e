"""The wheel, installed where nothing of this checkout is: with what it declares, Spark and Delta, its command audits."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from tests.captures import capture

pytestmark = pytest.mark.java

ROOT = Path(__file__).parents[2]
SOURCES = ("jobs", "transforms", "schemas")
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is left in the checkout."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in SOURCES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(target)], cwd=source, capture_output=True, text=True, check=True
    )
    return target / built.stdout.strip().splitlines()[-1]


def test_the_wheel_has_every_file_of_the_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    there = {
        str(path.relative_to(ROOT))
        for name in SOURCES
        for path in (ROOT / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == there


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment: the wheel, and of the packages around this test only those that the lock file of a run names."""
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
    python = folder / "env" / "bin" / "python"
    installing = [
        "pip",
        "install",
        "--quiet",
        "--offline",
        "--no-index",
        "--no-deps",
        "--python",
        str(python),
        str(wheel),
    ]
    subprocess.run([sys.executable, "-m", "uv", *installing], check=True, capture_output=True)
    packages = folder / "packages"
    packages.mkdir()
    for name in re.findall(r"(?m)^([a-z0-9.-]+)==", (ROOT / "requirements" / "run.lock").read_text()):
        _link(name, packages)
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    (site / "packages.pth").write_text(f"{packages}\n")
    _compiled(site)
    return folder / "env"


def _compiled(site: Path) -> None:
    """Give it what numba has compiled of the same sources here: to compile that again takes a minute, and is another test."""
    for source in (ROOT / "transforms").rglob("*.py"):
        target = site / source.relative_to(ROOT)
        # Numba knows a source by its time and size.
        os.utime(target, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
        for code in (source.parent / "__pycache__").glob(f"{source.stem}.*.nb[ic]"):
            (target.parent / "__pycache__").mkdir(exist_ok=True)
            shutil.copy(code, target.parent / "__pycache__")


def _link(name: str, folder: Path) -> None:
    try:
        found = distribution(name)
    except PackageNotFoundError:
        # For another system, or a Java that is there already; what is missed otherwise fails to import.
        return
    for top in {path.parts[0] for path in found.files or () if path.parts[0] not in ("..", "__pycache__")}:
        target = Path(str(found.locate_file(top)))
        if target.exists() and not (folder / top).exists():
            (folder / top).symlink_to(target)


@pytest.mark.slow
def test_the_command_audits_a_capture(environment: Path, tmp_path: Path) -> None:
    folder = capture("3.9.1", "9")
    keep = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME", "TMPDIR") if name in os.environ}
    command = [str(environment / "bin" / "kraft-audit"), "check", "--out", str(tmp_path / "out")]
    sources = ["--zookeeper", str(folder / "zookeeper.jsonl.gz"), "--kraft", str(folder / "kraft")]
    done = subprocess.run([*command, *sources], cwd=tmp_path, env=keep, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Dual write is healthy" in done.stdout or "CLEAN" in done.stdout
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (report["verdict"], report["divergences"]["total"]) == ("clean", 0)
    assert "<!doctype html>" in (tmp_path / "out" / "report.html").read_text().lower()


def test_the_command_names_its_commands_without_starting_spark(environment: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(environment / "bin" / "kraft-audit"), "--help"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "audit the clusters that configuration files describe" in done.stdout
