"""What a run remembers for the next one is read as it was written."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from transforms.examination.memory import (
    APPENDED,
    CHANGES,
    DIFFERENCES,
    EPOCHS,
    JUDGED_CHANGES,
    REGISTRATIONS,
    Memory,
)
from transforms.examination.stories import TOLD
from transforms.isr.audit import RECENT
from transforms.kernel.versions import VERSIONS

SCHEMAS = {
    "differences": DIFFERENCES,
    "epochs": EPOCHS,
    "judged": JUDGED_CHANGES,
    "recent": RECENT,
    "registrations": REGISTRATIONS,
    "appended": APPENDED,
    "told": TOLD,
    "versions": VERSIONS,
}
_WHOLE = {pl.Int8: 7, pl.Int16: 15, pl.Int32: 31, pl.Int64: 63}


def value_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a column, null among them."""
    if isinstance(kind, pl.List):
        return st.none() | st.lists(value_of(kind.inner), max_size=3)
    if isinstance(kind, pl.Struct):
        return st.none() | st.fixed_dictionaries({field.name: value_of(field.dtype) for field in kind.fields})
    if kind == pl.Boolean:
        return st.none() | st.booleans()
    if kind == pl.String:
        return st.none() | st.text(st.characters(codec="utf-8"), max_size=5)
    bits = _WHOLE[kind.base_type()]
    return st.none() | st.integers(-(2**bits), 2**bits - 1)


def frames(columns: pl.Schema) -> st.SearchStrategy[pl.DataFrame]:
    rows = st.fixed_dictionaries({name: value_of(kind) for name, kind in columns.items()})
    return st.lists(rows, max_size=3).map(lambda found: pl.DataFrame(found, schema=columns))


MEMORIES = st.fixed_dictionaries({name: frames(columns) for name, columns in SCHEMAS.items()})


def equal(found: Memory, wanted: Memory) -> None:
    for each in fields(Memory):
        assert_frame_equal(getattr(found, each.name), getattr(wanted, each.name))


@settings(max_examples=40, deadline=None)
@given(MEMORIES)
def test_it_is_read_as_it_was_written(rows: dict[str, pl.DataFrame]) -> None:
    memory = Memory(**rows)
    equal(Memory.from_bytes(memory.to_bytes()), memory)


def test_nothing_is_remembered_at_first() -> None:
    memory = Memory()
    assert SCHEMAS.keys() == {each.name for each in fields(Memory)}
    for name, columns in SCHEMAS.items():
        assert getattr(memory, name).schema == columns
    equal(Memory.from_bytes(memory.to_bytes()), memory)
    assert JUDGED_CHANGES.items() <= CHANGES.items()


def test_the_same_is_the_same_bytes() -> None:
    rows = pl.DataFrame([{"offset": 5, "append_time": 7}], schema=APPENDED)
    assert Memory(appended=rows).to_bytes() == Memory(appended=rows.clone()).to_bytes()


@pytest.mark.parametrize("payload", [b"", b"no stream", Memory().to_bytes()[:40]])
def test_what_is_no_memory_is_refused(payload: bytes) -> None:
    with pytest.raises((ValueError, OSError)):
        Memory.from_bytes(payload)
