"""Times are UTC wherever the machine stands: what is collected from Spark comes in the machine's own zone and does not say so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from pyspark.sql.types import TimestampType

from jobs.run.earlier_runs import iso
from transforms.times import from_micros

MICROS = 1_700_000_000_123_456


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/St_Johns"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_a_collected_timestamp_is_told_in_utc() -> None:
    collected = TimestampType().fromInternal(MICROS)
    assert collected.tzinfo is None
    assert iso(collected) == "2023-11-14T22:13:20.123Z"
    assert iso(datetime.fromtimestamp(1_700_000_000, UTC)) == "2023-11-14T22:13:20.000Z"


@pytest.mark.usefixtures("zone")
def test_a_number_of_microseconds_is_exact() -> None:
    assert from_micros(MICROS) == datetime(2023, 11, 14, 22, 13, 20, 123_456, UTC)
    assert TimestampType().toInternal(from_micros(MICROS)) == MICROS
