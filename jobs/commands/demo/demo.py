"""`kraft-audit demo`: two audits of one real cluster, from a live ZooKeeper server to the report.

The first finds healthy dual write, the second finds ZooKeeper eleven records behind: lag, and no defect. Each runs
the whole pipeline: the real ZooKeeper server is started on a copy of the capture's data folder and walked by a
client, the controllers' logs are read from the capture, and everything goes through the same Delta tables, so that a
repeated demonstration shows history.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from jobs.commands.demo.captures import demo_capture
from jobs.commands.demo.zookeeper_server import zookeeper_server
from jobs.exit import CRASH, OK, AuditError, guarded
from jobs.pipeline import run_all
from jobs.run.run import open_run
from jobs.runtime.output import steady_output
from jobs.runtime.spark import spark_session
from jobs.settings import Settings, validated
from jobs.sinks.report_files import ReportPaths
from schemas.report import Report
from transforms.report.text import render_text

CLUSTER = "demo"
DEFAULT_FOLDER = Path("demo")


@dataclass(frozen=True)
class Scene:
    """One audit of the demonstration: a capture, what it shows, and the lag in records that it must find."""

    folder: str
    stage: str
    title: str
    lag: int


SCENES = (
    Scene("1-healthy", "5-dual-write-changed", "Dual write, healthy: both sides have the same metadata", 0),
    Scene("2-behind", "8-zookeeper-behind", "Dual write, ZooKeeper behind: what it lacks is lag, not loss", 11),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit demo`."""
    parser.add_argument(
        "--out",
        type=Path,
        default=DEFAULT_FOLDER,
        metavar="DIR",
        help="folder for tables and reports (default: ./demo)",
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="migrate a real cluster of Kafka 3.9.1 on this machine and audit it meanwhile (fetches Kafka on first use)",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Audit both scenes. Returns 0 if each audit found what its capture contains, else 1 after one line."""
    out: Path = arguments.out.absolute()
    if arguments.live:
        # kafka-python is an extra.
        from jobs.commands.demo.live import execute as execute_live  # noqa: PLC0415

        return execute_live(out)
    results = []
    with spark_session("small"):
        for scene in SCENES:
            print(f"\n── {scene.title}\n", flush=True)
            report, paths = audit_scene(scene, out)
            print(render_text(report), end="")
            results.append((scene, report, paths))
    print("\nReports:")
    for scene, _, paths in results:
        print(f"  {paths.html}   {scene.title}")
    surprises = [line for scene, report, _ in results for line in surprises_in(scene, report)]
    for line in surprises:
        print(f"kraft-audit demo: {line}", file=sys.stderr)
    return CRASH if surprises else OK


def audit_scene(scene: Scene, out: Path) -> tuple[Report, ReportPaths]:
    """Serve the capture's tree, run the pipeline, and write the report below `out`.

    Raises `ZooKeeperServerError`, `JavaNotFoundError`, and what the pipeline raises.
    """
    capture = demo_capture(scene.stage, out)
    with zookeeper_server(capture / "zookeeper") as server, open_run(_settings(capture, server.address, out)) as run:
        outcome = run_all(run, out / scene.folder)[CLUSTER]
    if outcome.report is None or outcome.paths is None:
        raise AuditError(f"{scene.stage} could not be audited: {outcome.failure.reason if outcome.failure else ''}")
    return outcome.report, outcome.paths


def surprises_in(scene: Scene, report: Report) -> list[str]:
    """What the audit found that the capture does not hold: nothing, or the program is broken."""
    lines = []
    if report.lag.records != scene.lag:
        lines.append(f"{scene.stage}: found a lag of {report.lag.records} records instead of {scene.lag}")
    if report.verdict == "errors":
        lines.append(f"{scene.stage}: found errors in a healthy migration")
    return lines


def _settings(capture: Path, address: str, out: Path) -> Settings:
    content: dict[str, object] = {
        "cluster": CLUSTER,
        "warehouse": str(out / "tables"),
        "zookeeper": {"connect": address},
        # The server is real, but its data was captured long ago.
        "as_of": "data",
        "kraft": {"folders": [str(capture / "kraft")]},
        "report": {"folder": str(out)},
        "spark": {"profile": "small"},
    }
    # The scenes are played again and again, the older after the newer one.
    return validated(content, "demonstration", one_off=True)


def main(argv: list[str] | None = None) -> int:
    """Entry point of the demonstration alone."""
    parser = argparse.ArgumentParser(prog="kraft-audit demo", description="Audit two captures of a real migration.")
    add_arguments(parser)
    arguments = parser.parse_args(argv)
    with steady_output():
        return guarded(lambda: execute(arguments))


if __name__ == "__main__":
    sys.exit(main())
