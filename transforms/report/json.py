"""`report.json`, the contract for automation (`schemas.report`): `to_json` writes it, `from_json` reads it back.

Equal reports give equal texts: fields stand in their declared order, open maps are sorted. The text is ASCII, so that
no name of a cluster can break a terminal, a log line or a reader that refuses lone surrogates.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from schemas.report import FORMAT, Report

# A value of ten megabytes would make a page that no browser can open.
LONGEST_TEXT = 10_000


class ReportFormatError(ValueError):
    """A text that is not a report of a format this version reads; the message names the place and the reason."""


def report_document(report: Report) -> dict[str, Any]:
    """A report as the document that JSON holds: maps, lists, texts, numbers, booleans and None.

    NaN and infinities, which JSON does not have, become the texts `NaN`, `Infinity` and `-Infinity` inside values
    (a quota may really hold one) and None in measured fields. Raises TypeError for a value JSON cannot hold.
    """
    made: dict[str, Any] = _plain(report, ("report", None))
    return made


def shortened(document: Any) -> tuple[Any, int]:
    """A JSON document with every text of more than LONGEST_TEXT characters cut, and how many were cut.

    The tables hold the whole text.
    """
    if isinstance(document, str):
        if len(document) <= LONGEST_TEXT:
            return document, 0
        return f"{document[:LONGEST_TEXT]}… ({len(document):,} characters)", 1
    if isinstance(document, list):
        items = [shortened(each) for each in document]
        return [each for each, _ in items], sum(cut for _, cut in items)
    if isinstance(document, dict):
        values = {name: shortened(each) for name, each in document.items()}
        return {name: each for name, (each, _) in values.items()}, sum(cut for _, cut in values.values())
    return document, 0


def to_json(report: Report) -> str:
    """Write a report's document as JSON text, a line for each value, ending in a newline. Raises TypeError as `report_document` does."""
    return json.dumps(report_document(report), indent=1, allow_nan=False) + "\n"


def to_line(report: Report) -> str:
    """Write a report's document as one line of JSON, as a table holds it. Raises TypeError as `report_document` does."""
    return json.dumps(report_document(report), allow_nan=False, separators=(",", ":"))


def from_json(text: str) -> Report:
    """Read `to_json`'s text, or a newer one of the same format: unknown fields are ignored.

    Raises ReportFormatError when the text is not JSON, is of a later format, or lacks what a report must have.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ReportFormatError(f"report.json is not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("format"), int):
        raise ReportFormatError("report.json has no format number: it was not written by kraft-audit")
    if data["format"] > FORMAT:
        raise ReportFormatError(
            f"report.json is of format {data['format']}, this version reads up to {FORMAT}: use a newer version"
        )
    return cast(Report, _load(Report, data, "report"))


# A place in a report: the step to it, after the place that holds it. It becomes a text only if it must be named.
_Place = tuple[str | int, "_Place | None"]


def _plain(value: Any, place: _Place) -> Any:
    # Nearly all values are of these very types; what is left may be of a type that is derived from one, or of NumPy's.
    if value is None or type(value) in (str, bool, int):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, (index, place)) for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {str(name): _plain(value[name], (str(name), place)) for name in sorted(value, key=str)}
    if is_dataclass(value) and not isinstance(value, type):
        return {
            name: _field(_plain(getattr(value, attribute), (attribute, place)), measured)
            for attribute, name, measured in _fields_of(type(value))
        }
    return _scalar(value, place)


@cache
def _fields_of(kind: type[Any]) -> tuple[tuple[str, str, bool], ...]:
    """Each field of a dataclass: its attribute, its name in JSON, and whether it is measured."""
    return tuple((each.name, _json_name(each), "float" in str(each.type)) for each in fields(kind))


def _field(plain: Any, measured: bool) -> Any:
    return None if measured and isinstance(plain, str) else plain


def _scalar(value: Any, place: _Place) -> Any:
    if isinstance(value, str | bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return _number(float(value))
    raise TypeError(f"{_spelled(place)} holds a {type(value).__name__}, which JSON has no form for")


def _spelled(place: _Place) -> str:
    step, within = place
    if within is None:
        return str(step)
    return f"{_spelled(within)}[{step}]" if isinstance(step, int) else f"{_spelled(within)}.{step}"


def _number(number: float) -> float | str:
    if math.isfinite(number):
        return number
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def _json_name(declared: Field[Any]) -> str:
    # `class` is a Python keyword: the dataclass spells it `class_`.
    return declared.name.rstrip("_")


def _load(wanted: Any, value: Any, where: str) -> Any:
    origin = get_origin(wanted)
    if wanted is Any:
        return value
    if origin in (Union, types.UnionType):
        present = [option for option in get_args(wanted) if option is not type(None)]
        return None if value is None else _load(present[0], value, where)
    if origin is list:
        return [_load(get_args(wanted)[0], item, f"{where}[{i}]") for i, item in enumerate(_of(list, value, where))]
    if origin is dict:
        return {k: _load(get_args(wanted)[1], item, f"{where}.{k}") for k, item in _of(dict, value, where).items()}
    if is_dataclass(wanted):
        return _load_dataclass(cast("type[Any]", wanted), _of(dict, value, where), where)
    return _load_scalar(wanted, value, where)


def _load_dataclass(wanted: type[Any], value: dict[str, Any], where: str) -> Any:
    # mypy knows no class as hashable.
    hints = _hints_of(wanted)  # type: ignore[arg-type]
    arguments: dict[str, Any] = {}
    for declared in fields(wanted):
        name = _json_name(declared)
        if name in value:
            arguments[declared.name] = _load(hints[declared.name], value[name], f"{where}.{name}")
        elif declared.default is MISSING and declared.default_factory is MISSING:
            raise ReportFormatError(f"{where}.{name} is missing from report.json")
    return wanted(**arguments)


@cache
def _hints_of(wanted: type[Any]) -> dict[str, Any]:
    return get_type_hints(wanted)


def _load_scalar(wanted: type[Any], value: Any, where: str) -> Any:
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if wanted is int and isinstance(value, bool):
        raise ReportFormatError(f"{where} in report.json should be a number, not {value!r}")
    return _of(wanted, value, where)


def _of(wanted: type[Any], value: Any, where: str) -> Any:
    if not isinstance(value, wanted):
        raise ReportFormatError(f"{where} in report.json should be a {wanted.__name__}, not a {type(value).__name__}")
    return value
