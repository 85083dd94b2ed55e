"""How a record of the metadata log is declared: named fields with a wire type, a version range and a default.

The vocabulary is that of Kafka's message schemas (`metadata/src/main/resources/common/metadata/*.json`). Every record
is flexible at every version: strings, bytes and arrays are compact and every struct ends with tagged fields (S§2.3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class WireType(StrEnum):
    """Wire type of a field or of an array's element."""

    INT8 = "int8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT64 = "float64"
    BOOL = "bool"
    UUID = "uuid"
    STRING = "string"
    BYTES = "bytes"
    STRUCT = "struct"


Default = int | bool | str | None | tuple[()]


@dataclass(frozen=True)
class Field:
    """One field: `name` is spelled as Kafka's JSON dump spells it.

    `since` is the first version that has it. A field with a `tag` is written only when it differs from `default`.
    `fields` are the members of a struct, or of the structs of an array.
    """

    name: str
    kind: WireType
    array: bool = False
    since: int = 0
    nullable: bool = False
    tag: int | None = None
    default: Default = None
    fields: tuple[Field, ...] = ()
    enum: dict[int, str] | None = field(default=None, hash=False)
    secret: bool = False


@dataclass(frozen=True)
class Body:
    """The fields of one record type, for versions 0 to `highest`."""

    fields: tuple[Field, ...]
    highest: int = 0
    flexible: bool = True


@dataclass(frozen=True)
class RecordType:
    """A record type: its key on the wire, its name as Kafka's dump spells it, its body.

    `dead` holds bodies that once had the same key and version and were never written by a release in practice; they
    are tried when the present body does not fit the bytes.
    """

    key: int
    name: str
    body: Body
    dead: tuple[Body, ...] = ()
