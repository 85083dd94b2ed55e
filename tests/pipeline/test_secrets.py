"""No secret of a capture reaches any output: tables, reports, log lines, exceptions."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.run.cluster_pass import FEW_ROWS
from jobs.run.run import Failure
from jobs.sinks.report_files import write_report
from schemas import bronze, gold, silver
from schemas.examined import EXAMINED
from tests.captures import capture
from tests.pipeline.audits import ENCODER_SECRET, Audit, audit_all, settings_content
from transforms.examination.made import ANSWERS, FOLD, INDEX, MEMORY
from transforms.report.mail import render_mail
from transforms.report.text import render_text
from transforms.units import batches_of

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


@pytest.fixture(scope="module")
def audits(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[dict[str, Audit | Failure], Path]]:
    """The same cluster from a dump and from its data folder, in one run that knows the brokers' secret."""
    warehouse = tmp_path_factory.mktemp("secrets")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_ENCODER_SECRET", ENCODER_SECRET)
        secrets = {"password_encoder_secret_envs": ["TEST_ENCODER_SECRET"]}
        stage = capture("3.9.1", "5")
        kraft = {"folders": [str(stage / "kraft")], "keep_state_every": 1}
        contents = [
            settings_content(stage, warehouse, data_folder=folder, cluster=name, secrets=secrets, kraft=kraft)
            for name, folder in (("dump", False), ("data-folder", True))
        ]
        yield audit_all(contents), warehouse


@pytest.fixture(params=["dump", "data-folder"])
def audited(request: pytest.FixtureRequest, audits: tuple[dict[str, Audit | Failure], Path]) -> Audit:
    found = audits[0][request.param]
    assert isinstance(found, Audit)
    return found


def test_no_table_holds_one(audits: tuple[dict[str, Audit | Failure], Path]) -> None:
    found = audits[0]["dump"]
    assert isinstance(found, Audit)
    hidden = secrets_of(capture("3.9.1", "5"))
    read = {"dump": 0, "data-folder": 0}
    for table in ALL_TABLES:
        rows = found.warehouse.read(table).select("cluster", F.to_json(F.struct("*")).alias("text"))
        for row in rows.toLocalIterator():
            read[row["cluster"]] += 1
            assert not [secret for secret in hidden if secret in row["text"]], table.full_name
    assert min(read.values()) > 1000


def unpacked(payload: bytes) -> str:
    """All that bytes of silver `examined` hold, whose streams are compressed and lie in each other."""
    try:
        rows = [row for batch in batches_of(payload) for row in batch.to_pylist()]
    except pa.ArrowInvalid:
        return payload.decode()
    inner = [each for row in rows for each in row.values() if isinstance(each, bytes)]
    return " ".join([str(rows), *map(unpacked, inner)])


def test_no_packed_bytes_hold_one(audits: tuple[dict[str, Audit | Failure], Path]) -> None:
    found = audits[0]["dump"]
    assert isinstance(found, Audit)
    hidden = secrets_of(capture("3.9.1", "5"))
    whole: dict[tuple[str, str, str, str], bytes] = defaultdict(bytes)
    for row in found.warehouse.read(EXAMINED).orderBy("part").collect():
        # What is kept lies in pieces of one stream, the others are streams of their own.
        part = "" if row["kind"] in (FOLD, MEMORY) else str(row["part"])
        whole[row["cluster"], row["kind"], row["name"], part] += bytes(row["payload"])
    texts: dict[str, str] = defaultdict(str)
    for (_, kind, *_), payload in whole.items():
        texts[kind] += unpacked(payload)
    assert {*texts} == {FEW_ROWS, ANSWERS, MEMORY, FOLD, INDEX}
    assert not [(kind, secret) for kind, text in texts.items() for secret in hidden if secret in text]
    # They were looked into: users are named there.
    assert all("alice" in texts[kind] for kind in (FEW_ROWS, FOLD))


def test_no_file_holds_one(
    audits: tuple[dict[str, Audit | Failure], Path], audited: Audit, capfd: pytest.CaptureFixture[str]
) -> None:
    warehouse = audits[1]
    hidden = [secret.encode() for secret in secrets_of(capture("3.9.1", "5"))]
    write_report(audited.report, warehouse / "out")
    (warehouse / "out" / "mail.eml").write_bytes(bytes(render_mail(audited.report)))
    (warehouse / "out" / "text.txt").write_text(render_text(audited.report))
    files = [path for path in warehouse.rglob("*") if path.is_file()]
    assert len(files) > 50
    for path in files:
        content = path.read_bytes()
        assert not [secret for secret in hidden if secret in content], path
    said = capfd.readouterr()
    assert not [secret for secret in hidden if secret.decode() in said.out + said.err]


def test_with_the_encoders_secret_passwords_compare(audited: Audit) -> None:
    assert audited.report.divergences.total == 0
    assert not any("could not be compared" in note for note in audited.report.notes)
