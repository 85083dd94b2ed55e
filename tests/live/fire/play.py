"""The brokers that are played: registered over the wire, kept alive, fenced, shut down, dead and back."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.live.fire.wire import Connection
from transforms.features.levels import latest_of, lowest_of

REGISTER, HEARTBEAT = 62, 63
_BEAT_SECONDS = 1.5
_PLAIN = 0
# Features beside metadata.version, with the highest level that any release has.
FEATURES = {
    "kraft.version": 1,
    "group.version": 1,
    "transaction.version": 2,
    "eligible.leader.replicas.version": 1,
    "share.version": 2,
    "streams.version": 1,
}
_FROM = {"kraft.version": (3, 9)}


def random_id(chance: Random) -> uuid.UUID:
    """An id that is none of Kafka's reserved ones, the same for the same chance."""
    return uuid.UUID(int=chance.getrandbits(127) | 1 << 100)


@dataclass
class Player:
    """One broker. `silent` is dead: it sends nothing until it registers again."""

    number: int
    directories: tuple[uuid.UUID, ...] = ()
    offline: tuple[uuid.UUID, ...] = ()
    incarnation: uuid.UUID = field(default_factory=uuid.uuid4)
    epoch: int = -1
    want_fence: bool = True
    want_shut_down: bool = False
    silent: bool = True
    beaten: float = 0.0


@dataclass
class Brokers:
    """All of them. Answers to heartbeats are not predicted: what they lead to is in the log."""

    release: tuple[int, int]
    connection: Connection
    cluster_id: str
    players: list[Player]

    def register(self, player: Player, chance: Random, level: int, *, clean: bool) -> int:
        """Register under a new incarnation; the error. `clean` names the epoch before, as KIP-966 has it.

        A broker mostly knows the finalised `level` of metadata.version, whatever the project's own table has.
        """
        player.incarnation = random_id(chance)
        if not player.directories or chance.random() < 0.1:
            # Brokers tell them in order (`BrokerLifecycleManager`), as a snapshot has them.
            player.directories = tuple(sorted(random_id(chance) for _ in range(chance.choice((1, 1, 2)))))
        answer = self.connection.ask(
            REGISTER,
            broker_id=player.number,
            cluster_id=self.cluster_id,
            incarnation_id=player.incarnation,
            listeners=(
                self.connection.build(
                    REGISTER, "Listener", name="PLAINTEXT", host="127.0.0.1", port=9000, security_protocol=_PLAIN
                ),
            ),
            features=tuple(self._features(chance, level)),
            rack=chance.choice((None, "a", "b")),
            is_migrating_zk_broker=False,
            log_dirs=player.directories,
            previous_broker_epoch=player.epoch if clean else -1,
        )
        if not answer.error_code.value:
            player.epoch, player.offline = int(answer.broker_epoch), ()
            player.want_fence, player.want_shut_down, player.silent = True, False, False
            player.beaten = time.monotonic()
        return int(answer.error_code.value)

    def _features(self, chance: Random, level: int) -> list[Any]:
        latest = max(latest_of(self.release) or 1, level)
        ranges = {"metadata.version": (lowest_of(self.release), latest - chance.choice((0, 0, 0, 0, 0, 1, 2)))}
        for name, highest in FEATURES.items():
            if self.release >= _FROM.get(name, (4, 0)):
                ranges[name] = (0, highest - (chance.random() < 0.05))
        return [
            self.connection.build(REGISTER, "Feature", name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in ranges.items()
            if high
        ]

    def beat(self, player: Player, offset: int) -> int:
        """Send a heartbeat of what the player wants; the error."""
        answer = self.connection.ask(
            HEARTBEAT,
            broker_id=player.number,
            broker_epoch=player.epoch,
            current_metadata_offset=offset,
            want_fence=player.want_fence,
            want_shut_down=player.want_shut_down,
            offline_log_dirs=player.offline,
        )
        player.beaten = time.monotonic()
        if getattr(answer, "should_shut_down", False):
            player.silent = True
        return int(answer.error_code.value)

    def due(self) -> list[Player]:
        """Those who have to send a heartbeat now, lest their session ends."""
        now = time.monotonic()
        return [each for each in self.players if not each.silent and now - each.beaten > _BEAT_SECONDS]
