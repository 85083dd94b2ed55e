"""The configuration of controllers that are read live: what is refused, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.exit import UsageError
from jobs.settings import Settings, check_files, controllers_risk, validated, zookeeper_risk
from jobs.steps.ingest_kraft import copy_folder

LIVE: dict[str, Any] = {"controllers": ["c1.example.com:9093", "[::1]:9093"], "cluster_id": "Xd9sXd9sQnWmTvGm1b2c3d"}


def settings(kraft: dict[str, Any], **values: Any) -> Settings:
    return validated({"cluster": "c", "warehouse": "/tmp/w", "kraft": kraft, **values}, "test")


@pytest.mark.parametrize(
    ("kraft", "text"),
    [
        ({}, "give folders, controllers or both"),
        ({"controllers": ["c1.example.com:9093"]}, "controllers need cluster_id"),
        ({"controllers": ["c1.example.com"], "cluster_id": "x"}, "kraft.controllers.0"),
        ({"folders": ["/x"], "cluster_id": "x"}, "are for controllers, and none are given"),
        ({**LIVE, "security": {"protocol": "SASL_SSL"}}, "needs mechanism, username, password_env"),
        ({**LIVE, "security": {"protocol": "SSL", "username": "ann"}}, "are for SASL_PLAINTEXT and SASL_SSL"),
        ({**LIVE, "security": {"ca_file": "/ca.pem"}}, "are for SSL and SASL_SSL"),
        ({**LIVE, "security": {"pasword_env": "X"}}, "unknown key `kraft.security.pasword_env`"),
        ({**LIVE, "security": {"protocol": "SASL_SSL", "mechanism": "GSSAPI"}}, "kraft.security.mechanism"),
    ],
)
def test_what_does_not_fit_is_refused(kraft: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        settings(kraft)


def test_controllers_and_folders_may_both_be_given() -> None:
    both = settings({**LIVE, "folders": ["/backup/3000"]}).kraft
    assert both is not None
    assert (both.folders, len(both.controllers)) == (["/backup/3000"], 2)


def test_both_sides_live_are_a_bracket_unless_told_otherwise() -> None:
    zookeeper = {"connect": "zk:2181"}
    assert settings(LIVE, zookeeper=zookeeper).bracketed
    assert not settings(LIVE, zookeeper={**zookeeper, "bracket": False}).bracketed
    assert not settings({"folders": ["/x"]}, zookeeper=zookeeper).bracketed
    assert settings({"folders": ["/x"]}, zookeeper={**zookeeper, "bracket": True}).bracketed
    assert not settings(LIVE, zookeeper={"dump": "/zk.jsonl"}).bracketed


def test_the_copy_is_kept_beside_the_tables() -> None:
    assert str(copy_folder(settings(LIVE))) == "/tmp/w/live/c"
    assert str(copy_folder(settings({**LIVE, "keep_copy": "/copies/c"}))) == "/copies/c"


def test_where_the_tables_are_no_folder_the_copy_wants_one() -> None:
    with pytest.raises(UsageError, match=r"name `kraft\.keep_copy`"):
        copy_folder(settings(LIVE, warehouse="s3a://bucket/audit"))


def test_a_certificate_that_is_not_there_is_told_before_anything_starts() -> None:
    missing = settings({**LIVE, "security": {"protocol": "SSL", "ca_file": "/nowhere/ca.pem"}})
    with pytest.raises(UsageError, match=r"`kraft\.security\.ca_file`: there is no file /nowhere/ca\.pem"):
        check_files(missing)


@pytest.mark.parametrize("name", [".", ".."])
def test_a_cluster_is_not_called_as_a_folder_is(name: str) -> None:
    """Its reports would lie outside their folder, and its copy of the log in that of another."""
    with pytest.raises(UsageError, match=r"`cluster`: `\.` and `\.\.` are names of folders"):
        validated({"cluster": name, "warehouse": "w", "kraft": LIVE}, "test")


@pytest.mark.parametrize("name", ["...", ".a", "a..b", "-"])
def test_other_names_with_dots_are_names(name: str) -> None:
    assert validated({"cluster": name, "warehouse": "w", "kraft": LIVE}, "test").cluster == name


LOGIN = {"username": "ann", "password_env": "PASSWORD"}


@pytest.mark.parametrize(
    ("security", "said"),
    [
        (
            {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", **LOGIN},
            "PLAIN over SASL_PLAINTEXT sends the password in",
        ),
        (
            {"protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-256", **LOGIN},
            "guess the password; use SASL_SSL",
        ),
        (
            {"protocol": "SASL_SSL", "mechanism": "PLAIN", "verify": False, **LOGIN},
            "gives the password to any server that answers",
        ),
        ({"protocol": "SASL_SSL", "mechanism": "PLAIN", **LOGIN}, ""),
        ({"protocol": "SSL", "verify": False}, ""),
        ({}, ""),
    ],
)
def test_who_could_get_at_the_controllers_password_is_said(security: dict[str, Any], said: str) -> None:
    risk = controllers_risk(settings({**LIVE, "security": security}).kraft)
    assert (said in risk, bool(risk)) == (True, bool(said))


@pytest.mark.parametrize(
    ("zookeeper", "said"),
    [
        ({"auth": {"scheme": "digest", **LOGIN}}, "digest without tls sends the password in clear text"),
        ({"auth": {"scheme": "sasl_digest_md5", **LOGIN}}, "sasl_digest_md5 without tls lets anyone who can listen"),
        (
            {"auth": {"scheme": "digest", **LOGIN}, "tls": {"verify": False}},
            "gives the password to any server that answers",
        ),
        ({"auth": {"scheme": "digest", **LOGIN}, "tls": {}}, ""),
        ({"auth": {"scheme": "sasl_gssapi"}}, ""),
        ({}, ""),
    ],
)
def test_who_could_get_at_zookeepers_password_is_said(zookeeper: dict[str, Any], said: str) -> None:
    given = validated({"cluster": "c", "warehouse": "w", "zookeeper": {"connect": "zk:2181", **zookeeper}}, "test")
    risk = zookeeper_risk(given.zookeeper)
    assert (said in risk, bool(risk)) == (True, bool(said))


def test_no_source_has_no_risk() -> None:
    assert (zookeeper_risk(None), controllers_risk(None)) == ("", "")
