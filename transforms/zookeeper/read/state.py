"""Znodes of one cluster to state rows: `ZNODE_COLUMNS` in, `schemas.zookeeper.state.ZNODE_STATE` out, each with `tree`.

Partition states and topics are nine in ten znodes of any tree and take a fast way (`bulk`); every other znode, and any
batch in which the fast way meets something odd, goes through the readers of `routes`, one znode at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from schemas.zookeeper.state import ZNODE_STATE
from schemas.zookeeper.trees import TREE, TREE_COLUMN
from transforms.frames import columns_of, from_arrow
from transforms.zookeeper.read import bulk, routes
from transforms.zookeeper.read.arrow import STATE_SCHEMA, one_batch
from transforms.zookeeper.read.reading import StateRow, ZnodeView

STATE: pl.Schema = columns_of([TREE_COLUMN, *ZNODE_STATE.fields])
_TYPED = {"partition_assignments", "partition_states"}
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def cluster_state(batches: Iterable[pa.RecordBatch]) -> pl.DataFrame:
    """State rows (STATE) of a cluster's znodes: batches of bronze zk_znodes with `tree` and `ZNODE_COLUMNS`."""
    return from_arrow(state_batches(batches), STATE)


def state_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same in Arrow's form, batch by batch; for who looks at znodes in other ways at the same time."""
    for batch in batches:
        for tree, znodes in _by_tree(batch):
            state = znodes_to_state(znodes)
            trees = pa.repeat(pa.scalar(tree, pa.string()), state.num_rows)
            yield pa.RecordBatch.from_arrays([trees, *state.columns], names=[TREE, *state.schema.names])


def _by_tree(batch: pa.RecordBatch) -> Iterator[tuple[str | None, pa.RecordBatch]]:
    """Split a batch by its trees, null being one of them."""
    trees = batch[TREE]
    distinct = pc.unique(trees).to_pylist()
    for tree in distinct:
        yield tree, batch if len(distinct) == 1 else batch.filter(_is(trees, tree))


def _is(trees: pa.Array, tree: str | None) -> pa.Array:
    return pc.is_null(trees) if tree is None else pc.fill_null(pc.equal(trees, tree), False)


def znodes_to_state(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the state rows of a batch of znodes (any columns beside `ZNODE_COLUMNS` are ignored).

    Never fails on a znode's content: unreadable content is a row of entity `findings`.
    """
    parts = bulk.sort_out(batch.select(ZnodeView._fields))
    states, odd_states = bulk.partition_states(parts.states, parts.state_names)
    topics, odd_topics = bulk.topics(parts.topics)
    rest = (_cold(part) for part in (parts.others, odd_states, odd_topics))
    return one_batch(pa.concat_tables([states, topics, *rest]))


def _cold(batch: pa.RecordBatch) -> pa.Table:
    found = [(znode, fact) for znode in _views(batch) for fact in routes.read(znode)]
    plain = [pair for pair in found if pair[1].entity not in _TYPED]
    typed = [_typed_row(znode, fact) for znode, fact in found if fact.entity in _TYPED]
    return pa.concat_tables([_plain_table(plain), pa.Table.from_pylist(typed, schema=STATE_SCHEMA)])


def _plain_table(found: list[tuple[ZnodeView, StateRow]]) -> pa.Table:
    columns = {
        "entity": [fact.entity for _, fact in found],
        "row": [_ENCODE(fact.row) for _, fact in found],
        "zk_path": [znode.path for znode, _ in found],
        "zk_czxid": [znode.czxid for znode, _ in found],
        "zk_mzxid": [znode.mzxid for znode, _ in found],
        "zk_mtime": [znode.mtime for znode, _ in found],
    }
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(len(found), field.type)
        for field in STATE_SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=STATE_SCHEMA)


def _views(batch: pa.RecordBatch) -> Iterator[ZnodeView]:
    columns = [batch[name].to_pylist() for name in ZnodeView._fields]
    return map(ZnodeView._make, zip(*columns, strict=True))


def _typed_row(znode: ZnodeView, fact: StateRow) -> dict[str, object]:
    return {
        **fact.row,
        "entity": fact.entity,
        "zk_path": znode.path,
        "zk_czxid": znode.czxid,
        "zk_mzxid": znode.mzxid,
        "zk_mtime": znode.mtime,
    }
