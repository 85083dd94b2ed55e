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

from tests.zookeeper.malformed import TOKEN
from tests.zookeeper.trees import FINGERPRINT, REDACTOR, codes, of, state_rows, znode
from transforms.kraft.decode.masking import mask_config
from transforms.secrets import CIPHERTEXT_PREFIX
from transforms.zookeeper.read import password_encoder
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.read.redact import COSTLY_PREFIX, Redactor

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


def test_a_controller_decodes_with_one_secret_alone() -> None:
    """As of a broker that was taken out of service before the secret was rotated: nobody encodes its configurations again."""
    old, new = (encode_password(SECRET, secret) for secret in ("old", "new"))
    for name, value, expected in (
        ("ssl.key.password", old, ["START-13"]),
        ("ssl.key.password", new, []),
        # Kafka decodes it as little as any plugin's.
        ("plugin.setting", old, []),
    ):
        data = json.dumps({"version": 1, "config": {name: value}}).encode()
        rows = state_rows([znode_batch([znode("/config/brokers/1", data, Redactor(FINGERPRINT, ("new", "old")))])])
        [row] = of(rows, "configs")
        assert (codes(rows), row["value"], row["comparable"]) == (expected, FINGERPRINT.text(SECRET), True)


@pytest.mark.parametrize("secrets", [(), ("encoder",)])
def test_a_password_in_clear_text_is_none_that_a_broker_can_read(secrets: tuple[str, ...]) -> None:
    """A controller without password.encoder.secret mirrors it so (`PasswordEncoder.NOOP`); brokers and a later load decode it."""

    def read(name: str, value: str) -> tuple[list[str], object]:
        data = json.dumps({"version": 1, "config": {name: value}}).encode()
        rows = state_rows([znode_batch([znode("/config/brokers/1", data, Redactor(FINGERPRINT, secrets))])])
        return codes(rows), of(rows, "configs")[0]["value"]

    for name in ("ssl.key.password", "listener.name.x.plain.sasl.jaas.config"):
        assert read(name, SECRET) == (["START-13"], FINGERPRINT.text(SECRET)), "it is still compared with KRaft's"
    # Those are not encrypted: Kafka has a table of what it encrypts.
    for name in ("plugin.setting", "ssl.key.password.file"):
        assert read(name, SECRET) == ([], FINGERPRINT.text(SECRET))
    assert read("ssl.key.password", "") == ([], "")


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


def shown(path: str, text: str, redactor: Redactor = REDACTOR) -> str:
    """Everything that is stored of a znode: its row, and what is read from it."""
    row = znode(path, text.encode(), redactor)
    return str(row.data) + json.dumps(state_rows([znode_batch([row])]), default=str)


@pytest.mark.parametrize("path", ["/config/brokers/1", "/config/topics/t", "/prod/config/brokers/<default>"])
@pytest.mark.parametrize(
    "name",
    ["confluent.license", "basic.auth.user.info", "my.passphrase", "db.pwd", "api_key", "jwt.x", "plugin.setting"],
)
def test_what_no_release_declares_is_a_fingerprint_equal_to_krafts(path: str, name: str) -> None:
    text = json.dumps({"version": 1, "config": {name: SECRET, "retention.ms": "7"}})
    assert SECRET not in shown(path, text)
    assert f'"{name}":"{FINGERPRINT.text(SECRET)}"' in str(znode(path, text.encode()).data)
    assert '"retention.ms":"7"' in str(znode(path, text.encode()).data)
    assert mask_config(name, SECRET, FINGERPRINT) == FINGERPRINT.text(SECRET)


@pytest.mark.parametrize("value", ["", "1", SECRET, encode_password(SECRET, "other")], ids=["none", "1", "text", "map"])
@pytest.mark.parametrize("name", ["retention.ms", "plugin.setting", "ssl.key.password", "listener.name.x.ssl.protocol"])
def test_both_sides_hide_alike(name: str, value: str) -> None:
    data = json.dumps({"version": 1, "config": {name: value}}).encode()
    (row,) = of(state_rows([znode_batch([znode("/config/brokers/1", data, Redactor(FINGERPRINT))])]), "configs")
    assert row["value"] == mask_config(name, value, FINGERPRINT)
    assert row["comparable"] == (not str(row["value"]).startswith(CIPHERTEXT_PREFIX))


@pytest.mark.parametrize(
    "text",
    [
        # The first of two is dropped by any reader, and stands in the text.
        '{"version":1,"config":{"ssl.key.password":"S3cr3t-Zebra"},"config":{}}',
        '{"version":1,"config":{"ssl.key.password":"S3cr3t-Zebra","ssl.key.password":""}}',
        '{"version":1,"x":"S3cr3t-Zebra","x":1,"config":{"retention.ms":"1"}}',
        '{"version":1,"config":{"retention.ms":{"a":"S3cr3t-Zebra"}}}',
        '{"version":1,"config":{"retention.ms":["S3cr3t-Zebra"]}}',
        '{"version":1,"config":{"plugin.\\ud800":"S3cr3t-Zebra"}}',
        '{"version":1,"config":{"plugin":"\\ud800S3cr3t-Zebra"}}',
        '{"version":1,"config":["S3cr3t-Zebra"]}',
        '["S3cr3t-Zebra"]',
        '"S3cr3t-Zebra"',
        '{"version":1,"config":{"a":"S3cr3t-Zebra"}} trailing',
        '{"version":1,"config":{"a":"S3cr3t-Zebra","n":' + "9" * 5000 + "}}",
        '{"version":1,"config":{"a":"S3cr3t-Zebra","n":' + "[" * 100_000 + "]" * 100_000 + "}}",
    ],
)
@pytest.mark.parametrize(
    "path", ["/config/brokers/1", "/config/users/u", "/config/clients/c", "/delegation_token/tokens/t"]
)
def test_no_form_of_json_lets_a_secret_through(path: str, text: str) -> None:
    assert "Zebra" not in shown(path, text)


def test_a_tokens_own_fields_are_shown_and_nothing_else_of_it() -> None:
    text = json.dumps({**TOKEN, "hmac": SECRET, "owner": "User%3Aalice"})
    row = znode("/delegation_token/tokens/id", text.encode())
    assert row.redacted
    assert SECRET not in str(row.data)
    assert "User%3Aalice" in str(row.data)
    assert codes(state_rows([znode_batch([row])])) == []
    assert not znode("/delegation_token/tokens/id", json.dumps(TOKEN).encode()).redacted
    for odd in ({"renewers": [{"x": SECRET}]}, {"owner": {"x": SECRET}}, {"version": [SECRET]}):
        assert SECRET not in shown("/delegation_token/tokens/id", json.dumps({**TOKEN, **odd}))


@pytest.mark.parametrize("change", [("keyLength:128", "keyLength:1000000"), ("keyLength:128", "keyLength:127")])
def test_a_key_length_that_aes_does_not_have_is_refused_before_any_work(change: tuple[str, str]) -> None:
    encoded = encode_password(SECRET, "encoder").replace(*change)
    assert password_encoder.rounds(encoded) == 0
    with pytest.raises(password_encoder.UndecodableError, match="keyLength"):
        password_encoder.decode(encoded, "encoder")


def test_a_tree_cannot_ask_for_hours_of_key_derivation() -> None:
    asked = encode_password(SECRET, "encoder").replace("iterations:64", "iterations:9999999")
    assert password_encoder.rounds(asked) == 9_999_999
    redactor = Redactor(FINGERPRINT, ("encoder",))
    redactor._rounds[0] = 1_000_000
    data = json.dumps({"version": 1, "config": {"ssl.key.password": asked}}).encode()
    rows = state_rows([znode_batch([znode("/config/brokers/1", data, redactor)])])
    assert codes(rows) == ["CONFIG-COST"]
    (row,) = of(rows, "configs")
    assert str(row["value"]).startswith(COSTLY_PREFIX)
    assert not row["comparable"]
    # What it costs is taken from what is left, and Kafka's own default is not noticed.
    cheap = json.dumps({"version": 1, "config": {"ssl.key.password": encode_password(SECRET, "encoder")}}).encode()
    assert FINGERPRINT.text(SECRET) in str(znode("/config/brokers/1", cheap, redactor).data)
    assert redactor._rounds[0] == 1_000_000 - 64
    # SHA-1 gives 20 bytes a round: a key of 32 takes two.
    sha1 = encode_password(SECRET, "encoder", hashing="SHA1").replace("keyLength:128", "keyLength:256")
    assert password_encoder.rounds(sha1) == 128
