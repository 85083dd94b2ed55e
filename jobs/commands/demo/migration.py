"""A real migration on this machine: ZooKeeper, three controllers and a broker of Kafka 3.9.1, from ZooKeeper to KRaft.

The steps are those of KIP-866; each returns when the cluster has taken it. Everything listens on loopback and goes at the
end.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from jobs.commands.demo.kafka_servers import KafkaServerError, KafkaServers, kafka_servers, random_uuid
from jobs.commands.demo.zookeeper_server import zookeeper_server

# Sessions are real ones here: brokers come and go.
_ZOOKEEPER = {"tickTime": "2000", "minSessionTimeout": "4000", "maxSessionTimeout": "40000"}
# A migrating controller looks again after twice the time, up to a minute (KRaftMigrationDriver.PollTimeSupplier), and two
# looks may come just before what they look for.
_STEP_SECONDS = 180
_MIGRATION_FLAGS = {"zookeeper.metadata.migration.enable": "true"}
_KEPT = 5
_HEARD_SECONDS, _PAUSE_SECONDS = 10, 0.2
# Nobody logs in here: whoever connects may do everything, and ACLs are there to be mirrored.
_IN_KRAFT = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
_IN_ZOOKEEPER = {**_IN_KRAFT, "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}


@dataclass
class Migration:
    """A cluster on its way. `zookeeper` is its connect string; `servers` has controllers 3000 to 3002 and broker 0."""

    zookeeper: str
    servers: KafkaServers
    _client: KazooClient

    def start_broker_in_zookeeper_mode(self) -> None:
        """Before the migration: the broker alone, with its controller in ZooKeeper."""
        self._restart_broker({**self._broker(), **_IN_ZOOKEEPER, "broker.id": "0", "zookeeper.connect": self.zookeeper})
        self._until("the broker in /brokers/ids", lambda: self._client.exists("/brokers/ids/0") is not None)

    def start_controllers(self) -> None:
        """The quorum, waiting for the brokers."""
        self.servers.start(self.servers.controllers)

    def migrate(self) -> None:
        """Restart the broker with the migration enabled: the quorum loads ZooKeeper's metadata and dual write begins."""
        self._restart_broker(
            {
                **self._broker(),
                **_IN_ZOOKEEPER,
                "broker.id": "0",
                "zookeeper.connect": self.zookeeper,
                **_MIGRATION_FLAGS,
                **self._quorum(),
            }
        )
        self._until("dual write", lambda: (self.migration() or {}).get("kraft_metadata_offset", -1) > 0)

    def move_broker_to_kraft(self) -> None:
        """Restart the broker in KRaft mode; ZooKeeper is still mirrored to."""
        self._restart_broker(
            {**self._broker(), **_IN_KRAFT, "node.id": "0", "process.roles": "broker", **self._quorum()}
        )
        # Until its old session has ended, the broker appears to be in both modes.
        self._until("a broker in KRaft mode alone", lambda: self._client.exists("/brokers/ids/0") is None)

    def finalize(self) -> None:
        """Restart the controllers without ZooKeeper: there is no way back."""
        for node in self.servers.controllers:
            self.servers.stop([node])
            node.properties.pop("zookeeper.connect", None)
            node.properties.pop("zookeeper.metadata.migration.enable", None)
            self.servers.start([node])

    def migration(self) -> dict[str, Any] | None:
        """What `/migration` holds, or None."""
        with suppress(KazooException, ValueError):
            data, _ = self._client.get("/migration")
            return dict(json.loads(data))
        return None

    @property
    def broker(self) -> str:
        """The broker's address."""
        return self.servers.brokers[0].address

    def _restart_broker(self, properties: dict[str, str]) -> None:
        node = self.servers.brokers[0]
        self.servers.stop([node])
        node.properties = {"log.dirs": str(node.folder / "data"), **properties}
        self.servers.start([node])

    def _broker(self) -> dict[str, str]:
        return {
            "listeners": f"PLAINTEXT://{self.broker}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.protocol.version": "3.9",
            "offsets.topic.replication.factor": "1",
            "num.partitions": "2",
        }

    def _quorum(self) -> dict[str, str]:
        voters = self.servers.controllers[0].properties["controller.quorum.voters"]
        return {"controller.quorum.voters": voters, "controller.listener.names": "CONTROLLER"}

    def _until(self, what: str, there: Callable[[], bool]) -> None:
        """Wait for a step. Raises KafkaServerError, with /migration and what each node logged, when it does not come."""
        nodes = (*self.servers.controllers, *self.servers.brokers)
        began = time.monotonic()
        while time.monotonic() < began + _STEP_SECONDS and not any(node.has_died for node in nodes):
            with suppress(KazooException):
                if there():
                    return
            time.sleep(0.2)
        waited, logged = time.monotonic() - began, "; ".join(node.last_words() for node in nodes)
        raise KafkaServerError(
            f"the migration did not come to {what} in {waited:.0f} s: /migration is {self.migration()}; {logged}"
        )


@contextmanager
def migration(jars: Path) -> Iterator[Migration]:
    """A cluster that can be migrated, nothing started yet but ZooKeeper. `jars`: of 3.9.1 (`kafka_jars`)."""
    cluster_id = random_uuid()
    with zookeeper_server(None, config=_ZOOKEEPER) as zookeeper:
        client = KazooClient(zookeeper.address)
        client.start(timeout=30)
        try:
            # A broker takes the id that is there, so the controllers can be formatted before it starts.
            client.create("/cluster/id", json.dumps({"version": "1", "id": cluster_id}).encode(), makepath=True)
            controller = {
                "zookeeper.connect": zookeeper.address,
                "inter.broker.protocol.version": "3.9",
                **_MIGRATION_FLAGS,
                **_IN_KRAFT,
            }
            with kafka_servers(jars, cluster_id=cluster_id, controllers=3, brokers=1, controller=controller) as servers:
                yield Migration(zookeeper.address, servers, client)
        finally:
            client.stop()
            client.close()


@dataclass
class Workload:
    """Changes that are made while an audit reads: topics, their configurations and ACLs, made, changed and removed."""

    broker: str
    done: int = 0
    failed: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Change something again and again until `stop`."""
        from kafka.admin import KafkaAdminClient  # noqa: PLC0415 - an extra

        client = KafkaAdminClient(bootstrap_servers=self.broker, client_id="load")
        try:
            while not self._stop.is_set():
                try:
                    self._make(client, self.done)
                    if self.done >= _KEPT:
                        self._remove(client, self.done - _KEPT)
                except Exception as error:
                    self.failed.append(f"{type(error).__name__} {error}")
                self.done += 1
        finally:
            client.close()

    def _make(self, client: Any, number: int) -> None:
        from kafka.admin import NewTopic  # noqa: PLC0415

        name = f"load-{number}"
        client.create_topics([NewTopic(name, 3, 1, topic_configs={"retention.ms": str(1000 + number)})])
        client.create_acls([_acl(name)])
        if number > 0:
            self._configure(client, f"load-{number - 1}", str(2000 + number))

    def _configure(self, client: Any, topic: str, retention: str) -> None:
        """Change a topic's configuration as soon as the broker has received the topic: before, it does not know the name."""
        from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415

        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": retention})
        deadline = time.monotonic() + _HEARD_SECONDS
        while not self._stop.is_set():
            try:
                client.alter_configs([resource])
                return
            except ValueError:
                if time.monotonic() > deadline:
                    raise
                self._stop.wait(_PAUSE_SECONDS)

    def _remove(self, client: Any, number: int) -> None:
        name = f"load-{number}"
        client.delete_acls([_acl(name)])
        client.delete_topics([name])

    def stop(self) -> None:
        """Stop after the current change."""
        self._stop.set()


@contextmanager
def load(broker: str) -> Iterator[Workload]:
    """Keep a cluster busy within the block."""
    work = Workload(broker)
    thread = threading.Thread(target=work.run, daemon=True)
    thread.start()
    try:
        yield work
    finally:
        work.stop()
        thread.join(30)


def _acl(topic: str) -> Any:
    from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType  # noqa: PLC0415

    pattern = ResourcePattern(ResourceType.TOPIC, topic)
    return ACL(f"User:{topic}", "*", ACLOperation.READ, ACLPermissionType.ALLOW, pattern)
