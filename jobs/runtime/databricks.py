"""Databricks: whether this is it, and the secrets of a Python wheel task, for which serverless compute has no environment variables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs.exit import UsageError

OPTION = "--secret"
_FORM = f"{OPTION} takes NAME=SCOPE/KEY, or NAME=/Volumes/… for a file"


def on_databricks() -> bool:
    """True on a cluster or on serverless compute of Databricks."""
    return bool(os.environ.get("DATABRICKS_RUNTIME_VERSION"))


def take_secrets(arguments: Sequence[str]) -> list[str]:
    """Give each `--secret NAME=WHERE` to the environment variable NAME, and return the other arguments.

    WHERE is `SCOPE/KEY` of a secret scope, or the path of a file whose first line is the secret. Raises UsageError, which
    never repeats a secret: for another form, an unreadable file, a scope that can't be read, no `dbutils` to read it with.
    """
    rest: list[str] = []
    given = iter(arguments)
    for argument in given:
        if argument != OPTION:
            rest.append(argument)
            continue
        name, _, where = next(given, "").partition("=")
        if not name or not where:
            raise UsageError(_FORM)
        os.environ[name] = _from_file(where) if where.startswith("/") else _from_scope(where)
    return rest


def _from_file(path: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        raise UsageError(
            f"{OPTION}: the file {path} can't be read; check its path and your permissions on the volume"
        ) from None
    if not lines or not lines[0]:
        raise UsageError(f"{OPTION}: the file {path} has an empty first line")
    return lines[0]


def _from_scope(where: str) -> str:
    scope, _, key = where.partition("/")
    if not key:
        raise UsageError(_FORM)
    try:
        return str(_dbutils().secrets.get(scope=scope, key=key))
    except ImportError:
        raise UsageError(f"{OPTION} {where}: secret scopes can be read on Databricks only; give a file") from None
    except Exception as error:
        raise UsageError(
            f"{OPTION}: {where} can't be read ({type(error).__name__}): check the scope, the key and the permission READ on the scope"
        ) from None


def _dbutils() -> Any:
    # Databricks brings it with its runtime.
    from databricks.sdk.runtime import dbutils  # noqa: PLC0415

    return dbutils
