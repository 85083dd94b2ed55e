"""All metadata but topics, partitions and brokers: one row for each key of Kafka's replay, changed record by record.

The last event of a key decides; a removal leaves the row that it removed. What belongs to a topic is in the topic's shard.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from schemas.entities import ENTITIES
from transforms.clusters import CLUSTER
from transforms.kernel.silver import silver_schema
from transforms.kernel.topics import At, Finding
from transforms.kraft.replay.entities import DELETE, Event

# Rows as a later pass continues from them.
ROWS = pa.schema(
    [
        ("entity", pa.string()),
        ("replay_key", pa.string()),
        ("text", pa.string()),
        ("removed", pa.bool_()),
        ("created", pa.int64()),
        ("offset", pa.int64()),
        ("epoch", pa.int32()),
        ("append_time", pa.int64()),
    ]
)

# Entities whose removal must name an existing row: `AclControlManager`, `ScramControlManager` and, for controllers,
# `ClusterControlManager` (4.4) throw if there is none.
_REMOVED_BY_ID = ("acls", "scram_credentials", "controllers")
_ENTITIES = {entity.name: entity for entity in ENTITIES}
_CONFIGS, _PRODUCER_IDS = "configs", "producer_ids"


@dataclass(slots=True)
class Row:
    """A row: its columns as JSON (None where only removals named its key), its last event, the offset of its first one with columns."""

    text: str | None
    removed: bool
    at: At
    created: int | None


Key = tuple[str, str]
Watch = Callable[[Key, Row | None, Row], None]


@dataclass
class Cold:
    """Rows by entity and the key that Kafka replays by, as a JSON array."""

    rows: dict[Key, Row] = field(default_factory=dict)
    # Called with each record's result for a row, and the row before.
    watch: Watch | None = None
    _configs_of: dict[str, list[Key]] = field(default_factory=lambda: defaultdict(list))

    def apply(self, event: Event, at: At) -> Finding | None:
        """Apply an event; returns its fault, if any."""
        key = (event.entity, json.dumps(event.key))
        known = self.rows.get(key)
        if event.op == DELETE:
            self._set(key, Row(*((None, True, at, None) if known is None else (known.text, True, at, known.created))))
            return _unknown_removal(key, known, at)
        made = Row(json.dumps(event.row), False, at, at.offset)
        if known is not None and known.created is not None:
            made.created = known.created
        self._put(key, event.key, made)
        return _falling(known, made) if event.entity == _PRODUCER_IDS else None

    def _put(self, key: Key, parts: Sequence[object], row: Row) -> None:
        """Take a row; `parts` is what its key replays by. Removing a topic needs its configurations."""
        known = self.rows.get(key)
        self._set(key, row)
        new = row.text is not None and (known is None or known.text is None)
        if new and key[0] == _CONFIGS and parts[0] == "TOPIC":
            self._configs_of[str(parts[1])].append(key)

    def remove_configs_of(self, topic: str, at: At) -> None:
        """What removing a topic removes beside it (`ConfigurationControlManager.deleteTopicConfigs`)."""
        for key in self._configs_of.get(topic, ()):
            self._set(key, Row(self.rows[key].text, True, at, self.rows[key].created))

    def configs_without(self, topics: Container[str]) -> Iterator[tuple[str, Row]]:
        """Keys and rows of the configurations that topics other than these have."""
        for topic, keys in self._configs_of.items():
            if topic not in topics:
                yield from ((key[1], self.rows[key]) for key in keys if not self.rows[key].removed)

    def _set(self, key: Key, row: Row) -> None:
        if self.watch is not None:
            self.watch(key, self.rows.get(key), row)
        self.rows[key] = row

    def tables(self, cluster: str) -> dict[str, pa.Table]:
        """Rows that have not been removed, as silver has them, by entity."""
        rows: dict[str, list[Row]] = {name: [] for name in _ENTITIES if name not in _ELSEWHERE}
        for (entity, _), row in self.rows.items():
            if entity in rows and not row.removed and row.text is not None:
                rows[entity].append(row)
        return {name: _table(cluster, mine, silver_schema(_ENTITIES[name])) for name, mine in rows.items()}

    def kept(self) -> pa.Table:
        """All rows in the order of their keys, those that were removed too: columns ROWS."""
        keys = sorted(self.rows)
        rows = [(*key, row.text, row.removed, row.created, *row.at) for key in keys for row in [self.rows[key]]]
        columns = [*zip(*rows, strict=True)] or [()] * len(ROWS)
        return pa.table([pa.array(each, f.type) for each, f in zip(columns, ROWS, strict=True)], ROWS)

    @staticmethod
    def restored(rows: pa.Table) -> Cold:
        """What `kept` gave."""
        cold = Cold()
        for entity, replayed, text, removed, created, *at in zip(*rows.to_pydict().values(), strict=True):
            parts = json.loads(replayed) if entity == _CONFIGS else ()
            cold._put((entity, replayed), parts, Row(text, removed, At(*at), created))
        return cold


# Tables of others, and the state of the migration, whose every record is a row.
_ELSEWHERE = ("topics", "partitions", "brokers", "migration")


def provenance(at: At, created: int | None) -> dict[str, int | None]:
    """The place in the log, as columns of a silver row."""
    return {
        "kraft_offset": at.offset,
        "kraft_created_offset": created,
        "kraft_epoch": at.epoch,
        "kraft_append_time": at.append_time,
    }


def _table(cluster: str, rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    read = [{CLUSTER: cluster, **provenance(row.at, row.created), **json.loads(row.text or "{}")} for row in rows]
    return pa.table([pa.array([each.get(f.name) for each in read], f.type) for f in schema], schema)


def _unknown_removal(key: Key, known: Row | None, at: At) -> Finding | None:
    entity, replayed = key
    if entity not in _REMOVED_BY_ID or (known is not None and not known.removed):
        return None
    what = "was never made" if known is None else "is removed already"
    return Finding.at(at.offset, "REMOVAL-UNKNOWN", replayed, f"a removal of an id in {entity} that {what}")


def _falling(known: Row | None, made: Row) -> Finding | None:
    """Producer ids that do not rise (`ProducerIdControlManager.replay` throws; ids would be handed out twice)."""
    if known is None or known.text is None or made.text is None:
        return None
    before, following = (json.loads(row.text or "{}")["next_producer_id"] for row in (known, made))
    if following > before:
        return None
    detail = f"next producer id {following} after {before}"
    return Finding.at(made.at.offset, "DUR-15", "producer ids", detail)
