"""Long texts in a report are cut, and nothing else is."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.report.samples import healthy
from transforms.report.json import LONGEST_TEXT, from_json, shortened, to_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


@given(JSON)
def test_what_is_short_stays(document: object) -> None:
    assert shortened(document) == (document, 0)


def test_what_is_long_is_cut_wherever_it_stands_and_says_how_long_it_was() -> None:
    long = "x" * (LONGEST_TEXT + 1)
    found, cut = shortened({"rows": [{"value": long, "key": {"user": long}}], "kept": "x" * LONGEST_TEXT})
    assert cut == 2
    told = f"{'x' * LONGEST_TEXT}… (10,001 characters)"
    assert found == {"rows": [{"value": told, "key": {"user": told}}], "kept": "x" * LONGEST_TEXT}


def test_an_ordinary_report_is_as_it_was() -> None:
    report = healthy()
    document, cut = shortened(json.loads(to_json(report)))
    assert cut == 0
    assert from_json(json.dumps(document)) == report
