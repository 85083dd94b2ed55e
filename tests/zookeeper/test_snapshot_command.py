"""The dump command, the Spark data source, and two walks around a log copy."""

from __future__ import annotations

import gzip
import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from kazoo.client import KazooClient
from pyspark.sql import SparkSession

from jobs.commands import snapshot_zookeeper
from jobs.commands.demo.zookeeper_server import zookeeper_server
from jobs.sources.zookeeper.datasource import ZooKeeperDataSource
from jobs.sources.zookeeper.dump import read_dump
from jobs.sources.zookeeper.live import read_live
from jobs.sources.zookeeper.walk import LiveSettings
from schemas.bronze import ZNODE_COLUMNS
from tests.captures import capture
from tests.zookeeper.test_state import secrets_of
from tests.zookeeper.trees import ENCODER_SECRET, FINGERPRINT, REDACTOR, codes, dump_batches, state_rows
from transforms.frames import columns_of, from_arrow
from transforms.secrets import Fingerprinter
from transforms.zookeeper.read.bracket import bracket, moved_znodes
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.storage.chroot import needed

STAGE = ("3.9.1", "5-dual-write-changed")
OTHER = Redactor(Fingerprinter(b"another key"))


def test_a_written_dump_is_the_live_tree_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "dump.jsonl.gz"
    monkeypatch.setenv("AUDIT_KEY", FINGERPRINT.key.decode())
    monkeypatch.setenv("ENCODER", ENCODER_SECRET)
    with zookeeper_server(capture(*STAGE) / "zookeeper") as server:
        arguments = ["--connect", server.address, "--out", str(out), "--fingerprint-key-env", "AUDIT_KEY"]
        assert snapshot_zookeeper.main([*arguments, "--password-encoder-secret-env", "ENCODER"]) == 0
        live = [row for batch in read_live(LiveSettings(server.address), REDACTOR) for row in batch.to_pylist()]
    # What was written is read back as it is, whatever key the reader has: the secrets are gone already.
    read = [row for batch in read_dump(out, OTHER) for row in batch.to_pylist()]
    assert sorted(read, key=by_path) == sorted(live, key=by_path)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    text = gzip.decompress(out.read_bytes()).decode()
    assert not [secret for secret in secrets_of(*STAGE) if secret in text]
    assert "321 znodes" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [out]


def by_path(row: dict[str, Any]) -> str:
    return str(row["path"])


def test_usage_and_failures_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AUDIT_KEY", "k")
    arguments = ["--connect", "127.0.0.1:1", "--out", str(tmp_path / "d.jsonl")]
    assert snapshot_zookeeper.main([*arguments, "--fingerprint-key-env", "NOT_SET_HERE"]) == 2
    assert capsys.readouterr().err == (
        "kraft-audit snapshot-zookeeper: the environment variable NOT_SET_HERE is not set\n"
    )
    nowhere = ["--connect", "127.0.0.1:1", "--out", str(tmp_path / "no" / "d.jsonl")]
    assert snapshot_zookeeper.main([*nowhere, "--fingerprint-key-env", "AUDIT_KEY"]) == 2
    assert "No such file or directory" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SystemExit, match="2"):
        snapshot_zookeeper.main([*arguments, "--fingerprint-key-env", "AUDIT_KEY", "--window", "0"])
    assert "'0' is not a number from 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--connect", "zk1:99999"], "--connect: server 1 of 1 has no valid host:port"),
        (["--connect", "http://zk1:2181"], "--connect: server 1 of 1 has no valid host:port"),
        (
            ["--connect", "zk1", "--auth", "digest", "--username", "ann"],
            "--auth digest needs --username and --password-env",
        ),
        (
            ["--connect", "zk1", "--auth", "sasl-digest-md5"],
            "--auth sasl-digest-md5 needs --username and --password-env",
        ),
        (["--connect", "zk1", "--tls-key", "key.pem"], "--tls-key needs --tls-cert"),
    ],
)
def test_options_that_reach_no_server_are_refused(
    options: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AUDIT_KEY", "k")
    arguments = [*options, "--out", str(tmp_path / "zk.jsonl"), "--fingerprint-key-env", "AUDIT_KEY"]
    assert snapshot_zookeeper.main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"kraft-audit snapshot-zookeeper: {said}")
    assert err.count("\n") == 1


def test_the_command_needs_kazoo_alone() -> None:
    program = (
        "import sys, jobs.commands.snapshot_zookeeper\n"
        "heavy = {'pyspark', 'pyarrow', 'numpy', 'pandas', 'cryptography', 'delta', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")


def test_lines_that_are_no_znodes_are_findings(tmp_path: Path) -> None:
    lines = gzip.decompress((capture(*STAGE) / "zookeeper.jsonl.gz").read_bytes()).decode().splitlines()
    good = json.loads(lines[5])
    bad = [
        "{",
        "[]",
        "[" * 100_000,
        "5",
        json.dumps({**good, "path": "relative"}),
        json.dumps({**good, "czxid": "1"}),
        json.dumps({**good, "mzxid": 2**63}),
        json.dumps({**good, "version": 2**31}),
        json.dumps({**good, "data_base64": "$$"}),
        json.dumps({**good, "data_base64": 7}),
        json.dumps({**good, "acl": [["x"]]}),
        json.dumps({**good, "acl": 5}),
    ]
    for name, compress in (("d.jsonl", False), ("d.jsonl.gz", True)):
        content = "\n".join([lines[0], *bad, "", lines[1]]).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if compress else content)
        batches = list(read_dump(tmp_path / name, REDACTOR, batch_rows=5))
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert [row["path"] for row in rows if not row["problem"]] == ["/", "/admin"]
        assert [row["path"] for row in rows if row["problem"]] == [f"{name}: line {n}" for n in range(2, 2 + len(bad))]
        assert codes(state_rows(batches)) == ["CAP-07"] * len(bad)


def test_a_dump_cut_short_is_told(tmp_path: Path) -> None:
    whole = (capture(*STAGE) / "zookeeper.jsonl.gz").read_bytes()
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    rows = [row for batch in read_dump(tmp_path / "cut.jsonl.gz", REDACTOR) for row in batch.to_pylist()]
    assert [row["path"][:22] for row in rows if row["problem"]] == ["cut.jsonl.gz: after li"]
    assert len(rows) > 50


def problems(lines: list[bytes], file: Path) -> list[str]:
    file.write_bytes(b"".join(lines))
    return [row["problem"] for batch in read_dump(file, REDACTOR) for row in batch.to_pylist() if row["problem"]]


def lines_of(version: str, stage: str) -> list[bytes]:
    return gzip.decompress((capture(version, stage) / "zookeeper.jsonl.gz").read_bytes()).splitlines(keepends=True)


def test_a_dump_cut_at_the_end_of_a_line_is_told(tmp_path: Path) -> None:
    """The lines are in the order of their paths: what the last ones lack is told by what every cluster has."""
    lines = lines_of("3.9.1", "1")
    paths = [json.loads(line)["path"] for line in lines]
    cut = tmp_path / "cut.jsonl"
    assert problems(lines, cut) == []
    first, last = paths.index("/admin/delete_topics") + 1, paths.index("/log_dir_event_notification")
    for end in (first, paths.index("/config"), paths.index("/kafka-acl") + 1, last):
        [told, *_] = problems(lines[:end], cut)
        assert told.startswith("the dump is not whole: every cluster has ")
        assert told.endswith("/log_dir_event_notification, which are not in it")
    without_types = [line for line, path in zip(lines, paths, strict=True) if not path.startswith("/kafka-acl/")]
    assert problems(without_types, cut) == ["the dump is not whole: /kafka-acl has 6 children, 0 of them are in it"]


def test_what_goes_away_while_a_live_tree_is_dumped_is_not_missed(tmp_path: Path) -> None:
    gone = (
        "/brokers/topics/orders",
        "/brokers/ids/0",
        "/controller",
        "/kafka-acl/Topic/",
        "/config/changes/",
        "/migration",
    )
    lines = [line for line in lines_of("3.9.1", "5") if not json.loads(line)["path"].startswith(gone)]
    assert problems(lines, tmp_path / "live.jsonl") == []


def test_the_data_source(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.dataSource.register(ZooKeeperDataSource)
    folder = capture(*STAGE) / "zookeeper"
    rows = {
        row["path"]: row.asDict(recursive=True) for row in spark.read.format("zookeeper").load(str(folder)).collect()
    }
    dumped = {row["path"]: row for batch in map(needed, dump_batches(*STAGE)) for row in batch.to_pylist()}
    assert rows.keys() == dumped.keys()
    hidden = {path for path, row in dumped.items() if row["redacted"]}
    assert {path: row for path, row in rows.items() if path not in hidden} == {
        path: row for path, row in dumped.items() if path not in hidden
    }
    early = spark.read.format("zookeeper").option("zxid", "0x100").load(str(folder))
    assert early.agg({"mzxid": "max"}).collect()[0][0] <= 0x100


def test_two_walks_keep_what_stood_still() -> None:
    def walked(address: str) -> pl.DataFrame:
        return from_arrow(read_live(LiveSettings(address), REDACTOR), columns_of(ZNODE_COLUMNS))

    with zookeeper_server(capture(*STAGE) / "zookeeper") as server:
        before = walked(server.address)
        writer = KazooClient(server.address)
        writer.start()
        writer.set("/config/topics/wide", b'{"version":1,"config":{}}')
        writer.create("/config/topics/new", b"")
        writer.delete("/config/ips/10.1.2.4")
        writer.delete("/config/ips/10.1.2.3")
        writer.create("/config/ips/10.1.2.3", b"")
        writer.stop()
        writer.close()
        after = walked(server.address)

    still, nothing = bracket(before, before)
    assert still.sort("path").equals(before.sort("path"))
    assert nothing.is_empty()
    kept, moved = bracket(before, after)
    changes = {
        "/config/topics/wide": "data",
        "/config/topics/new": "appeared",
        "/config/ips/10.1.2.4": "vanished",
        "/config/ips/10.1.2.3": "recreated",
    }
    assert {row["path"]: row["moved"] for row in moved.to_dicts()} == changes
    assert set(kept["path"]) == set(after["path"]) - changes.keys()
    assert kept.columns == after.columns


def test_a_walk_alone_tells_nothing_of_what_moved() -> None:
    columns = {"path": ["/a", "/b", "/c"], "czxid": [1, 1, 1], "mzxid": [2, None, 2], "aversion": [0, 0, 0]}
    before = pl.DataFrame(columns)
    after = before.with_columns(aversion=pl.Series([0, 0, 1]))
    assert moved_znodes(before, None) is None
    moved = moved_znodes(before, after)
    assert moved is not None
    assert moved.to_dicts() == [{"path": "/c", "moved": "acl", "mzxid_before": 2, "mzxid_after": 2}]
