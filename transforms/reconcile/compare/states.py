"""Two KRaft states held against each other: one cluster at two times, or a cluster and its twin.

The engine is the one that compares ZooKeeper with KRaft (`transforms.reconcile.compare.difference`). What moves by itself
is left out by rule, and of a twin what can't be the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.entities import MIRRORED, Entity
from schemas.entities.delegation_tokens import DELEGATION_TOKENS
from schemas.entities.features import FEATURES
from schemas.entities.partitions import PARTITIONS
from schemas.entities.producer_ids import PRODUCER_IDS
from schemas.entities.topics import TOPICS
from transforms.clusters import CLUSTER
from transforms.reconcile.compare.canonical import canonical
from transforms.reconcile.compare.classify import report_key
from transforms.reconcile.compare.difference import Ends, differing_rows
from transforms.reconcile.compare.differing import same
from transforms.unions import union_all

# The configuration of a cluster is asked for: who leads and who is in sync is its weather, and has tables of its own.
MOVING = frozenset({"leader", "isr", "leader_epoch", "partition_epoch", "leader_recovery_state"})
_REPLICAS = ("replicas", "adding_replicas", "removing_replicas")
_TOGETHER = "compared"
_NO_TAIL = 2**62


@dataclass(frozen=True)
class Rules:
    """What is compared. `twin` is another cluster, with ids of its own; `brokers` are its ids by those of the first."""

    twin: bool = False
    brokers: Mapping[int, int] = field(default_factory=dict)

    @property
    def entities(self) -> tuple[Entity, ...]:
        """The entities, each with the columns that are compared."""
        found = [entity for entity in MIRRORED if entity not in self._own]
        return (*(self._narrowed(entity) for entity in found), replace(FEATURES, compared=("level",)))

    @property
    def _own(self) -> tuple[Entity, ...]:
        return (PRODUCER_IDS, DELEGATION_TOKENS) if self.twin else (PRODUCER_IDS,)

    def _narrowed(self, entity: Entity) -> Entity:
        if entity is PARTITIONS:
            return replace(entity, compared=tuple(name for name in entity.compared if name not in MOVING))
        if entity is TOPICS and self.twin:
            return replace(entity, compared=())
        return entity

    @property
    def left_out(self) -> str:
        """What is not compared, in a sentence."""
        always = "leaders, in-sync replicas, epochs and producer ids, which move by themselves"
        return f"Left out: {always}{'; topic ids and delegation tokens, which are its own' if self.twin else ''}."


@dataclass(frozen=True)
class StateDifference:
    """One differing value, or a row that one state lacks (`column` None). Values are JSON-ready, `key` as in report.json."""

    entity: str
    key: dict[str, Any]
    column: str | None
    left: Any
    right: Any


def differing_states(left: Mapping[str, DataFrame], right: Mapping[str, DataFrame], rules: Rules) -> DataFrame:
    """Rows of `differing_rows` in which `zk_row` is the left state's and `kraft_row` the right one's.

    `left` and `right` are silver rows of KRaft by entity, of one cluster each.
    """
    sides = [(left, True), (right, False)]
    both = union_all(
        [
            canonical(entity, _mapped(entity, rows[entity.name], rules.brokers) if first else rows[entity.name])
            .withColumn("zk", F.lit(first))
            .withColumn(CLUSTER, F.lit(_TOGETHER))
            for rows, first in sides
            for entity in rules.entities
        ]
    )
    nothing = "entity string, key string, row string, removed boolean, from_offset bigint, from_append_time bigint"
    versions = both.sparkSession.createDataFrame([], f"{CLUSTER} string, {nothing}, created_offset bigint")
    found = differing_rows(both, versions, {_TOGETHER: Ends(_NO_TAIL)})
    return found.where("NOT (zk_row <=> kraft_row)").select("entity", "key", "zk_row", "kraft_row", "comparable")


def _mapped(entity: Entity, rows: DataFrame, brokers: Mapping[int, int]) -> DataFrame:
    """The rows with the twin's broker ids; one that the map does not name stays as it is."""
    if not brokers:
        return rows
    by_text = F.from_json(F.lit(json.dumps({str(ours): theirs for ours, theirs in brokers.items()})), "map<string,int>")

    def twin(broker: Column) -> Column:
        return F.coalesce(by_text[broker.cast("string")], broker)

    if entity.name == PARTITIONS.name:
        return rows.withColumns({name: F.transform(name, twin) for name in _REPLICAS})
    if entity.name == "configs":
        of_broker = F.col("resource_type") == "BROKER"
        renamed = F.coalesce(by_text[F.col("resource_name")].cast("string"), F.col("resource_name"))
        return rows.withColumn("resource_name", F.when(of_broker, renamed).otherwise(F.col("resource_name")))
    return rows


def state_differences(rows: Iterable[Mapping[str, Any]], rules: Rules) -> Iterator[StateDifference]:
    """Collected `differing_states` as single differences; a value that only differs within its tolerance is none."""
    entities = {entity.name: entity for entity in rules.entities}
    for row in rows:
        entity = entities[row["entity"]]
        key = report_key(entity.name, json.loads(row["key"]))
        left, right = _load(row["zk_row"]), _load(row["kraft_row"])
        if left is None or right is None:
            yield StateDifference(entity.name, key, None, _shown(entity, left), _shown(entity, right))
            continue
        for name in entity.compared:
            if not same(entity, name, left.get(name), right.get(name)):
                yield StateDifference(entity.name, key, name, left.get(name), right.get(name))


def _load(text: str | None) -> dict[str, Any] | None:
    return None if text is None else dict(json.loads(text))


def _shown(entity: Entity, row: dict[str, Any] | None) -> Any:
    """A row that one state has alone: its value where there is one column, else all; that it is there where there is none."""
    if row is None:
        return None
    if len(entity.compared) == 1:
        return row[entity.compared[0]]
    return row or "there"
