"""Secrets by their form, wherever a reader missed one: the other half of `transforms.secrets` (SEC-05).

A secret is replaced by a fingerprint, so a place of that form without one contains the secret itself. Tables and reports are
searched for the same forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from schemas.sensitive import PASSWORD_CONFIGS, SCRAM_SECRETS
from transforms.secrets import is_sensitive_config

# What a secret was replaced by: `hmac:…`, marked as ciphertext or not (`transforms.secrets`).
_FINGERPRINT = r"(?:[a-z]+:)*hmac:"
# A quotation mark, escaped as often as JSON lies within JSON.
_QUOTE = r'\\*"'
_COLON, _COMMA = rf"{_QUOTE}\s*:\s*{_QUOTE}", rf"{_QUOTE}\s*,\s*{_QUOTE}"
_VALUE = rf'(?!{_FINGERPRINT})[^"\\]'
_SCRAM_FIELDS = (*SCRAM_SECRETS, "storedKey", "serverKey", "saltedPassword")
_PASSWORDS = "|".join(re.escape(name) for name in PASSWORD_CONFIGS)
FORMS: Mapping[str, str] = {
    # `salt=…,stored_key=…` of a user's znode.
    "a SCRAM credential": rf"\b(?:{'|'.join(SCRAM_SECRETS)})=(?!{_FINGERPRINT})[A-Za-z0-9+/]",
    # The same as fields of a record or a row.
    "a SCRAM salt or key": rf"{_QUOTE}(?:{'|'.join(_SCRAM_FIELDS)}){_COLON}{_VALUE}",
    # `"ssl.key.password":"…"` of a znode, `"name":"ssl.key.password","value":"…"` of a record.
    "a password configuration": rf"(?:{_PASSWORDS})(?:{_COLON}|{_COMMA}value{_COLON}){_VALUE}",
    "a JAAS text": r"LoginModule\s+(?:required|requisite|sufficient|optional)\b",
    # What `PasswordEncoder` writes.
    "an encrypted password": rf"encryptedPassword:(?!{_FINGERPRINT})",
}
# Without one of these no form matches: looking for them costs little in millions of rows.
_HINTS = [
    "salt",
    "ed_key",
    "er_key",
    "edKey",
    "erKey",
    "ssl.",
    "sasl.",
    "delegation.token.",
    "password.encoder.",
    "LoginModule",
    "encryptedPassword",
]
_FORMS = {name: re.compile(form) for name, form in FORMS.items()}
WITHHELD = "(withheld: it looks like a secret)"


def leaking(rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Rows in which one of these texts holds a secret by its form."""
    texts = [pl.col(column).cast(pl.String) for column in columns]
    hinted = rows.filter(pl.any_horizontal(text.str.contains_any(_HINTS).fill_null(False) for text in texts))
    # Forms look ahead, which Polars' expressions can't; few rows have a hint.
    held = [any(text and _leaks(text) for text in row) for row in hinted.select(texts).iter_rows()]
    return hinted.filter(pl.Series(held, dtype=pl.Boolean))


def _leaks(text: str) -> bool:
    return any(form.search(text) for form in _FORMS.values())


def leaks(text: str) -> str | None:
    """What a text holds by its form; None when it holds no secret that has one."""
    if not any(hint in text for hint in _HINTS):
        return None
    return next((name for name, form in _FORMS.items() if form.search(text)), None)


def without_leaks(document: Any) -> tuple[Any, list[str]]:
    """A JSON document with every text that holds a secret withheld, and where (`checks[3].evidence[0]: a JAAS text`)."""
    found: list[str] = []
    return _cleaned(document, "", found), found


def _cleaned(value: Any, place: str, found: list[str]) -> Any:
    if isinstance(value, dict):
        shut = _password_row(value)
        return {
            name: _cleaned(item, f"{place}.{name}".lstrip("."), found)
            for name, item in _shut(value, shut, place, found)
        }
    if isinstance(value, list):
        return [_cleaned(item, f"{place}[{number}]", found) for number, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    leak = leaks(value)
    if leak is None:
        return value
    found.append(f"{place}: {leak}")
    return WITHHELD


def _password_row(value: Mapping[str, Any]) -> bool:
    """A difference of a configuration whose value must be a fingerprint."""
    key = value.get("key")
    return value.get("entity") == "configs" and isinstance(key, dict) and is_sensitive_config(str(key.get("config")))


def _shut(value: Mapping[str, Any], shut: bool, place: str, found: list[str]) -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        if shut and name in ("zk_value", "kraft_value") and any(text and not _is_masked(text) for text in _texts(item)):
            found.append(f"{place}.{name}: a password configuration")
            yield name, WITHHELD
        else:
            yield name, item


def _texts(item: Any) -> Iterable[str]:
    if isinstance(item, str):
        return [item]
    return [text for text in item.values() if isinstance(text, str)] if isinstance(item, dict) else []


def _is_masked(text: str) -> bool:
    return re.match(_FINGERPRINT, text) is not None
