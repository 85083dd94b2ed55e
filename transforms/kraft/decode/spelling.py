"""Record bodies as JSON, spelled as `kafka-dump-log --cluster-metadata-decoder` spells them.

Kafka's generated `*JsonConverter` classes write every field of the version in declared order, leave out tagged fields
that have their default, and put bytes as base64; Jackson puts NaN and the infinities as strings.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from decimal import Decimal
from typing import Any

from schemas.kraft.fields import Body, Field
from transforms.kraft.decode.codec import Values

_quote = json.encoder.encode_basestring
_LOWER_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u00([0-9a-f]{2})")


def to_json(body: Body, version: int, values: Values) -> str:
    """Spell decoded (and masked) values of a body as one JSON object."""
    return _object(body.fields, version, values)


def java_double(value: float) -> str:
    """Spell a double as Java's `Double.toString` does (shortest digits), non-finite ones as JSON strings."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{len(text) - 1 + int(exponent)}"


def quote(text: str) -> str:
    """Quote a text as Jackson does: only quotes, backslashes and control characters are escaped, hex in capitals."""
    quoted = _quote(text)
    if "\\u00" in quoted:
        quoted = _LOWER_ESCAPE.sub(lambda match: f"{match[1]}\\u00{match[2].upper()}", quoted)
    return quoted


def _object(fields: tuple[Field, ...], version: int, values: Values) -> str:
    parts = []
    for field in fields:
        if version < field.since:
            continue
        value = values[field.name]
        if field.tag is not None and _is_default(field, value):
            continue
        parts.append(f'"{field.name}":{_spell(field, version, value)}')
    return "{" + ",".join(parts) + "}"


def _is_default(field: Field, value: Any) -> bool:
    return value == [] if field.default == () else bool(value == field.default)


def _spell(field: Field, version: int, value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_spell(field, version, item) for item in value) + "]"
    if isinstance(value, dict):
        return _object(field.fields, version, value)
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bytes):
        return f'"{b64encode(value).decode("ascii")}"'
    return java_double(value) if isinstance(value, float) else str(value)
