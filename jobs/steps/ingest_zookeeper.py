"""Step 1: the ZooKeeper trees into bronze `zk_znodes`, and the content of their transaction logs.

Trees in files are read by the workers, all clusters' in one query; live ensembles are walked side by side from the
driver, which has the network and the identity.
"""

from __future__ import annotations

import hashlib
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from jobs.evidence.inputs import size_of
from jobs.exit import UsageError
from jobs.places import Place, RemotePlace
from jobs.run.run import LOG, Run, note_risk, now_ms
from jobs.run.steps import step_main
from jobs.runtime.workers import failure, in_workers, reason_of, with_columns
from jobs.settings import Settings, ZooKeeperSettings, ZooKeeperTls, secret_from_environment, zookeeper_risk
from jobs.sources.remote import staged
from jobs.sources.zookeeper.dump import read_dump
from jobs.sources.zookeeper.folder import DataFolder, ZooKeeperFolderError, of_a_server
from jobs.sources.zookeeper.live import read_live
from jobs.sources.zookeeper.walk import LiveSettings, SaslSettings, TlsSettings, WalkSummary, ZooKeeperWalkError
from jobs.sources.zookeeper.writes import (
    BARRIER,
    OPERATION,
    TRANSACTION_LOG,
    WRITE,
    last_barrier,
    read_writes,
    unread_logs,
)
from jobs.steps.ingest_kraft import Copies, scan_logs
from schemas.bronze import ZK_TRANSACTIONS, ZK_ZNODES, ZNODE_COLUMNS
from schemas.silver import BARRIERS, ZOOKEEPER_WRITES
from schemas.zookeeper.trees import TREE, TREE_COLUMN
from transforms.clusters import CLUSTER
from transforms.kraft.quorum import LogCopy
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.storage.chroot import needed
from transforms.zookeeper.storage.limits import LargeZnodes, TooLargeError

_CLUSTER = StructField(CLUSTER, StringType())
_WALKED = StructType([_CLUSTER, StructField("snapshot_id", StringType()), TREE_COLUMN, *ZNODE_COLUMNS])
_TRANSACTION_LOGS = StructType([_CLUSTER, *TRANSACTION_LOG.fields])
# A live tree is written in parts of this many znodes: about 100 MB of driver memory.
_PART_ROWS = 200_000
_WALKS_AT_ONCE = 8


@dataclass(frozen=True)
class TreeFiles:
    """Where a cluster's tree lies in files. `leading` is the metadata log's most advanced copy, if there is one."""

    cluster: str
    snapshot_id: str
    redactor: Redactor
    dump: Place | None = None
    folder: Place | None = None
    log_folder: Place | None = None
    leading: LogCopy | None = None

    def trees(self) -> Iterator[tuple[str | None, pa.RecordBatch]]:
        """Yield (`tree`, batch of `ZNODE_COLUMNS`): of a folder, also that at the last barrier the metadata log reaches."""
        if self.dump is not None:
            with _here(self.dump) as file:
                yield from ((None, needed(batch)) for batch in read_dump(file, self.redactor))
            return
        with self._folder() as folder:
            barrier = None if self.leading is None else last_barrier(folder, self.leading)
            yield from ((tree, needed(batch)) for tree, batch in folder.trees(self.redactor, barrier))

    def history(self) -> Iterator[pa.RecordBatch]:
        """Yield the folder's transaction logs as batches of `TRANSACTION_LOG`."""
        with self._folder() as folder:
            yield from read_writes(folder, self.redactor)

    @contextmanager
    def _folder(self) -> Iterator[DataFolder]:
        if self.folder is None:
            raise AssertionError("the settings allow exactly one source")
        with _here(self.folder) as folder, _here(self.log_folder or self.folder) as logs:
            try:
                yield DataFolder(folder, logs if self.log_folder else None)
            except ZooKeeperFolderError as error:
                raise ZooKeeperFolderError(str(error).replace(str(folder), str(self.folder))) from None


@contextmanager
def _here(place: Place) -> Iterator[Path]:
    """The files as they lie on this machine; those of another file system are copied while the block runs."""
    with staged(place.uri, of_a_server) if isinstance(place, RemotePlace) else nullcontext(place) as path:
        yield path


def run_step(run: Run) -> None:
    """Read each cluster's ZooKeeper source into bronze; nothing to do for those that have none."""
    sources = {name: settings.zookeeper for name, settings in run.settings_of().items() if settings.zookeeper}
    if not sources:
        return
    for name in sources:
        run.clusters[name].walks = [_new_walk(run)]
    # The log's end decides at which barrier a folder is read. A live log is not read until the live tree was walked.
    logs = scan_logs(run, [name for name, source in sources.items() if source.folder])
    files = _files(run, sources, logs)
    walked = _walk_all(run, {name: source for name, source in sources.items() if source.connect}, 0)
    trees = in_workers(run.spark, files, _read_tree, _WALKED, sum(map(_size, files)))
    if files:
        run.keep(ZK_ZNODES, trees, series=_series(run, sources))
    if walked is not None:
        run.keep(ZK_ZNODES, walked, series=f"{_series(run, sources)}/live")
    folders = [each for each in files if each.folder is not None]
    if folders:
        _keep_history(run, folders)


def run_second_walk(run: Run) -> None:
    """Walk live ensembles again after the logs were read, where the configuration asks for a bracket (S§5.5)."""
    sources = {
        name: settings.zookeeper
        for name, settings in run.settings_of().items()
        if settings.zookeeper is not None and settings.bracketed
    }
    if not sources:
        return
    for name in sources:
        run.clusters[name].walks = [run.clusters[name].walks[0], _new_walk(run)]
    walked = _walk_all(run, sources, 1)
    if walked is not None:
        run.keep(ZK_ZNODES, walked, series=_series(run, sources))


def _new_walk(run: Run) -> str:
    """A separate snapshot_id for every walk, so that a repeated walk never mixes with rows of the first one."""
    return f"{run.run_id}/{secrets.token_hex(3)}"


def _series(run: Run, sources: Iterable[str]) -> str:
    """Names the walks that were just made: a step that is repeated walks again, and a bracket walks twice."""
    walks = "\n".join(run.clusters[name].walks[-1] for name in sorted(sources))
    return hashlib.sha256(walks.encode()).hexdigest()[:16]


def _files(run: Run, sources: Mapping[str, ZooKeeperSettings], logs: Mapping[str, Copies]) -> list[TreeFiles]:
    files = []
    for name, source in sources.items():
        if source.connect is not None:
            continue
        try:
            redactor = Redactor(run.fingerprinter, _encoder_secrets(run.clusters[name].settings))
        except UsageError as error:
            run.fail(name, error)
            continue
        plan = logs[name].plan if name in logs else None
        files.append(
            TreeFiles(
                name,
                run.clusters[name].walks[0],
                redactor,
                source.dump,
                source.folder,
                source.log_folder,
                plan.leading if plan is not None else None,
            )
        )
    return files


def _size(files: TreeFiles) -> int:
    return sum(size_of(str(path)) for path in (files.dump, files.folder, files.log_folder) if path is not None)


def _read_tree(files: TreeFiles) -> Iterator[pa.RecordBatch]:
    names = {CLUSTER: files.cluster, "snapshot_id": files.snapshot_id}
    large = LargeZnodes()
    try:
        for tree, batch in files.trees():
            yield with_columns(large.add(batch), {**names, TREE: tree})
    except Exception as error:
        yield failure(to_arrow_schema(_WALKED), names, error)


def _read_writes(files: TreeFiles) -> Iterator[pa.RecordBatch]:
    try:
        for batch in files.history():
            yield with_columns(batch, {CLUSTER: files.cluster})
    except Exception as error:
        # The tree was read at another time, and a remote folder is copied for each: it does not show what happened here.
        why = (
            f"ZooKeeper's transaction logs in {files.log_folder or files.folder} could not be read: {reason_of(error)}"
        )
        yield with_columns(unread_logs(why), {CLUSTER: files.cluster})


def _keep_history(run: Run, folders: Sequence[TreeFiles]) -> None:
    """Each table reads the logs for itself: cached rows would be held by every Spark session, or by none."""
    kinds = {field.name: field.dataType for field in TRANSACTION_LOG}
    for table, kind in ((ZK_TRANSACTIONS, OPERATION), (BARRIERS, BARRIER), (ZOOKEEPER_WRITES, WRITE)):
        history = in_workers(run.spark, folders, _read_writes, _TRANSACTION_LOGS, sum(map(_size, folders)))
        run.keep(table, history.then(partial(_of_kind, kind), StructType([_CLUSTER, *cast(StructType, kinds[kind])])))


def _of_kind(kind: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a transaction log that are of one kind, with that kind's columns."""
    for batch in batches:
        mine = batch.filter(pc.is_valid(batch[kind]))
        own = mine[kind]
        yield pa.RecordBatch.from_arrays(
            [mine[CLUSTER], *own.flatten()], [CLUSTER, *(field.name for field in own.type)]
        )


@dataclass
class _LiveWalk:
    """A live tree on its way: rows still in memory, and how many parts have gone to bronze."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    parts: int = 0


def _walk_all(run: Run, sources: Mapping[str, ZooKeeperSettings], number: int) -> pa.Table | None:
    """Walk ensembles side by side; a bounded number of each one's znodes is held at a time. None without any."""
    if not sources:
        return None
    with ThreadPoolExecutor(_WALKS_AT_ONCE) as pool:
        walks = {name: pool.submit(_walk, run, name, source, number) for name, source in sources.items()}
    tables = []
    for name, walk in walks.items():
        try:
            found = walk.result()
            tables += found.batches
        except Exception as error:
            run.fail(name, error)
    # A chroot that is not there is walked without a znode.
    return _of_run(run, tables)


def _walk(run: Run, name: str, source: ZooKeeperSettings, number: int) -> _LiveWalk:
    cluster, walk, summary, large = run.clusters[name], _LiveWalk(), WalkSummary(), LargeZnodes()
    names = {CLUSTER: name, "snapshot_id": cluster.walks[number], TREE: None}
    redactor = Redactor(run.fingerprinter, _encoder_secrets(cluster.settings))
    if number == 0:
        # /migration is the first znode of a walk.
        cluster.walked_at_ms = now_ms()
        note_risk(run, name, zookeeper_risk(source))
    try:
        for batch in read_live(live_settings(source), redactor, summary, lambda n: run.counted(name, n, "znodes")):
            walk.batches.append(with_columns(large.add(batch), names))
            walk.rows += batch.num_rows
            if walk.rows >= _PART_ROWS:
                _store_part(run, walk, cluster.walks[number])
    except (ZooKeeperWalkError, TooLargeError) as error:
        raise UsageError(f"ZooKeeper {source.connect}: {error}") from error
    if walk.parts and walk.batches:
        _store_part(run, walk, cluster.walks[number])
    cluster.notes.append(
        f"ZooKeeper was walked live from zxid {summary.first_zxid:#x} to {summary.last_zxid:#x}: {summary.znodes} znodes, "
        f"{summary.denied} denied, {summary.vanished} vanished on the way, {summary.reconnects} reconnects"
    )
    LOG.info("%s: %s", name, cluster.notes[-1])
    return walk


def _store_part(run: Run, walk: _LiveWalk, snapshot_id: str) -> None:
    rows = _of_run(run, walk.batches)
    walk.parts += 1
    walk.batches, walk.rows = [], 0
    run.append(ZK_ZNODES, rows, walk.parts, snapshot_id)


def _of_run(run: Run, walked: Sequence[pa.RecordBatch]) -> pa.Table:
    """Znodes of live trees as rows of this run."""
    rows = pa.Table.from_batches(walked, to_arrow_schema(_WALKED))
    return rows.append_column("run_id", pa.repeat(pa.scalar(run.run_id, pa.string()), rows.num_rows))


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
        patience_seconds=source.patience_seconds,
        max_depth=source.max_depth,
        max_znodes=source.max_znodes,
        max_minutes=source.max_minutes,
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


def _encoder_secrets(settings: Settings) -> tuple[str, ...]:
    names = settings.secrets.password_encoder_secret_envs
    return tuple(secret_from_environment(name, "`secrets.password_encoder_secret_envs`") for name in names)


def _alone(run: Run) -> None:
    """The step alone: the walk, or after the logs were read the second one of a bracket."""
    again = all(cluster.walks for cluster in run.clusters.values()) and "ingest_kraft" in run.steps_done
    (run_second_walk if again else run_step)(run)


def main(argv: list[str] | None = None) -> int:
    """Entry point of the step alone."""
    return step_main("ingest_zookeeper", _alone, argv)


if __name__ == "__main__":
    sys.exit(main())
