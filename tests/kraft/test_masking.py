"""No secret of the log reaches a row, whichever decoder reads it; equal secrets have equal fingerprints."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.configs import CONFIG_TYPES, LISTENER_PREFIX, PASSWORDS, READABLE
from schemas.kraft.records import CONFIG, RECORD_TYPES, USER_SCRAM_CREDENTIAL
from tests.captures import VERSIONS
from tests.kraft.dumps import dumps, log_folder, read_dump
from tests.kraft.encoder import batch, data_value
from transforms.kraft.decode.decode_pass import Continuation, DecodePass
from transforms.kraft.decode.rows import Origin
from transforms.kraft.decode.segments import decode_by_declarations, decode_checkpoint
from transforms.kraft.kernel.fast import decode_fast
from transforms.secrets import Fingerprinter, is_sensitive_config

FINGERPRINTER = Fingerprinter(b"a key of these tests")
ENCODED = (
    "keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,keyLength:128,salt:c2FsdA==,"
    "iterations:4096,initializationVector:aXY=,encryptedPassword:c2VjcmV0,passwordLength:6"
)


def configs(*pairs: tuple[str, str | None]) -> list[Any]:
    """Masked values of Config records, read by both decoders, which must agree."""
    records = [
        (None, data_value(CONFIG, 0, {"resourceType": 4, "resourceName": "1", "name": name, "value": value}))
        for name, value in pairs
    ]
    walks = [DecodePass(batch(records, 0), Origin(1, "a.log"), FINGERPRINTER, Continuation()) for _ in range(2)]
    slow = [row for part in decode_by_declarations(walks[0]) for row in part.to_pylist()]
    fast = [row for part in decode_fast(walks[1], 1000) for row in part.to_pylist()]
    assert fast == slow
    return [json.loads(row["data"])["value"] for row in slow]


@pytest.mark.parametrize("version", VERSIONS)
def test_no_secret_of_the_captures_is_in_a_row(version: str) -> None:
    secrets: set[str] = set()
    shown: list[str] = []
    for key in (key for key in dumps() if key[0] == version):
        for name, records in read_dump(*key).items():
            for record in records:
                body = record.data or {}
                if record.type == "USER_SCRAM_CREDENTIAL_RECORD":
                    secrets |= {body["salt"], body["storedKey"], body["serverKey"]}
                elif record.type == "CONFIG_RECORD" and is_sensitive_config(body["name"]):
                    secrets.add(body["value"])
            data = (log_folder(*key) / name).read_bytes()
            walk = DecodePass(data, Origin(1, name), FINGERPRINTER, Continuation())
            parts = [*decode_by_declarations(walk), *decode_checkpoint(data, Origin(1, name, 1), FINGERPRINTER)]
            shown += [repr(part.to_pydict()) for part in parts]
    text = "\n".join(shown)
    assert len(secrets) > 10
    assert any("LoginModule" in secret for secret in secrets)
    for secret in secrets:
        assert secret not in text
        assert secret.partition('password="')[2].partition('"')[0] not in text or "password=" not in secret
    assert not any(
        word in text for word in ("alice-secret", "bob-secret", "carol-secret", "svc-secret", "token-secret")
    )


def test_scram_parts_are_fingerprinted_over_their_bytes() -> None:
    parts = {"salt": b"salt", "storedKey": b"stored", "serverKey": b"server"}
    values = {"name": "u", "mechanism": 1, "iterations": 4096} | parts
    data = batch([(None, data_value(USER_SCRAM_CREDENTIAL, 0, values))], 0)
    for decode in (decode_by_declarations, decode_fast):
        [part] = decode(DecodePass(data, Origin(1, "a.log"), FINGERPRINTER, Continuation()), 10)
        body = json.loads(part.column("data")[0].as_py())
        assert {name: body[name] for name in parts} == {name: FINGERPRINTER.bytes(raw) for name, raw in parts.items()}
        assert base64.b64encode(b"stored").decode() not in str(body)


def test_config_values() -> None:
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="alice-secret";'
    given = [
        ("listener.name.sasl.scram-sha-256.sasl.jaas.config", jaas),
        ("Some.PASSWORD.of.a.plugin", "p"),
        ("ssl.key.password", None),
        ("ssl.key.password", ""),
        ("ssl.key.password", ENCODED),
        ("retention.ms", "1000"),
        ("retention.ms", ENCODED),
        ("cleanup.policy", "encryptedPassword is no map"),
    ]
    assert configs(*given) == [
        FINGERPRINTER.text(jaas),
        FINGERPRINTER.text("p"),
        None,
        "",
        FINGERPRINTER.ciphertext(ENCODED),
        "1000",
        FINGERPRINTER.ciphertext(ENCODED),
        "encryptedPassword is no map",
    ]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(CONFIG_TYPES)),
    st.sampled_from(("", "", "x", "listener.name.x.", "listener.name.x.scram-sha-512.", "listener.name.", "é")),
    st.sampled_from(("", "", ".x", "s", "\n")),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_what_may_be_read_is_read_by_both_decoders_and_nothing_else(
    word: str, before: str, after: str, cases: int, cased: bool
) -> None:
    # Any mix of cases, and the Kelvin sign, which Python lowers to k.
    mixed = "".join(letter.upper() if cases >> index & 1 else letter for index, letter in enumerate(word))
    names = [f"{before}{mixed if cased else word}{after}", word.replace("k", "\u212a")]
    shown = [FINGERPRINTER.text("a text") if is_sensitive_config(name) else "a text" for name in names]
    assert configs(*[(name, "a text") for name in names]) == shown
    if after or before not in {"", "listener.name.x.", "listener.name.x.scram-sha-512."}:
        # A name may itself begin so that the rest is another readable one: `listener.name.log.local.retention.bytes`.
        listener = re.fullmatch(LISTENER_PREFIX, names[0])
        readable = names[0] in READABLE or (listener is not None and listener[1] in READABLE)
        assert readable or shown[0] == FINGERPRINTER.text("a text")


def test_every_name_that_a_release_declares_is_readable_or_a_password() -> None:
    assert len(READABLE) > 450
    readable = sorted(READABLE)
    assert configs(*[(name, "a text") for name in readable]) == ["a text"] * len(readable)
    assert configs(*[(name, "a text") for name in PASSWORDS]) == [FINGERPRINTER.text("a text")] * len(PASSWORDS)


@pytest.mark.parametrize(
    "name",
    [
        "confluent.license",
        "basic.auth.user.info",
        "my.passphrase",
        "db.passwd",
        "db.pwd",
        "api_key",
        "connection.string",
        "jwt.claims",
        "plugin.setting",
        "Retention.ms",
        "retention.ms ",
        "",
        "listener.name.x",
        "listener.name.x.",
        "listener.name.x.plugin.setting",
        "listener.name.x.y.retention.ms",
        "listener.name.a.plain.sasl.jaas.config",
        "listener.name.a.ssl.key.password",
        "delegation.token.master.key",
        "sasl.oauthbearer.assertion.private.key.passphrase",
    ],
)
def test_what_kafka_cannot_type_is_a_secret(name: str) -> None:
    """`KafkaConfig.maybeSensitive`."""
    assert is_sensitive_config(name)
    assert configs((name, "a text")) == [FINGERPRINTER.text("a text")]


@pytest.mark.parametrize(
    "name",
    [
        "retention.ms",
        "leader.replication.throttled.rate",
        "leader.replication.throttled.replicas",
        "log.initial.task.delay.ms",
        "consumer.session.timeout.ms",
        "interval.ms",
        "listener.name.internal.ssl.keystore.location",
        "listener.name.internal.num.network.threads",
        "listener.name.x.scram-sha-256.sasl.login.class",
    ],
)
def test_what_kafka_can_type_is_readable(name: str) -> None:
    assert not is_sensitive_config(name)
    assert configs((name, "a text")) == ["a text"]


def test_every_secret_field_is_declared() -> None:
    secret = {
        (record.name, field.name) for record in RECORD_TYPES.values() for field in record.body.fields if field.secret
    }
    assert secret == {("USER_SCRAM_CREDENTIAL_RECORD", name) for name in ("salt", "storedKey", "serverKey")}
