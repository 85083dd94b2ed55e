"""Kafka's own gauge of how far ZooKeeper is behind, read by Kafka's own tool while a cluster runs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobs.commands.demo.kafka_servers import KafkaNode, kafka_jars
from jobs.commands.demo.zookeeper_server import LOOPBACK, free_ports
from jobs.runtime.java import java_home

PINS = Path(__file__).with_name("kafka-tools-3.9.1.sha256")
GAUGE = "kafka.controller:type=KafkaController,name=ZkWriteBehindLag"


@dataclass(frozen=True)
class Gauge:
    """What the controllers' gauges say, in files that grow."""

    files: list[Path]

    def readings(self) -> list[int]:
        """Every reading of every controller so far: records. Those that do not lead say 0, or nothing."""
        # The last line may be half written.
        texts = [file.read_text().rpartition("\n")[0] for file in self.files]
        lines = [line for text in texts for line in text.splitlines() if line[:1].isdigit()]
        return [int(line.split(",")[1]) for line in lines]


def let_be_read(nodes: Sequence[KafkaNode]) -> None:
    """Have nodes that are not started yet show their gauges."""
    ports = free_ports(len(nodes))
    for node, port in zip(nodes, ports, strict=True):
        options = {"port": port, "rmi.port": port, "host": LOOPBACK, "authenticate": "false", "ssl": "false"}
        shown = [f"-Dcom.sun.management.jmxremote.{name}={value}" for name, value in options.items()]
        node.jvm_options = (*shown, f"-Djava.rmi.server.hostname={LOOPBACK}")


def _port(node: KafkaNode) -> str:
    return next(option for option in node.jvm_options if ".port=" in option).partition("=")[2]


@contextmanager
def gauge(jars: Path, nodes: Sequence[KafkaNode], folder: Path) -> Iterator[Gauge]:
    """Read the gauge of each running node twice a second, into files in `folder`. `jars` are Kafka's (`kafka_jars`)."""
    java = [str(java_home() / "bin" / "java"), "-Xmx64m", "-XX:+UseSerialGC", "-cp", f"{jars}/*:{kafka_jars(PINS)}/*"]
    with ExitStack() as stack:
        files = []
        for node in nodes:
            files.append(folder / f"gauge-{node.node_id}")
            out = stack.enter_context(files[-1].open("wb"))
            url = f"service:jmx:rmi:///jndi/rmi://{LOOPBACK}:{_port(node)}/jmxrmi"
            asked = ["--jmx-url", url, "--object-name", GAUGE, "--attributes", "Value", "--reporting-interval", "500"]
            command = [*java, "org.apache.kafka.tools.JmxTool", *asked]
            reader = stack.enter_context(subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT))
            stack.callback(reader.kill)
        yield Gauge(files)
