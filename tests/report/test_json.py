"""report.json is a contract: the shape that automation reads, no numbers JSON lacks, and the same report back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.report import DivergenceRow, Divergences, Lag, Report
from tests.report.samples import SAMPLES, defective, healthy
from transforms.report.json import ReportFormatError, from_json, to_json, to_line

# An example of the contract: the names as automation reads them.
CONTRACT: dict[str, set[str]] = {
    "": {
        "format", "cluster", "run_id", "started_at", "finished_at", "kafka_version", "mode", "exit_code", "verdict",
        "migration", "lag", "gates", "checks", "counts", "divergences", "broker_presence", "defects",
    },
    "migration": {
        "state", "kraft_metadata_offset", "committed_end_offset", "log_end_offset", "leader_id", "leader_epoch",
        "copy_used",
    },
    "lag": {"records", "seconds", "alive"},
    "gates": {"start", "dual_write", "finalize", "rollback"},
    "divergences": {"total", "by_class", "rows"},
}  # fmt: skip
ROW = {
    "entity", "key", "column", "kind", "zk_value", "kraft_value", "class", "severity", "zk_path", "zk_mzxid",
    "kraft_offset", "status",
}  # fmt: skip


def test_every_name_of_the_contract_is_there() -> None:
    written = json.loads(to_json(defective()))
    for part, names in CONTRACT.items():
        assert names.issubset(written[part] if part else written)
    assert ROW.issubset(written["divergences"]["rows"][0])
    assert {"verdict", "blocking"} <= set(written["gates"]["start"])
    assert {"id", "verdict", "violations", "evidence"} <= set(written["checks"][0])
    assert {"broker_id", "mode", "blocks"} <= set(written["broker_presence"][0])
    assert {"jira", "exposed", "evidence"} <= set(written["defects"][0])


def test_values_stand_under_the_contract_s_names() -> None:
    written = json.loads(to_json(defective()))
    row = written["divergences"]["rows"][0]
    assert row["class"] == "lost_write"
    assert "class_" not in row
    assert row["key"] == {"entity": {"client-id": "app-9"}, "quota": "producer_byte_rate"}
    assert (row["zk_value"], row["kraft_value"], row["zk_mzxid"], row["kraft_offset"]) == (11.0, None, 812, 318)
    assert written["exit_code"] == 20
    assert written["counts"]["client_quotas"] == {"kraft": 12, "zookeeper": 14}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_come_back_equal_and_in_ascii(name: str) -> None:
    text = to_json(SAMPLES[name]())
    assert from_json(text) == SAMPLES[name]()
    assert text.isascii()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_line_is_the_same_document(name: str) -> None:
    line = to_line(SAMPLES[name]())
    assert from_json(line) == SAMPLES[name]()
    assert json.loads(line) == json.loads(to_json(SAMPLES[name]()))
    assert line.isascii()
    assert "\n" not in line


def test_map_order_does_not_show() -> None:
    report = healthy()
    turned = replace(report, counts=dict(reversed(report.counts.items())), gates=dict(reversed(report.gates.items())))
    assert to_json(turned) == to_json(report)


def test_numbers_json_lacks_never_appear() -> None:
    row = DivergenceRow(
        "client_quotas", {"quota": "rate"}, "value", "differs", float("inf"), [float("nan")], "lag", "warn"
    )
    report = replace(healthy(), lag=Lag(0, float("nan"), True), divergences=Divergences(1, rows=[row]))
    written = json.loads(to_json(report), parse_constant=lambda name: pytest.fail(f"{name} in report.json"))
    assert written["lag"]["seconds"] is None
    assert written["divergences"]["rows"][0]["zk_value"] == "Infinity"
    assert written["divergences"]["rows"][0]["kraft_value"] == ["NaN"]


def test_a_value_json_has_no_form_for_is_named() -> None:
    row = DivergenceRow("configs", {}, "value", "differs", b"raw", None, "lag", "warn")
    with pytest.raises(TypeError, match=r"report\.divergences\.rows\[0\]\.zk_value holds a bytes"):
        to_json(replace(healthy(), divergences=Divergences(1, rows=[row])))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no format number"),
        ('{"format": 99}', "format 99"),
        ('{"format": 1}', r"report\.cluster is missing"),
        (to_json(healthy()).replace('"exit_code": 0', '"exit_code": "0"'), r"report\.exit_code in .* should be a int"),
        (to_json(healthy()).replace('"leader_id": 3000', '"leader_id": true'), r"leader_id .* should be a number"),
    ],
)
def test_what_is_no_report_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ReportFormatError, match=message) as caught:
        from_json(text)
    assert "\n" not in str(caught.value)


def test_fields_of_a_newer_version_are_left_out() -> None:
    written = json.loads(to_json(healthy()))
    written["added_later"] = {"x": 1}
    written["lag"]["added_later"] = 1
    assert from_json(json.dumps(written)) == healthy()


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def _reports() -> st.SearchStrategy[Report]:
    # Any is a JSON value here; everything else is drawn by its declared type.
    st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
    rows = st.lists(
        st.builds(
            DivergenceRow,
            key=st.dictionaries(st.text(max_size=8), _values, max_size=3),
            zk_value=_values,
            kraft_value=_values,
        ),
        max_size=2,
    )
    return st.builds(
        Report,
        divergences=st.builds(Divergences, rows=rows),
        resolved=rows,
        migration=st.just(defective().migration),
        format=st.just(1),
    )


@settings(max_examples=60, deadline=None)
@given(_reports())
def test_any_report_comes_back_equal(report: Report) -> None:
    assert from_json(to_json(report)) == report
