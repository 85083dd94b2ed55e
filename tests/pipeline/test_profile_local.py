"""`kraft-audit run` as a process of its own, on the profile of large inputs, with a log large enough for the fast decoder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from jobs.exit import ERRORS
from tests.captures import capture
from tests.pipeline import expected
from tests.pipeline.logs import SEGMENT, Record, append, record, writable_copy
from transforms.kraft.decode.decode_pass import FAST_FROM_BYTES

# Compiling what so few rows never pay back takes minutes.
pytestmark = pytest.mark.live
ROOT = Path(__file__).parents[2]
TOPIC = 2
BATCHES, RECORDS = 20, 400
LOST = capture("3.9.1", "quota-removal")


def flapping(value: str) -> list[Record]:
    """A configuration that is changed again and again and ends as it was, so that it differs nowhere."""
    values = [*[str(number) for number in range(RECORDS - 1)], value]
    return [
        record("CONFIG_RECORD", resourceType=TOPIC, resourceName="orders", name="retention.ms", value=one)
        for one in values
    ]


def test_a_large_log_is_audited_on_the_profile_local(tmp_path: Path) -> None:
    value = expected.configs(expected.load(LOST)["state"])["TOPIC", "orders", "retention.ms"]
    logs = writable_copy(LOST / "kraft", tmp_path / "kraft")
    first, *_ = [append(logs, flapping(value), 1_790_000_000_000 + number) for number in range(BATCHES)]
    assert (logs / "3000" / SEGMENT).stat().st_size > FAST_FROM_BYTES
    content = {
        "cluster": "large",
        "warehouse": str(tmp_path / "warehouse"),
        "zookeeper": {"dump": str(LOST / "zookeeper.jsonl.gz")},
        "kraft": {"folders": [str(logs)]},
        "report": {"folder": str(tmp_path / "reports")},
        "spark": {"profile": "local"},
    }
    conf = tmp_path / "audit.yml"
    conf.write_text(yaml.safe_dump(content))
    done = subprocess.run(
        [sys.executable, "-m", "jobs.cli", "run", "--conf", str(conf), "--json"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ERRORS, done.stderr[-2000:]
    report = json.loads(next((tmp_path / "reports").rglob("report.json")).read_text())
    assert report["divergences"]["by_class"] == {"lost_write": 2}
    assert report["migration"]["log_end_offset"] == first + BATCHES * RECORDS - 1
    assert (
        report["lag"]["records"] == report["migration"]["log_end_offset"] - report["migration"]["kraft_metadata_offset"]
    )
