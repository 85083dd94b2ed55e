"""Secrets inside znodes become fingerprints before anything else sees the znode (S§1.5).

A configuration is readable when a release of Kafka declares it and it is not a password; a quota when it is a number; the
fields of a delegation token when Kafka writes them. SCRAM values keep their shape
(`salt=hmac:…,stored_key=hmac:…,server_key=hmac:…,iterations=4096`), so that the parts still compare with KRaft's. Paths
may begin with a chroot. What should be a secret but does not parse is masked whole: `hmac:…` of the text.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from schemas.sensitive import SCRAM_SECRETS
from schemas.zookeeper.paths import CONFIG_CHANGES_ROOT, CONFIG_ROOT, QUOTA_ROOTS, TOKENS_ROOT
from schemas.zookeeper.tokens import TOKEN_FIELDS
from transforms.secrets import CIPHERTEXT_PREFIX, PREFIX, Fingerprinter, is_password_config, is_sensitive_config

# A cell that could not be decoded although secrets were given: START-13, where plain ciphertext is only not comparable.
UNDECODABLE_PREFIX = CIPHERTEXT_PREFIX.replace("hmac:", "undecodable:hmac:")
# A cell that was not decoded because its key takes too long to derive.
COSTLY_PREFIX = CIPHERTEXT_PREFIX.replace("hmac:", "costly:hmac:")
# Before the fingerprint of a password that is not encrypted, as brokers encrypt all of them, and of one that the first secret does
# not decode.
_CLEAR, _OLDER = "clear:", "older:"
CLEAR_PREFIX, OLDER_PREFIX = _CLEAR + PREFIX, _OLDER + PREFIX
NOT_UTF8 = "data is not UTF-8"
# Where a znode may hold a secret; everything else is passed on as it is.
SECRET_PLACES = (CONFIG_ROOT, TOKENS_ROOT)
# Rounds of key derivation that one reader spends: seconds, where a hostile tree could ask for days. Kafka's default are
# 4,096 a password.
MOST_ROUNDS = 50_000_000
# A number with more characters is none that Kafka has written.
_LONGEST_NUMBER = 1_000


class _Object(list[tuple[str, Any]]):
    """A JSON object as its pairs in order: of a key that is there twice, both values may be secrets."""


class Text(NamedTuple):
    """A znode's data as text: whether a secret was replaced in it, and the problem (or None)."""

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
    _rounds: list[int] = field(default_factory=lambda: [MOST_ROUNDS], repr=False, compare=False)

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
        if not may_hold_secrets(path):
            return Text(text, False, None)
        redacted = self._masked(path, text)
        return Text(redacted, redacted != text, None)

    def acl_id(self, scheme: str, identity: str) -> str:
        """Return an ACL id; the hash of a `digest` id (`user:hash`) is replaced."""
        if scheme != "digest":
            return identity
        user, colon, secret = identity.partition(":")
        return f"{user}:{self.fingerprint.text(secret)}" if colon else self.fingerprint.text(identity)

    def _not_utf8(self, path: str, data: bytes) -> Text:
        if any(place in path for place in SECRET_PLACES):
            return Text(self.fingerprint.bytes(data), True, NOT_UTF8)
        return Text(data.decode("utf-8", "replace"), False, NOT_UTF8)

    def _masked(self, path: str, text: str) -> str:
        try:
            document = json.loads(text, object_pairs_hook=_Object)
            if not isinstance(document, _Object):
                return self.fingerprint.text(text)
            shown = self._token(document) if CONFIG_ROOT not in path else self._config(document, _is_quota(path))
        except (ValueError, RecursionError):
            return self.fingerprint.text(text)
        return text if shown == document else _json(shown)

    def _token(self, document: _Object) -> _Object:
        return _Object((name, value if _is_plain(name, value) else self._mask(value)) for name, value in document)

    def _config(self, document: _Object, quotas: bool) -> _Object:
        return _Object(
            (key, self._entries(value, quotas) if key == "config" else self._stray(key, value))
            for key, value in document
        )

    def _entries(self, config: Any, quotas: bool) -> Any:
        if not isinstance(config, _Object):
            return config if config is None else self._mask(config)
        return _Object((name, self._entry(name, value, quotas)) for name, value in config)

    def _entry(self, name: str, value: Any, quotas: bool) -> Any:
        if not isinstance(value, str):
            return self._mask(value)
        if name.upper().startswith("SCRAM") or (quotas and not _is_number(value)):
            return self._scram(value)
        if quotas:
            return value
        # As in the log's reader: an empty text is not replaced, and ciphertext is not shown.
        if not value or (not is_sensitive_config(name) and "encryptedPassword" not in value):
            return value
        masked = self._password(value)
        return masked if is_password_config(name) else unmarked(masked)

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
            return _CLEAR + self.fingerprint.text(value)
        rounds = password_encoder.rounds(value)
        for secret in self.encoder_secrets:
            if rounds > min(password_encoder.MOST_ROUNDS, self._rounds[0]):
                return self.fingerprint.ciphertext(value).replace(CIPHERTEXT_PREFIX, COSTLY_PREFIX)
            self._rounds[0] -= rounds
            try:
                clear = password_encoder.decode(value, secret)
            except password_encoder.UndecodableError:
                continue
            mark = "" if secret == self.encoder_secrets[0] else _OLDER
            return mark + self.fingerprint.text(clear)
        masked = self.fingerprint.ciphertext(value)
        return masked.replace(CIPHERTEXT_PREFIX, UNDECODABLE_PREFIX) if self.encoder_secrets else masked

    def _scram(self, value: str) -> str:
        parts = [part.partition("=") for part in value.split(",")]
        fields = {name: text for name, _, text in parts}
        if len(parts) != 4 or fields.keys() != {*SCRAM_SECRETS, "iterations"} or not _is_number(fields["iterations"]):
            return self.fingerprint.text(value)
        try:
            hidden = {name: self.fingerprint.bytes(_base64(fields[name])) for name in SCRAM_SECRETS}
        except binascii.Error:
            return self.fingerprint.text(value)
        return ",".join(f"{name}={hidden.get(name, text)}" for name, _, text in parts)


def unmarked(value: str) -> str:
    """The fingerprint alone of a password that is marked; any other value as it is."""
    marked = value.startswith((CLEAR_PREFIX, OLDER_PREFIX))
    return value.partition(":")[2] if marked else value


def may_hold_secrets(path: str) -> bool:
    """Tell whether a znode is where Kafka keeps secrets; a chroot may stand before its path."""
    return CONFIG_CHANGES_ROOT not in path and any(place in path for place in SECRET_PLACES)


def _is_quota(path: str) -> bool:
    return any(root in path for root in QUOTA_ROOTS)


def _is_plain(name: str, value: Any) -> bool:
    """A token's field that Kafka writes, of the kind that it writes; a text in a text."""
    known = TOKEN_FIELDS.get(name)
    if known is list:
        return isinstance(value, list) and not isinstance(value, _Object) and all(isinstance(v, str) for v in value)
    return known is not None and isinstance(value, known)


def _json(value: Any) -> str:
    if isinstance(value, _Object):
        return "{" + ",".join(f"{_json(name)}:{_json(item)}" for name, item in value) + "}"
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Half a surrogate pair is not text: it stays the escape that it was.
        return json.dumps(value, separators=(",", ":"))
    return text


def _is_number(value: str) -> bool:
    try:
        return len(value) <= _LONGEST_NUMBER and float(value) is not None
    except ValueError:
        return False


def _base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
