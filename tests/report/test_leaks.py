"""A secret that a reader missed is found by its form, in whatever text it stands, and what replaces one is left alone."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest

from jobs.steps.reconcile import without_secrets
from schemas.configs import PASSWORDS
from schemas.report import CheckResult, ExpectationResult
from tests.report.samples import healthy
from transforms.expectations.outcome import without_secrets as results_without_secrets
from transforms.leaks import FORMS, WITHHELD, leaking, leaks, without_leaks
from transforms.report.html import render_html
from transforms.report.json import to_json
from transforms.report.mail import render_mail
from transforms.report.text import render_text
from transforms.secrets import Fingerprinter

SEC_05 = CheckResult("SEC-05", "pass", 0, severity="critical", title="No secret")

FINGERPRINT = Fingerprinter(b"k" * 32).text("alice-secret")
SECRETS = [
    ("a SCRAM credential", "salt=MTIzNA==,stored_key=c3Q=,server_key=c2U=,iterations=4096"),
    ("a SCRAM salt or key", '{"name":"alice","storedKey":"c3RvcmVk"}'),
    ("a SCRAM salt or key", json.dumps(json.dumps({"stored_key": "c3RvcmVk"}))),
    ("a password configuration", '{"version":1,"config":{"listener.name.sasl_ssl.ssl.key.password":"alice-secret"}}'),
    ("a password configuration", '{"resourceType":4,"name":"ssl.keystore.password","value":"alice-secret"}'),
    ("a JAAS text", 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";'),
    ("an encrypted password", "keyLength:128,encryptedPassword:aGVsbG8=,iterations:4096"),
]
HARMLESS = [
    f"salt={FINGERPRINT},stored_key={FINGERPRINT},server_key={FINGERPRINT},iterations=4096",
    json.dumps({"salt": FINGERPRINT, "storedKey": FINGERPRINT}),
    json.dumps({"config": {"ssl.key.password": f"ciphertext:{FINGERPRINT}"}}),
    json.dumps({"config": {"ssl.key.password": f"undecodable:{FINGERPRINT}"}}),
    json.dumps({"name": "ssl.key.password", "value": FINGERPRINT}),
    json.dumps({"name": "ssl.key.password", "value": None}),
    json.dumps({"config": {"ssl.key.password": [FINGERPRINT]}}),
    "listener.name.ssl.key.password of broker 0 was changed",
    "orders.ssl.v1/partitions/0: the salt and the keys of sasl.jaas.config are replaced",
    json.dumps({"config": {"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}}),
]


@pytest.mark.parametrize(("form", "text"), SECRETS)
def test_each_form_is_found(form: str, text: str) -> None:
    assert leaks(text) == form
    assert leaks(f'before "{text}" after') is not None


def test_every_form_is_planted() -> None:
    assert {form for form, _ in SECRETS} == FORMS.keys()


@pytest.mark.parametrize("text", HARMLESS)
def test_what_replaces_a_secret_is_none(text: str) -> None:
    assert leaks(text) is None


def test_rows_of_a_table_are_found_by_any_of_their_texts() -> None:
    texts = [*(text for _, text in SECRETS), *HARMLESS, None]
    rows = pl.DataFrame({"number": range(len(texts)), "data": texts, "problem": None}, strict=False)
    swapped = rows.select("number", pl.col("problem").alias("data"), pl.col("data").alias("problem"))
    for each in (rows, swapped):
        assert leaking(each, "data", "problem")["number"].to_list() == list(range(len(SECRETS)))


def test_a_document_is_cleaned_and_tells_where() -> None:
    document = {"checks": [{"id": "X", "evidence": ["fine", SECRETS[0][1]]}], "notes": [SECRETS[5][1]], "exit_code": 0}
    cleaned, found = without_leaks(document)
    assert found == ["checks[0].evidence[1]: a SCRAM credential", "notes[0]: a JAAS text"]
    assert cleaned == {
        "checks": [{"id": "X", "evidence": ["fine", WITHHELD]}],
        "notes": [WITHHELD],
        "exit_code": 0,
    }


def test_a_difference_of_a_password_shows_fingerprints_only() -> None:
    row = {"entity": "configs", "key": {"resource_type": "BROKER", "config": "ssl.key.password"}}
    shown, found = without_leaks({"rows": [{**row, "zk_value": "clear", "kraft_value": {"value": FINGERPRINT}}]})
    assert shown["rows"][0]["zk_value"] == WITHHELD
    assert shown["rows"][0]["kraft_value"] == {"value": FINGERPRINT}
    assert found == ["rows[0].zk_value: a password configuration"]


def test_an_empty_value_of_what_no_release_declares_is_no_secret() -> None:
    row = {"entity": "configs", "key": {"resource_type": "BROKER", "config": "my.plugin.setting"}}
    assert without_leaks({"rows": [{**row, "zk_value": "", "kraft_value": FINGERPRINT}]})[1] == []
    assert without_leaks({"rows": [{**row, "zk_value": "clear", "kraft_value": ""}]})[1] == [
        "rows[0].zk_value: a password configuration"
    ]


def test_every_password_of_a_release_is_known_by_its_form() -> None:
    for name in PASSWORDS:
        assert leaks(json.dumps({"config": {f"listener.name.x.{name}": "clear"}})) == "a password configuration", name


def test_results_of_expectations_are_shown_without_them() -> None:
    row = json.dumps({"config": "listener.name.x.sasl.jaas.config", "value": SECRETS[5][1]})
    result = ExpectationResult("mine", "silver.configs", "unexpected_rows_expectation", None, False, "error", 3, 1)
    (shown,) = results_without_secrets([replace(result, sample=[row, "fine"], kwargs={"regex": SECRETS[0][1]})])
    assert shown == replace(result, sample=[WITHHELD, "fine"], kwargs={"regex": WITHHELD})
    report = without_secrets(replace(healthy(), checks=[SEC_05], expectations=[replace(result, sample=[row])]), "error")
    assert report.expectations[0].sample == [WITHHELD]
    assert "PlainLoginModule" not in to_json(report)
    assert (report.verdict, report.checks[0].verdict) == ("errors", "fail")


def test_a_report_that_holds_one_is_withheld_and_red() -> None:
    """Whatever shows a report to anybody is made from it: the page, the mail, the tables and the terminal."""
    planted = "salt=c2FsdHNhbHQ=,stored_key=c3Q=,server_key=c2U=,iterations=4096"
    whole = replace(healthy(), checks=[*healthy().checks, SEC_05])
    report = replace(whole, notes=[*whole.notes, f"users/alice: {planted}"])
    shown = without_secrets(report, "error")
    (check,) = [check for check in shown.checks if check.id == "SEC-05"]
    assert (check.verdict, check.violations) == ("fail", 1)
    assert check.evidence[0].startswith("report: notes[")
    assert (shown.verdict, shown.exit_code) == ("errors", 20)
    for text in (to_json(shown), render_html(shown), render_text(shown), render_mail(shown).as_string()):
        assert "c2FsdHNhbHQ" not in text
    assert without_secrets(whole, "error") is whole
