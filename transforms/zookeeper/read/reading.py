"""What the readers of single znodes share: the znode as they see it, the facts they return, and Kafka's JSON rules."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from schemas.zookeeper.paths import DEFAULT_ENTITY

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
_JAVA_DOUBLE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?", re.ASCII)
# Longer texts are no numbers that anything of Kafka writes, and cost time by their square.
LONGEST_NUMBER = 1_000
_JAVA_WORDS = {"NaN", "Infinity", "+Infinity", "-Infinity", "+NaN", "-NaN"}
MAX_DETAIL = 200
# More of one znode's repeated keys are counted, not named.
MOST_REPEATED = 20
# A pair of escapes that is one character; half of one, which is none; any other escape.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


class MalformedError(ValueError):
    """A znode does not hold what Kafka expects. The message is the finding's detail; it never names a secret."""


class ZnodeView(NamedTuple):
    """The columns of a bronze znode row that a reader looks at."""

    path: str
    data: str | None
    data_is_null: bool | None
    czxid: int | None
    mzxid: int | None
    mtime: int | None
    version: int | None
    ephemeral_owner: int | None
    problem: str | None


class StateRow(NamedTuple):
    """One state row: the entity, and its columns."""

    entity: str
    row: dict[str, Any]


Reader = Callable[[ZnodeView, list[str]], Iterator[StateRow]]


def finding(code: str, subject: str, detail: str) -> StateRow:
    """Return a finding: a code of `schemas.zookeeper.findings`, its path, and a description."""
    return StateRow("findings", {"code": code, "subject": subject, "detail": detail[:MAX_DETAIL]})


def admin_operation(kind: str, subject: str, detail: str) -> StateRow:
    """Return a leftover or pending request: its kind, what it is about, and the particulars."""
    return StateRow("admin_operations", {"kind": kind, "subject": subject, "detail": detail[:MAX_DETAIL]})


def parse_object(znode: ZnodeView) -> dict[str, Any]:
    """Return the znode's JSON object; duplicates of a key are resolved as Jackson does (the last one counts).

    Raises MalformedError for null or empty data, text that is not UTF-8 or not JSON, and JSON that is not an object.
    """
    if znode.data_is_null or znode.data is None:
        raise MalformedError("its data is null")
    if znode.problem:
        raise MalformedError(znode.problem)
    return parse_text(znode.data)


def parse_text(text: str) -> dict[str, Any]:
    """Return the JSON object in `text`, without halves of surrogate pairs; raises MalformedError."""
    try:
        document = json.loads(whole_characters(text), parse_constant=_no_json)
    except (ValueError, RecursionError):
        raise MalformedError("its data is not JSON" if text else "its data is empty") from None
    if not isinstance(document, dict):
        raise MalformedError("its data is not a JSON object")
    return document


def whole_characters(text: str) -> str:
    """A JSON text with `?` for each escape that is half of a surrogate pair: as Java writes one that it has read."""
    if "\\u" not in text:
        return text
    return _ESCAPE.sub(lambda found: "?" if found["half"] else found[0], text)


def _no_json(constant: str) -> Any:
    # NaN and Infinity, which Python's reader takes and Jackson does not.
    raise ValueError(constant)


def duplicate_keys(znode: ZnodeView, document: dict[str, Any]) -> Iterator[StateRow]:
    """Yield a finding for each key that occurs twice in one object of a znode's JSON; `document` is the parsed JSON."""
    text = znode.data or "{}"
    # Every key takes a colon: with no more colons than keys left, none was dropped.
    if text.count(":") <= len(document) + sum(len(value) for value in document.values() if type(value) is dict):
        return
    repeated = _repeated(whole_characters(text))
    for name in repeated[:MOST_REPEATED]:
        yield finding("DUPLICATE-KEY", znode.path, f"'{name}' appears twice")
    if len(repeated) > MOST_REPEATED:
        yield finding("DUPLICATE-KEY", znode.path, f"{len(repeated) - MOST_REPEATED:,} more keys appear twice")


def _repeated(text: str) -> list[str]:
    repeated: list[str] = []

    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        document = dict(pairs)
        if len(document) != len(pairs):
            counted = Counter(name for name, _ in pairs)
            repeated.extend(sorted(name for name, count in counted.items() if count > 1))
        return document

    json.loads(text, object_pairs_hook=check)
    return repeated


def integer(document: dict[str, Any], key: str) -> int:
    """Return a 32-bit JSON integer; strings are not coerced (Kafka's `to[Int]`). Raises MalformedError."""
    value = document.get(key)
    if type(value) is not int or value not in _INT32:
        raise MalformedError(f"'{key}' is not a 32-bit integer")
    return value


def long(document: dict[str, Any], key: str) -> int:
    """Return a 64-bit JSON integer. Raises MalformedError."""
    value = document.get(key)
    if type(value) is not int or value not in _INT64:
        raise MalformedError(f"'{key}' is not a 64-bit integer")
    return value


def long_text(document: dict[str, Any], key: str) -> int:
    """Return a 64-bit integer kept as a string, as Kafka writes longs. Raises MalformedError."""
    value = text(document, key)
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", value) or int(value) not in _INT64:
        raise MalformedError(f"'{key}' is not a 64-bit integer")
    return int(value)


def text(document: dict[str, Any], key: str) -> str:
    """Return a JSON string. Raises MalformedError."""
    value = document.get(key)
    if not isinstance(value, str):
        raise MalformedError(f"'{key}' is not a string")
    return value


def brokers(value: Any, name: str) -> list[int]:
    """Return a JSON array of 32-bit integers. Raises MalformedError, naming the array `name`."""
    if not isinstance(value, list) or any(type(item) is not int or item not in _INT32 for item in value):
        raise MalformedError(f"{name} is not an array of broker ids")
    return value


def entity_name(segment: str) -> str | None:
    """Return the entity a path segment stands for: None for `<default>`, else its Sanitizer form decoded.

    Java's URLDecoder: `+` is a space, a `%` without two hex digits is an error (MalformedError).
    """
    return None if segment == DEFAULT_ENTITY else desanitize(segment)


def desanitize(segment: str) -> str:
    """Decode `org.apache.kafka.common.utils.Sanitizer`'s form of a name. Raises MalformedError."""
    if _BAD_ESCAPE.search(segment):
        raise MalformedError("its name is not valid percent-encoding")
    return unquote_plus(segment, errors="replace")


def java_double(value: str) -> float | None:
    """Return what `Double.parseDouble` makes of a decimal text; None where Java would refuse it."""
    if len(value) > LONGEST_NUMBER:
        return None
    stripped = value.strip(" \t\r\n\f\v")
    if stripped in _JAVA_WORDS:
        return float(stripped.replace("Infinity", "inf"))
    return float(stripped.rstrip("fFdD")) if _JAVA_DOUBLE.fullmatch(stripped) else None
