"""Write down the Java classes that audits load: `make classes`, when Spark or Delta has changed.

They are those of the demonstration, which makes its tables and comes back to them, and of looking into its result.
"""

from __future__ import annotations

import lzma
import re
import sys
import tempfile
from pathlib import Path

LISTED = Path(__file__).with_name("classes.txt.xz")
# What Java makes for itself as it goes: the next one makes others.
MADE_WHILE_RUNNING = re.compile(r"\$\$Lambda|LambdaForm|\$Proxy\d|Generated\w*Accessor\d|Species_|/0x")
LOOKING = (
    ["diff"],
    ["diff", "--as-of", "400"],
    ["explain", "topics", "orders"],
    ["history"],
    ["gates"],
)


def listed_classes() -> list[str]:
    """Names of the classes, as `Class.forName` takes them."""
    return lzma.decompress(LISTED.read_bytes()).decode().split()


def main() -> int:
    """Audit, look, and write the list; 1, and the list stays as it is, when one of the commands fails."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from jobs.cli import main as kraft_audit  # noqa: PLC0415 - what reads the list needs nothing of this
    from jobs.commands.demo.demo import SCENES, audit_scene  # noqa: PLC0415
    from jobs.runtime.spark import spark_session  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as scratch:
        loaded, tables = Path(scratch) / "loaded.txt", Path(scratch) / "tables"
        options = f"-Xshare:off -XX:DumpLoadedClassList={loaded}"
        with spark_session("small", "class-list", settings={"spark.driver.extraJavaOptions": options}):
            for scene in SCENES:
                audit_scene(scene, Path(scratch))
            codes = [kraft_audit([*argv, "--warehouse", str(tables)]) for argv in LOOKING]
        names = sorted(_names(loaded.read_text()))
    if any(codes):
        return 1
    LISTED.write_bytes(lzma.compress("\n".join(names).encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(names)} classes")
    return 0


def _names(listed: str) -> set[str]:
    lines = (line.split(" ")[0] for line in listed.splitlines() if line and line[0] not in "#@")
    return {line.replace("/", ".") for line in lines if not MADE_WHILE_RUNNING.search(line)}


if __name__ == "__main__":
    sys.exit(main())
