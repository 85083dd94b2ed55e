"""The size of a run's inputs, and the Spark profile that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from jobs.runtime.spark import Profile, session_is_given
from jobs.settings import Settings
from jobs.sources.remote import RemoteError, is_remote, local_path, remote_size

_SMALL_BYTES = 64 * 1024 * 1024


def profile_of_run(several: Sequence[Settings]) -> Profile:
    """The profile of one run over these clusters, which share it: as configured, else by the files that are read.

    The size of a live source is unknown before it is read: a run with one gets the settings for large ones. An existing session
    is used as it is.
    """
    configured = several[0].spark.profile
    if configured != "auto":
        return configured
    if session_is_given():
        return "cluster"
    return "local" if any(_reads_live(settings) for settings in several) else _by_files(several)


def profile_of_tables(settings: Settings) -> Profile:
    """The profile of a command that reads the tables of finished runs."""
    if settings.spark.profile != "auto":
        return settings.spark.profile
    return "local" if settings.catalog or is_remote(settings.warehouse) else profile_for([settings.warehouse])


def profile_for(paths: Sequence[str]) -> Literal["small", "local"]:
    """Spark's settings follow the size of the input: a few thousand rows need little."""
    return "small" if sum(size_of(path) for path in paths) < _SMALL_BYTES else "local"


def _by_files(several: Sequence[Settings]) -> Literal["small", "local"]:
    return profile_for([path for settings in several for path in _files(settings)])


def _reads_live(settings: Settings) -> bool:
    zookeeper, kraft = settings.zookeeper, settings.kraft
    return bool((zookeeper and zookeeper.connect) or (kraft and kraft.controllers))


def _files(settings: Settings) -> Iterator[str]:
    if settings.zookeeper is not None:
        given = (settings.zookeeper.dump, settings.zookeeper.folder, settings.zookeeper.log_folder)
        yield from (str(path) for path in given if path is not None)
    if settings.kraft is not None:
        yield from settings.kraft.folders


def size_of(location: str) -> int:
    """Bytes below a path; 0 for one that cannot be read: its reader reports the reason and the cluster."""
    if is_remote(location):
        with suppress(RemoteError):
            return remote_size(location)
        return 0
    path = Path(local_path(location))
    try:
        if path.is_file():
            return path.stat().st_size
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    except OSError:
        return 0
