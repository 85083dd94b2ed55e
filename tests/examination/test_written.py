"""ZooKeeper's transaction logs as the steps bring them to a pass: a table that could not be read is not an empty one."""

from __future__ import annotations

from collections.abc import Iterator
from errno import EIO
from pathlib import Path

import pyarrow as pa
import pytest

from jobs.sources.zookeeper.writes import BARRIER, OPERATION, WRITE
from jobs.steps.ingest_zookeeper import TreeFiles, _of_kind, _read_writes
from tests.captures import capture
from tests.examination.one_pass import MASKING, NAME, Payloads, spooled
from transforms.examination.written import Written, written_of
from transforms.reconcile.judge.given import Given
from transforms.units import UnitKind, by_cluster, stream
from transforms.zookeeper.read.redact import Redactor

STAGE = capture("3.9.1", "10-brokers-rolling")
KINDS = {OPERATION: UnitKind.TRANSACTIONS, BARRIER: UnitKind.BARRIERS, WRITE: UnitKind.WRITES}


class Ending(TreeFiles):
    """A folder whose disk fails after the first batch."""

    def history(self) -> Iterator[pa.RecordBatch]:
        yield next(iter(super().history()))
        raise OSError(EIO, "Input/output error", "log.598")


def brought(*failing: str) -> Written:
    """What a pass gets if the reads for some tables fail: each table reads the logs for itself."""
    payloads: Payloads = []
    for kind, unit in KINDS.items():
        made = Ending if kind in failing else TreeFiles
        files = made(NAME, "r1/1", Redactor(MASKING), folder=Path(STAGE / "zookeeper"))
        for batch in _of_kind(kind, _read_writes(files)):
            payloads += [(int(unit), stream(rows)) for _, rows in by_cluster(batch) if rows.num_rows]
    given = Given(NAME, has_zookeeper=True, has_kraft=False, walks=1, reads_data_folder=True)
    with spooled(payloads) as feed:
        return written_of(feed, given)


def test_what_was_read_is_there() -> None:
    found = brought()
    assert (found.barriers.height, found.writes.height) == (82, 18)
    assert found.logged.answers()["logged"] == [{"first": 1, "last": 0x7CD}]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_whose_logs_could_not_be_read_fails_the_cluster(kind: str) -> None:
    with pytest.raises(ValueError, match=r"ZooKeeper's transaction logs .*could not be read.*[Rr]un again") as raised:
        brought(kind)
    assert getattr(raised.value, "for_the_user", False)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", [OPERATION, WRITE])
def test_what_happened_and_where_is_told(kind: str) -> None:
    with pytest.raises(ValueError, match=r"log\.598: Input/output error, while it was read"):
        brought(kind)
