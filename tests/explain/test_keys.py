"""Keys as people type them: every form is read, every other one is answered with the form that is."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.explain.keys import EXPLAINED, FORMS, KeyFormError, RowKey, form_of, parse_key

ACL = {
    "resource_type": "TOPIC",
    "resource_name": "a/b",
    "pattern_type": "LITERAL",
    "principal": "User:x",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
QUOTA = '{"quota": "producer_byte_rate", "entity": {"user": null, "client-id": "app-9"}}'


@pytest.mark.parametrize(
    ("entity", "text", "key"),
    [
        ("topics", "orders", {"topic": "orders"}),
        ("partitions", "orders/3", {"topic": "orders", "partition": 3}),
        ("partitions", "re-created-0", {"topic": "re-created", "partition": 0}),
        ("partitions", '{"topic": "orders", "partition": 3}', {"topic": "orders", "partition": 3}),
        (
            "configs",
            "TOPIC/orders/retention.ms",
            {"resource_type": "TOPIC", "resource_name": "orders", "config": "retention.ms"},
        ),
        ("configs", "broker//x.y", {"resource_type": "BROKER", "resource_name": "", "config": "x.y"}),
        ("scram_credentials", "a/b/scram-sha-256", {"user": "a/b", "mechanism": "SCRAM-SHA-256"}),
        ("delegation_tokens", "zHDi0ZyTSW", {"token_id": "zHDi0ZyTSW"}),
        ("producer_ids", "", {}),
        ("features", "metadata.version", {"feature": "metadata.version"}),
        ("brokers", "12", {"broker_id": 12}),
        ("controllers", "3000", {"controller_id": 3000}),
        (
            "client_quotas",
            QUOTA,
            {
                "entity": [{"type": "client-id", "name": "app-9"}, {"type": "user", "name": None}],
                "quota": "producer_byte_rate",
            },
        ),
    ],
)
def test_a_key_is_read_in_its_form(entity: str, text: str, key: dict[str, Any]) -> None:
    assert parse_key(entity, text).key == key


@pytest.mark.parametrize(
    ("entity", "text", "why"),
    [
        ("topcs", "x", "unknown entity `topcs`; did you mean `topics`?"),
        ("migration", "x", "unknown entity `migration`"),
        ("topics", "", "topics needs a key; a key of topics is TOPIC"),
        ("partitions", "orders", "`orders` is not a key of partitions; a key of partitions is TOPIC/PARTITION"),
        ("partitions", "orders/three", "TOPIC/PARTITION, e.g. orders/3"),
        ("partitions", "orders/²", "TOPIC/PARTITION"),
        ("partitions", '{"topic": "a", "partition": "3"}', "`partition` must be a number"),
        ("partitions", '{"topic": "a", "partition": true}', "`partition` must be a number"),
        ("configs", "TOPC/orders/x", "BROKER//log.cleaner.threads for the cluster-wide default"),
        ("configs", "TOPIC/orders", "TYPE/NAME/CONFIG"),
        ("acls", "User:x", "a JSON object"),
        ("acls", "{", "not valid JSON"),
        ("acls", '{"resource_typ": "TOPIC"}', "it has no part `resource_typ`; did you mean `resource_type`?"),
        ("acls", '{"resource_type": "TOPIC"}', "`resource_name` is missing"),
        ("client_quotas", '{"entity": {}, "quota": "x"}', "must be an object from type to name"),
        ("client_quotas", '{"entity": {"client": "a"}, "quota": "x"}', "did you mean `client-id`?"),
        ("client_quotas", '{"entity": {"user": 1}, "quota": "x"}', "null for the default"),
        ("producer_ids", "x", "no key: there is one row"),
    ],
)
def test_what_is_no_key_is_answered_with_the_form(entity: str, text: str, why: str) -> None:
    with pytest.raises(KeyFormError) as caught:
        parse_key(entity, text)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_form_shown_is_read() -> None:
    """The example in each form, and the JSON object for an entity that has no form of its own."""
    examples = {name: re.search(r"e\.g\. (\{.*\}|[^ ,;]+)", form) for name, form in FORMS.items()}
    read = {name: parse_key(name, found[1]) for name, found in examples.items() if found}
    for name, row in read.items():
        assert f"e.g. {row.typed}" in FORMS[name]
    assert len(read) == len(FORMS) - 2, "a token's id and the one row of producer ids need no example"
    unknown = replace(EXPLAINED["topics"], name="quorum_voters", key=("voter", "set"))
    assert form_of(unknown) == "a JSON object with voter, set"


def test_the_texts_are_those_of_the_tables() -> None:
    row = parse_key("client_quotas", QUOTA)
    assert row.canonical == (
        '{"entity":[{"type":"client-id","name":"app-9"},{"type":"user","name":null}],"quota":"producer_byte_rate"}'
    )
    assert row.gold == '{"entity": {"client-id": "app-9", "user": null}, "quota": "producer_byte_rate"}'
    assert row.shown == "user=<default>, client-id=app-9 · producer_byte_rate"
    assert parse_key("producer_ids", None).canonical == "{}"
    assert parse_key("acls", ACL).typed == parse_key("acls", ACL).gold


_text = st.text(st.characters(exclude_categories=("Cs",)))
_keys = st.one_of(
    st.builds(lambda t: ("topics", {"topic": t}), _text),
    st.builds(lambda t, p: ("partitions", {"topic": t, "partition": p}), _text, st.integers(0, 10**6)),
    st.builds(lambda n, c: ("configs", {"resource_type": "TOPIC", "resource_name": n, "config": c}), _text, _text),
    st.builds(lambda u: ("scram_credentials", {"user": u, "mechanism": "SCRAM-SHA-512"}), _text),
    st.builds(
        lambda u, q: ("client_quotas", {"entity": [{"type": "user", "name": u}], "quota": q}), st.none() | _text, _text
    ),
)


@given(_keys)
def test_what_is_offered_to_type_is_read_as_the_same_row(case: tuple[str, dict[str, Any]]) -> None:
    entity, key = case
    row = RowKey(EXPLAINED[entity], key)
    assert parse_key(entity, row.typed).key == key
    assert parse_key(entity, row.report).key == key


def test_every_id_that_kafka_takes_can_be_typed() -> None:
    assert parse_key("brokers", "2147483647").key == {"broker_id": 2147483647}
    assert RowKey(EXPLAINED["controllers"], {"controller_id": 2147483647}).typed == "2147483647"
    for text in ("2147483648", "9" * 5000):
        with pytest.raises(KeyFormError):
            parse_key("brokers", text)
