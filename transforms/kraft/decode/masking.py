"""Secrets inside record bodies become fingerprints before anything is spelled (S§1.5).

SCRAM parts are fingerprinted over their raw bytes, configuration values over their UTF-8 text, so that both equal what
the ZooKeeper side makes of the same secret. A configuration value that is itself a PasswordEncoder map is ciphertext
(a controller without the encoder's secret copies it verbatim) and is marked as such.
"""

from __future__ import annotations

from typing import Any, Final

from schemas.kraft.fields import Body, Field
from schemas.kraft.records import CONFIG
from transforms.kraft.decode.codec import Values
from transforms.secrets import Fingerprinter, is_sensitive_config
from transforms.zookeeper.read.password_encoder import parse as parse_encoded_password


class Unmasked:
    """Leaves secrets in clear text, on explicit request: `dump --unmask`, and tests against Kafka's own dump."""


UNMASKED: Final = Unmasked()
Masking = Fingerprinter | Unmasked


def mask(body: Body, values: Values, masking: Masking) -> Values:
    """Replace the secrets of one decoded body; the values are changed in place and returned."""
    if isinstance(masking, Unmasked):
        return values
    if body is CONFIG.body:
        values["value"] = mask_config(values["name"], values["value"], masking)
    else:
        _mask_fields(body.fields, values, masking)
    return values


def mask_config(name: str, value: str | None, fingerprinter: Fingerprinter) -> str | None:
    """Fingerprint a configuration value that may be a secret: by its name (`is_sensitive_config`), or by its form."""
    if not value:
        return value
    if "encryptedPassword" in value and parse_encoded_password(value) is not None:
        return fingerprinter.ciphertext(value)
    return fingerprinter.text(value) if is_sensitive_config(name) else value


def _mask_fields(fields: tuple[Field, ...], values: dict[str, Any], fingerprinter: Fingerprinter) -> None:
    for field in fields:
        value = values.get(field.name)
        if field.secret and isinstance(value, bytes):
            values[field.name] = fingerprinter.bytes(value)
        elif isinstance(value, list) and field.fields:
            for item in value:
                _mask_fields(field.fields, item, fingerprinter)
