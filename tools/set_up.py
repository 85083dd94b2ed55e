"""Make the environment in `.venv`: `make setup`. Quick when nothing changed.

Only the standard library is used here: this runs with whatever Python ≥ 3.11 the machine has.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
STAMP = ENVIRONMENT / "set-up.sha256"
LOCK = "requirements/dev.lock"
UV_LOCK = "requirements/uv.lock"
# Those that lead Python elsewhere; and the one, common in images, with which every start compiles all that it imports. uv
# installs nothing compiled: the step that prepares a quick start compiles what audits import.
NOT_PASSED_ON = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")
# PySpark comes as source: its wheel is built here, of 400 MB of jars that no compression makes smaller.
STORED_WHEEL = ("--config-settings-package", "pyspark:--build-option=--compression=stored")
INPUTS = (
    LOCK,
    UV_LOCK,
    "pyproject.toml",
    "tools/set_up.py",
    "tools/run_uv.py",
    "tools/delta_jars.py",
    "tools/delta_jars.sha256",
    "tools/warm_up.py",
    "tools/class_list.py",
    "tools/classes.txt.xz",
)


class SetUpError(Exception):
    """A step failed; the text says which one."""


def main() -> int:
    """Do what is missing; 1 with one line when a step fails."""
    if sys.version_info < (3, 11):  # noqa: UP036 - asked of whatever Python the machine has
        print(
            f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}. make PYTHON=python3.11 setup",
            file=sys.stderr,
        )
        return 1
    state = _state()
    if STAMP.is_file() and STAMP.read_text() == state and PYTHON.exists():
        return 0
    try:
        _install()
    except SetUpError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    STAMP.write_text(state)
    return 0


def _install() -> None:
    if not _usable_environment():
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        _step(
            "Making .venv (needs the module venv; on Debian and Ubuntu: python3-venv)",
            sys.executable,
            "-m",
            "venv",
            str(ENVIRONMENT),
        )
    STAMP.unlink(missing_ok=True)
    _step(
        "Installing uv",
        str(PYTHON),
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--require-hashes",
        "-r",
        UV_LOCK,
    )
    _step("Installing the locked packages", *_uv("sync", "--require-hashes", *STORED_WHEEL, LOCK))
    _step("Installing kraft-audit", *_uv("install", "--no-deps", "--no-build-isolation", "-e", "."))
    _step("Fetching Delta's jars", str(PYTHON), "tools/delta_jars.py", quiet=True)
    try:
        _step("Preparing a quick start", str(PYTHON), "tools/warm_up.py", quiet=True)
    except SetUpError as error:
        print(f"setup: {error}. Everything works without it, but starts some seconds slower.", file=sys.stderr)


def _uv(*arguments: str) -> list[str]:
    return [str(PYTHON), "tools/run_uv.py", "pip", arguments[0], "-q", "--python", str(PYTHON), *arguments[1:]]


def _usable_environment() -> bool:
    """True when `.venv` has a Python of this version that starts and has pip."""
    command = [str(PYTHON), "-c", "import sys, pip; print(sys.version_info[:2])"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
    except OSError:
        return False
    return found.strip() == str(tuple(sys.version_info[:2]))


def _step(title: str, *command: str, quiet: bool = False) -> None:
    """Run a command; what a quiet one prints is shown only when it fails."""
    print(f"{title} …", flush=True)
    environment = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
    done = subprocess.run(  # noqa: S603 - fixed commands
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(done.stdout or "", file=sys.stderr)
        raise SetUpError(f"“{title}” failed with exit code {done.returncode}; its messages are above")


def _state() -> str:
    """Digest of everything the environment is made from."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {ROOT}".encode())
    for name in INPUTS:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
