"""Commands of README and of the documents run as written, where nothing but the wheel is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.captures import capture
from tests.setup import test_wheel
from tests.setup.test_shell_blocks import PAGES, of_program

pytestmark = pytest.mark.live
wheel, environment = test_wheel.wheel, test_wheel.environment

STAGE = ("3.9.1", "quota-removal")
# A migration with two lost writes is audited; what only looks or cleans up ends with 0.
EXIT_CODES = {"check": 20, "run": 20}
CONF = """cluster: prod
warehouse: tables
zookeeper: {folder: backup/zookeeper/data}
kraft: {folders: [backup/controllers]}
report: {folder: reports}
"""
CONTROLLER = "process.roles=controller\nnode.id=3000\ncontroller.quorum.voters=3000@localhost:9093\n"
BROKER = "broker.id=0\nzookeeper.connect=localhost:2181\n"
FILES = {
    "conf/prod.yml": CONF,
    "conf/prod-eu.yml": CONF.replace("prod", "prod-eu").replace("tables", "tables-eu"),
    "controllers/3000/server.properties": CONTROLLER,
    "brokers/0/server.properties": BROKER,
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a reader who has what the pages suppose: copies in `backup`, configurations and property files."""
    folder = tmp_path_factory.mktemp("reader")
    shutil.copytree(capture(*STAGE) / "zookeeper", folder / "backup" / "zookeeper" / "data")
    shutil.copytree(capture(*STAGE) / "kraft", folder / "backup" / "controllers")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_every_command_of_the_pages_runs(environment: Path, reader: Path) -> None:
    """In the order of the pages: the documents look into what README's commands have made."""
    keep = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME", "TMPDIR") if name in os.environ}
    commands = [words for page in PAGES for words in of_program(page)]
    assert {words[0] for words in commands} >= {"check", "run", "explain", "maintain"}
    for written in commands:
        arguments = [_filled(word, reader) for word in written]
        command = [str(environment / "bin" / "kraft-audit"), *arguments]
        done = subprocess.run(command, cwd=reader, env=keep, capture_output=True, text=True, check=False)
        said = f"{' '.join(written)}: {done.stdout[-500:]} {done.stderr[-1500:]}"
        # Before the migration there is no log, so that much is unknown.
        expected = 10 if "before" in written else EXIT_CODES.get(written[0], 0)
        assert done.returncode == expected, said
        assert done.stdout, said
        assert "Traceback" not in done.stderr, said


def _filled(word: str, reader: Path) -> str:
    """A word of a command with what the page leaves to the reader: the copies, and a shell's variables."""
    word = word.replace("/backup/", f"{reader / 'backup'}/").replace("$capture", str(capture(*STAGE)))
    return re.sub(r"\$([12])", lambda place: STAGE[int(place[1]) - 1], word)
