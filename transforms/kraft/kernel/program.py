"""Declarations of records compiled into flat instructions for the kernel: one program per record type and version.

A program writes the record's JSON text while it reads the wire. What it does not cover is left to the
declaration-driven decoder (`transforms.kraft.decode.codec`), record by record: secrets, present tags, nested arrays, odd text.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.configs import READABLE
from schemas.kraft.fields import Body, Field, WireType
from schemas.kraft.records import PARTITION_TYPES, RECORD_TYPES

VERSIONS = 8
# More than twice the names, so that few share a slot.
NAME_SLOTS = 2048
FNV_BASIS, FNV_PRIME = 2166136261, 16777619
NO_PROGRAM = -1
# A part of every map that Kafka's PasswordEncoder writes (S§1.5).
_CIPHERTEXT_WORD = "encryptedPassword"


class Op(IntEnum):
    """Instructions. Operands: a, b, c."""

    LITERAL = 0  # a: start in the blob, b: length
    INT8 = 1  # c: where in the blob the known codes are marked, or -1
    INT16 = 2  # c: likewise
    UINT16 = 3
    INT32 = 4
    INT64 = 5
    BOOL = 6
    UUID = 7
    STRING = 8  # b: 1 when it may be null
    FLOAT64 = 9
    ARRAY = 10  # a: instruction after the elements'; nested arrays have no program
    NO_TAGS = 11  # the struct's tagged section must be empty
    TAGS = 12  # begin of the tagged section of the record itself
    TAG = 13  # a: instruction after the field's, b: tag, c: first byte of a value that is the default
    TAG_END = 14  # the field's value must end where its size says
    TAGS_END = 15  # no tag may be left


_SCALARS = {
    WireType.INT8: Op.INT8,
    WireType.INT16: Op.INT16,
    WireType.UINT16: Op.UINT16,
    WireType.INT32: Op.INT32,
    WireType.INT64: Op.INT64,
    WireType.BOOL: Op.BOOL,
    WireType.UUID: Op.UUID,
    WireType.STRING: Op.STRING,
    WireType.FLOAT64: Op.FLOAT64,
}


class Program(NamedTuple):
    """The declarations in the form that the kernel needs, as arrays.

    `types[key]` is the highest version or -1, then (start, end) of the instructions of each version. `blob` holds
    literals, tables of known codes (256 bytes per enum) and names; `names` are (start, size) in it: first the word that
    encrypted values have, then the names of configurations whose values are not secret, each in the first free slot from
    that of its hash on (`slot_of`); a free slot has size 0.
    """

    instructions: npt.NDArray[np.int32]
    types: npt.NDArray[np.int32]
    names: npt.NDArray[np.int32]
    blob: npt.NDArray[np.uint8]


class _NoProgramError(Exception):
    """The body holds something no instruction covers."""


class _Compiler:
    def __init__(self) -> None:
        self.instructions: list[tuple[int, int, int, int]] = []
        self.blob = bytearray()
        self._enums: list[tuple[dict[int, str], int]] = []

    def body(self, body: Body, version: int) -> tuple[int, int]:
        """Compile one body; returns where its instructions start and end."""
        start = len(self.instructions)
        try:
            self._struct(body.fields, version, nested=False)
        except _NoProgramError:
            del self.instructions[start:]
            return NO_PROGRAM, NO_PROGRAM
        return start, len(self.instructions)

    def _struct(self, fields: tuple[Field, ...], version: int, nested: bool) -> None:
        before = "{"
        tagged = []
        for field in fields:
            if version < field.since:
                continue
            if field.tag is not None:
                tagged.append(field)
                continue
            self._literal(f'{before}"{field.name}":')
            before = ","
            self._field(field, version, nested)
        if tagged and not nested:
            self._tags(tagged, version, before)
            return
        self._literal("}" if before == "," else "{}")
        self._emit(Op.NO_TAGS)

    def _tags(self, tagged: list[Field], version: int, before: str) -> None:
        """Tagged fields after all others, in the order of their tags, which is also the order of the JSON text."""
        tags = [field.tag or 0 for field in tagged]
        if tags != sorted(tags) or (before == "{" and len(tagged) > 1):
            raise _NoProgramError
        if before == "{":
            self._literal("{")
        self._emit(Op.TAGS)
        for field, tag in zip(tagged, tags, strict=True):
            place = len(self.instructions)
            self._emit(Op.TAG)
            self._literal(f'{before if before == "," else ""}"{field.name}":')
            self._field(replace(field, nullable=field.nullable and not field.array), version, nested=False)
            self._emit(Op.TAG_END)
            self.instructions[place] = (Op.TAG, len(self.instructions), tag, _default_byte(field))
        self._emit(Op.TAGS_END)
        self._literal("}")

    def _field(self, field: Field, version: int, nested: bool) -> None:
        if not field.array:
            self._value(field, version, nested)
            return
        if nested or field.nullable:
            raise _NoProgramError
        place = len(self.instructions)
        self._emit(Op.ARRAY)
        self._value(field, version, nested=True)
        self.instructions[place] = (Op.ARRAY, len(self.instructions), 0, -1)

    def _value(self, field: Field, version: int, nested: bool) -> None:
        if field.secret or field.kind is WireType.BYTES:
            raise _NoProgramError
        if field.kind is WireType.STRUCT:
            self._struct(field.fields, version, nested)
            return
        known = -1 if field.enum is None else self._known_codes(field.enum)
        self._emit(_SCALARS[field.kind], 0, int(field.nullable), known)

    def _known_codes(self, names: dict[int, str]) -> int:
        for enum, place in self._enums:
            if enum == names:
                return place
        place = self.add(bytes((code if code < 128 else code - 256) in names for code in range(256)))
        self._enums.append((names, place))
        return place

    def add(self, raw: bytes) -> int:
        """Append bytes to the blob; returns where they start."""
        place = len(self.blob)
        self.blob += raw
        return place

    def _literal(self, text: str) -> None:
        self._emit(Op.LITERAL, self.add(text.encode("ascii")), len(text))

    def _emit(self, op: Op, a: int = 0, b: int = 0, c: int = -1) -> None:
        self.instructions.append((op, a, b, c))


def _default_byte(field: Field) -> int:
    """First byte of the encoded default: Kafka leaves a field out of the text when it has its default."""
    if field.array or field.kind is WireType.STRING:
        return 1 if field.default == () else 0
    if field.kind is not WireType.INT8 or not isinstance(field.default, int):
        raise _NoProgramError
    return field.default & 0xFF


@cache
def program() -> Program:
    """Compile all declarations; partition records have no program, they go to typed columns."""
    compiler = _Compiler()
    types = np.full((max(RECORD_TYPES) + 1, 1 + 2 * VERSIONS), NO_PROGRAM, np.int32)
    for key, record_type in RECORD_TYPES.items():
        types[key, 0] = record_type.body.highest
        for version in range(record_type.body.highest + 1):
            if record_type not in PARTITION_TYPES:
                types[key, 1 + 2 * version : 3 + 2 * version] = compiler.body(record_type.body, version)
    names = _hashed(compiler)
    return Program(
        instructions=np.array(compiler.instructions, np.int32),
        types=types,
        names=names,
        blob=np.frombuffer(bytes(compiler.blob), np.uint8).copy(),
    )


def _hashed(compiler: _Compiler) -> npt.NDArray[np.int32]:
    table = np.zeros((1 + NAME_SLOTS, 2), np.int32)
    cipher = _CIPHERTEXT_WORD.encode("ascii")
    table[0] = compiler.add(cipher), len(cipher)
    for name in sorted(READABLE):
        raw = name.encode("ascii")
        slot = slot_of(raw)
        while table[1 + slot, 1]:
            slot = (slot + 1) % NAME_SLOTS
        table[1 + slot] = compiler.add(raw), len(raw)
    return table


def slot_of(name: bytes) -> int:
    """The slot of a name by its FNV-1a hash, as the kernel computes it."""
    value = FNV_BASIS
    for byte in name:
        value = ((value ^ byte) * FNV_PRIME) & 0xFFFFFFFF
    return value % NAME_SLOTS
