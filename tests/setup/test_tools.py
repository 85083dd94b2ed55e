"""Set-up: pip's settings reach uv, and the lock files are complete and name no index."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pyspark
import pytest

from tests.conftest import AUDITS, LIVE_MINUTES, LONGEST

ROOT = Path(__file__).parents[2]
LOCKS = sorted([*ROOT.glob("requirements/*.lock"), *ROOT.glob("tests/cluster/*.lock")])
sys.path.insert(0, str(ROOT / "tools"))

from bare_machine import link_programs  # noqa: E402
from class_list import listed_classes  # noqa: E402
from run_uv import pip_settings, uv_environment  # noqa: E402


def test_pip_configuration_reaches_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    configuration = tmp_path / "pip.conf"
    configuration.write_text(
        "[global]\nindex-url = https://mirror.example/simple\ncert = /certs/global.pem\n"
        "[install]\nextra-index-url =\n    https://a.example/simple\n    https://b.example/simple\n"
        "trusted-host = a.example\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(configuration))
    monkeypatch.setenv("PIP_CERT", "/certs/environment.pem")
    monkeypatch.setenv("PIP_FIND_LINKS", f"{tmp_path} {tmp_path / 'missing'}")
    assert uv_environment(pip_settings(sys.executable)) == {
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_INSECURE_HOST": "a.example",
        "SSL_CERT_FILE": "/certs/environment.pem",
        "UV_FIND_LINKS": str(tmp_path),
    }


@pytest.mark.parametrize("path", LOCKS, ids=[path.stem for path in LOCKS])
def test_lock_file_pins_every_package_by_hash_and_names_no_index(path: Path) -> None:
    text = path.read_text()
    assert "://" not in text
    entries = re.split(r"\n(?=[a-z0-9])", re.sub(r"(?m)^ *#.*\n", "", text))
    assert entries
    assert [
        entry for entry in entries if not re.match(r"[a-z0-9.-]+==\S+", entry) or "--hash=sha256:" not in entry
    ] == []


def test_lock_files_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    run = _names((ROOT / "requirements" / "run.lock").read_text())
    dev = _names((ROOT / "requirements" / "dev.lock").read_text())
    needed = {_name(line) for line in project["project"]["dependencies"]}
    tools = {_name(line) for line in project["dependency-groups"]["dev"]}
    assert needed <= run.keys()
    assert needed | tools <= dev.keys()
    assert run.items() <= dev.items()


def _names(lock: str) -> dict[str, str]:
    return dict(re.findall(r"(?m)^([a-z0-9.-]+)==(\S+)", lock))


def _name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9-]+", requirement)
    assert match
    return match.group().lower()


def test_modules_that_share_audits_stay_in_one_process(request: pytest.FixtureRequest) -> None:
    """xdist knows groups by the tests' names only; without one each process runs the audits that all share."""
    if hasattr(request.config, "workerinput"):
        assert request.node.nodeid.endswith("@tests/setup/test_tools.py")


def test_the_groups_that_begin_first_are_modules_with_those_names() -> None:
    """A name that is nobody's would let a long group begin last, unseen."""
    assert [name for name in LONGEST if name != AUDITS and not (ROOT / name).is_file()] == []


def test_the_classes_of_a_quick_start_are_those_of_these_jars() -> None:
    """After a new Spark or Delta: `make classes`."""
    of_jars: set[str] = set()
    for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar"):
        with zipfile.ZipFile(jar) as archive:
            of_jars.update(name.removesuffix(".class").replace("/", ".") for name in archive.namelist())
    of_java = ("java.", "javax.", "jdk.", "sun.", "com.sun.", "org.w3c.dom.", "org.xml.sax.", "org.ietf.jgss.")
    listed = listed_classes()
    assert [name for name in listed if name not in of_jars and not name.startswith(of_java)] == []
    assert {"org.apache.spark.SparkContext", "org.apache.spark.sql.delta.DeltaLog"} <= set(listed)


def test_a_bare_machine_has_neither_java_nor_browser_and_everything_else(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, names in (
        (first, ("java", "sh", "chromium")),
        (second, ("sh", "javac", "javanese", "google-chrome-stable")),
    ):
        folder.mkdir()
        for name in names:
            (folder / name).touch(mode=0o755)
    (second / "data").touch(mode=0o644)
    target = tmp_path / "target"
    target.mkdir()
    link_programs(os.pathsep.join(map(str, (first, second, tmp_path / "nowhere"))), target)
    assert {link.name: link.resolve().parent for link in target.iterdir()} == {"sh": first, "javanese": second}


def test_on_a_bare_machine_nothing_leads_to_java_or_a_browser() -> None:
    """Of this machine, whatever it has; the command's exit code is told on."""
    look = "import os, shutil, sys; names = ('java', 'chromium', 'google-chrome', 'spark-submit'); "
    look += (
        "sys.exit(3 if any(map(shutil.which, names)) or os.environ.get('JAVA_HOME') or not shutil.which('sh') else 7)"
    )
    command = [sys.executable, str(ROOT / "tools" / "bare_machine.py"), sys.executable, "-c", look]
    environment = os.environ | {"JAVA_HOME": "/usr/lib/jvm/java"}
    assert subprocess.run(command, env=environment, check=False).returncode == 7


def test_a_test_of_real_servers_whose_turn_comes_too_late_is_skipped_by_name() -> None:
    file = "tests/cluster/test_client_alone.py"
    command = [sys.executable, "-m", "pytest", "-n", "0", "-rs", "--no-fold-skipped", "-m", "live", file]
    late = subprocess.run(
        command, cwd=ROOT, env=os.environ | {LIVE_MINUTES: "0"}, capture_output=True, text=True, check=True
    )
    first, *_ = (line for line in late.stdout.splitlines() if line.startswith("SKIPPED"))
    assert file in first
    assert first.endswith("0 minutes for tests of real servers are over (LIVE_MINUTES)")
    assert " passed" not in late.stdout
