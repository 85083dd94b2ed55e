"""What may be missing in rows: damage counts where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from jobs.evidence.unread import unread
from jobs.exit import UsageError
from jobs.sources.kraft.log import read_records
from jobs.steps.ingest_kraft import _chosen, _work, find_copies
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from schemas.report import CheckResult
from schemas.table import Table
from tests.captures import capture
from tests.pipeline.logs import writable_copy
from transforms.frames import columns_of, from_arrow, shaped
from transforms.kraft.decode.framing import BatchHeader, frames
from transforms.kraft.decode.masking import UNMASKED
from transforms.report.compared import WHOLE_LOG

LOG = Path("__cluster_metadata-0/00000000000000000000.log")
SAID = "Rows may be missing or wrong, CAP-02: a batch"


def damaged(folder: Path, *nodes: int, ahead: bool = False) -> Any:
    """A finished run over the controllers' copies, with a bit flipped in the logs of these nodes, which may be `ahead` of the others."""
    kraft = writable_copy(capture("3.9.1", "5"), folder / "capture") / "kraft"
    for other in kraft.iterdir():
        if ahead and int(other.name) not in nodes:
            _cut_last_batch(other / LOG)
    for node in nodes:
        content = bytearray((kraft / str(node) / LOG).read_bytes())
        content[9_000] ^= 0xFF
        (kraft / str(node) / LOG).write_bytes(content)
    found = find_copies([str(kraft)])
    rows = [{**copy.row(), **_chosen(copy, found.plan, 0)} for copy in found.copies]
    used = {piece.location for piece in found.plan.slices} if found.plan else set()
    batches = (batch for task, selection in _work(found, 0) for batch in read_records([task], UNMASKED, selection))
    records = [from_arrow(batch, columns_of(KRAFT_RECORDS.columns)) for batch in batches]
    frames = {
        KRAFT_LOG_COPIES.name: shaped(
            pl.DataFrame(rows, infer_schema_length=None), columns_of(KRAFT_LOG_COPIES.columns)
        ),
        KRAFT_RECORDS.name: pl.concat(records).filter(pl.col("problem").is_not_null()),
    }

    def stored(table: Table, columns: Any = (), where: Mapping[str, Any] | None = None) -> pl.DataFrame:
        return frames[table.name].select(list(columns) or frames[table.name].columns)

    check = CheckResult("CAP-02", "fail", 1, evidence=["a batch"])
    return SimpleNamespace(rows=stored, report=SimpleNamespace(checks=[check])), used


def _cut_last_batch(log: Path) -> None:
    content = log.read_bytes()
    *_, last = (each for each in frames(content) if isinstance(each, BatchHeader))
    log.write_bytes(content[: last.position])


def test_damage_of_a_copy_that_no_row_comes_from_is_no_gap(tmp_path: Path) -> None:
    """`compare` exited with 10, and `diff` warned, though the rows came from a copy that is whole."""
    past, used = damaged(tmp_path, 3000)
    assert not any("/3000/" in each for each in used)
    assert unread(past, WHOLE_LOG) == []


def test_damage_in_a_part_of_a_copy_that_is_not_read_is_no_gap(tmp_path: Path) -> None:
    """The longest copy is damaged: only its end is read, and what is before that comes from another one."""
    past, used = damaged(tmp_path, 3001, ahead=True)
    assert len(used) == 2
    assert any("/3001/" in each for each in used)
    assert unread(past, WHOLE_LOG) == []


def test_damage_of_the_copy_that_is_read_is_a_gap(tmp_path: Path) -> None:
    past, _ = damaged(tmp_path, 3000, 3001, 3002)
    assert unread(past, WHOLE_LOG) == [SAID]


def test_damage_whose_place_is_gone_may_be_one(tmp_path: Path) -> None:
    past, _ = damaged(tmp_path, 3000)

    def removed(*_: Any) -> pl.DataFrame:
        raise UsageError("details of run r were removed by retention")

    assert unread(SimpleNamespace(rows=removed, report=past.report), WHOLE_LOG) == [SAID]


@pytest.mark.parametrize("checks", [(), ("CAP-12",)])
def test_only_the_checks_that_are_asked_for(checks: tuple[str, ...], tmp_path: Path) -> None:
    past, _ = damaged(tmp_path, 3000, 3001, 3002)
    assert unread(past, checks) == []
