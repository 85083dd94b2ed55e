"""Secrets inside znodes become fingerprints before anything else sees the znode (S§1.5).

SCRAM values keep their shape (`salt=hmac:…,stored_key=hmac:…,server_key=hmac:…,iterations=4096`), so that the parts
still compare with KRaft's. Paths may begin with a chroot. What should be a secret but does not parse is masked whole: `hmac:…` of the text.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from schemas.sensitive import PASSWORD_CONFIGS, SCRAM_SECRETS, SECRET_WORDS
from schemas.zookeeper.paths import CONFIG_CHANGES_ROOT, CONFIG_ROOT, USERS_ROOT
from transforms.secrets import CIPHERTEXT_PREFIX, Fingerprinter, is_sensitive_config

# A cell nobody could decode although secrets were given: START-13, where plain ciphertext is only not comparable.
UNDECODABLE_PREFIX = CIPHERTEXT_PREFIX.replace("hmac:", "undecodable:hmac:")
NOT_UTF8 = "data is not UTF-8"
# A config znode that holds none of these (and no JSON escape that could spell one) has nothing to hide.
_HINTS = (*SECRET_WORDS, *PASSWORD_CONFIGS, "scram", "\\")


class Text(NamedTuple):
    """A znode's data as text: whether a secret was replaced in it, and what is wrong with it (or None)."""

    text: str | None
    redacted: bool
    problem: str | None


@dataclass(frozen=True)
class Redactor:
    """Replaces the secrets of znodes.

    `encoder_secrets` are the brokers' `password.encoder.secret` values, the present one first; none when unknown.
    `repr` shows neither key nor secrets.
    """

    fingerprint: Fingerprinter
    encoder_secrets: tuple[str, ...] = ()
    _decoded: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        return "Redactor(…)"

    def data(self, path: str, data: bytes | None) -> Text:
        """Return the text of a znode's data with every secret replaced. Never fails: what can't be read is masked."""
        if data is None:
            return Text(None, False, None)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return self._not_utf8(path, data)
        if CONFIG_ROOT not in path or CONFIG_CHANGES_ROOT in path or not _may_contain_secret(path, text):
            return Text(text, False, None)
        redacted = self._config(path, text)
        return Text(redacted, redacted != text, None)

    def acl_id(self, scheme: str, identity: str) -> str:
        """Return an ACL id; the hash of a `digest` id (`user:hash`) is replaced."""
        if scheme != "digest":
            return identity
        user, colon, secret = identity.partition(":")
        return f"{user}:{self.fingerprint.text(secret)}" if colon else self.fingerprint.text(identity)

    def _not_utf8(self, path: str, data: bytes) -> Text:
        if CONFIG_ROOT in path:
            return Text(self.fingerprint.bytes(data), True, NOT_UTF8)
        return Text(data.decode("utf-8", "replace"), False, NOT_UTF8)

    def _config(self, path: str, text: str) -> str:
        document = _parse(text)
        if not isinstance(document, dict):
            return self.fingerprint.text(text)
        users = USERS_ROOT in path
        changed = False
        result: dict[str, Any] = {}
        for key, value in document.items():
            result[key] = self._entries(value, users) if key == "config" else self._stray(key, value)
            changed = changed or result[key] is not value
        return json.dumps(result, ensure_ascii=False, separators=(",", ":")) if changed else text

    def _entries(self, config: Any, users: bool) -> Any:
        if not isinstance(config, dict):
            return config if config is None else self._mask(config)
        entries = {name: self._entry(name, value, users) for name, value in config.items()}
        return config if entries == config else entries

    def _entry(self, name: str, value: Any, users: bool) -> Any:
        if name.upper().startswith("SCRAM") or (users and not _is_number(value)):
            return self._scram(value)
        if not is_sensitive_config(name):
            return value
        return self._password(value) if isinstance(value, str) else self._mask(value)

    def _stray(self, key: str, value: Any) -> Any:
        return value if key == "version" and isinstance(value, int) else self._mask(value)

    def _mask(self, value: Any) -> list[str]:
        # A list, because Kafka refuses any value that is not a string: the finding must survive the masking.
        return [self.fingerprint.text(json.dumps(value, sort_keys=True))]

    def _password(self, value: str) -> str:
        if value not in self._decoded:
            self._decoded[value] = self._decode(value)
        return self._decoded[value]

    def _decode(self, value: str) -> str:
        # Imported here: a walk that only masks needs no cryptography.
        from transforms.zookeeper.read import password_encoder  # noqa: PLC0415

        if password_encoder.parse(value) is None:
            return self.fingerprint.text(value)
        for secret in self.encoder_secrets:
            try:
                return self.fingerprint.text(password_encoder.decode(value, secret))
            except password_encoder.UndecodableError:
                continue
        masked = self.fingerprint.ciphertext(value)
        return masked.replace(CIPHERTEXT_PREFIX, UNDECODABLE_PREFIX) if self.encoder_secrets else masked

    def _scram(self, value: Any) -> Any:
        if not isinstance(value, str):
            return self._mask(value)
        parts = [part.partition("=") for part in value.split(",")]
        fields = {name: text for name, _, text in parts}
        if len(parts) != 4 or fields.keys() != {*SCRAM_SECRETS, "iterations"} or not _is_number(fields["iterations"]):
            return self.fingerprint.text(value)
        try:
            hidden = {name: self.fingerprint.bytes(_base64(fields[name])) for name in SCRAM_SECRETS}
        except binascii.Error:
            return self.fingerprint.text(value)
        return ",".join(f"{name}={hidden.get(name, text)}" for name, _, text in parts)


def _may_contain_secret(path: str, text: str) -> bool:
    if USERS_ROOT in path or not text.startswith('{"version":1,'):
        return True
    lowered = text.lower()
    # A plain loop: this runs for every configuration of a large cluster.
    for hint in _HINTS:  # noqa: SIM110
        if hint in lowered:
            return True
    return False


def _is_number(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
