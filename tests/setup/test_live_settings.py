"""The configuration of controllers that are read live: what is refused, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.exit import UsageError
from jobs.settings import Settings, check_files, validated
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
