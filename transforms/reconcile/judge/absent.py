"""Facts that were not gathered though their side was: checks that need them are not judged, and the report lists them.

For many checks an empty list looks like a healthy cluster (no broker left in ZooKeeper, no violation found). So each list is
compared with an independent count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from schemas.checks import KRAFT, ZOOKEEPER, Phase
from schemas.classes import DEFECTS
from schemas.kraft.feature_levels import KRAFT_VERSION
from schemas.kraft.metadata_versions import FEATURE_NAME
from transforms.kraft.release import before
from transforms.reconcile.judge.facts import Facts

_RECORDED = frozenset({Phase.WAITING, Phase.DUAL_WRITE, Phase.FINALIZED, Phase.ROLLED_BACK})


def absent(facts: Facts) -> dict[str, str]:
    """What of `facts` is empty but must not be, or is not whole, each with a description of what is missing."""
    found = {**dict(_anywhere(facts))}
    if ZOOKEEPER in facts.collected:
        found |= dict(_of_zookeeper(facts))
    if KRAFT in facts.collected:
        found |= dict(_of_the_log(facts))
    if {ZOOKEEPER, KRAFT} <= facts.collected:
        found |= dict(_of_both(facts))
    return found


Missing = Iterator[tuple[str, str]]


def _anywhere(facts: Facts) -> Missing:
    if not facts.collected:
        yield "collected", "neither ZooKeeper nor a log was read"
    if facts.findings is None:
        yield "findings", "the tables were not searched for violations"
    if facts.brokers_with_config is None:
        yield "brokers_with_config", "the brokers' configurations were not read"
    if facts.collected and not facts.counts:
        yield "counts", "the rows of neither side were counted"
    if facts.broker_configs is None:
        yield "broker_configs", "the brokers' dynamic configurations were not read"
    if facts.partition_counts is None:
        yield "partition_counts", "the partitions were not counted"
    if facts.out_of_sync is None:
        yield "out_of_sync", "the replicas that are not in sync were not counted"
    side = ZOOKEEPER if ZOOKEEPER in facts.collected else KRAFT
    if not facts.replicas and _rows(facts, "partitions", side) != 0:
        yield "replicas", "the assignments of the partitions were not read"


def _of_zookeeper(facts: Facts) -> Missing:
    if facts.zookeeper is None:
        yield "zookeeper", "/controller, /migration and /cluster/id were not read"
    if not facts.brokers_in_zookeeper and _rows(facts, "brokers", ZOOKEEPER) != 0:
        yield "brokers_in_zookeeper", "the brokers in /brokers/ids were not read"
    if facts.producer_block_end is None and _rows(facts, "producer_ids", ZOOKEEPER) != 0:
        yield "producer_block_end", "/latest_producer_id_block was not read"
    if facts.protection is None:
        yield "protection", "the ACLs of the znodes were not read"
    if facts.identities is None:
        yield "identities", "who made the znodes was not read"
    if facts.zookeeper_features is None:
        yield "zookeeper_features", "/feature was not read"
    if facts.newest_znode_time_ms is None:
        yield "newest_znode_time_ms", "no znode has a time"
    if facts.reads_data_folder and facts.zookeeper_writes is None:
        yield "zookeeper_writes", "ZooKeeper's transaction logs were not read"
    yield from _holes(facts)


_FEW = 3
_HOLES = (
    "who wrote ZooKeeper since KRaft took over is not known throughout, because its transaction logs have holes ({1}): {0}; give "
    "the folder of a server that has them all, whole"
)


def _holes(facts: Facts) -> Missing:
    """While KRaft writes to ZooKeeper; before that, and after it, a hole in the history hides nothing that a check is about."""
    by_kraft = bool((facts.zookeeper or {}).get("controller_persistent"))
    judged = facts.phase is Phase.DUAL_WRITE or (facts.phase is Phase.WAITING and by_kraft)
    holes = facts.zookeeper_writes.unseen() if facts.zookeeper_writes is not None and judged else []
    if holes:
        yield "zookeeper_writes", _HOLES.format("; ".join(holes[:_FEW]), len(holes))


def _of_the_log(facts: Facts) -> Missing:
    for name, what in (
        ("plan", "chosen"),
        ("committed", "proved committed"),
        ("transactions", "read for transactions"),
    ):
        if getattr(facts, name) is None:
            yield name, f"no part of the log was {what}"
    if not facts.copies:
        yield "copies", "no copy of the log was found"
    if facts.quorum is None:
        yield "quorum", "the log's control records were not read"
    if facts.activity is None:
        yield "activity", "the log's records were not counted"
    if facts.kafka_version is None:
        yield "kafka_version", "the Kafka release is unknown: set kafka_version"
    if not facts.states and facts.phase in _RECORDED and not before(facts.kafka_version, 3, 5):
        yield "states", "the records of the migration's state were not read"
    if facts.unknown_records.total:
        yield "unknown_records", "the log has records that this audit does not know (CAP-12)"
    if facts.leader is None:
        yield "epochs", "the newest leader epoch is unknown"
    yield from _lists_of_the_log(facts)


def _lists_of_the_log(facts: Facts) -> Missing:
    if facts.configured_in_kraft is None:
        yield "configured_in_kraft", "the brokers that the log has configurations of were not read"
    for name, entity in (("brokers_in_kraft", "brokers"), ("controllers", "controllers"), ("features", "features")):
        if not getattr(facts, name) and _rows(facts, entity, KRAFT) != 0:
            yield name, f"the {entity} registered in the log were not read"
    if facts.level is not None and not facts.levels:
        yield "levels", "the changes of metadata.version were not read"
    if facts.features.keys() - {FEATURE_NAME, KRAFT_VERSION} and not facts.other_levels:
        yield "other_levels", "the changes of the features were not read"
    if facts.next_producer_id is None and _rows(facts, "producer_ids", KRAFT) != 0:
        yield "next_producer_id", "the next producer id was not read"


def _of_both(facts: Facts) -> Missing:
    if facts.phase is Phase.DUAL_WRITE and not facts.compared:
        yield "compared", "the two sides could not be compared"
    if facts.phase is Phase.DUAL_WRITE and facts.lag is None and not before(facts.kafka_version, 3, 5):
        yield "lag", "the lag could not be measured"
    if facts.compared and facts.duplicated is None:
        yield "duplicated", "keys that a side has twice were not looked for"
    if facts.compared and facts.divergences is None:
        yield "divergences", "the differences were not read"
    mirrored = facts.migration_offset is not None and facts.migration_offset >= 0
    if facts.phase is Phase.ROLLED_BACK and facts.left_behind is None and mirrored:
        yield "left_behind", "what KRaft had that ZooKeeper lacks was not looked for"
    if facts.differing(*DEFECTS).total and not facts.defect_rows:
        yield "defect_rows", "the rows that are defects were not read"


def _rows(facts: Facts, entity: str, side: str) -> int | None:
    return facts.counts.get(entity, {}).get(side)


class NotingFacts(Facts):
    """Facts that note which of their fields were looked at, by whoever and through whichever property."""

    read: set[str]

    @staticmethod
    def of(facts: Facts) -> NotingFacts:
        """The same facts, nothing of them read yet."""
        noting = object.__new__(NotingFacts)
        noting.__dict__.update(facts.__dict__, read=set())
        return noting

    def __getattribute__(self, name: str) -> object:
        """Note the field and give it."""
        if name in _FIELDS:
            object.__getattribute__(self, "__dict__")["read"].add(name)
        return object.__getattribute__(self, name)


_FIELDS = frozenset(field.name for field in fields(Facts))
