"""Znodes to state rows: `ZNODE_COLUMNS` in, `schemas.zookeeper.state.ZNODE_STATE` out.

Partition states and topics are nine znodes in ten of any tree and take a fast way (`hot`); every other znode, and any
batch in which the fast way meets something odd, goes through the readers of `routes`, one znode at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pyarrow as pa

from transforms.zookeeper import hot, routes
from transforms.zookeeper.arrow import STATE_SCHEMA, one_batch
from transforms.zookeeper.facts import Fact, ZnodeView

_TYPED = {"partition_assignments", "partition_states"}


def state_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Map bronze znode batches to state batches; for `DataFrame.mapInArrow(state_batches, ZNODE_STATE)`."""
    for batch in batches:
        yield znodes_to_state(batch)


def znodes_to_state(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the state rows of a batch of znodes (any columns beside `ZNODE_COLUMNS` are ignored).

    Never fails on a znode's content: what can't be read is a row of entity `findings`.
    """
    kinds = hot.classify(batch["path"])
    states, odd_states = hot.partition_states(batch.filter(kinds.states), kinds.state_names.filter(kinds.states))
    topics, odd_topics = hot.topics(batch.filter(kinds.topics))
    rest = (_cold(part) for part in (batch.filter(kinds.others), odd_states, odd_topics))
    return one_batch(pa.concat_tables([states, topics, *rest]))


def _cold(batch: pa.RecordBatch) -> pa.Table:
    rows = [_row(znode, fact) for znode in _views(batch) for fact in routes.read(znode)]
    return pa.Table.from_pylist(rows, schema=STATE_SCHEMA)


def _views(batch: pa.RecordBatch) -> Iterator[ZnodeView]:
    columns = [batch[name].to_pylist() for name in ZnodeView._fields]
    return map(ZnodeView._make, zip(*columns, strict=True))


def _row(znode: ZnodeView, fact: Fact) -> dict[str, object]:
    provenance = {
        "entity": fact.entity,
        "zk_path": znode.path,
        "zk_czxid": znode.czxid,
        "zk_mzxid": znode.mzxid,
        "zk_mtime": znode.mtime,
    }
    if fact.entity in _TYPED:
        return {**fact.row, **provenance}
    return {"row": json.dumps(fact.row, ensure_ascii=False, separators=(",", ":")), **provenance}
