"""A Spark data source for ZooKeeper's data folder: `spark.read.format("zookeeper").load(folder)`.

Register it once a session: `spark.dataSource.register(ZooKeeperDataSource)`. Options beside the path:

| option | meaning |
|---|---|
| logPath | `dataLogDir`, if the transaction logs lie elsewhere |
| zxid | the tree right after this transaction, decimal or 0x…; default: at the end of the logs |
| fingerprintKeyEnv | environment variable, on the workers, with the fingerprint key; default: a key made for this read |
| passwordEncoderSecretEnvs | variables with brokers' `password.encoder.secret`, separated by commas |
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from jobs.sources.zookeeper.folder import ZooKeeperFolderError, read_folder
from schemas.bronze import ZNODE_COLUMNS
from transforms.secrets import Fingerprinter
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.storage.chroot import needed


class ZooKeeperDataSource(DataSource):
    """The tree of a data folder as rows of `ZNODE_COLUMNS`."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "zookeeper"

    def schema(self) -> StructType:
        """Return the columns."""
        return StructType(list(ZNODE_COLUMNS))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader. Raises ZooKeeperFolderError for a missing path or a zxid that is not a number."""
        return _FolderReader(dict(self.options))


class _FolderReader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        if "path" not in given:
            raise ZooKeeperFolderError("give the data folder: load(path)")
        self._path = given["path"]
        self._log_path = given.get("logpath")
        self._zxid = _number(given["zxid"]) if "zxid" in given else None
        self._key_env = given.get("fingerprintkeyenv")
        self._secret_envs = [name for name in given.get("passwordencodersecretenvs", "").split(",") if name]
        # Made here, so that every worker uses the same; it is never an option, which plans and logs would show.
        self._key = secrets.token_bytes(32)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the tree; one worker reads all of it, the driver none."""
        key = _variable(self._key_env).encode() if self._key_env else self._key
        redactor = Redactor(Fingerprinter(key), tuple(_variable(name) for name in self._secret_envs))
        yield from map(needed, read_folder(self._path, redactor, log_location=self._log_path, zxid=self._zxid))


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ZooKeeperFolderError(f"option zxid: '{text}' is not a number") from None


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise ZooKeeperFolderError(f"the environment variable {name} is not set on the worker")
    return value
