"""No secret of a capture reaches any output: tables, reports, log lines, exceptions."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.sinks.report_files import write_report
from schemas import bronze, gold, silver
from tests.captures import capture
from tests.pipeline.audits import ENCODER_SECRET, Audit, audit, settings_content
from transforms.report.mail import render_mail
from transforms.report.text import render_text

pytestmark = pytest.mark.slow
ALL_TABLES = (*bronze.TABLES, *silver.TABLES, *gold.TABLES)

CLEAR_TEXT = (
    "alice-secret",
    "bob-secret",
    "carol-secret",
    "dave-secret",
    "svc-secret",
    "encoder-secret",
    "token-secret",
)
_SCRAM = re.compile(r"(salt|stored_key|server_key)=([A-Za-z0-9+/=]+)")


def secrets_of(folder: Path) -> set[str]:
    """The known clear texts, and every SCRAM secret of the tree in each form it could leak in."""
    found = set(CLEAR_TEXT)
    with gzip.open(folder / "zookeeper.jsonl.gz", "rt") as dump:
        for line in dump:
            znode = json.loads(line)
            if znode["path"].startswith("/config/users/") and znode["data_base64"]:
                text = base64.b64decode(znode["data_base64"]).decode()
                for _, encoded in _SCRAM.findall(text):
                    raw = base64.b64decode(encoded)
                    found |= {
                        encoded,
                        encoded.rstrip("="),
                        raw.hex(),
                        base64.urlsafe_b64encode(raw).decode().rstrip("="),
                    }
                    if raw.isascii():
                        found.add(raw.decode())
    assert len(found) > len(CLEAR_TEXT) + 10, "the capture has SCRAM users"
    return found


@pytest.fixture(scope="module", params=["dump", "data folder"])
def audited(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Audit, Path]]:
    warehouse = tmp_path_factory.mktemp("secrets")
    patch = pytest.MonkeyPatch()
    patch.setenv("TEST_ENCODER_SECRET", ENCODER_SECRET)
    content = settings_content(
        capture("3.9.1", "5"),
        warehouse,
        data_folder=request.param == "data folder",
        secrets={"password_encoder_secret_envs": ["TEST_ENCODER_SECRET"]},
    )
    yield audit(content), warehouse
    patch.undo()


def test_no_table_holds_one(audited: tuple[Audit, Path]) -> None:
    result, _ = audited
    hidden = secrets_of(capture("3.9.1", "5"))
    read = 0
    for table in ALL_TABLES:
        for row in result.warehouse.read(table).select(F.to_json(F.struct("*")).alias("text")).toLocalIterator():
            read += 1
            assert not [secret for secret in hidden if secret in row["text"]], table.full_name
    assert read > 1000


def test_no_file_holds_one(audited: tuple[Audit, Path], capfd: pytest.CaptureFixture[str]) -> None:
    result, warehouse = audited
    hidden = [secret.encode() for secret in secrets_of(capture("3.9.1", "5"))]
    write_report(result.report, warehouse / "out")
    (warehouse / "out" / "mail.eml").write_bytes(bytes(render_mail(result.report)))
    (warehouse / "out" / "text.txt").write_text(render_text(result.report))
    files = [path for path in warehouse.rglob("*") if path.is_file()]
    assert len(files) > 50
    for path in files:
        content = path.read_bytes()
        assert not [secret for secret in hidden if secret in content], path
    said = capfd.readouterr()
    assert not [secret for secret in hidden if secret.decode() in said.out + said.err]


def test_with_the_encoders_secret_passwords_compare(audited: tuple[Audit, Path]) -> None:
    result, _ = audited
    assert result.report.divergences.total == 0
    assert not any("could not be compared" in note for note in result.report.notes)
