"""Requirements of a warehouse's storage, and the errors if it does not meet them.

A Delta table is as safe as its storage: a commit must appear whole, and of two writers of the same version one must
be refused. How each storage does this:

| storage | a second writer is refused by |
| --- | --- |
| a local folder | the lock of `jobs.sinks.lock`: Delta itself checks first and then renames, which is safe in one process only |
| `abfs(s)://`, `wasb(s)://`, `gs://`, `hdfs://` | the storage: it creates a file only if there is none |
| `s3a://`, `s3://`, `s3n://` | nobody, unless a log store for several drivers is configured: see `refuse_unsafe` |
| a catalog, Databricks | their own commit service |
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa

from jobs.disk import REMEDIES
from jobs.exit import AuditError, UsageError
from jobs.runtime.databricks import on_databricks

PRIVATE = 0o700
_URI = re.compile(r"[a-z][a-z0-9+.-]+:")
_LOSSY_SCHEMES = ("s3", "s3a", "s3n")
_SAFE_SCHEMES = ("abfs", "abfss", "wasb", "wasbs", "gs", "hdfs", "viewfs", "dbfs")
# Storages that delta-rs can read, and where it looks for credentials: it does not read Spark's settings.
_WITHOUT_SPARK = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or the machine's role",
    "s3a": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or the machine's role",
    "abfs": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or the machine's identity",
    "abfss": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or the machine's identity",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "hdfs": "HADOOP_CONF_DIR",
}
# Messages of Hadoop and of the stores' clients, and their meaning for the user.
_REMOTE = (
    (
        ("No FileSystem for scheme", "FileSystem not found"),
        "Spark has no file system for {scheme}://; add the jars (docs/storage.md)",
    ),
    (
        ("NoAuthWithAWSException", "Unable to load credentials", "AzureCredentialNotFound"),
        "Spark has no credentials for it; provide them (docs/storage.md)",
    ),
    (
        ("UnknownStoreException", "NoSuchBucket", "FilesystemNotFound", "The specified bucket does not exist"),
        "there is no such bucket; make it",
    ),
    (
        ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessControlException", "Status Code: 403"),
        "it is refused; let this user list, read, write and delete there",
    ),
    (("UnknownHostException", "ConnectException", "Connection refused"), "nothing answers there; check the address"),
)
_SINGLE_DRIVER_STORE = "S3SingleDriverLogStore"
# Messages of Spark, Delta and delta-rs that do not contain the reason.
_NO_FOLDER = ("DELTA_CANNOT_CREATE_LOG_PATH", "Mkdirs failed to create", "Could not create local directory")
# delta-rs lets go of a file that the disk did not take, and of what the disk said.
_LET_GO = ("Upload aborted", "Already shut down")
# As Spark and delta-rs name a file of a table that is gone or damaged; that of delta-rs lacks its first slash.
# What a worker says of a file that it could not read itself.
_FILE_OF_TABLES = "a file of the tables can't be read: "
_UNREADABLE = re.compile(
    r"\[FAILED_READ_FILE\b[.\w]*\] Encountered error while reading file (\S+?)\.?(?:\s|$)"
    r"|Failed to fetch metadata for file (\S+\.parquet)"
    rf"|{_FILE_OF_TABLES}(\S.*\.parquet)"
)
_UNSAID = (
    (_NO_FOLDER, "a folder can't be created there; let this user write"),
    (_LET_GO, "the disk does not take a file; free space or check the disk"),
)
_MOST_CAUSES = 20


class WarehouseError(AuditError):
    """A table could not be written or read; the text names it and the remedy."""


def is_uri(root: str) -> bool:
    """True when the root names its file system, as `s3a://bucket/x` does."""
    return _URI.match(root) is not None


def folder_of(root: str, catalog: bool = False) -> Path | None:
    """The folder of a warehouse on this machine's file systems; None if commits do not go through this machine's file systems."""
    if catalog or on_databricks():
        return None
    if root.startswith("file:"):
        return Path(unquote(urlparse(root).path))
    return None if is_uri(root) else Path(root).absolute()


def unsafe_scheme(root: str, catalog: bool = False) -> str | None:
    """The scheme of a storage on which two drivers can overwrite each other's commits; None of any other."""
    scheme = root.partition(":")[0].lower()
    lossy = not catalog and is_uri(root) and scheme in _LOSSY_SCHEMES and not on_databricks()
    return scheme if lossy else None


def known_safe(root: str) -> bool:
    """True if the storage of this address creates a file only if none exists."""
    return root.partition(":")[0].lower() in _SAFE_SCHEMES


def refuse_unsafe(root: str, catalog: bool, single_driver: bool, configured: Callable[[str], str | None]) -> None:
    """Refuse to write where two drivers could overwrite each other's commits.

    `configured` looks up a setting of the Spark session. Raises UsageError unless a log store for several drivers is
    configured, or the configuration declares a `single_driver`.
    """
    scheme = unsafe_scheme(root, catalog)
    if scheme is None or single_driver:
        return
    key = f"spark.delta.logStore.{scheme}.impl"
    store = configured(key) or configured("spark.delta.logStore.class")
    if store is None or store.endswith(_SINGLE_DRIVER_STORE):
        raise UsageError(
            f"warehouse {root}: on {scheme}:// two runs at a time can overwrite each other's commits; set {key} in Spark "
            "(io.delta.storage.S3DynamoDBLogStore), or say `warehouse_single_driver: true` if only one run at a time "
            "ever writes here"
        )


def make_private(folder: Path) -> None:
    """Make the folder, and those above it, if it is missing; then its owner alone can look into it. Raises OSError."""
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(PRIVATE, exist_ok=True)


def storage_problem(error: BaseException, root: str, folder: Path | None) -> str | None:
    """The fault of the disk (full, failing, not writable) behind an error of a write, in one line; None if there is none.

    Spark hides the disk's own words in causes of causes, or in the text of a stack trace.
    """
    texts = list(_texts(error))
    reason = next((known for known in REMEDIES if any(known in text for text in texts)), None)
    if reason is None:
        what = next(
            (what for knowns, what in _UNSAID if any(known in text for known in knowns for text in texts)), None
        )
        return None if what is None else f"the warehouse {root} can't be written: {what}, and run again"
    full = _full_temporary(folder) if reason == os.strerror(errno.ENOSPC) else None
    where = f"the warehouse {root}" if full is None else f"the folder for temporary files {full}"
    return f"{where} can't be written: {reason}; {REMEDIES[reason]} and run again"


def remote_problem(error: BaseException, root: str) -> str | None:
    """The fault of an object store or HDFS behind an error of Spark's, in one line; None if there is none."""
    if not is_uri(root):
        return None
    texts = list(_texts(error))
    for said, meaning in _REMOTE:
        if any(each in text for each in said for text in texts):
            return f"the warehouse {root}: {meaning.format(scheme=root.partition(':')[0])}"
    return None


def read_without_spark(root: str, catalog: bool = False) -> bool:
    """True for tables that delta-rs may be able to read: in a folder, or on a storage that it supports."""
    if folder_of(root, catalog) is not None:
        return True
    return not (catalog or on_databricks()) and root.partition(":")[0].lower() in _WITHOUT_SPARK


def credentials_without_spark(root: str) -> str:
    """Environment variables from which delta-rs takes its credentials for this storage."""
    return _WITHOUT_SPARK.get(root.partition(":")[0].lower(), "")


def unreadable_file(error: BaseException) -> str | None:
    """The file of a table that could not be read because it is gone or damaged; None where an error is of something else."""
    found = next(filter(None, (_UNREADABLE.search(text) for text in _texts(error))), None)
    return None if found is None else found[1] or found[3] or f"/{found[2].removeprefix('/')}"


class UnreadableFileError(Exception):
    """A file of a table is gone or damaged; `unreadable_file` finds it in the text, however often that is quoted."""


@contextmanager
def file_of_tables(file: str) -> Iterator[None]:
    """While the block runs, report that the file cannot be read as UnreadableFileError."""
    try:
        yield
    except MemoryError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise UnreadableFileError(f"{_FILE_OF_TABLES}{file}") from error


def _texts(error: BaseException) -> Iterator[str]:
    """The texts of an error, its causes and the Java exceptions behind them."""
    seen: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if seen is None:
            return
        yield str(seen)
        yield str(getattr(seen, "_stackTrace", None) or "")
        seen = getattr(seen, "_cause", None) or seen.__cause__


def _full_temporary(folder: Path | None) -> Path | None:
    """The folder for temporary files when that is the full one: Spark puts aside there what memory does not hold."""
    temporary = Path(tempfile.gettempdir())
    if folder is None or not folder.exists() or not temporary.is_dir():
        return None
    if temporary.stat().st_dev == folder.stat().st_dev:
        return None
    free = {path: shutil.disk_usage(path).free for path in (folder, temporary)}
    return temporary if free[temporary] < free[folder] else None
