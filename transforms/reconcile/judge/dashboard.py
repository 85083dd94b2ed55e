"""KIP-866's metrics: the values that an operator's dashboard should show now, according to the files."""

from __future__ import annotations

from schemas.checks import KRAFT, Phase
from schemas.kraft.metadata_versions import FEATURE_NAME, ZK_MIGRATION_STATES, ZK_MIGRATION_STATES_3_4
from schemas.report import Lag, Metric, StateSpelling
from transforms.kraft.release import before
from transforms.reconcile.judge.checks.brokers import ready_brokers, unready_controllers, zookeeper_brokers
from transforms.reconcile.judge.facts import Facts

_CONTROLLER = "kafka.controller:type=KafkaController,name="
_TYPES = {1: "ZooKeeper", 2: "KRaft", 3: "Dual"}
_STATE_OF_A_ZOOKEEPER_CONTROLLER = 4
_NEVER_SHIPPED = "named in the KIP only: no release reports it"


def metrics(facts: Facts, lag: Lag) -> list[Metric]:
    """The KIP's metrics in its order; a value is None if the given files do not show it."""
    return [
        Metric(f"{_CONTROLLER}MetadataType", _metadata_type(facts), f"1 ZooKeeper, 2 KRaft, 3 Dual; {_NEVER_SHIPPED}"),
        Metric(f"{_CONTROLLER}ZkMigrationState", _state(facts), "the active controller's; the numbers are below"),
        Metric(
            f"{_CONTROLLER}ZkWriteBehindLag",
            _lag(facts, lag),
            "the active KRaft controller's; also 0 when dual write is not active, so 0 alone proves nothing",
        ),
        Metric(
            f"{_CONTROLLER}MigratingZkBrokerCount",
            str(len(ready_brokers(facts))) if KRAFT in facts.collected else None,
            "brokers registered in ZooKeeper mode; 0 when all of them run in KRaft mode",
        ),
        Metric(
            f"{_CONTROLLER}Features,feature={FEATURE_NAME},level={'-' if facts.level is None else facts.level}",
            None if facts.level is None else str(facts.level),
            f"the finalised level; {_NEVER_SHIPPED}",
        ),
        Metric(f"{_CONTROLLER}ZkWriteSnapshotTimeMs", None, "how long the last full sync took; files do not show it"),
        Metric(f"{_CONTROLLER}ZkWriteDeltaTimeMs", None, "how long the last change took; files do not show it"),
        Metric(
            f"{_CONTROLLER}MigrationIneligibleBrokerCount",
            _ineligible(facts, len(_unready_brokers(facts))),
            f"brokers that keep the load from starting; {_NEVER_SHIPPED}",
        ),
        Metric(
            f"{_CONTROLLER}MigrationIneligibleControllerCount",
            _ineligible(facts, len(unready_controllers(facts))),
            f"controllers without the migration's flag; {_NEVER_SHIPPED}",
        ),
    ]


def state_spellings(facts: Facts) -> list[StateSpelling]:
    """The migration's states as the KIP, its revision and the code spell them, with the bytes of the releases."""
    current = _code_name(facts)
    names = [
        ("NONE", "None", ""),
        ("ZK", "", ""),
        ("PRE_MIGRATION", "PreMigration (1)", "MigrationIneligible (1), MigratingZkData (2) while the load runs"),
        ("MIGRATION", "Migration (2)", "DualWriteMetadata (3)"),
        ("POST_MIGRATION", "PostMigration (3)", "MigrationFinalized (4)"),
    ]
    return [
        StateSpelling(
            code, kip, revision, _byte(ZK_MIGRATION_STATES_3_4, code), _byte(ZK_MIGRATION_STATES, code), code == current
        )
        for code, kip, revision in names
    ]


def _byte(names: dict[int, str], code: str) -> int | None:
    return next((byte for byte, name in names.items() if name == code), None)


def _code_name(facts: Facts) -> str:
    if facts.phase in (Phase.ZOOKEEPER, Phase.ROLLED_BACK):
        return "ZK"
    return facts.state_name


def _metadata_type(facts: Facts) -> str:
    by_phase = {Phase.DUAL_WRITE: 3, Phase.FINALIZED: 2, Phase.KRAFT: 2}
    number = by_phase.get(facts.phase, 1)
    return f"{number} ({_TYPES[number]})"


def _state(facts: Facts) -> str | None:
    if _code_name(facts) == "ZK":
        return f"{_STATE_OF_A_ZOOKEEPER_CONTROLLER} (ZK)"
    if not facts.states:
        # A log of 3.4 records its state only at a load, one of 4.x never.
        return "0 (NONE)" if facts.phase is Phase.KRAFT else None
    return f"{facts.states[-1].code} ({facts.state_name})"


def _lag(facts: Facts, lag: Lag) -> str | None:
    if facts.phase is not Phase.DUAL_WRITE:
        return "0"
    if before(facts.kafka_version, 3, 5) or lag.records is None:
        return None
    return str(lag.records)


def _unready_brokers(facts: Facts) -> set[int]:
    wanted = zookeeper_brokers(facts) | {use.broker_id for use in facts.replicas}
    return wanted - ready_brokers(facts)


def _ineligible(facts: Facts, count: int) -> str | None:
    """Reported while the controllers wait for the load, else 0."""
    if KRAFT not in facts.collected:
        return None
    return str(count if facts.phase is Phase.WAITING else 0)
