"""Quotas that are no finite number: Kafka takes them into its log, so the audit reads and compares them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from schemas.entities.client_quotas import CLIENT_QUOTAS
from tests.reconcile.silver import kraft, tables, versions, zk
from tests.reconcile.test_classify import differing, one
from transforms.kraft.replay.entities import READERS
from transforms.reconcile.compare.canonical import row_json
from transforms.reconcile.compare.difference import Ends, differing_rows, sides_of

KEY = {"entity": [{"type": "client-id", "name": "app"}], "quota": "producer_byte_rate"}


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("other", [11.0, None, "Infinity", "NaN"])
def test_a_quota_that_is_no_number_is_compared_with_any_other(value: str, other: object) -> None:
    if value == other:
        return
    found = one(differing("client_quotas", KEY, zk_row={"value": other}, kraft_row={"value": value}, kraft_offset=50))
    assert (found.column, found.zk_value, found.kraft_value) == ("value", other, value)


@pytest.mark.parametrize(
    ("value", "spelled"), [(math.nan, '"NaN"'), (math.inf, '"Infinity"'), (-math.inf, '"-Infinity"'), (11.0, "11.0")]
)
def test_both_sides_spell_it_the_same(value: float, spelled: str) -> None:
    """The log's own text of it (`"NaN"`, as Jackson writes it) is the one that a side's row has."""
    data = f'{{"entity":[{{"entityType":"user","entityName":"a"}}],"key":"q","value":{spelled},"remove":false}}'
    [event] = READERS["CLIENT_QUOTA_RECORD"](json.loads(data))
    assert event.row is not None
    quotas = tables(client_quotas=[zk(quota="q", value=value), zk(quota="q", value=None)])["client_quotas"]
    texts = quotas.select(row_json(CLIENT_QUOTAS)).to_series().to_list()
    assert texts == [f'{{"value":{spelled}}}', '{"value":null}']
    assert json.loads(texts[0])["value"] == event.row["value"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, None])
def test_the_same_value_on_both_sides_is_no_difference(value: float | None) -> None:
    key: dict[str, Any] = {"entity": KEY["entity"], "quota": "q"}
    same = tables(client_quotas=[zk(**key, value=value), kraft(**key, value=value)])
    assert differing_rows(sides_of(same), versions(), Ends(100)).is_empty()
    other = tables(client_quotas=[zk(**key, value=value), kraft(**key, value=2.0)])
    assert differing_rows(sides_of(other), versions(), Ends(100)).height == 1
