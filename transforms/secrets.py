"""Secrets become keyed fingerprints here, at the reader, so that nothing downstream ever holds one.

Equal secrets have equal fingerprints under one key, so both sides of the migration still compare; without the key a fingerprint
reveals nothing, not even to someone who guesses (HMAC-SHA-256, RFC 2104, cut to 96 bits).
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from functools import lru_cache

from schemas.configs import LISTENER_PREFIX, MECHANISM_CONFIGS, READABLE
from schemas.sensitive import PASSWORD_CONFIGS

PREFIX = "hmac:"
# A broker config that Kafka's PasswordEncoder encrypted: comparable with nothing, not even with itself rewritten.
CIPHERTEXT_PREFIX = "ciphertext:hmac:"
_DIGEST_BYTES = 12
_LISTENER = re.compile(LISTENER_PREFIX)


@dataclass(frozen=True)
class Fingerprinter:
    """Replaces secrets by fingerprints under one key. `repr` never shows the key."""

    key: bytes

    def __repr__(self) -> str:
        return "Fingerprinter(key=…)"

    def bytes(self, secret: bytes) -> str:
        """Fingerprint bytes: `hmac:` and 24 hex digits."""
        return PREFIX + hmac.digest(self.key, secret, "sha256")[:_DIGEST_BYTES].hex()

    def text(self, secret: str) -> str:
        """Fingerprint a text by its UTF-8 bytes."""
        return self.bytes(secret.encode("utf-8", "surrogatepass"))

    def ciphertext(self, encoded: str) -> str:
        """Fingerprint an encrypted value: marked, because it must never be compared with a clear one."""
        return CIPHERTEXT_PREFIX + self.text(encoded).removeprefix(PREFIX)


@lru_cache(maxsize=10_000)
def is_sensitive_config(name: str) -> bool:
    """Whether a configuration's value may be a secret: it is a password, or no release of Kafka declares it.

    Kafka treats a setting of unknown type as a secret (`KafkaConfig.maybeSensitive`): a plugin's setting may be anything. A
    name is looked up regardless of its resource, so that a value is not readable in one place and masked in another.
    """
    if name in READABLE:
        return False
    prefixed = _LISTENER.fullmatch(name)
    if prefixed is None:
        return True
    own = prefixed[1]
    return next((config for config in MECHANISM_CONFIGS if own.endswith(config)), own) not in READABLE


def is_password_config(name: str) -> bool:
    """Whether brokers encrypt a configuration in ZooKeeper (`DynamicBrokerConfig.isPasswordConfig`)."""
    return name.endswith(PASSWORD_CONFIGS)
