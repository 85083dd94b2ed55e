"""Prepare a quick start: keep the Java classes that audits load, compiled modules, and what numba compiles.

Java takes half of the time to a first result to find its classes in 280 jars and to check them. From an archive of them
it starts at once. It writes the archive when it ends, of whatever it has loaded: here, all that tools/classes.txt.xz
names, which is faster than an audit. Meanwhile the other processor compiles what audits import, and numba's kernels,
which large inputs need.
"""

from __future__ import annotations

import compileall
import importlib
import os
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyspark
from class_list import LISTED, listed_classes
from py4j.protocol import Py4JError

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from jobs.runtime.spark import MAKE_ARCHIVE, QUIET_JVM, class_archive, spark_java  # noqa: E402
from transforms.chain.hashes import warm_up as compile_hashes  # noqa: E402
from transforms.kernel.replay import warm_up as compile_replay  # noqa: E402
from transforms.kraft.kernel.fast import warm_up as compile_log_kernel  # noqa: E402
from transforms.zookeeper.storage.snapshot import warm_up as compile_snapshot_loops  # noqa: E402

JARS = Path(pyspark.__file__).parent / "jars"
LOADERS = 2
OUR_OWN = ("jobs", "schemas", "transforms")
# What they and Spark's Python workers import: uv installs nothing compiled.
IMPORTED = (
    "jobs.cli",
    "jobs.commands.demo.demo",
    "jobs.pipeline",
    "pyarrow.dataset",
    "pyspark.daemon",
    "pyspark.sql.classic.dataframe",
    "pyspark.sql.pandas.map_ops",
    "pyspark.worker",
)


def main() -> int:
    """Keep all of it, as far as it is not kept yet."""
    with ProcessPoolExecutor(1, get_context("spawn")) as beside:
        compiled = beside.submit(_compile)
        kept = _archive()
        compiled.result()
    if not kept:
        print("this Java keeps no class archive; every start takes some seconds longer")
    return 0


def _compile() -> None:
    for name in OUR_OWN:
        compileall.compile_dir(ROOT / name, quiet=1)
    for name in IMPORTED:
        importlib.import_module(name)
    compile_log_kernel()
    compile_replay()
    compile_hashes()
    compile_snapshot_loops()


def _archive() -> bool:
    """True when there is an archive of the listed classes, from the jars as they are."""
    archive = class_archive()
    if archive.is_file() and archive.stat().st_mtime > max(JARS.stat().st_mtime, LISTED.stat().st_mtime):
        return True
    draft = archive.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    names = listed_classes()
    with (
        spark_java({"spark.driver.extraJavaOptions": f"{MAKE_ARCHIVE}={draft} {QUIET_JVM}"}) as gateway,
        ThreadPoolExecutor(LOADERS) as loaders,
    ):
        list(loaders.map(lambda part: _load(gateway, part), [names[first::LOADERS] for first in range(LOADERS)]))
    if not draft.is_file():
        return False
    os.replace(draft, archive)
    return True


def _load(gateway: Any, names: list[str]) -> None:
    """Load the classes without running anything of them."""
    loader = gateway.jvm.java.lang.ClassLoader.getSystemClassLoader()
    load = gateway.jvm.java.lang.Class.forName
    for name in names:
        try:
            load(name, False, loader)
        except Py4JError:
            # Another Java than the one the list was made with may lack one of its own.
            continue


if __name__ == "__main__":
    sys.exit(main())
