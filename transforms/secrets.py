"""Secrets become keyed fingerprints here, at the reader, so that nothing downstream ever holds one.

Equal secrets have equal fingerprints under one key, so both sides of the migration still compare; without the key a
fingerprint tells nothing, not even to someone who guesses (HMAC-SHA-256, RFC 2104, cut to 96 bits).
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from schemas.sensitive import PASSWORD_CONFIGS, SECRET_WORDS

PREFIX = "hmac:"
# A broker config that Kafka's PasswordEncoder encrypted: comparable with nothing, not even with itself rewritten.
CIPHERTEXT_PREFIX = "ciphertext:hmac:"
_DIGEST_BYTES = 12


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


def is_sensitive_config(name: str) -> bool:
    """Tell whether a configuration key holds a secret.

    Kafka matches password configs by the end of the name, so that listener prefixes count
    (`DynamicBrokerConfig.isPasswordConfig`); names that speak of secrets are masked too, whoever declared them.
    """
    lowered = name.lower()
    return lowered.endswith(PASSWORD_CONFIGS) or any(word in lowered for word in SECRET_WORDS)
