"""Step 1: the ZooKeeper tree into bronze `zk_znodes`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.audit.run import LOG, Run, step_main
from jobs.exit import UsageError
from jobs.settings import ZooKeeperSettings, ZooKeeperTls, secret_from_environment
from jobs.sinks.delta import in_parallel
from jobs.sources.zookeeper.dump import read_dump
from jobs.sources.zookeeper.folder import ZooKeeperFolderError, read_folder, read_log
from jobs.sources.zookeeper.history import read_barriers, read_transaction_rows, read_writes
from jobs.sources.zookeeper.live import read_live
from jobs.sources.zookeeper.walk import LiveSettings, SaslSettings, TlsSettings, WalkSummary, ZooKeeperWalkError
from jobs.steps.ingest_kraft import find_copies
from schemas.bronze import RUN_COLUMNS, ZK_TRANSACTIONS, ZK_ZNODES, ZNODE_COLUMNS
from schemas.silver import BARRIERS, ZOOKEEPER_WRITES
from schemas.zookeeper.history import BARRIER_COLUMNS, WRITE_COLUMNS
from transforms.zookeeper.read.redact import Redactor

_ZNODE = StructType(list(ZNODE_COLUMNS))
_BARRIER = StructType(list(BARRIER_COLUMNS))
_WRITE = StructType(list(WRITE_COLUMNS))
_TRANSACTION = StructType(list(ZK_TRANSACTIONS.columns[len(RUN_COLUMNS) :]))
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
    elif source.folder is not None:
        _ingest_folder(run, source.folder, source.log_folder, redactor)
    else:
        dump = source.dump
        if dump is None:
            raise AssertionError("the settings allow exactly one source")
        run.append(ZK_ZNODES, _snapshot(run, in_worker(run, lambda: read_dump(dump, redactor), _ZNODE)))


def run_second_walk(run: Run) -> None:
    """Walk a live ensemble again after the log was read, when the configuration asks for a bracket (S§5.5)."""
    source = run.settings.zookeeper
    if source is not None and source.bracket:
        redactor = Redactor(run.fingerprinter, _encoder_secrets(run))
        _ingest_live(run, source, redactor, second_walk(run.run_id))


def second_walk(run_id: str) -> str:
    """snapshot_id of a run's second walk; the first one's is the run id."""
    return f"{run_id}/after"


def _ingest_folder(run: Run, folder: Path, log_folder: Path | None, redactor: Redactor) -> None:
    """The tree at the last barrier the metadata log reaches, or at the end of the logs when there is none.

    At a barrier both sides are exact (S§5.5), and the two copies need not have been taken at the same moment.
    """
    check_folder(folder, log_folder)
    barriers = in_worker(run, lambda: read_barriers(folder, log_folder), _BARRIER).persist()
    writes = in_worker(run, lambda: read_writes(folder, log_location=log_folder), _WRITE).persist()
    zxid = _barrier_zxid(run, barriers, writes)
    tree = in_worker(run, lambda: read_folder(folder, redactor, log_location=log_folder, zxid=zxid), _ZNODE)
    operations = in_worker(run, lambda: read_transaction_rows(folder, redactor, log_folder), _TRANSACTION)
    in_parallel(
        [
            lambda: run.append(ZK_ZNODES, _snapshot(run, tree)),
            lambda: run.append(ZK_TRANSACTIONS, operations),
            lambda: run.replace(BARRIERS, barriers),
            lambda: run.replace(ZOOKEEPER_WRITES, writes),
        ]
    )


def check_folder(folder: Path, log_folder: Path | None) -> None:
    """Find out here, in the driver, that the folder holds nothing to read. Raises UsageError."""
    try:
        next(iter(read_log(folder, log_location=log_folder)), None)
    except ZooKeeperFolderError as error:
        raise UsageError(str(error)) from error


def _barrier_zxid(run: Run, barriers: DataFrame, writes: DataFrame) -> int | None:
    """Newest barrier below the metadata log's end, while a KRaft controller owns ZooKeeper; None to take the end."""
    if run.settings.kraft is None:
        return None
    owner = writes.where("kind IN ('claim', 'rollback')").orderBy(F.col("zxid").desc()).select("kind").first()
    if owner is None or owner["kind"] != "claim":
        return None
    plan = find_copies(run.settings.kraft.folders).plan
    if plan is None:
        return None
    reached = barriers.where(F.col("kraft_metadata_offset") < plan.leading.end)
    newest = (
        reached.orderBy(F.col("zxid").desc()).select("zxid", "kraft_metadata_offset", "kraft_metadata_epoch").first()
    )
    if newest is None or plan.leading.epoch_at(newest["kraft_metadata_offset"]) != newest["kraft_metadata_epoch"]:
        return None
    return int(newest["zxid"])


def _ingest_live(run: Run, source: ZooKeeperSettings, redactor: Redactor, snapshot_id: str | None = None) -> None:
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
                _append_part(run, batches, parts, snapshot_id)
                batches, rows = [], 0
    except ZooKeeperWalkError as error:
        raise UsageError(f"ZooKeeper {source.connect}: {error}") from error
    _append_part(run, batches, parts + 1, snapshot_id)
    run.notes.append(
        f"ZooKeeper was walked live from zxid {summary.first_zxid:#x} to {summary.last_zxid:#x}: {summary.znodes} znodes, "
        f"{summary.denied} denied, {summary.vanished} vanished on the way, {summary.reconnects} reconnects"
    )
    LOG.info(run.notes[-1])


def _append_part(run: Run, batches: list[pa.RecordBatch], part: int, snapshot_id: str | None) -> None:
    if batches:
        rows = _snapshot(run, run.spark.createDataFrame(pa.Table.from_batches(batches), _ZNODE), snapshot_id)
        run.append(ZK_ZNODES, rows, part, "" if snapshot_id is None else "after")


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
        check_hostname=tls.verify_hostname,
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _secret(name: str | None, key: str) -> str:
    if name is None:
        raise UsageError(f"`{key}` is missing: name the environment variable that holds the password")
    return secret_from_environment(name, f"`{key}`")


def in_worker(run: Run, read: Reader, struct: StructType) -> DataFrame:
    """Rows of a reader that runs in one worker, so that they never pass through the driver."""

    def read_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from read()

    return run.spark.range(0, 1, 1, 1).mapInArrow(read_once, struct)


def _snapshot(run: Run, rows: DataFrame, snapshot_id: str | None = None) -> DataFrame:
    return rows.withColumn("snapshot_id", F.lit(snapshot_id or run.run_id))


def _encoder_secrets(run: Run) -> tuple[str, ...]:
    names = run.settings.secrets.password_encoder_secret_envs
    return tuple(secret_from_environment(name, "`secrets.password_encoder_secret_envs`") for name in names)


def main(argv: list[str] | None = None) -> int:
    """Entry point of the step alone."""
    return step_main("ingest_zookeeper", run_step, argv)


if __name__ == "__main__":
    sys.exit(main())
