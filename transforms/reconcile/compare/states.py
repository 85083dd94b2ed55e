"""Two KRaft states compared: one cluster at two times, or a cluster and its twin.

The engine is the one that compares ZooKeeper with KRaft (`transforms.reconcile.compare.difference`). Columns that change during normal
operation are left out, and for a twin those that can't be the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from schemas.entities import MIRRORED, Entity
from schemas.entities.delegation_tokens import DELEGATION_TOKENS
from schemas.entities.features import FEATURES
from schemas.entities.partitions import PARTITIONS
from schemas.entities.producer_ids import PRODUCER_IDS
from schemas.entities.topics import TOPICS
from schemas.replayed import ROW_VERSION_COLUMNS
from transforms.frames import columns_of
from transforms.reconcile.compare.classify import report_key
from transforms.reconcile.compare.difference import Ends, Sides, differing_rows
from transforms.reconcile.compare.differing import same

# This compares a cluster's configuration: leaders and in-sync replicas change all the time, and have their own tables.
MOVING = frozenset({"leader", "isr", "leader_epoch", "partition_epoch", "leader_recovery_state"})
_REPLICAS = ("replicas", "adding_replicas", "removing_replicas")
_NO_VERSIONS = pl.DataFrame(schema=columns_of(ROW_VERSION_COLUMNS, "cluster"))
_NO_TAIL = Ends(2**62)


@dataclass(frozen=True)
class ComparisonRules:
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


def differing_states(
    left: Mapping[str, pl.DataFrame], right: Mapping[str, pl.DataFrame], rules: ComparisonRules
) -> pl.DataFrame:
    """Rows of `differing_rows`, by entity and key, in which `zk_row` is the left state's and `kraft_row` the right one's.

    `left` and `right` are silver rows of KRaft by entity, of one cluster each.
    """
    both = [
        Sides(entity, _mapped(entity, left[entity.name], rules.brokers), right[entity.name])
        for entity in rules.entities
    ]
    found = differing_rows(both, _NO_VERSIONS, _NO_TAIL).filter(pl.col("zk_row").ne_missing(pl.col("kraft_row")))
    return found.select("entity", "key", "zk_row", "kraft_row", "comparable").sort("entity", "key")


def _mapped(entity: Entity, rows: pl.DataFrame, brokers: Mapping[int, int]) -> pl.DataFrame:
    """The rows with the twin's broker ids; an id that is not in the map stays as it is."""
    if not brokers:
        return rows
    if entity.name == PARTITIONS.name:
        return rows.with_columns(pl.col(_REPLICAS).list.eval(pl.element().replace(brokers)))
    if entity.name == "configs":
        name = pl.col("resource_name")
        twin = name.replace({str(ours): str(theirs) for ours, theirs in brokers.items()})
        return rows.with_columns(pl.when(pl.col("resource_type") == "BROKER").then(twin).otherwise(name))
    return rows


def state_differences(rows: Iterable[Mapping[str, Any]], rules: ComparisonRules) -> Iterator[StateDifference]:
    """Rows of `differing_states` as single differences; a value that only differs within its tolerance is none."""
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
