"""Run a command as on a machine without Java and without a browser: `python tools/bare_machine.py COMMAND…`.

All programs of PATH are linked into one folder but those, and the variables that lead to a Java are taken away. What the
project brings along stays: it is named by path.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HIDDEN = re.compile(
    r"^(java|javac|javaw|javap|jar|jshell|jcmd|keytool|spark-.*|pyspark)$"
    r"|^(chromium|chrome|google-chrome|firefox|msedge|microsoft-edge)([.-].*)?$"
)
VARIABLES = ("JAVA_HOME", "JDK_HOME", "JRE_HOME", "SPARK_HOME", "CHROME", "CHROME_BIN", "CHROME_PATH", "BROWSER")


def main(command: list[str]) -> int:
    """Run it; its exit code."""
    with TemporaryDirectory(prefix="kraft-audit-bare-") as folder:
        link_programs(os.environ.get("PATH", os.defpath), Path(folder))
        environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        environment["PATH"] = folder
        return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603 - what was asked for


def link_programs(path: str, target: Path) -> None:
    """Link every program of a search path that is not HIDDEN, the first of a name, as the system would find it."""
    for folder in (Path(name).absolute() for name in path.split(os.pathsep) if name):
        for program in sorted(folder.iterdir()) if folder.is_dir() else []:
            link = target / program.name
            if not HIDDEN.match(program.name) and not link.is_symlink() and os.access(program, os.X_OK):
                link.symlink_to(program)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
