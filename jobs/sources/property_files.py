"""Property files of brokers and controllers that the configuration names, here or on another file system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from jobs.exit import UsageError
from jobs.settings import PropertySettings
from jobs.sources.remote import RemoteError, read_range
from transforms.properties import MalformedPropertiesError, PropertyFiles, meta_properties, node_properties

# Kafka's longest property files have some hundred lines.
_LIMIT = 1024 * 1024
File = TypeVar("File")


def read_property_files(settings: PropertySettings) -> PropertyFiles:
    """Read the files and keep the settings that checks need. Raises UsageError for a file that cannot be read."""
    return PropertyFiles(
        controllers=_read(settings.controllers, "controllers", node_properties),
        brokers=_read(settings.brokers, "brokers", node_properties),
        broker_meta=_read(settings.broker_meta, "broker_meta", meta_properties),
        clear_text_accepted=settings.clear_text_passwords_accepted,
    )


def _read(paths: Sequence[str], key: str, reader: Callable[[str, str], File]) -> tuple[File, ...]:
    return tuple(_file(path, f"`properties.{key}`", reader) for path in paths)


def _file(path: str, what: str, reader: Callable[[str, str], File]) -> File:
    try:
        return reader(path, _text(path, what))
    except MalformedPropertiesError as error:
        raise UsageError(f"{what}: {path} is not a property file: {error}") from None


def _text(path: str, what: str) -> str:
    try:
        content = read_range(path, 0, _LIMIT)
    except RemoteError as error:
        raise UsageError(f"{what}: {error}") from None
    except OSError as error:
        raise UsageError(f"{what}: {path} can't be read: {error.strerror or type(error).__name__}") from None
    # ISO 8859-1 is what `java.util.Properties.load` takes, and it takes every byte.
    return content.decode("latin-1")
