"""Random requests, made from the state of the world: mostly such as could be right, and each wrong in its own way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from tests.live.fire.play import FEATURES, random_id
from tests.live.fire.predict import AlterPartition, FeatureUpdate, level
from tests.live.fire.wire import Connection, Part
from tests.live.fire.world import METADATA_VERSION, MIN_ISR, UNCLEAN, Key, World, as_uuid
from transforms.isr.partition import RECOVERED, RECOVERING, PartitionState
from transforms.isr.validate import request_versions

ALTER_CONFIGS, CREATE_TOPICS, DELETE_TOPICS, CREATE_ACLS, DELETE_ACLS = 33, 19, 20, 30, 31
CREATE_PARTITIONS, ELECT_LEADERS, INCREMENTAL, REASSIGN, QUOTAS, SCRAM = 37, 43, 44, 45, 49, 51
UPDATE_FEATURES, UNREGISTER, ASSIGN = 57, 64, 73
_TOPIC, _BROKER = 2, 4
_STRANGER = 99
_MOST_PARTS = 8
_MOST_TOPICS = 8
_SOON = timedelta(seconds=10)


@dataclass(frozen=True)
class Move:
    """Something that a player does: fence, unfence, shut_down, lose, die, return or return_clean."""

    what: str
    player: int


@dataclass(frozen=True)
class Reassign:
    """A reassignment of one partition to `target`; None cancels the one that is under way."""

    key: Key
    topic: str
    target: tuple[int, ...] | None


@dataclass(frozen=True)
class Elect:
    """An election of some partitions; `unclean` or by preference."""

    topic: str
    partitions: tuple[int, ...]
    unclean: bool


@dataclass(frozen=True)
class Other:
    """Any other request: the log shows what came of it."""

    key: int
    fields: dict[str, Any] = field(default_factory=dict)


Action = AlterPartition | FeatureUpdate | Move | Reassign | Elect | Other


@dataclass(frozen=True)
class Maker:
    """Makes one request. The same chance and the same world give the same one."""

    chance: Random
    world: World
    connection: Connection
    players: Sequence[int]

    def action(self) -> Action:
        """The next request."""
        made: list[tuple[int, Callable[[], Action | None]]] = [
            (700, self._alter_partition),
            (70, self._move),
            (60, self._reassign),
            (25, self._elect),
            (70, self._features),
            (25, self._config),
            (8, self._acl),
            (6, self._quota),
            (4, self._scram),
            (12, self._topic),
            (4, self._partitions),
            (1, self._unregister),
            (12, self._assign),
        ]
        weights = [weight for weight, _ in made]
        while True:
            [(_, make)] = self.chance.choices(made, weights)
            action = make()
            if action is not None:
                return action

    def _one(self, values: Sequence[Any]) -> Any:
        return self.chance.choice(values)

    def _often(self, share: float) -> bool:
        return self.chance.random() < share

    def _alter_partition(self) -> Action | None:
        led: dict[int, list[Key]] = {}
        for key, each in self.world.partitions.items():
            led.setdefault(each.state.leader, []).append(key)
        leaders = [leader for leader in led if leader >= 0]
        if not leaders:
            return None
        sender = self._one(leaders)
        keys = self.chance.sample(led[sender], min(len(led[sender]), self.chance.randint(1, _MOST_PARTS)))
        if self._often(0.15):
            others = [key for key in self.world.partitions if key not in keys]
            keys += self.chance.sample(others, min(2, len(others)))
        broker = self.world.brokers.get(sender)
        epoch = -1 if broker is None else broker.registration.broker_epoch
        if self._often(0.02):
            sender, epoch = self._one([(sender, epoch - 1), (sender, epoch + 1), (_STRANGER, epoch), (-1, epoch)])
        parts = [self._part(key) for key in keys]
        if self._often(0.03):
            parts.append(self._nowhere(parts[0][0]))
        oldest, newest = request_versions(self.world.release)
        version = newest if self._often(0.7) else self.chance.randint(oldest, newest)
        if self._often(0.003):
            version = self._one([newest + 1, max(oldest - 1, 0)])
        # The answer groups the partitions by topic: ask in that order.
        order = {topic_id: place for place, topic_id in enumerate(dict.fromkeys(topic_id for _, topic_id in parts))}
        parts.sort(key=lambda each: order[each[1]])
        return AlterPartition(
            version, sender, epoch, tuple(part for part, _ in parts), tuple(topic_id for _, topic_id in parts)
        )

    def _part(self, key: Key) -> tuple[Part, str]:
        state = self.world.partitions[key].state
        leader_epoch, partition_epoch, recovery = state.leader_epoch, state.partition_epoch, RECOVERED
        if state.recovering and self._often(0.4):
            recovery = RECOVERING
        isr = self._isr(state)
        if self._often(0.3):
            wrong = self.chance.random()
            if wrong < 0.25:
                leader_epoch += self._one((-1, 1, -2))
            elif wrong < 0.5:
                partition_epoch += self._one((-1, 1, -3))
            elif wrong < 0.6:
                leader_epoch, partition_epoch = leader_epoch + self._one((-1, 1)), partition_epoch + self._one((-1, 1))
            elif wrong < 0.75:
                recovery = RECOVERING
            else:
                isr = self._wrong(isr, state)
        part = Part(
            self.world.names[key[0]],
            as_uuid(key[0]),
            key[1],
            leader_epoch,
            partition_epoch,
            tuple((member, self._epoch(member)) for member in isr),
            recovery,
        )
        return part, key[0]

    def _epoch(self, member: int) -> int:
        broker = self.world.brokers.get(member)
        if broker is None or self._often(0.1):
            return -1
        return broker.registration.broker_epoch + (self._one((-1, 1)) if self._often(0.02) else 0)

    def _isr(self, state: PartitionState) -> list[int]:
        """An ISR that a leader could propose."""
        there = [each for each in state.replicas if self._at_work(each)]
        first = [state.leader] if state.leader >= 0 else []
        way = self.chance.random()
        if way < 0.12:
            return list(state.isr)
        if way < 0.3:
            left = [each for each in state.isr if each != state.leader]
            gone = self._one(left) if left else None
            return [each for each in state.isr if each != gone]
        if way < 0.55:
            return list(dict.fromkeys([*state.isr, *there]))
        if way < 0.7:
            return list(dict.fromkeys([*first, *[each for each in state.adding if each in there]]))
        if way < 0.75:
            return self.chance.sample(state.isr, len(state.isr))
        pool = there if self._often(0.8) else list(state.replicas)
        some = self.chance.sample(pool, self.chance.randint(0, len(pool)))
        return list(dict.fromkeys([*first, *some]))

    def _wrong(self, isr: list[int], state: PartitionState) -> list[int]:
        wrong: list[list[int]] = [
            [*isr, _STRANGER],
            [*isr, -1],
            [*isr, *isr[:1]],
            [each for each in isr if each != state.leader],
            [],
            [*isr, *[each for each in self.players if each not in state.replicas][:1]],
        ]
        return self.chance.choice(wrong)

    def _at_work(self, number: int) -> bool:
        broker = self.world.brokers.get(number)
        return broker is not None and not (broker.registration.fenced or broker.registration.in_controlled_shutdown)

    def _nowhere(self, like: Part) -> tuple[Part, str]:
        """A partition or a topic that there is not."""
        if self._often(0.5):
            topic_id = random_id(self.chance)
            return Part("nowhere", topic_id, 0, 0, 0, ((1, -1),), 0), "nowhere"
        known = self.world.topics[like.topic]
        return Part(like.topic, like.topic_id, 1000, 0, 0, like.isr, 0), known

    def _move(self) -> Action:
        moves = ["fence", "unfence", "unfence", "unfence", "shut_down", "lose", "die", "return", "return_clean"]
        weights = [6, 10, 10, 10, 4, 2, 1, 4, 4]
        [what] = self.chance.choices(moves, weights)
        return Move(what, self._one(self.players))

    def _reassign(self) -> Action | None:
        if not self.world.partitions:
            return None
        moving = [key for key, each in self.world.partitions.items() if each.state.reassigning]
        if moving and self._often(0.5):
            key = self._one(moving)
            return Reassign(key, self.world.names[key[0]], None if self._often(0.6) else self._target())
        key = self._one(list(self.world.partitions))
        return Reassign(key, self.world.names[key[0]], None if self._often(0.05) else self._target())

    def _target(self) -> tuple[int, ...]:
        if self._often(0.03):
            impossible: list[tuple[int, ...]] = [(), (1, 1), (_STRANGER,), (-1, 2)]
            return self.chance.choice(impossible)
        return tuple(self.chance.sample(list(self.players), self.chance.randint(1, min(4, len(self.players)))))

    def _elect(self) -> Action | None:
        if not self.world.topics:
            return None
        name = self._one(list(self.world.topics))
        numbers = [number for topic_id, number in self.world.partitions if topic_id == self.world.topics[name]]
        return Elect(name, tuple(numbers), self._often(0.5))

    def _features(self) -> Action:
        chosen = [METADATA_VERSION] if self._often(0.5) else [self._one([*FEATURES, "no.such.feature"])]
        if self._often(0.15):
            other = self._one([*FEATURES, METADATA_VERSION])
            chosen = list(dict.fromkeys([*chosen, other]))
        updates = []
        for name in chosen:
            now = level(self.world) if name == METADATA_VERSION else self.world.features.get(name, 0)
            wanted = self._one([now, now + 1, now - 1, now + 2, now - 2, 0, 1, self.chance.randint(-1, 36)])
            updates.append((name, max(wanted, -1), self._one((1, 1, 2, 2, 3))))
        # What is written changes the rules of all that follows: mostly only asked.
        return FeatureUpdate(tuple(updates), self._often(0.8))

    def _config(self) -> Action | None:
        if not self.world.topics:
            return None
        build = self.connection.build
        topic = self._one([*self.world.topics, ""])
        kind, name = (_TOPIC, topic) if topic else (_BROKER, "")
        # Controllers take any value for all topics, and then fail on it: brokers are the ones who look at it.
        wrong = ("none",) if topic else ()
        value: Any = self._one(("1", "2", "2", "3", "7", *wrong)) if self._often(0.6) else None
        key = MIN_ISR if value else UNCLEAN
        value = value or self._one(("true", "false"))
        if self._often(0.05):
            configs = (build(ALTER_CONFIGS, "AlterableConfig", name=key, value=value),)
            resource = build(
                ALTER_CONFIGS, "AlterConfigsResource", resource_type=kind, resource_name=name, configs=configs
            )
            return Other(ALTER_CONFIGS, {"resources": (resource,), "validate_only": False})
        operation = 1 if self._often(0.15) else 0
        config = build(INCREMENTAL, "AlterableConfig", name=key, config_operation=operation, value=value)
        resource = build(INCREMENTAL, "AlterConfigsResource", resource_type=kind, resource_name=name, configs=(config,))
        return Other(INCREMENTAL, {"resources": (resource,), "validate_only": False})

    def _acl(self) -> Action:
        name = f"t{self.chance.randint(0, 9)}"
        common = {"principal": f"User:u{self.chance.randint(0, 5)}", "host": "*", "operation": 3, "permission_type": 3}
        if self._often(0.4):
            build = {"resource_type_filter": _TOPIC, "resource_name_filter": name, "pattern_type_filter": 3}
            more = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
            found = self.connection.build(DELETE_ACLS, "DeleteAclsFilter", **build, **more)
            return Other(DELETE_ACLS, {"filters": (found,)})
        creation = self.connection.build(
            CREATE_ACLS, "AclCreation", resource_type=_TOPIC, resource_name=name, resource_pattern_type=3, **common
        )
        return Other(CREATE_ACLS, {"creations": (creation,)})

    def _quota(self) -> Action:
        build = self.connection.build
        who = build(QUOTAS, "EntityData", entity_type="user", entity_name=self._one((None, "u1", "u2")))
        remove = self._often(0.3)
        operation = build(QUOTAS, "OpData", key="producer_byte_rate", value=float(self._one((1, 1000))), remove=remove)
        entry = build(QUOTAS, "EntryData", entity=(who,), ops=(operation,))
        return Other(QUOTAS, {"entries": (entry,), "validate_only": False})

    def _scram(self) -> Action:
        name, build = f"u{self.chance.randint(0, 3)}", self.connection.build
        if self._often(0.4):
            return Other(
                SCRAM,
                {"deletions": (build(SCRAM, "ScramCredentialDeletion", name=name, mechanism=1),)} | {"upsertions": ()},
            )
        upsertion = build(
            SCRAM,
            "ScramCredentialUpsertion",
            name=name,
            mechanism=1,
            iterations=4096,
            salt=self.chance.randbytes(16),
            salted_password=self.chance.randbytes(32),
        )
        return Other(SCRAM, {"deletions": (), "upsertions": (upsertion,)})

    def _topic(self) -> Action | None:
        if len(self.world.topics) >= _MOST_TOPICS or (self._often(0.3) and len(self.world.topics) > 3):
            if not self.world.topics:
                return None
            name = self._one(list(self.world.topics))
            state = self.connection.build(DELETE_TOPICS, "DeleteTopicState", name=name, topic_id=None)
            return Other(DELETE_TOPICS, {"topics": (state,), "topic_names": (name,), "timeout": _SOON})
        return self.new_topic()

    def new_topic(self) -> Other:
        """A topic of some partitions on brokers by choice."""
        build = self.connection.build
        size = self.chance.randint(1, min(4, len(self.players)))
        assignments = tuple(
            build(
                CREATE_TOPICS,
                "CreatableReplicaAssignment",
                partition_index=number,
                broker_ids=tuple(self.chance.sample(list(self.players), size)),
            )
            for number in range(self.chance.randint(1, 6))
        )
        configs = []
        if self._often(0.7):
            configs.append((MIN_ISR, str(self.chance.randint(1, 3))))
        if self._often(0.5):
            configs.append((UNCLEAN, self._one(("true", "false"))))
        topic = build(
            CREATE_TOPICS,
            "CreatableTopic",
            name=f"t{self.chance.randint(0, 9)}",
            num_partitions=-1,
            replication_factor=-1,
            assignments=assignments,
            configs=tuple(
                build(CREATE_TOPICS, "CreatableTopicConfig", name=key, value=value) for key, value in configs
            ),
        )
        return Other(CREATE_TOPICS, {"topics": (topic,), "timeout": _SOON, "validate_only": False})

    def _partitions(self) -> Action | None:
        if not self.world.topics:
            return None
        build, name = self.connection.build, self._one(list(self.world.topics))
        numbers = [number for topic_id, number in self.world.partitions if topic_id == self.world.topics[name]]
        if len(numbers) > 8:
            return None
        size = len(self.world.partitions[(self.world.topics[name], 0)].state.replicas)
        brokers = tuple(self.chance.sample(list(self.players), min(size, len(self.players))))
        added = build(CREATE_PARTITIONS, "CreatePartitionsAssignment", broker_ids=brokers)
        topic = build(
            CREATE_PARTITIONS, "CreatePartitionsTopic", name=name, count=len(numbers) + 1, assignments=(added,)
        )
        return Other(CREATE_PARTITIONS, {"topics": (topic,), "timeout": _SOON, "validate_only": False})

    def _unregister(self) -> Action:
        number = self._one([*self.players, _STRANGER])
        return Other(UNREGISTER, {"broker_id": number})

    def _assign(self) -> Action | None:
        if ASSIGN not in self.connection.versions:
            return None
        number = self._one(self.players)
        broker = self.world.brokers.get(number)
        mine = [key for key, each in self.world.partitions.items() if number in each.state.replicas]
        if broker is None or not broker.directories or not mine:
            return None
        build, directory = self.connection.build, as_uuid(self._one(broker.directories))
        if self._often(0.1):
            directory = random_id(self.chance)
        key = self._one(mine)
        part = build(ASSIGN, "PartitionData", partition_index=key[1])
        topic = build(ASSIGN, "TopicData", topic_id=as_uuid(key[0]), partitions=(part,))
        found = build(ASSIGN, "DirectoryData", id_=directory, topics=(topic,))
        epoch = broker.registration.broker_epoch
        return Other(ASSIGN, {"broker_id": number, "broker_epoch": epoch, "directories": (found,)})
