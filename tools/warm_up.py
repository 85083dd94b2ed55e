"""Prepare a quick start: audit a capture once, and keep what that had to load and compile.

Java keeps the classes it loaded (about half of the time to a first result), numba its compiled kernels.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pyspark
from pyspark import SparkContext

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from jobs.commands.demo.demo import SCENES, audit_scene  # noqa: E402
from jobs.runtime.spark import MAKE_ARCHIVE, QUIET_JVM, class_archive, spark_session  # noqa: E402
from transforms.kraft.kernel.fast import warm_up as compile_log_kernel  # noqa: E402
from transforms.zookeeper.storage.snapshot import warm_up as compile_snapshot_loops  # noqa: E402

JARS = Path(pyspark.__file__).parent / "jars"
JVM_EXIT_SECONDS = 180


def main() -> int:
    """Audit the demonstration's first capture with a Java that writes its classes down when it ends, unless it did."""
    # The captures' logs are too small for the kernel, which large logs need at once.
    compile_log_kernel()
    compile_snapshot_loops()
    if class_archive().is_file() and class_archive().stat().st_mtime > JARS.stat().st_mtime:
        return 0
    draft = class_archive().with_suffix(".draft")
    draft.unlink(missing_ok=True)
    options = {"spark.driver.extraJavaOptions": f"{MAKE_ARCHIVE}={draft} {QUIET_JVM}"}
    with tempfile.TemporaryDirectory() as scratch, spark_session("small", "warm-up", settings=options):
        audit_scene(SCENES[0], Path(scratch))
    _end_java()
    if draft.is_file():
        os.replace(draft, class_archive())
    else:
        print("this Java keeps no class archive; every start takes some seconds longer")
    return 0


def _end_java() -> None:
    """End the JVM now and wait: it writes the archive at its exit."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    process = gateway.proc
    gateway.shutdown()
    process.stdin.close()
    process.wait(JVM_EXIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
