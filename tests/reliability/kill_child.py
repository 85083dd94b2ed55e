"""An audit in a process of its own that is killed at one of its commits, by SIGKILL: for `tests.reliability.kill`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path

from jobs.runtime.spark import spark_session
from jobs.sinks.delta import Warehouse
from tests.reliability.killing import AFTER, BEFORE, DURING, Killer, audit, audit_in_steps, killed_by


def kill_all() -> None:
    """Python, Java and Python's workers: they are one process group."""
    os.killpg(os.getpgid(0), signal.SIGKILL)


def main() -> int:
    """Audit and die; 0 only when the commit never came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conf", nargs="+", type=Path, required=True)
    parser.add_argument("--at", type=int, required=True)
    parser.add_argument("--when", choices=(BEFORE, DURING, AFTER), required=True)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds from the begin of the commit, for `during`")
    parser.add_argument("--run-id", help="run in steps under this id")
    parser.add_argument(
        "--step-file", type=Path, help="file that is to hold the number of the step that was begun last"
    )
    arguments = parser.parse_args()
    if os.getpgid(0) != os.getpid():
        raise SystemExit("start it in a session of its own: it kills its process group")

    def kill() -> None:
        if arguments.when == DURING:
            threading.Timer(arguments.delay, kill_all).start()
        else:
            kill_all()

    with killed_by(Killer(arguments.at, arguments.when, kill)):
        if arguments.run_id is None:
            audit(arguments.conf)
            return 0
        with spark_session("small", "kraft-audit-kill", cores=2) as spark:
            begun = (
                (lambda number: arguments.step_file.write_text(str(number))) if arguments.step_file else lambda _: None
            )
            audit_in_steps(arguments.conf, arguments.run_id, lambda: Warehouse(spark, "."), begun=begun)
    return 0


if __name__ == "__main__":
    sys.exit(main())
