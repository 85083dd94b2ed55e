"""Bronze rows as one JSON object per line, spelled as `kafka-dump-log --cluster-metadata-decoder` spells records.

Everything is done column by column; only rows with a problem are written one by one.
"""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.compute as pc

from schemas.kraft.fields import Field, WireType
from schemas.kraft.records import PARTITION_TYPES
from transforms.kraft.decode.rows import PARTITION_BODY_COLUMNS

CONTROL_PREFIX = "CONTROL_"
_PROBLEM_KEYS = ("offset", "epoch", "append_time", "type", "version", "file", "position", "length", "problem")
# Characters that a terminal obeys or that reorder text: escaped, which JSON reads as the same.
_UNSHOWABLE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def json_lines(batch: pa.RecordBatch) -> list[str]:
    """One JSON text per row: offset, epoch, timestamp (ms), type, version, data; or the known fields and `problem`.

    Control records have `CONTROL_` before their type.
    """
    if batch.num_rows == 0:
        return []
    lines = _joined(
        '{"offset":',
        _text(batch, "offset"),
        ',"epoch":',
        _text(batch, "epoch"),
        ',"timestamp":',
        _text(batch, "append_time"),
        ',"type":"',
        _type_names(batch),
        '","version":',
        _text(batch, "version"),
        ',"data":',
        bodies(batch),
        "}",
    ).to_pylist()
    for row in pc.indices_nonzero(pc.is_valid(batch.column("problem"))).to_pylist():
        lines[row] = _problem_line(batch, row)
    return [_safe(line) for line in lines]


def bodies(batch: pa.RecordBatch) -> pa.Array:
    """The body of each row as JSON text: `data`, or for partition records the typed columns spelled again."""
    texts = batch.column("data")
    for record_type in PARTITION_TYPES:
        mask = pc.fill_null(pc.equal(batch.column("type"), record_type.name), False)
        mask = pc.and_(mask, pc.is_null(batch.column("problem")))
        if pc.any(mask).as_py():
            chosen = batch.filter(mask)
            texts = pc.replace_with_mask(texts, mask, _partition_bodies(chosen, record_type.body.fields))
    return texts


def _partition_bodies(batch: pa.RecordBatch, fields: tuple[Field, ...]) -> pa.Array:
    pieces: list[str | pa.Array] = ["{"]
    for index, field in enumerate(fields):
        column = batch.column(PARTITION_BODY_COLUMNS[field.name])
        value = _list_text(field, column) if field.array else _scalar_text(field, column)
        name = f'{"," if index else ""}"{field.name}":'
        piece = pc.binary_join_element_wise(name, value, "")
        if field.tag is not None and not field.array:
            piece = pc.if_else(pc.equal(column, pa.scalar(field.default, column.type)), None, piece)
        pieces.append(piece)
    return _joined(*pieces, "}")


def _scalar_text(field: Field, column: pa.Array) -> pa.Array:
    text = column.cast(pa.string())
    return pc.binary_join_element_wise('"', text, '"', "") if field.kind is WireType.UUID else text


def _list_text(field: Field, column: pa.Array) -> pa.Array:
    quote = '"' if field.kind is WireType.UUID else ""
    joined = pc.binary_join(column.cast(pa.list_(pa.string())), f"{quote},{quote}")
    text = pc.binary_join_element_wise(f"[{quote}", joined, f"{quote}]", "")
    return pc.if_else(pc.equal(pc.list_value_length(column), 0), "[]", text)


def _joined(*pieces: str | pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, "", null_handling="replace", null_replacement="")


def _text(batch: pa.RecordBatch, name: str) -> pa.Array:
    return pc.fill_null(batch.column(name).cast(pa.string()), "null")


def _type_names(batch: pa.RecordBatch) -> pa.Array:
    names = batch.column("type")
    control = pc.fill_null(batch.column("control"), False)
    return pc.if_else(control, pc.binary_join_element_wise(CONTROL_PREFIX, names, ""), names)


def _problem_line(batch: pa.RecordBatch, row: int) -> str:
    known = {name: batch.column(name)[row].as_py() for name in _PROBLEM_KEYS}
    known["timestamp"] = known.pop("append_time")
    return json.dumps({name: value for name, value in known.items() if value is not None}, ensure_ascii=False)


def _safe(line: str) -> str:
    if line.isascii() and "\x7f" not in line:
        return line
    return _UNSHOWABLE.sub(lambda match: f"\\u{ord(match[0]):04X}", line)
