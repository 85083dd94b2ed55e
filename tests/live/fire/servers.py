"""One real controller of a release, alone: what it runs with is drawn from the seed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from jobs.commands.demo.kafka_servers import DEMO_JARS, KafkaNode, kafka_jars, kafka_servers
from transforms.features.levels import release_tuple

_HERE = Path(__file__).parents[1]
PINS = {path.stem.removeprefix("kafka-"): path for path in _HERE.glob("kafka-[0-9]*.sha256")} | {"3.9.1": DEMO_JARS}
RELEASES = tuple(sorted(PINS, key=lambda release: (release_tuple(release), release)))
SESSION_MS = 6_000
# The log of a test; it has a directory of its own there.
_MEMORY = Path("/dev/shm")
_PROPERTIES = {
    # A write is answered as soon as it is on disk, not when 25 ms have passed.
    "controller.quorum.append.linger.ms": "0",
    "broker.session.timeout.ms": str(SESSION_MS),
    "metadata.log.max.record.bytes.between.snapshots": "100000",
    "metadata.log.segment.bytes": str(8 << 20),
    "metadata.max.retention.bytes": str(1 << 30),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
# Levels below a release's own, at which records and rules differ: no SCRAM, shrinks that bump, no directories.
_OLDER = ("3.3-IV3", "3.5-IV2", "3.6-IV2", "3.7-IV4")


@dataclass(frozen=True)
class Running:
    """A controller that answers."""

    release: tuple[int, int]
    node: KafkaNode

    @property
    def log(self) -> Path:
        """The folder of its metadata log."""
        return self.node.log_folder


@contextmanager
def controller(release: str, seed: int) -> Iterator[Running]:
    """Start a controller; it and its log are gone at the end. Raises KafkaServerError."""
    before = tempfile.tempdir
    if _MEMORY.is_dir():
        tempfile.tempdir = str(_MEMORY)
    try:
        with kafka_servers(
            kafka_jars(PINS[release]),
            controllers=1,
            common=_PROPERTIES,
            format_arguments=_level(release_tuple(release), Random(f"level/{seed}")),  # noqa: S311
        ) as servers:
            servers.start(servers.controllers)
            yield Running(release_tuple(release), servers.controllers[0])
    finally:
        tempfile.tempdir = before


def _level(release: tuple[int, int], chance: Random) -> list[str]:
    """Every third seed begins at an older metadata.version; 4.0 has ELR only where it is asked for."""
    if chance.random() < 0.3:
        return ["--release-version", chance.choice(_OLDER)]
    if release >= (4, 0) and chance.random() < 0.5:
        return ["--feature", f"eligible.leader.replicas.version={chance.choice((0, 1, 1))}"]
    return []
