"""Kafka's PasswordEncoder (`org.apache.kafka.security.EncryptingPasswordEncoder`, S§1.5), decoding only.

An encoded password is a map `key:value,key:value,…` in any order: keyFactoryAlgorithm, cipherAlgorithm, keyLength
(bits), salt, iterations, encryptedPassword, passwordLength, and the cipher's own parameters (initializationVector;
authenticationTagLength, in bits, for GCM). Binary values are base64. The key is PBKDF2 of the broker's
`password.encoder.secret`.
"""

from __future__ import annotations

import base64
import binascii
import re

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

_SEPARATOR = re.compile(r"\s*,\s*")
_HASHES: dict[str, type[hashes.HashAlgorithm]] = {
    "PBKDF2WithHmacSHA1": hashes.SHA1,
    "PBKDF2WithHmacSHA224": hashes.SHA224,
    "PBKDF2WithHmacSHA256": hashes.SHA256,
    "PBKDF2WithHmacSHA384": hashes.SHA384,
    "PBKDF2WithHmacSHA512": hashes.SHA512,
}
# More rounds than anyone configures: a hostile znode must not keep a worker busy for hours.
_MAX_ITERATIONS = 10_000_000


class UndecodableError(ValueError):
    """The encoded password can't be decoded with the secret. The message names no value."""


def parse(encoded: str) -> dict[str, str] | None:
    """Split an encoded password into its map; None when `encoded` is not one."""
    pairs = [part.rpartition(":") for part in _SEPARATOR.split(encoded.strip())]
    fields = {key.strip(): value.strip() for key, _, value in pairs}
    return fields if {"encryptedPassword", "salt", "iterations"} <= fields.keys() else None


def decode(encoded: str, secret: str) -> str:
    """Return the clear password of `encoded` under a broker's `password.encoder.secret`.

    Raises UndecodableError when it is not an encoded password, the secret is the wrong one, or the cipher is not known.
    """
    fields = parse(encoded)
    if fields is None:
        raise UndecodableError("not a PasswordEncoder map")
    try:
        clear = _decrypt(fields, _derive_key(fields, secret)).decode("utf-8")
        length = int(fields["passwordLength"])
    except KeyError as missing:
        raise UndecodableError(f"the PasswordEncoder map lacks {missing}") from None
    except (ValueError, binascii.Error, InvalidTag, UnsupportedAlgorithm, OverflowError):
        raise UndecodableError("the PasswordEncoder map does not decode with this secret") from None
    # passwordLength is Java's String.length(): UTF-16 units.
    if len(clear.encode("utf-16-le", "surrogatepass")) // 2 != length:
        raise UndecodableError("the decoded password does not have its recorded length")
    return clear


def _derive_key(fields: dict[str, str], secret: str) -> bytes:
    iterations = int(fields["iterations"])
    if not 0 < iterations <= _MAX_ITERATIONS:
        raise UndecodableError("the PasswordEncoder map's iterations are out of range")
    hash_algorithm = _HASHES.get(fields["keyFactoryAlgorithm"])
    if hash_algorithm is None:
        raise UndecodableError("the PasswordEncoder map names an unknown key factory")
    derivation = PBKDF2HMAC(hash_algorithm(), int(fields["keyLength"]) // 8, _base64(fields["salt"]), iterations)
    return derivation.derive(secret.encode("utf-8"))


def _decrypt(fields: dict[str, str], key: bytes) -> bytes:
    name, _, transformation = fields["cipherAlgorithm"].partition("/")
    mode, _, _ = transformation.partition("/")
    if name != "AES":
        raise UndecodableError("the PasswordEncoder map names an unknown cipher")
    vector, encrypted = _base64(fields["initializationVector"]), _base64(fields["encryptedPassword"])
    if mode == "GCM":
        return _decrypt_gcm(key, vector, encrypted, int(fields["authenticationTagLength"]) // 8)
    if mode != "CBC":
        raise UndecodableError("the PasswordEncoder map names an unknown cipher mode")
    decryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
    unpadder = padding.PKCS7(128).unpadder()
    return unpadder.update(decryptor.update(encrypted) + decryptor.finalize()) + unpadder.finalize()


def _decrypt_gcm(key: bytes, vector: bytes, encrypted: bytes, tag_bytes: int) -> bytes:
    body, tag = encrypted[:-tag_bytes], encrypted[-tag_bytes:]
    decryptor = Cipher(algorithms.AES(key), modes.GCM(vector, tag, min_tag_length=tag_bytes)).decryptor()
    return decryptor.update(body) + decryptor.finalize()


def _base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
