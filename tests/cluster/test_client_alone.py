"""Commands that read, where of Spark there is pyspark-client alone: neither Java, nor py4j, nor what Spark Connect takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.stores import ROOT, packages
from tests.tables import NEWEST, unpacked

pytestmark = pytest.mark.live
COMMANDS = (
    ["gates"],
    ["history"],
    ["fleet"],
    ["diff"],
    ["features", "matrix"],
    ["isr", "orders"],
    ["downgrade", "--to", "3.6"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_it_reads(command: list[str], tmp_path: Path) -> None:
    client = packages(Path(__file__).with_name("pyspark-client.lock"))
    cluster = [] if command == ["fleet"] else ["--cluster", "migration"]
    arguments = [command[0], "--warehouse", str(unpacked(NEWEST, tmp_path)), *cluster, *command[1:]]
    code = (
        "import sys; sys.modules.update(grpc=None, py4j=None, delta=None); from jobs.cli import main; import pyspark; "
        f"print(pyspark.__file__, file=sys.stderr); sys.exit(main({arguments!r}))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environment |= {"JAVA_HOME": "/nowhere", "PYTHONPATH": os.pathsep.join([str(client), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout
    (where,) = done.stderr.splitlines()
    assert where.startswith(str(client))
