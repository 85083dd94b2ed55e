"""Secrets in every form and place, looked for in everything that a run writes or says: planted N, found 0."""

from __future__ import annotations

import base64
import io
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from jobs.cli import main
from jobs.exit import DEBUG_VARIABLE
from jobs.sinks.report_files import write_report
from tests.captures import capture
from tests.pipeline.audits import ENCODER_SECRET, Audit, Content, audits, settings_content
from tests.pipeline.logs import append, record, writable_copy
from tests.pipeline.trees import At, Tree
from tests.zookeeper import journal
from tests.zookeeper.malformed import TOKEN
from transforms.report.html import render_html
from transforms.report.json import to_json
from transforms.report.mail import render_mail
from transforms.report.text import render_text
from transforms.zookeeper.storage.transactions import OpCode

pytestmark = pytest.mark.slow

NOW = 1_795_233_160_500
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="{}";'
FORMS: Mapping[str, Callable[[str], str]] = {
    "plain": str,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "URL-encoded": lambda text: quote(text, safe=""),
    "JSON-escaped": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "in a JAAS text": JAAS.format,
    "in a JDBC URL": "jdbc:postgresql://db/x?user=a&password={}".format,
}
Znodes = dict[str, str]


def config(name: str, value: str) -> str:
    return json.dumps({"version": 1, "config": {name: value}})


def scram(part: str, value: str) -> str:
    encoded = base64.b64encode(value.encode()).decode()
    fields = dict.fromkeys(("salt", "stored_key", "server_key"), "aGVsbG8=") | {part: encoded}
    return config("SCRAM-SHA-256", ",".join(f"{name}={text}" for name, text in fields.items()) + ",iterations=4096")


# Where a secret may stand in ZooKeeper: a znode's path (`{}` is a number) and its data, of the secret in a form.
PLACES: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "a broker's unknown setting": ("/config/brokers/9{}", lambda text: config("plugin.setting", text)),
    "a broker's password": ("/config/brokers/8{}", lambda text: config("listener.name.x.ssl.key.password", text)),
    "a listener's JAAS": ("/config/brokers/7{}", lambda text: config("listener.name.x.plain.sasl.jaas.config", text)),
    "a topic's unknown setting": ("/config/topics/s{}", lambda text: config("confluent.thing", text)),
    "a user's salt": ("/config/users/a{}", lambda text: scram("salt", text)),
    "a user's stored key": ("/config/users/b{}", lambda text: scram("stored_key", text)),
    "a user's server key": ("/config/users/c{}", lambda text: scram("server_key", text)),
    "a quota that is no number": ("/config/users/d{}", lambda text: config("producer_byte_rate", text)),
    "a field beside a configuration": ("/config/topics/t{}", lambda text: json.dumps({"version": 1, "x": text})),
    "a key that is there twice": (
        "/config/brokers/6{}",
        lambda text: f'{config("plugin.x", text)[:-1]},"config":{{}}}}',
    ),
    "a configuration that is no JSON": ("/config/brokers/5{}", lambda text: config("plugin.x", text)[:-1]),
    "an unknown kind of configuration": ("/config/other/o{}", lambda text: config("x", text)),
    "a token's HMAC": ("/delegation_token/tokens/t{}", lambda text: json.dumps({**TOKEN, "hmac": text})),
    "another application's znode": ("/solr/security{}", lambda text: json.dumps({"credentials": {"admin": text}})),
    "another application's text": ("/app/jdbc{}", str),
}
CREDENTIALS = ("a user's salt", "a user's stored key", "a user's server key")


@dataclass(frozen=True)
class Planted:
    """The secrets, by form and place, and the znodes that they stand in."""

    secrets: Mapping[tuple[str, str], str]
    znodes: Znodes


def plan() -> Planted:
    secrets, znodes = {}, {}
    for number, form in enumerate(FORMS):
        for index, (place, (path, data)) in enumerate(PLACES.items()):
            secret = f"Zebra{number}x{index}/Qq+"
            secrets[form, place] = secret
            if form == "JSON-escaped":
                # In the znode's own JSON, not in a text that is escaped once more.
                text = data(secret).replace(secret, FORMS[form](secret))
            else:
                # The parts of a SCRAM credential are bytes, and always base64.
                text = data(secret if place in CREDENTIALS else FORMS[form](secret))
            znodes[path.format(number)] = text
    return Planted(secrets, znodes)


PLANTED = plan()


def needles(secret: str) -> list[bytes]:
    """What of a secret must be nowhere: itself and its other spellings, and the word in it that all of them keep."""
    word = secret.partition("/")[0]
    escaped = FORMS["JSON-escaped"](secret)
    spelled = [secret, word, secret.encode().hex(), quote(secret, safe=""), escaped, escaped.replace("\\", "\\\\")]
    # Base64 by where in a longer text the secret begins; the first and last letters depend on what is beside.
    for before in range(3):
        encoded = base64.b64encode(b"-" * before + secret.encode()).decode().rstrip("=")
        spelled.append(encoded[4 if before else 0 : -2])
    return [text.encode() for text in spelled]


NEEDLES = {needle: place for place, secret in PLANTED.secrets.items() for needle in needles(secret)}
# Nearly every content has no beginning of any.
HEADS = {needle[:6] for needle in NEEDLES}


def found_in(content: bytes) -> list[tuple[str, str]]:
    if not any(head in content for head in HEADS):
        return []
    return [place for needle, place in NEEDLES.items() if needle in content]


def dump_with_secrets(folder: Path) -> Path:
    tree = Tree(capture("3.9.1", "5") / "zookeeper.jsonl.gz")
    for number, (path, data) in enumerate(PLANTED.znodes.items()):
        parent = path.rpartition("/")[0]
        if parent not in tree.nodes:
            tree.create(parent, None, At(5_000, NOW))
        tree.create(path, data, At(5_001 + number, NOW))
    return tree.save(folder / "zookeeper.jsonl.gz")


def folder_with_secrets(folder: Path) -> Path:
    """A data folder as a server left it, and one more log that makes the znodes."""
    target = writable_copy(capture("3.9.1", "5") / "zookeeper", folder / "zookeeper")
    # The capture ends at zxid 0x53e.
    log = journal.Log(zxid=0x53E)
    first = log.zxid + 1
    for path in ("/solr", "/app", "/config/other"):
        log.add(OpCode.CREATE, journal.create(path, None))
    for path, data in PLANTED.znodes.items():
        log.add(OpCode.CREATE, journal.create(path, b""))
        log.add(OpCode.SET_DATA, journal.set_data(path, data.encode(), 1))
    (target / "version-2" / f"log.{first:x}").write_bytes(log.padded())
    return target


def log_with_secrets(folder: Path) -> Path:
    logs = writable_copy(capture("3.9.1", "5") / "kraft", folder / "kraft")
    for number, (form, encode) in enumerate(FORMS.items()):
        text = {place: encode(PLANTED.secrets[form, place]) for place in PLACES}
        records = [
            record("CONFIG_RECORD", resourceType=kind, resourceName=name, name=key, value=text[place])
            for kind, name, key, place in (
                (4, f"9{number}", "plugin.setting", "a broker's unknown setting"),
                (4, f"8{number}", "listener.name.x.ssl.key.password", "a broker's password"),
                (4, f"7{number}", "listener.name.x.plain.sasl.jaas.config", "a listener's JAAS"),
                (2, f"s{number}", "confluent.thing", "a topic's unknown setting"),
            )
        ]
        parts = {
            "salt": PLANTED.secrets[form, "a user's salt"].encode(),
            "storedKey": PLANTED.secrets[form, "a user's stored key"].encode(),
            "serverKey": PLANTED.secrets[form, "a user's server key"].encode(),
        }
        records.append(record("USER_SCRAM_CREDENTIAL_RECORD", name=f"u{number}", mechanism=1, iterations=4096, **parts))
        append(logs, records, NOW + number)
    return logs


def suites(folder: Path) -> list[str]:
    """Suites that no row meets, so that whole rows of every table of state are told."""
    paths = []
    for table in ("configs", "scram_credentials", "client_quotas", "findings", "delegation_tokens"):
        query = "SELECT * FROM {batch} WHERE true"
        content = {
            "name": table,
            "meta": {"table": f"silver.{table}"},
            "expectations": [{"type": "unexpected_rows_expectation", "kwargs": {"unexpected_rows_query": query}}],
        }
        path = folder / f"{table}.json"
        path.write_text(json.dumps(content))
        paths.append(str(path))
    return paths


@contextmanager
def overheard(path: Path) -> Iterator[None]:
    """Have everything that this process and Java say on the terminal, and Python's log to its last word, in a file."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    root = logging.getLogger()
    # A test that ran before in this process may have quietened a library's logger: this one hears them all.
    loggers = [root, *(logging.getLogger(name) for name in logging.root.manager.loggerDict)]
    before = [logger.level for logger in loggers]
    root.addHandler(handler)
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    kept = [os.dup(1), os.dup(2)]
    with path.open("wb") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
        # Where the tests capture what Python writes, it goes to no descriptor.
        text = io.TextIOWrapper(path.open("ab"), write_through=True)
        try:
            with redirect_stdout(text), redirect_stderr(text):
                yield
        finally:
            for number, descriptor in enumerate(kept, 1):
                os.dup2(descriptor, number)
                os.close(descriptor)
            root.removeHandler(handler)
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)
    path.with_suffix(".log").write_text(said.getvalue())


@dataclass(frozen=True)
class Run:
    """What a run over the planted secrets left: its folder, and its audits."""

    folder: Path
    inputs: Path
    audits: dict[str, Audit]


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    inputs, folder = tmp_path_factory.mktemp("inputs"), tmp_path_factory.mktemp("outputs")
    temporary = folder / "temporary"
    temporary.mkdir()
    kraft = {"folders": [str(log_with_secrets(inputs))]}
    sources: dict[str, Content] = {
        "dump": {"dump": str(dump_with_secrets(inputs))},
        "data-folder": {"folder": str(folder_with_secrets(inputs))},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_ENCODER_SECRET", ENCODER_SECRET)
        patch.setattr(tempfile, "tempdir", str(temporary))
        more = {
            "kraft": kraft,
            "secrets": {"password_encoder_secret_envs": ["TEST_ENCODER_SECRET"]},
            "expectations": suites(inputs),
        }
        contents = [
            settings_content(capture("3.9.1", "5"), folder, cluster=name, zookeeper=zookeeper, **more)
            for name, zookeeper in sources.items()
        ]
        with overheard(folder / "terminal.txt"):
            made = audits([*contents])
            logs = sorted((inputs / "kraft").rglob("0*.log"))
            # `--debug` leaves its variable set, for Spark's workers; it is of this run only.
            patch.setenv(DEBUG_VARIABLE, "1")
            main(["--debug", "dump", str(logs[0])])
    for name, audit in made.items():
        write_report(audit.report, folder / "pages" / name)
        (folder / f"{name}.eml").write_bytes(bytes(render_mail(audit.report)))
        (folder / f"{name}.txt").write_text(render_text(audit.report))
    return Run(folder, inputs, made)


def everything(run: Run) -> dict[str, list[bytes]]:
    """The contents of all that was written or said, by sink."""
    files = [path for path in run.folder.rglob("*") if path.is_file()]
    parquet = [path for path in files if path.suffix == ".parquet"]
    reports = [each.report for each in run.audits.values()]
    return {
        "tables, read": [repr(pq.read_table(path).to_pylist()).encode() for path in parquet],
        "tables, as files": [path.read_bytes() for path in files if "_delta_log" in path.parts or path in parquet],
        "report.json": [to_json(report).encode() for report in reports],
        "report.html": [render_html(report).encode() for report in reports],
        "mails": [path.read_bytes() for path in files if path.suffix == ".eml"],
        "terminal and dump command": [(run.folder / "terminal.txt").read_bytes()],
        "log at its most talkative": [(run.folder / "terminal.log").read_bytes()],
        "expectations": [repr(each).encode() for report in reports for each in report.expectations],
        "temporary files": [path.read_bytes() for path in files if "temporary" in path.parts] or [b"-"],
        "all other files": [path.read_bytes() for path in files if path not in parquet],
    }


def test_planted_and_found(run: Run) -> None:
    sinks = everything(run)
    table = {name: (sum(map(len, parts)), sum(len(found_in(part)) for part in parts)) for name, parts in sinks.items()}
    print(f"\nplanted {len(PLANTED.secrets)} secrets: {len(FORMS)} forms in {len(PLACES)} places, ZooKeeper and KRaft")
    for name, (size, found) in table.items():
        print(f"{name:28} {size:12,} bytes   found {found}")
    assert {name: found for name, (_, found) in table.items() if found} == {}
    empty = [name for name, (size, _) in table.items() if size == 0]
    assert empty == []


def test_what_was_looked_for_can_be_found(run: Run) -> None:
    """Each secret is in what was read, by the needles that were looked for, and its znode in what was stored."""
    data = b"\n".join(text.encode() for text in PLANTED.znodes.values())
    assert set(found_in(data)) == PLANTED.secrets.keys()
    log = (run.inputs / "zookeeper" / "version-2" / "log.53f").read_bytes()
    assert set(found_in(log)) == PLANTED.secrets.keys()
    stored = b"".join(everything(run)["tables, read"])
    for path in PLANTED.znodes:
        # Another application's path is stored where one transaction touches it and Kafka's; its data never is.
        assert path.startswith(("/solr", "/app")) or path.encode() in stored, path


def test_not_in_what_spark_records_of_itself(run: Run, tmp_path: Path) -> None:
    """Spark's event log, for its history server, holds every query with its plan, its settings and its errors."""
    events = tmp_path / "events"
    events.mkdir()
    (tmp_path / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.compress false\nspark.eventLog.dir {events.as_uri()}\n"
    )
    confs = []
    for name, source in (("dump", {"dump": "zookeeper.jsonl.gz"}), ("data-folder", {"folder": "zookeeper"})):
        zookeeper = {kind: str(run.inputs / place) for kind, place in source.items()}
        kraft = {"folders": [str(run.inputs / "kraft")]}
        content = settings_content(run.inputs, tmp_path, cluster=name, zookeeper=zookeeper, kraft=kraft)
        confs.append(tmp_path / f"{name}.yml")
        confs[-1].write_text(json.dumps(content))
    done = subprocess.run(
        [sys.executable, "-m", "jobs.cli", "run", "--conf", *map(str, confs)],
        env={**os.environ, "SPARK_CONF_DIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 10, 20), done.stderr
    assert found_in(done.stdout + done.stderr) == []
    logs = [path.read_bytes() for path in events.rglob("*") if path.is_file()]
    assert any(b"SparkListenerSQLExecutionStart" in log for log in logs)
    assert [found_in(log) for log in logs if found_in(log)] == []


def test_equal_secrets_still_compare_as_equal(run: Run) -> None:
    for audit in run.audits.values():
        rows = [row for row in audit.report.divergences.rows if row.entity == "configs" and row.kind == "value"]
        assert rows == []
        assert any(each.suite == "configs" and each.sample for each in audit.report.expectations)
