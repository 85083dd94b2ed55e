"""Text that came from a cluster, made fit to show: nothing invisible, nothing endless, nothing that moves its neighbours.

Names and values of a cluster are hostile input. Markup is the renderers' concern (autoescape); this module
deals with what survives escaping: control characters, direction overrides, zero-width characters, megabytes.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

NAME_LIMIT = 120
VALUE_LIMIT = 160
TEXT_LIMIT = 2_000

# Control, format (bidi, zero width), surrogate, private, unassigned, line and paragraph separators.
_UNSHOWABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARKS_IN_A_ROW = 2

ABSENT = "absent"
PRESENT = "present"


def visible(text: str, limit: int = TEXT_LIMIT) -> str:
    """Show `text` with every unshowable character as its escape, cut in the middle to about `limit` characters.

    The cut names how many characters it left out, and is made only if that is shorter. Escapes are never escaped again.
    """
    cut = f"…[{len(text) - limit:,} more characters]…"
    if len(text) <= limit + len(cut):
        return _escaped(text)
    tail = limit // 4
    return f"{_escaped(text[: limit - tail])}{cut}{_escaped(text[-tail:] if tail else '')}"


def _escaped(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category.startswith("M") else 0
        odd_space = category == "Zs" and character != " "
        # Stacked combining marks draw over the lines above and below.
        shown.append(
            _escape(character) if category in _UNSHOWABLE or odd_space or marks > _MARKS_IN_A_ROW else character
        )
    return "".join(shown)


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def value_text(value: Any, limit: int = VALUE_LIMIT) -> str:
    """Show one side's value: a text as it is, an empty one as `""`, None as `absent`, a map as `a=1, b=2`."""
    if value is None:
        return ABSENT
    if value == "":
        return '""'
    if isinstance(value, str):
        return visible(value, limit)
    if value == {}:
        # A row that is all key: an ACL.
        return PRESENT
    if isinstance(value, Mapping):
        return visible(", ".join(f"{name}={value_text(value[name])}" for name in sorted(value, key=str)), limit)
    return visible(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str), limit)


def key_text(entity: str, key: Mapping[str, Any]) -> str:
    """Write a row's key as operators do: `orders-3`, `TOPIC orders · retention.ms`, `user=alice · rate`."""
    shape = _KEY_SHAPES.get(entity)
    if shape is not None:
        try:
            return shape(key)
        except (KeyError, AttributeError):
            # A key of another shape than its entity's still gets shown, every part by name.
            return _pairs(key)
    return _pairs(key)


def _part(value: Any) -> str:
    return value_text(value, NAME_LIMIT)


def _pairs(key: Mapping[str, Any]) -> str:
    return ", ".join(f"{visible(str(name), NAME_LIMIT)}={_part(value)}" for name, value in sorted(key.items()))


def _config_key(key: Mapping[str, Any]) -> str:
    name = key["resource_name"]
    where = "cluster-wide default" if name == "" else _part(name)
    return f"{_part(key['resource_type'])} {where} · {_part(key['config'])}"


def _quota_key(key: Mapping[str, Any]) -> str:
    parts = [
        f"{visible(str(kind), NAME_LIMIT)}={'<default>' if name is None else _part(name)}"
        for kind, name in sorted(key["entity"].items(), reverse=True)
    ]
    return f"{', '.join(parts)} · {_part(key['quota'])}"


def _acl_key(key: Mapping[str, Any]) -> str:
    resource = f"{_part(key['resource_type'])} {_part(key['resource_name'])} ({_part(key['pattern_type'])})"
    who = f"{_part(key['principal'])} from {_part(key['host'])}"
    return f"{_part(key['permission'])} {who} to {_part(key['operation'])} {resource}"


def _joined(*names: str, by: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda key: by.join(_part(key[name]) for name in names)


_KEY_SHAPES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "topics": _joined("topic", by=""),
    "partitions": _joined("topic", "partition", by="-"),
    "configs": _config_key,
    "client_quotas": _quota_key,
    "acls": _acl_key,
    "scram_credentials": _joined("user", "mechanism", by=" · "),
    "delegation_tokens": _joined("token_id", by=""),
    "features": _joined("feature", by=""),
    "brokers": _joined("broker_id", by=""),
    "controllers": _joined("controller_id", by=""),
    "producer_ids": lambda _key: "next producer id",
}


def listed(words: Sequence[str], most: int = 6) -> str:
    """Join words with commas, the first `most` of them and a count of the others."""
    shown = ", ".join(visible(word, NAME_LIMIT) for word in words[:most])
    return f"{shown} and {len(words) - most:,} more" if len(words) > most else shown


def first_changes(changes: Sequence[str], most: int) -> list[str]:
    """The first `most` sentences, and a count of the others."""
    more = len(changes) - most
    return [*changes[:most], *([f"and {counted(more, 'more change')}"] if more > 0 else [])]


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun: `1 record`, `2,000 records`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size_text(number: int) -> str:
    """Bytes in the largest unit that they fill: `1.5 GB`, `12.0 kB`, `300 bytes`."""
    units = (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10))
    return next((f"{number / size:,.1f} {unit}" for unit, size in units if number >= size), f"{number} bytes")


def anchor(name: str) -> str:
    """A name as a part of an HTML id: letters, digits and hyphens, at most 80."""
    return re.sub(r"[^A-Za-z0-9-]", "-", name[:80])
