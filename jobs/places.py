"""Where files are that a configuration names: on this machine's file systems, or on one that an address names.

`Path` would make `s3a:/bucket/x` of `s3a://bucket/x`, a folder of this machine.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import PlainValidator, WithJsonSchema

from jobs.sources.remote import is_remote, local_path, remote_is_file


@dataclass(frozen=True)
class RemotePlace:
    """A file or folder on an object store or HDFS, by its address, which `jobs.sources.remote` reads and writes."""

    uri: str

    def __str__(self) -> str:
        return self.uri

    def __truediv__(self, name: str) -> RemotePlace:
        return RemotePlace(f"{self.uri.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """The last part of the address."""
        return posixpath.basename(self.uri.rstrip("/"))

    @property
    def parent(self) -> RemotePlace:
        """The folder that it is in."""
        return RemotePlace(posixpath.dirname(self.uri.rstrip("/")))

    def is_file(self) -> bool:
        """True if the file exists. Raises `jobs.sources.remote.RemoteError` if that cannot be determined."""
        return remote_is_file(self.uri)


Place: TypeAlias = Path | RemotePlace


def place_of(given: object) -> Place:
    """The place that a text names: `dbfs:/x` is on this machine. Raises ValueError for any other type than text or path."""
    if isinstance(given, Path | RemotePlace):
        return given
    if not isinstance(given, str):
        raise ValueError("Input is not a valid path")
    return RemotePlace(given) if is_remote(given) else Path(local_path(given))


# A place as a key of a configuration.
GivenPlace = Annotated[Place, PlainValidator(place_of), WithJsonSchema({"type": "string", "format": "path"})]
