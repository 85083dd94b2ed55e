"""Kafka's PasswordEncoder (`org.apache.kafka.security.EncryptingPasswordEncoder`, S§1.5), decoding only.

An encoded password is a map `key:value,key:value,…` in any order: keyFactoryAlgorithm, cipherAlgorithm, keyLength
(bits), salt, iterations, encryptedPassword, passwordLength, and the cipher's own parameters (initializationVector;
authenticationTagLength, in bits, for GCM). Binary values are base64. The key is PBKDF2 of the broker's
`password.encoder.secret`.
"""

from __future__ import annotations

import base64
import binascii

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

_HASHES: dict[str, type[hashes.HashAlgorithm]] = {
    "PBKDF2WithHmacSHA1": hashes.SHA1,
    "PBKDF2WithHmacSHA224": hashes.SHA224,
    "PBKDF2WithHmacSHA256": hashes.SHA256,
    "PBKDF2WithHmacSHA384": hashes.SHA384,
    "PBKDF2WithHmacSHA512": hashes.SHA512,
}
# More rounds than anyone configures, and AES's own lengths of a key: a hostile znode must not keep a worker busy for hours.
MOST_ROUNDS = 10_000_000
_KEY_BITS = ("128", "192", "256")
_MOST_DIGITS = 9


class UndecodableError(ValueError):
    """The encoded password can't be decoded with the secret. The message names no value."""


def parse(encoded: str) -> dict[str, str] | None:
    """Split an encoded password into its map; None when `encoded` is not one."""
    pairs = [part.rpartition(":") for part in encoded.split(",")]
    fields = {key.strip(): value.strip() for key, _, value in pairs}
    return fields if {"encryptedPassword", "salt", "iterations"} <= fields.keys() else None


def rounds(encoded: str) -> int:
    """Number of rounds of key derivation needed to decode it; 0 if `decode` would not derive a key."""
    fields = parse(encoded) or {}
    kind, bits = _HASHES.get(fields.get("keyFactoryAlgorithm", "")), fields.get("keyLength")
    if kind is None or bits not in _KEY_BITS:
        return 0
    # Each block of the hash's size takes all iterations.
    blocks = -(-int(bits) // (8 * kind().digest_size))
    return blocks * (_iterations(fields) or 0)


def _iterations(fields: dict[str, str]) -> int | None:
    digits = fields.get("iterations", "")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else None


def decode(encoded: str, secret: str) -> str:
    """Return the clear password of `encoded` under a broker's `password.encoder.secret`.

    Raises UndecodableError when it is not an encoded password, the secret is the wrong one, or the cipher is unknown.
    """
    fields = parse(encoded)
    if fields is None:
        raise UndecodableError("not a PasswordEncoder map")
    try:
        clear = _decrypt(fields, _derive_key(fields, secret)).decode("utf-8")
        length = int(fields["passwordLength"])
    except UndecodableError:
        raise
    except KeyError as missing:
        raise UndecodableError(f"the PasswordEncoder map lacks {missing}") from None
    except (ValueError, binascii.Error, InvalidTag, UnsupportedAlgorithm, OverflowError):
        raise UndecodableError("the PasswordEncoder map does not decode with this secret") from None
    # passwordLength is Java's String.length(): UTF-16 units.
    if len(clear.encode("utf-16-le", "surrogatepass")) // 2 != length:
        raise UndecodableError("the decoded password does not have its recorded length")
    return clear


def _derive_key(fields: dict[str, str], secret: str) -> bytes:
    iterations = _iterations(fields)
    if iterations is None or not 0 < iterations <= MOST_ROUNDS:
        raise UndecodableError("the PasswordEncoder map's iterations are out of range")
    if fields["keyLength"] not in _KEY_BITS:
        raise UndecodableError("the PasswordEncoder map's keyLength is not one of AES's")
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
