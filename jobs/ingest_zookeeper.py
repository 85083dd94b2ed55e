"""Step 1: the ZooKeeper tree into bronze `zk_znodes`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.run import Run, step_main
from jobs.settings import ZooKeeperSettings, secret_from_environment
from jobs.sources.zookeeper_dump import read_dump
from schemas.bronze import ZK_ZNODES, ZNODE_COLUMNS
from transforms.zookeeper.redact import Redactor

_ZNODE = StructType(list(ZNODE_COLUMNS))
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
    if source.dump is not None:
        dump: Path = source.dump
        return lambda: read_dump(dump, redactor)
    raise AssertionError("settings allow one source")


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
