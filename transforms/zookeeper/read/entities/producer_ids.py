"""`/latest_producer_id_block`: the last block of producer ids handed out (`ProducerIdBlockZNode`, S§1.1, S§6)."""

from __future__ import annotations

from collections.abc import Iterator

from transforms.zookeeper.read.reading import (
    MalformedError,
    StateRow,
    ZnodeView,
    finding,
    integer,
    long_text,
    parse_object,
)

BLOCK_WIDTH = 1000
KRAFT_WRITER = -1


def read_producer_block(znode: ZnodeView, _: list[str]) -> Iterator[StateRow]:
    """Yield the block; none when the data is null, as on a new cluster.

    `next_producer_id` has two shapes: a broker's block is used up (block_end + 1), KRaft's is the next (block_start).
    """
    if znode.data_is_null:
        return
    try:
        document = parse_object(znode)
        if document.get("version") != 1:
            raise MalformedError("its version is not 1")
        broker = integer(document, "broker")
        start, end = long_text(document, "block_start"), long_text(document, "block_end")
    except MalformedError as problem:
        yield finding("PRODUCER-BLOCK", znode.path, str(problem))
        return
    yield StateRow(
        "producer_ids",
        {
            "next_producer_id": start if broker == KRAFT_WRITER else end + 1,
            "broker_id": broker,
            "broker_epoch": None,
            "block_start": start,
            "block_end": end,
        },
    )
    if end - start + 1 != BLOCK_WIDTH:
        yield finding("PRODUCER-WIDTH", znode.path, f"the block is {end - start + 1} ids wide")
