"""A secret that was not replaced where it was read is found by its form, and shown to nobody (SEC-05).

A dump may say that whoever made it has replaced the secrets already; this one is wrong.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.captures import capture
from tests.pipeline.audits import Audit, Content, in_fleet, settings_content
from transforms.report.json import to_json

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

CLUSTER = "a-secret-slipped-through"
USER = "/config/users/alice"


def clear_text() -> str:
    """What the capture's tree holds of the user: SCRAM salts and keys."""
    with gzip.open(capture("3.9.1", "3") / "zookeeper.jsonl.gz", "rt") as lines:
        (found,) = [json.loads(line) for line in lines if json.loads(line)["path"] == USER]
    return base64.b64decode(found["data_base64"]).decode()


@in_fleet(CLUSTER)
def prepare(folder: Path) -> Content:
    source = capture("3.9.1", "3")
    dump = folder / "zookeeper.jsonl"
    with gzip.open(source / "zookeeper.jsonl.gz", "rt") as lines, dump.open("w") as out:
        for line in lines:
            znode = json.loads(line)
            if znode["path"] == USER:
                del znode["data_base64"]
                znode |= {"data": clear_text(), "redacted": True}
            out.write(json.dumps(znode) + "\n")
    return settings_content(source, folder, zookeeper={"dump": str(dump)})


def test_it_is_found_and_shown_to_nobody(audited: Callable[[str], Audit]) -> None:
    report = audited(CLUSTER).report
    (check,) = [check for check in report.checks if check.id == "SEC-05"]
    assert check.verdict == "fail"
    assert f"zk_znodes: {USER}" in check.evidence
    assert (report.verdict, report.exit_code) == ("errors", 20)
    secrets = [
        part.partition("=")[2] for part in clear_text().split(",") if part.startswith(("salt", "stored", "server"))
    ]
    assert secrets
    assert not [secret for secret in secrets if secret in to_json(report)]


def test_nothing_else_has_the_form_of_one(audit_of: Callable[[str, str], Audit]) -> None:
    for version, stage in (("3.9.1", "3"), ("3.9.1", "5"), ("3.9.1", "12"), ("3.6.2", "5"), ("3.5.2", "5")):
        (check,) = [check for check in audit_of(version, stage).report.checks if check.id == "SEC-05"]
        assert (check.verdict, check.evidence) == ("pass", [])
