"""Damaged files: never a crash, never a hang, and nothing taken for good that failed its checksum."""

from __future__ import annotations

import gzip
import io
import json
import random
import time
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.sources.zookeeper.decompress import gunzip, unsnap
from tests.captures import capture
from tests.zookeeper import journal
from tests.zookeeper.journal import Log, Node
from tests.zookeeper.malformed import HOSTILE_VALUES, one_of_each, with_hostile_values
from tests.zookeeper.trees import REDACTOR, state_rows, znode
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.read.reading import MAX_DETAIL, MOST_REPEATED, java_double, whole_characters
from transforms.zookeeper.read.state import znodes_to_state
from transforms.zookeeper.storage.replay import Replay
from transforms.zookeeper.storage.snapshot import SnapshotError, open_snapshot, owned_paths, read_batches
from transforms.zookeeper.storage.transactions import (
    DamagedError,
    OpCode,
    TransactionLogError,
    ZkTransaction,
    read_transactions,
)

SNAPSHOTS, LOGS, COMPRESSED = 5000, 5000, 2000


def mutate(data: bytes, rng: random.Random, start: int = 0) -> bytes:
    """Change, cut, double, drop or insert something at or after `start`."""
    result = bytearray(data)
    at = rng.randrange(start, len(result))
    span = rng.choice((1, 4, 8, 40))
    change: list[Callable[[], object]] = [
        lambda: result.__setitem__(at, result[at] ^ (1 << rng.randrange(8))),
        lambda: result.__setitem__(slice(at, at + 4), journal.i32(rng.choice((-1, -2, 0, 1, 2**31 - 1, -(2**31))))),
        lambda: result.__delitem__(slice(at, at + span)),
        lambda: result.__setitem__(slice(at, at), rng.randbytes(span)),
        lambda: result.__setitem__(slice(at, at), result[at : at + span]),
        lambda: result.__delitem__(slice(at, None)),
        lambda: result.__setitem__(slice(at, at + span), bytes(span)),
    ]
    rng.choice(change)()
    return bytes(result)


def a_snapshot() -> bytes:
    nodes = [Node("/", cversion=3), Node("/brokers", None, cversion=1), Node("/brokers/topics", None, cversion=1)]
    nodes += [Node("/brokers/topics/t", b'{"version":3,"partitions":{"0":[1]},"topic_id":"_DkeHZlsQVeYPyDZxsC9Mg"}')]
    nodes += [Node("/config", None), Node("/config/users", None), Node("/config/users/u", b'{"version":1,"config":{}}')]
    nodes += [Node("/controller", b"{}", owner=77)]
    return journal.snapshot(nodes, digest=True, last_zxid=True)


def a_log() -> Log:
    log = Log(digest=True)
    log.add(OpCode.CREATE_SESSION, journal.i32(10))
    log.add(OpCode.CREATE, journal.create("/config/users/v", b"{}", cversion=2))
    log.add(OpCode.SET_DATA, journal.set_data("/config/users/u", b"[]", 1))
    log.add(OpCode.MULTI, journal.multi((OpCode.CREATE, journal.create("/m")), (OpCode.DELETE, journal.string("/m"))))
    log.add(OpCode.SET_ACL, journal.set_acl("/config", [(1, "digest", "a:b")], 2))
    log.add(OpCode.CREATE_TTL, journal.create_ttl("/ttl", 5))
    log.add(OpCode.ERROR, journal.i32(-110))
    log.add(OpCode.CLOSE_SESSION, journal.paths("/controller"))
    return log


def test_a_damaged_snapshot_is_refused() -> None:
    rng = random.Random(1)  # noqa: S311
    good = a_snapshot()
    real = (capture("3.9.1", "9-caught-up") / "zookeeper" / "version-2" / "snapshot.594").read_bytes()
    refused = 0
    for number in range(SNAPSHOTS):
        source = real if number % 50 == 0 else good
        damaged = mutate(source, rng)
        if damaged == source:
            continue
        try:
            accepted = open_snapshot(damaged)
        except SnapshotError:
            refused += 1
            continue
        # A file cut exactly behind a seal lacks its digest alone: the sealed tree is whole.
        assert source.startswith(damaged)
        assert len(accepted.positions) == len(open_snapshot(source).positions)
    assert refused > SNAPSHOTS * 0.9


@pytest.mark.parametrize("form", ["gz", "snappy"])
def test_a_damaged_compressed_snapshot_is_refused_or_the_same(form: str) -> None:
    rng = random.Random(5)  # noqa: S311
    good = a_snapshot()
    source = gzip.compress(good) if form == "gz" else journal.snappy(good, block=64)
    decompress = gunzip if form == "gz" else unsnap
    refused = 0
    for _ in range(COMPRESSED):
        damaged, out = mutate(source, rng), io.BytesIO()
        try:
            decompress(io.BytesIO(damaged), len(damaged), out)
            open_snapshot(out.getvalue())
        except SnapshotError:
            refused += 1
            continue
        # What a head says of itself is not the tree.
        assert good.startswith(out.getvalue())
    assert refused > COMPRESSED // 2


def resealed(content: bytes) -> bytes:
    """The tree with a checksum that holds over whatever is in it: only the structure can be wrong."""
    return content + journal.i64(zlib.adler32(content)) + journal.string("/")


def test_a_nonsense_tree_with_a_good_checksum_is_refused_or_read_to_its_end() -> None:
    rng = random.Random(2)  # noqa: S311
    content = a_snapshot()[: -3 * 13 - 20 - 8]
    assert open_snapshot(resealed(content))
    read = 0
    for _ in range(1000):
        try:
            snapshot = open_snapshot(resealed(mutate(content, rng)))
        except SnapshotError:
            continue
        owned_paths(snapshot)
        rows = sum(znodes_to_state(batch).num_rows for batch in read_batches(snapshot, REDACTOR))
        read += rows > 0
    assert read > 50


def transactions(data: bytes) -> list[ZkTransaction]:
    found: list[ZkTransaction] = []
    try:
        for transaction in read_transactions(data):
            found.append(transaction)
    except (DamagedError, TransactionLogError):
        return found
    return found


def test_a_damaged_log_gives_its_intact_beginning() -> None:
    rng = random.Random(3)  # noqa: S311
    good = a_log().padded(200)
    whole = transactions(good)
    assert len(whole) == 8
    cut = 0
    for _ in range(LOGS):
        found = transactions(mutate(good, rng, start=16))
        assert found == whole[: len(found)]
        cut += len(found) < len(whole)
    assert cut > LOGS // 4


def test_nonsense_transactions_with_good_checksums_are_refused_or_replayed() -> None:
    rng = random.Random(4)  # noqa: S311
    snapshot = open_snapshot(a_snapshot())
    bodies = [bytes(body) for body in split(a_log().content)]
    replayed = 0
    for _ in range(400):
        changed = [mutate(body, rng) if rng.random() < 0.3 else body for body in bodies]
        content = journal.Log().content
        for body in changed:
            content += journal.i64(zlib.adler32(body)) + journal.buffer(body) + b"B"
        found = transactions(content)
        batches = Replay(found, REDACTOR).run(read_batches(snapshot, REDACTOR), owned_paths(snapshot))
        replayed += sum(znodes_to_state(batch).num_rows for batch in batches) > 0
    assert replayed > 200


def split(content: bytes) -> list[bytes]:
    bodies, at = [], 16
    while at < len(content):
        length = int.from_bytes(content[at + 8 : at + 12], "big")
        bodies.append(content[at + 12 : at + 12 + length])
        at += 12 + length + 1
    return bodies


@pytest.mark.parametrize("value", HOSTILE_VALUES, ids=[value[:12] for value in HOSTILE_VALUES])
def test_no_value_of_any_znodes_json_stops_the_reader_or_keeps_it(value: str) -> None:
    """Half characters, digits, repeated keys, depth, megabytes: in the place of each value of each kind of znode."""
    texts = [(path, text) for path, good in one_of_each().items() for text in with_hostile_values(good, value)]
    assert len(texts) > 120
    began = time.process_time()
    # A batch of its own for each kind, as one odd state sends its whole batch the careful way.
    for path, text in texts:
        rows = state_rows([znode_batch([znode(path, text.encode())])])
        assert all(len(row["row"]["detail"]) <= MAX_DETAIL for row in rows if row["entity"] == "findings")
    # Megabytes take their time by their length, not by its square.
    assert time.process_time() - began < 60


def test_keys_that_repeat_by_the_thousand_are_counted() -> None:
    entries = ",".join(f'"k{index % 20_000}":"1"' for index in range(40_000))
    began = time.process_time()
    rows = state_rows([znode_batch([znode("/config/topics/t", f'{{"version":1,"config":{{{entries}}}}}'.encode())])])
    assert time.process_time() - began < 10
    details = [row["row"]["detail"] for row in rows if row["entity"] == "findings"]
    assert len(details) == MOST_REPEATED + 1
    assert details[-1] == "19,980 more keys appear twice"


@pytest.mark.parametrize("size", [20_000, 1_000_000])
def test_digits_without_end_are_no_number_and_take_no_time(size: int) -> None:
    began = time.process_time()
    assert java_double("9" * size + "x") is None
    assert time.process_time() - began < 0.1
    assert java_double("9" * 300) == float("9" * 300)


@given(st.text(alphabet='\\\\ud8dDcC0aF"{}[]:,9eE.x', max_size=60))
def test_whatever_is_escaped_the_text_that_is_read_can_be_written(text: str) -> None:
    """What the cleaned text is parsed to has no half characters, and nothing else of it has changed."""
    cleaned = whole_characters(text)
    try:
        document = json.loads(f'"{cleaned}"')
    except ValueError:
        return
    assert document.encode("utf-8").decode() == document
    assert json.loads(f'"{text}"').encode("utf-8", "replace") == document.encode()


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(one_of_each())),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(st.characters(), max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=4), inner, max_size=3)
        ),
        max_leaves=8,
    ),
)
def test_any_json_in_any_znode_is_facts_or_findings(path: str, value: Any) -> None:
    good = one_of_each()[path]
    document = json.loads(good) if good.startswith("{") else {}
    for key in (*document, "more"):
        text = json.dumps({**document, key: value})
        assert len(state_rows([znode_batch([znode(path, text.encode())])])) < 50
