"""Step 1: the ZooKeeper tree into bronze `zk_znodes`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.exit import UsageError
from jobs.run import LOG, Run, step_main
from jobs.settings import ZooKeeperSettings, ZooKeeperTls, secret_from_environment
from jobs.sources.zookeeper_dump import read_dump
from jobs.sources.zookeeper_folder import read_folder
from jobs.sources.zookeeper_live import read_live
from jobs.sources.zookeeper_walk import LiveSettings, SaslSettings, TlsSettings, WalkSummary, ZooKeeperWalkError
from schemas.bronze import ZK_ZNODES, ZNODE_COLUMNS
from transforms.zookeeper.redact import Redactor

_ZNODE = StructType(list(ZNODE_COLUMNS))
# A live tree is written in parts of this many znodes: about 100 MB of driver memory.
_PART_ROWS = 200_000
Reader = Callable[[], Iterator[pa.RecordBatch]]


def run_step(run: Run) -> None:
    """Read the configured ZooKeeper source into bronze; nothing to do when the run has none."""
    source = run.settings.zookeeper
    if source is None:
        return
    redactor = Redactor(run.fingerprinter, _encoder_secrets(run))
    if source.connect is not None:
        _ingest_live(run, source, redactor)
    else:
        read = _file_reader(source, redactor)
        run.append(ZK_ZNODES, _snapshot(run, in_worker(run, read)))


def _file_reader(source: ZooKeeperSettings, redactor: Redactor) -> Reader:
    dump, folder, log_folder = source.dump, source.folder, source.log_folder
    if dump is not None:
        return lambda: read_dump(dump, redactor)
    if folder is None:
        raise AssertionError("the settings allow exactly one source")
    return lambda: read_folder(folder, redactor, log_location=log_folder)


def _ingest_live(run: Run, source: ZooKeeperSettings, redactor: Redactor) -> None:
    """Walk from the driver, which has the network and the identity; a bounded number of znodes is held at a time."""
    summary = WalkSummary()
    batches: list[pa.RecordBatch] = []
    parts, rows = 0, 0
    try:
        for batch in read_live(live_settings(source), redactor, summary):
            batches.append(batch)
            rows += batch.num_rows
            if rows >= _PART_ROWS:
                parts += 1
                _append_part(run, batches, parts)
                batches, rows = [], 0
    except ZooKeeperWalkError as error:
        raise UsageError(f"ZooKeeper {source.connect}: {error}") from error
    _append_part(run, batches, parts + 1)
    LOG.info("walked %d znodes, zxid %#x to %#x", summary.znodes, summary.first_zxid, summary.last_zxid)


def _append_part(run: Run, batches: list[pa.RecordBatch], part: int) -> None:
    if batches:
        rows = run.spark.createDataFrame(pa.Table.from_batches(batches), _ZNODE)
        run.append(ZK_ZNODES, _snapshot(run, rows), part)


def live_settings(source: ZooKeeperSettings) -> LiveSettings:
    """The walk's settings, secrets taken from the environment. Raises UsageError naming a variable that is not set."""
    auth, tls = source.auth, source.tls
    digest, sasl = None, None
    if auth is not None and auth.scheme == "digest":
        digest = f"{auth.username}:{_secret(auth.password_env, 'zookeeper.auth.password_env')}"
    elif auth is not None:
        mechanism = "GSSAPI" if auth.scheme == "sasl_gssapi" else "DIGEST-MD5"
        password = _secret(auth.password_env, "zookeeper.auth.password_env") if mechanism == "DIGEST-MD5" else None
        sasl = SaslSettings(mechanism, auth.username, password, auth.service)
    return LiveSettings(
        connect=source.connect or "",
        tls=None if tls is None else _tls(tls),
        sasl=sasl,
        digest=digest,
        read_only=source.read_only,
        window=source.window,
        requests_per_second=source.requests_per_second,
        session_timeout_seconds=source.session_timeout_seconds,
    )


def _tls(tls: ZooKeeperTls) -> TlsSettings:
    key_password = None
    if tls.key_password_env is not None:
        key_password = _secret(tls.key_password_env, "zookeeper.tls.key_password_env")
    return TlsSettings(
        ca_file=_text(tls.ca_file),
        cert_file=_text(tls.certificate_file),
        key_file=_text(tls.key_file),
        key_password=key_password,
        verify_certificates=tls.verify,
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _secret(name: str | None, key: str) -> str:
    if name is None:
        raise UsageError(f"`{key}` is missing: name the environment variable that holds the password")
    return secret_from_environment(name, f"`{key}`")


def in_worker(run: Run, read: Reader) -> DataFrame:
    """Rows of a reader that runs in one worker, so that the tree never passes through the driver."""

    def read_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from read()

    return run.spark.range(0, 1, 1, 1).mapInArrow(read_once, _ZNODE)


def _snapshot(run: Run, rows: DataFrame) -> DataFrame:
    return rows.withColumn("snapshot_id", F.lit(run.run_id))


def _encoder_secrets(run: Run) -> tuple[str, ...]:
    names = run.settings.secrets.password_encoder_secret_envs
    return tuple(secret_from_environment(name, "`secrets.password_encoder_secret_envs`") for name in names)


def main(argv: list[str] | None = None) -> int:
    """Entry point of the step alone."""
    return step_main("ingest_zookeeper", run_step, argv)


if __name__ == "__main__":
    sys.exit(main())
