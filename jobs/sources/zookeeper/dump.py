"""A dumped ZooKeeper tree: one JSON object per line, plain or gzip (`.jsonl`, `.jsonl.gz`).

    {"path": "/controller_epoch", "data_base64": "NA==", "czxid": 31, "mzxid": 90, "pzxid": 31, "ctime": 1795233074159,
     "mtime": 1795233141874, "version": 4, "cversion": 0, "aversion": 0, "ephemeral_owner": 0, "data_length": 1,
     "num_children": 0, "acl": [[31, "world", "anyone"]]}

`data_base64` is null for null data and "" for empty data. A dump may hold `data` instead: the text, null for null
data, and with `"redacted": true` the dumping side has replaced the secrets in it by fingerprints already. What could
not be read has the reason in `problem`, and then a line may have no more than that and the path. Times are milliseconds.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

from schemas.zookeeper.paths import GROWING, TOP_LEVEL
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.read.reading import whole_characters
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.read.znode import AclEntry, Znode, unreadable
from transforms.zookeeper.storage.limits import MAX_ZNODE_BYTES, groups, too_large, znode_bytes

BATCH_ROWS = 10_000
# The largest znode in base64 or, as a text, with most of its characters escaped; a longer line must not fill memory.
MAX_LINE_BYTES = 2 * MAX_ZNODE_BYTES
_STAT = (
    "czxid",
    "mzxid",
    "pzxid",
    "ctime",
    "mtime",
    "version",
    "cversion",
    "aversion",
    "ephemeral_owner",
    "num_children",
)
_LONGS = {"czxid", "mzxid", "pzxid", "ctime", "mtime", "ephemeral_owner"}


def read_dump(location: str | Path, redactor: Redactor, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Yield the dump's znodes as batches of `ZNODE_COLUMNS`, secrets fingerprinted; memory holds one batch.

    A line that is not a znode, or is longer than any znode's line, is a row with `problem` whose path is `line N` of the file.
    For a znode above `MAX_ZNODE_BYTES` everything except the data is read. Raises OSError when the file can't be opened; a gzip
    stream that ends early is a row with `problem` too, and so is a plain file that lacks children of a znode that never loses any.
    """
    for rows in groups(_rows(Path(location), redactor), batch_rows, znode_bytes):
        yield znode_batch(rows)


def _rows(path: Path, redactor: Redactor) -> Iterator[Znode]:
    number, families = 0, _Families()
    with _open(path) as lines:
        try:
            for number, line in enumerate(_lines(lines), start=1):
                place = f"{path.name}: line {number}"
                if line is None:
                    yield unreadable(place, f"not a znode: longer than {MAX_LINE_BYTES} bytes")
                elif line.strip():
                    znode = _row(line, place, redactor)
                    families.add(znode)
                    yield znode
        except (EOFError, zlib.error, gzip.BadGzipFile, OSError) as error:
            yield unreadable(f"{path.name}: after line {number}", f"the dump can't be read to its end ({error})")
            return
    for missing in families.missing():
        yield unreadable(f"{path.name}: after line {number}", f"the dump is not whole: {missing}")


class _Families:
    """What a dump has of the znodes that are always there, and of the children of those in `GROWING`.

    Other znodes lose children while a live tree is dumped, and a dump of it is whole all the same.
    """

    def __init__(self) -> None:
        self._wanted = {*TOP_LEVEL}
        self._all = len(self._wanted)
        self._named = dict.fromkeys(GROWING, 0)
        self._read = dict.fromkeys(self._named, 0)
        self._denied: set[str] = set()

    def add(self, znode: Znode) -> None:
        """Count a znode, as a parent and as a child."""
        self._wanted.discard(znode.path)
        if znode.path in self._named:
            self._named[znode.path] = max(self._named[znode.path], znode.num_children or 0)
            if znode.problem is not None:
                self._denied.add(znode.path)
        parent = znode.path.rpartition("/")[0]
        if parent in self._read:
            self._read[parent] += 1

    def missing(self) -> Iterator[str]:
        """What a whole dump would have, in lines; lists of children that were denied, and trees without Kafka, are not its concern."""
        if 0 < len(self._wanted) < self._all:
            yield f"every cluster has {', '.join(sorted(self._wanted))}, which are not in it"
        for path, named in self._named.items():
            if self._read[path] < named and path not in self._denied:
                yield f"{path} has {named} children, {self._read[path]} of them are in it"


def _lines(file: IO[bytes]) -> Iterator[bytes | None]:
    """Yield the lines, or None for a line that is too long, which is not held in memory."""
    while line := file.readline(MAX_LINE_BYTES):
        if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
            yield line
            continue
        while len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES)
        yield None


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as start:
        compressed = start.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path, "rb") if compressed else path.open("rb"))


def _row(line: bytes, place: str, redactor: Redactor) -> Znode:
    try:
        document = json.loads(whole_characters(line.decode("utf-8")))
        return _znode(document, redactor)
    except RecursionError:
        return unreadable(place, "not a znode: nested too deeply")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return unreadable(place, f"not a znode: {_without_values(error)}")


def _without_values(error: Exception) -> str:
    # A decoder's message may quote the text, and the text may be a secret.
    return str(error) if isinstance(error, _LineError) else type(error).__name__


class _LineError(ValueError):
    """A line of the dump is not a znode; the message quotes field names only."""


def _znode(document: Any, redactor: Redactor) -> Znode:
    if not isinstance(document, dict) or not isinstance(document.get("path"), str):
        raise _LineError("no 'path'")
    path = document["path"]
    if not path.startswith("/"):
        raise _LineError("'path' is not absolute")
    if document.get("problem") is not None and "czxid" not in document:
        return unreadable(path, str(document["problem"])[:200])
    stat = {name: _integer(document, name) for name in _STAT}
    text, is_null, length, redacted, problem = _data(document, path, redactor)
    return Znode(path, text, is_null, length, **stat, acl=_acl(document, redactor), redacted=redacted, problem=problem)


def _integer(document: dict[str, Any], name: str) -> int:
    value = document.get(name)
    bits = 63 if name in _LONGS else 31
    if type(value) is not int or not -(1 << bits) <= value < 1 << bits:
        raise _LineError(f"'{name}' is not an integer")
    return value


def _data(document: dict[str, Any], path: str, redactor: Redactor) -> tuple[str | None, bool, int, bool, str | None]:
    if "data" in document:
        return _text_data(document, path, redactor)
    encoded = document.get("data_base64")
    if encoded is not None and not isinstance(encoded, str):
        raise _LineError("'data_base64' is not a text")
    try:
        data = None if encoded is None else base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise _LineError("'data_base64' is not base64") from None
    if data is not None and len(data) > MAX_ZNODE_BYTES:
        return None, False, len(data), False, too_large(len(data))
    text, redacted, problem = redactor.data(path, data)
    return text, data is None, len(data or b""), redacted, problem


def _text_data(
    document: dict[str, Any], path: str, redactor: Redactor
) -> tuple[str | None, bool, int, bool, str | None]:
    data, length, problem = document["data"], _integer(document, "data_length"), document.get("problem")
    if not (data is None or isinstance(data, str)) or not (problem is None or isinstance(problem, str)):
        raise _LineError("'data' or 'problem' is not a text")
    if data is not None and len(data) > MAX_ZNODE_BYTES:
        return None, False, length, False, too_large(max(length, len(data)))
    if data is None or document.get("redacted") is True:
        return data, data is None, length, data is not None, problem
    text, redacted, own_problem = redactor.data(path, data.encode("utf-8", "replace"))
    return text, False, length, redacted, problem or own_problem


def _acl(document: dict[str, Any], redactor: Redactor) -> list[AclEntry]:
    entries = document.get("acl") or []
    return [_entry(entry, redactor) for entry in entries]


def _entry(entry: Any, redactor: Redactor) -> AclEntry:
    if not isinstance(entry, list) or len(entry) != 3 or type(entry[0]) is not int:
        raise _LineError("'acl' is not a list of [perms, scheme, id]")
    return AclEntry(entry[0], str(entry[1]), redactor.acl_id(str(entry[1]), str(entry[2])))
