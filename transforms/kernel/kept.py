"""A state as bytes. A later pass that continues from it gives the same results as one that has read all earlier records.

The bytes are one Arrow stream of rows (part, rows), whose schema names the format, the shard and the offset; each part is an
Arrow stream of its own, compressed. Numbers of texts are places in the parts `ids`, `names` and `directories`.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.replayed import FORMAT
from transforms.kernel.brokers import Brokers
from transforms.kernel.cold import Cold
from transforms.kernel.fold import Fold
from transforms.kernel.layout import FIRST_SLOT, NAME, NAMESAKE, NULL, Longs
from transforms.kernel.partitions import one_chunk
from transforms.kernel.shards import Shard
from transforms.kernel.texts import Texts
from transforms.kernel.topics import Finding

_HEADER = "kernel"
_FINDING = pa.schema([(name, pa.string()) for name in ("code", "subject", "detail", "place")])


class NotContinuedError(ValueError):
    """Kept bytes that this pass can't continue from; the message is the reason."""


def to_bytes(fold: Fold, offset: int) -> bytes:
    """The state below `offset`: the same bytes for the same state, regardless of its batches and passes."""
    topics = fold.topics
    ids, numbers = _in_order(topics.ids)
    names, name_numbers = _in_order(topics.names)
    rows = topics.longs[: len(topics.ids)].copy()
    rows[:, FIRST_SLOT] = NULL
    rows[:, NAME] = name_numbers[rows[:, NAME]]
    rows[:, NAMESAKE] = numbers[rows[:, NAMESAKE]]
    newest = numbers[topics.newest[: len(topics.names)]]
    partitions, directories = fold.partitions.kept(numbers)
    found = sorted(fold.found, key=lambda finding: (finding.place, finding.code, finding.subject))
    parts = {
        "ids": _texts(ids),
        "names": _texts(names),
        "directories": _texts(directories),
        "topics": pa.table({str(column): _placed(rows[:, column], numbers) for column in range(rows.shape[1])}),
        "newest": pa.table({"topic": _placed(newest, name_numbers)}),
        "partitions": partitions,
        "rows": fold.cold.kept(),
        "brokers": fold.brokers.kept(),
        "findings": pa.Table.from_pylist([vars(finding) for finding in found], _FINDING),
        "clears": pa.table({"offset": pa.array(fold.clears, pa.int64())}),
    }
    header = {"format": FORMAT, "shard": fold.shard.number, "shards": fold.shard.of, "offset": offset}
    part_names, streams = [*parts], [_stream(part) for part in parts.values()]
    schema = pa.schema([("part", pa.string()), ("rows", pa.large_binary())], {_HEADER: json.dumps(header)})
    return _stream(pa.table([part_names, streams], schema), compression=None)


def _in_order(texts: Texts) -> tuple[pa.StringArray, Longs]:
    """Texts in order, and the place of each number among them; -1 for the number -1, which is the last."""
    order = pc.sort_indices(texts.all()).to_numpy().astype(np.int64)
    places = np.full(len(order) + 1, NULL, np.int64)
    places[order] = np.arange(len(order))
    return texts.all().take(pa.array(order)), places


def _placed(values: Longs, places: Longs) -> Longs:
    """Values by number as values by place."""
    placed = np.empty(len(values), np.int64)
    placed[places[: len(values)]] = values
    return placed


def from_bytes(kept: bytes, cluster: str, shard: Shard) -> tuple[Fold, int]:
    """The state that `to_bytes` kept of this shard, and the offset that it continues from.

    Raises NotContinuedError for other bytes, another format and another shard.
    """
    try:
        outer = pa.ipc.open_stream(kept).read_all()
        header = json.loads(outer.schema.metadata[_HEADER.encode()])
        parts = dict(zip(outer["part"].to_pylist(), outer["rows"].to_pylist(), strict=True))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise NotContinuedError(f"these bytes are not a kept state: {type(error).__name__}") from error
    if header["format"] != FORMAT:
        raise NotContinuedError(f"format {header['format']} instead of {FORMAT}")
    if (header["shard"], header["shards"]) != (shard.number, shard.of):
        raise NotContinuedError(
            f"shard {header['shard']} of {header['shards']} instead of {shard.number} of {shard.of}"
        )
    try:
        tables = {name: pa.ipc.open_stream(rows).read_all() for name, rows in parts.items()}
        return _restored(tables, cluster, shard), header["offset"]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise NotContinuedError(f"a part of the kept state can't be read: {type(error).__name__}") from error


def _restored(tables: dict[str, pa.Table], cluster: str, shard: Shard) -> Fold:
    fold = Fold(cluster, shard)
    topics, partitions = fold.topics, fold.partitions
    for texts, part in ((topics.ids, "ids"), (topics.names, "names")):
        texts.numbers(one_chunk(tables[part]["text"]))
    rows = np.stack([column.to_numpy() for column in tables["topics"].itercolumns()], axis=1)
    topics.restore(rows, tables["newest"]["topic"].to_numpy())
    partitions.restore(tables["partitions"], one_chunk(tables["directories"]["text"]))
    fold.cold = Cold.restored(tables["rows"])
    fold.brokers = Brokers.restored(tables["brokers"])
    fold.found = [Finding(**row) for row in tables["findings"].to_pylist()]
    fold.clears = tables["clears"]["offset"].to_pylist()
    return fold


def _texts(texts: pa.StringArray) -> pa.Table:
    return pa.table({"text": texts})


def _stream(rows: pa.Table, compression: str | None = "zstd") -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())
