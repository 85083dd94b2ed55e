"""Bytes that earlier runs have kept, as workers look at them: rows of silver `examined` on their way to a pass, and their digests.

Imported by Spark's workers, which need no more than Arrow for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from jobs.runtime.workers import Batches
from transforms.clusters import CLUSTER
from transforms.examination.made import FOLD, INDEX, MEMORY
from transforms.units import UnitKind, feed_row

# A cluster, the run that kept its bytes, and their kind.
Piece: TypeAlias = tuple[str, str, str]
DIGESTS = StructType(
    [
        StructField(CLUSTER, StringType()),
        StructField("run_id", StringType()),
        StructField("kind", StringType()),
        StructField("part", LongType()),
        StructField("digest", StringType()),
    ]
)
_KINDS = {FOLD: UnitKind.FOLD, MEMORY: UnitKind.MEMORY, INDEX: UnitKind.INDEX}


def placed(places: Mapping[Piece, int]) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """What makes rows of `schemas.examined.FEED` of these pieces; `places` has that of the first piece of each."""

    def place(batches: Batches) -> Iterator[pa.RecordBatch]:
        for piece, part, payload in _asked(batches, places):
            cluster, _, kind = piece
            yield feed_row(cluster, _KINDS[kind], places[piece] + part, payload)

    return place


def digested(places: Mapping[Piece, int]) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """What makes rows of DIGESTS of these pieces: the SHA-256 of the bytes of each."""

    def digest(batches: Batches) -> Iterator[pa.RecordBatch]:
        for (cluster, run_id, kind), part, payload in _asked(batches, places):
            values = (cluster, run_id, kind, part, hashlib.sha256(payload).hexdigest())
            yield pa.RecordBatch.from_pylist([dict(zip(DIGESTS.names, values, strict=True))])

    return digest


def _asked(batches: Batches, places: Mapping[Piece, int]) -> Iterator[tuple[Piece, int, pa.Buffer]]:
    """Of such rows those that are wanted: which they are, the number of the piece, and its bytes where Arrow has them."""
    for batch in batches:
        columns = [batch[name].to_pylist() for name in (CLUSTER, "run_id", "kind", "part")]
        for row, (cluster, run_id, kind, part) in enumerate(zip(*columns, strict=True)):
            if (cluster, run_id, kind) in places:
                yield (cluster, run_id, kind), part, batch["payload"][row].as_buffer()
