"""What a pass is fed goes to the disk once it is too much for the memory, and is read from there as it was."""

from __future__ import annotations

import pyarrow as pa
import pytest

from jobs.evidence import feed
from tests.examination.one_pass import spooled
from transforms.units import UnitKind, stream

BATCHES = [pa.RecordBatch.from_pydict({"offset": list(range(start, start + 50))}) for start in range(0, 500, 50)]


@pytest.mark.parametrize(("in_memory", "on_disk"), [(100, True), (1024 * 1024, False)])
def test_more_than_fits_into_memory_is_read_again_and_again(
    monkeypatch: pytest.MonkeyPatch, in_memory: int, on_disk: bool
) -> None:
    monkeypatch.setattr(feed, "_IN_MEMORY_BYTES", in_memory)
    payloads = [(int(UnitKind.LOG), stream(batch)) for batch in BATCHES]
    # Kept bytes lie between the batches of the log: what is read of one kind must not be another's.
    payloads[3:3] = [(int(UnitKind.FOLD), b"kept "), (int(UnitKind.FOLD), b"bytes")]
    with spooled(payloads) as fed:
        for _ in range(2):
            read = pa.Table.from_batches(list(fed.batches(UnitKind.LOG)))
            assert read["offset"].to_pylist() == list(range(500))
            assert fed.bytes_of(UnitKind.FOLD) == b"kept bytes"
        assert fed.bytes_of(UnitKind.MEMORY) is None
        # A file in memory has no name.
        assert (fed.spool._file.name is not None) == on_disk
