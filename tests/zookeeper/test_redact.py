"""Secrets in znodes: hidden whatever their shape, and still equal to KRaft's."""

from __future__ import annotations

import base64
import json
import os
import string

import pytest
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from hypothesis import given
from hypothesis import strategies as st

from tests.zookeeper.trees import FINGERPRINT, REDACTOR, codes, of, state_rows, znode
from transforms.secrets import CIPHERTEXT_PREFIX
from transforms.zookeeper.read import password_encoder
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.read.redact import Redactor

SECRET = "S3cr3t-Zebra"
B64 = base64.b64encode(SECRET.encode()).decode()


def encode_password(clear: str, secret: str, cipher: str = "AES/CBC/PKCS5Padding", hashing: str = "SHA512") -> str:
    """What `EncryptingPasswordEncoder.encode` writes, made independently of the decoder."""
    salt, vector, iterations = os.urandom(32), os.urandom(12 if "GCM" in cipher else 16), 64
    algorithm = {"SHA512": hashes.SHA512(), "SHA1": hashes.SHA1(), "SHA256": hashes.SHA256()}[hashing]  # noqa: S303 - the encoder falls back to it
    key = PBKDF2HMAC(algorithm, 16, salt, iterations).derive(secret.encode())
    fields = {
        "keyFactoryAlgorithm": f"PBKDF2WithHmac{hashing}",
        "cipherAlgorithm": cipher,
        "keyLength": "128",
        "iterations": str(iterations),
        "passwordLength": str(len(clear.encode("utf-16-le")) // 2),
        "salt": base64.b64encode(salt).decode(),
        "initializationVector": base64.b64encode(vector).decode(),
    }
    if "GCM" in cipher:
        encrypted = AESGCM(key).encrypt(vector, clear.encode(), None)
        fields["authenticationTagLength"] = "128"
    else:
        padder = padding.PKCS7(128).padder()
        encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
        encrypted = encryptor.update(padder.update(clear.encode()) + padder.finalize()) + encryptor.finalize()
    fields["encryptedPassword"] = base64.b64encode(encrypted).decode()
    return ",".join(f"{name}:{value}" for name, value in reversed(fields.items()))


@pytest.mark.parametrize("cipher", ["AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"])
@pytest.mark.parametrize("hashing", ["SHA512", "SHA256", "SHA1"])
@pytest.mark.parametrize("clear", ["Zx7", "pässwörd 🗝", "x" * 1000])
def test_passwords_decode_in_every_form(cipher: str, hashing: str, clear: str) -> None:
    encoded = encode_password(clear, "encoder", cipher, hashing)
    assert password_encoder.decode(encoded, "encoder") == clear
    with pytest.raises(password_encoder.UndecodableError) as refused:
        password_encoder.decode(encoded, "another")
    assert clear not in str(refused.value)


@given(st.text(alphabet=string.printable, max_size=200))
def test_any_text_is_refused_or_decoded_never_a_crash(text: str) -> None:
    with pytest.raises(password_encoder.UndecodableError):
        password_encoder.decode(text, "encoder")


def test_old_and_new_encoder_secrets() -> None:
    data = json.dumps({"version": 1, "config": {"ssl.key.password": encode_password(SECRET, "old")}}).encode()

    def value(redactor: Redactor) -> dict[str, object]:
        return of(state_rows([znode_batch([znode("/config/brokers/1", data, redactor)])]), "configs")[0]

    both = value(Redactor(FINGERPRINT, ("new", "old")))
    assert (both["value"], both["comparable"]) == (FINGERPRINT.text(SECRET), True)
    unknown = value(Redactor(FINGERPRINT))
    assert str(unknown["value"]).startswith(CIPHERTEXT_PREFIX)
    assert not unknown["comparable"]
    wrong = znode_batch([znode("/config/brokers/1", data, Redactor(FINGERPRINT, ("new",)))])
    assert codes(state_rows([wrong])) == ["START-13"]
    assert not of(state_rows([wrong]), "configs")[0]["comparable"]


@pytest.mark.parametrize(
    ("path", "config"),
    [
        ("/config/users/u", {"SCRAM-SHA-256": f"salt={B64},stored_key={B64},server_key={B64},iterations=4096"}),
        ("/config/users/u", {"SCRAM-SHA-256": f"salt={B64},stored_key={B64},server_key={B64}"}),
        ("/config/users/u", {"SCRAM-SHA-256": f"salt={B64},stored_key={B64},server_key=*{B64},iterations=4096"}),
        ("/config/users/u", {"SCRAM-SHA-256": f"salt={B64},stored_key={B64},server_key={B64},iterations={SECRET}"}),
        ("/config/users/u", {"SCRAM-SHA-256": f"a=b,salt={B64},stored_key={B64},server_key={B64},iterations=1"}),
        ("/config/users/u", {"SCRAM-SHA-256": SECRET}),
        ("/config/users/u", {"SCRAM-SHA-256": [SECRET]}),
        ("/config/users/u", {"scram-sha-256": SECRET}),
        ("/config/users/u", {"unheard": SECRET}),
        ("/config/users/u", SECRET),
        ("/config/users/u/clients/c", {"SCRAM-SHA-512": f"salt={B64},iterations=1"}),
        ("/config/brokers/1", {"ssl.key.password": SECRET}),
        ("/config/brokers/1", {"ssl.key.password": {"nested": SECRET}}),
        ("/config/brokers/1", {"listener.name.x.sasl.jaas.config": SECRET}),
        ("/config/brokers/<default>", {"my.api.key": SECRET}),
        ("/config/topics/t", {"remote.storage.secret": SECRET}),
    ],
)
def test_no_shape_of_a_secret_passes(path: str, config: object) -> None:
    document = {"version": 1, "config": config, "left.over": {"password": SECRET}}
    for data in (
        json.dumps(document),
        json.dumps(document)[:-1],
        json.dumps(document).replace("password", "pa\\u0073sword"),
    ):
        row = znode(path, data.encode())
        assert row.redacted
        for shown in (row.data, json.dumps(state_rows([znode_batch([row])]))):
            assert SECRET not in (shown or "")
            assert B64 not in (shown or "")


def test_bytes_that_are_no_text_are_masked_where_secrets_live() -> None:
    assert "Zebra" not in (znode("/config/users/u", SECRET.encode() + b"\xff").data or "")


def test_harmless_data_is_left_as_it_is() -> None:
    for path, data in {
        "/config/topics/t": b'{"version":1,"config":{"retention.ms":"1"}}',
        "/config/users/u": b'{"version":1,"config":{"producer_byte_rate":"1"}}',
        "/brokers/topics/t": b'{ "partitions" : {} }',
    }.items():
        row = znode(path, data)
        assert (row.data, row.redacted) == (data.decode(), False)


def test_only_hashes_of_digest_ids_are_hidden() -> None:
    assert REDACTOR.acl_id("world", "anyone") == "anyone"
    assert REDACTOR.acl_id("sasl", "kafka/host@REALM") == "kafka/host@REALM"
    hidden = REDACTOR.acl_id("digest", f"super:{B64}")
    assert hidden.startswith("super:hmac:")
    assert B64 not in hidden
    assert SECRET not in repr(Redactor(FINGERPRINT, (SECRET,)))
