"""Four thousand damaged segments: nothing crashes or hangs, every byte is accounted for, both decoders agree.

In half of the cases the CRC is made right again after the damage, so that it reaches the records.
"""

# ruff: noqa: S311 - reproducible damage, not cryptography

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.kraft.dumps import log_folder
from transforms.kraft.decode.decode_pass import Continuation, DecodePass
from transforms.kraft.decode.framing import BatchHeader, frames
from transforms.kraft.decode.masking import Masking
from transforms.kraft.decode.rows import RECORD_SCHEMA, Origin
from transforms.kraft.decode.scan import _header_chunks, begins_with, scan_segment
from transforms.kraft.decode.segments import decode_by_declarations, decode_checkpoint, decode_segment
from transforms.kraft.kernel.fast import decode_fast, scan_fast
from transforms.secrets import Fingerprinter

MUTATIONS = 4_000
CHUNKS = 4
MASKING: Masking = Fingerprinter(b"key")
LOG = "00000000000000000000.log"


def corpus() -> list[bytes]:
    """Pieces of real logs, cut at batches, about a kilobyte each, from three Kafka versions."""
    pieces = []
    for version in ("3.5.2", "3.6.2", "3.9.1"):
        data = (log_folder(version, "8-zookeeper-behind", 3001) / LOG).read_bytes()
        starts = [frame.position for frame in frames(data)] + [len(data)]
        begin = 0
        for start in starts:
            if start - begin >= 1000:
                if start - begin < 3000:
                    pieces.append(data[begin:start])
                begin = start
    return pieces


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Flip, cut, insert, repeat or blank bytes at random places, one to three times."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed) + 1)
        size = rng.choice((1, 1, 2, 4, 8, 61, 200))
        kind = rng.randrange(6)
        if kind <= 1 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del changed[at : at + size]
        elif kind == 3:
            changed[at:at] = rng.randbytes(size)
        elif kind == 4:
            changed[at : at + size] = b"\0" * len(changed[at : at + size])
        else:
            changed[at:at] = changed[max(0, at - size) : at]
    return bytes(changed)


def with_right_crcs(data: bytes) -> bytes:
    """Make the CRC of everything that is framed as a batch right."""
    fixed = bytearray(data)
    for frame in frames(data):
        if isinstance(frame, BatchHeader):
            crc = google_crc32c.value(data[frame.position + 21 : frame.position + frame.size])
            fixed[frame.position + 17 : frame.position + 21] = crc.to_bytes(4, "big")
    return bytes(fixed)


def table(batches: Any) -> pa.Table:
    return pa.Table.from_batches(list(batches), RECORD_SCHEMA).combine_chunks()


def decoding(data: bytes) -> DecodePass:
    return DecodePass(data, Origin(1, "a.log"), MASKING, Continuation())


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutated_segments(chunk: int) -> None:
    rng = random.Random(chunk)
    pieces = corpus()
    assert len(pieces) > 20
    damaged = 0
    for number in range(MUTATIONS // CHUNKS):
        data = mutate(rng.choice(pieces), rng)
        data = with_right_crcs(data) if number % 2 else data
        by_declarations = table(decode_by_declarations(decoding(data)))
        assert (pc.sum(by_declarations["length"]).as_py() or 0) == len(data)
        assert table(decode_fast(decoding(data), 1000)).equals(by_declarations)
        damaged += pc.any(pc.is_valid(by_declarations["problem"])).as_py() is True
    # Nearly every mutation must be noticed; the rest hit values that nothing in the log contradicts.
    assert damaged > MUTATIONS // CHUNKS * 0.75


def test_ranges_of_mutated_segments_read_like_the_whole() -> None:
    rng = random.Random(99)
    for _ in range(300):
        data = mutate(b"".join(rng.choices(corpus_cache, k=3)), rng)
        scan = scan_segment(data, split_bytes=rng.choice((1, 500, 1500)))
        slow = np.concatenate(list(_header_chunks(data)), axis=1)
        assert np.array_equal(np.concatenate(list(scan_fast(data)), axis=1), slow)
        assert [piece.start for piece in scan.ranges[1:]] == [piece.end for piece in scan.ranges[:-1]]
        assert not data or (scan.ranges[0].start, scan.ranges[-1].end) == (0, len(data))
        parts = [
            row
            for piece in scan.ranges
            for batch in decode_segment(data[piece.start : piece.end], Origin(1, "a.log"), MASKING, piece.continuation)
            for row in batch.to_pylist()
        ]
        whole = table(decode_by_declarations(decoding(data))).to_pylist()
        assert sum(row["length"] for row in parts) == len(data)
        good = [row for row in whole if row["problem"] is None]
        assert [row for row in parts if row["problem"] is None] == good


corpus_cache = corpus()


def test_mutated_snapshots_are_never_complete_without_footer() -> None:
    rng = random.Random(5)
    folder = log_folder("3.9.1", "8-zookeeper-behind", 3001)
    data = next(folder.glob("*.checkpoint")).read_bytes()
    for _ in range(60):
        cut = data[: rng.randrange(len(data))]
        rows = [row for batch in decode_checkpoint(cut, Origin(1, "c", 488), MASKING) for row in batch.to_pylist()]
        assert sum(row["length"] for row in rows) == len(cut)
        assert rows[-1]["problem"] == "incomplete checkpoint: the footer is missing"


@pytest.mark.parametrize("base", [-(1 << 63), -1, (1 << 63) - 1])
def test_absurd_offsets(base: int) -> None:
    data = with_right_crcs(base.to_bytes(8, "big", signed=True) + corpus_cache[0][8:])
    rows = table(decode_by_declarations(decoding(data)))
    assert pc.sum(rows["length"]).as_py() == len(data)
    assert table(decode_fast(decoding(data), 1000)).equals(rows)
    assert scan_segment(data).first_offset == base
    assert (
        np.concatenate(list(scan_fast(data)), axis=1).tolist() == np.concatenate(list(_header_chunks(data)), 1).tolist()
    )


@pytest.mark.parametrize("bit", [0, 1, 8, 30, 40])
def test_a_batch_with_a_damaged_base_offset_is_read_at_its_place(bit: int) -> None:
    """The CRC does not cover the base offset; the batches around leave this one place. One line says it, and no other batch is lost."""
    log = (log_folder("3.9.1", "8-zookeeper-behind", 3001) / LOG).read_bytes()
    batches = [frame for frame in frames(log) if isinstance(frame, BatchHeader)]
    data, second = log[: batches[8].position], batches[1]
    wrong = second.base_offset ^ 1 << bit
    damaged = data[: second.position] + wrong.to_bytes(8, "big") + data[second.position + 8 :]
    whole, rows = (table(decode_by_declarations(decoding(each))).to_pylist() for each in (data, damaged))
    assert [row["problem"] for row in rows if row["problem"]] == [
        f"baseOffset {wrong} is damaged: the batch stands where offset {second.base_offset} belongs"
    ]
    assert [row for row in rows if row["problem"] is None] == [row for row in whole if row["problem"] is None]
    assert table(decode_fast(decoding(damaged), 1000)).to_pylist() == rows
    sound, scan = scan_segment(data, split_bytes=1), scan_segment(damaged, split_bytes=1)
    assert not scan.in_order
    assert (scan.ranges[-1], scan.next_offset) == (sound.ranges[-1], sound.next_offset)


@pytest.mark.parametrize("bit", [0, 30, 40])
def test_a_segments_first_batch_with_a_damaged_base_offset_stands_where_its_name_says(bit: int) -> None:
    log = (log_folder("3.9.1", "8-zookeeper-behind", 3001) / LOG).read_bytes()
    batches = [frame for frame in frames(log) if isinstance(frame, BatchHeader)]
    data, wrong = log[: batches[8].position], batches[0].base_offset ^ 1 << bit
    damaged = wrong.to_bytes(8, "big") + data[8:]
    assert begins_with(data, 0)
    assert begins_with(damaged, 0)
    assert not begins_with(data, 1), "a log whose beginning is missing"
    assert not begins_with(data[: batches[1].position], 0), "nothing follows that could tell"
    assert not begins_with(b"", 0)
    named = Continuation(0, 0)
    sound, scan = scan_segment(data, named, split_bytes=1), scan_segment(damaged, named, split_bytes=1)
    assert (scan.first_offset, scan.next_offset, scan.ranges[-1]) == (0, sound.next_offset, sound.ranges[-1])
    assert (sound.in_order, scan.in_order) == (True, False)


@pytest.mark.parametrize("at", [3, 7])
def test_an_epoch_that_no_election_began_is_damage(at: int) -> None:
    """The CRC does not cover the epoch either. A copy whose last batch named a later one was the most advanced, and the gate GO."""
    log = (log_folder("3.9.1", "8-zookeeper-behind", 3001) / LOG).read_bytes()
    batches = [frame for frame in frames(log) if isinstance(frame, BatchHeader)]
    data, flipped = log[: batches[8].position], batches[at]
    damaged = bytearray(data)
    damaged[flipped.position + 14] ^= 1
    whole, rows = (table(decode_by_declarations(decoding(each))).to_pylist() for each in (data, bytes(damaged)))
    assert [row["problem"] for row in rows if row["problem"]] == [
        "leader epoch 257 is damaged: no election raised it from 1"
    ]
    assert [row for row in rows if row["problem"] is None] == [row for row in whole if row["problem"] is None]
    assert table(decode_fast(decoding(bytes(damaged)), 1000)).to_pylist() == rows
    sound, scan = scan_segment(data, split_bytes=1), scan_segment(bytes(damaged), split_bytes=1)
    assert (sound.in_order, scan.in_order) == (True, False)
    assert (scan.ranges, scan.last_epoch, scan.epoch_starts) == (sound.ranges, sound.last_epoch, sound.epoch_starts)


def test_every_kind_of_damage_is_named() -> None:
    data = b"".join(corpus_cache[:4])
    first, second, third = [frame for frame in frames(data) if isinstance(frame, BatchHeader)][:3]
    crc = bytearray(data)
    crc[second.position + 70] ^= 1
    compressed = bytearray(data)
    compressed[second.position + 22] |= 4
    epoch = bytearray(data)
    epoch[third.position + 12 : third.position + 16] = b"\0\0\0\0"
    cases = {
        bytes(crc): "CRC stored 0x",
        with_right_crcs(bytes(compressed)): "compressed with zstd",
        with_right_crcs(bytes(epoch)): "leader epoch falls from 1 to 0",
        data[: second.position] + data[third.position :]: f"gap: {second.count} offsets missing",
        data[: third.position] + data[second.position :]: f"overlap: offset {second.base_offset} comes again",
        data + b"\0" * 500: "zero-filled: 500 bytes",
        data[: third.position + 30]: "torn tail: 30 bytes, less than a batch header",
        data[: third.position + 64]: f"torn tail: a batch of {third.size} bytes begins here and 64 are left",
        data[: second.position] + b"\x07" * 100 + data[second.position :]: "no batch header: magic 7 instead of 2",
    }
    for damaged, says in cases.items():
        rows = table(decode_by_declarations(decoding(damaged)))
        problems = [problem for problem in rows["problem"].to_pylist() if problem]
        assert any(problem.startswith(says) for problem in problems), (says, problems)
        assert pc.sum(rows["length"]).as_py() == len(damaged)
        assert Counter(rows["offset"].to_pylist())[first.base_offset] >= 1
