"""Content that is no text, no number or far too much of either, in every kind of znode and record: findings, and a report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.bronze import ZK_ZNODES
from schemas.silver import FINDINGS
from tests.captures import capture
from tests.pipeline.audits import Audit, Content, in_fleet, settings_content
from tests.pipeline.logs import append, record, writable_copy
from tests.pipeline.trees import At, Tree
from tests.zookeeper.malformed import HALF, HOSTILE_VALUES, one_of_each, with_hostile_values
from transforms.report.html import render_html
from transforms.report.json import from_json, to_json
from transforms.report.mail import render_mail
from transforms.report.text import render_text

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

CLUSTER = "hostile-content"
NOW = 1_795_233_160_500
# Of a text this long there are only a few, so that the tree stays within what a test may take.
LONG = 10_000
TEN_MEGABYTES = 10_000_000
# Where several znodes of a kind may lie side by side, and what is counted up for it.
SEVERAL = {
    "/brokers/topics/t": "/brokers/topics/hostile-{}",
    "/config/topics/t": "/config/topics/hostile-{}",
    "/config/brokers/1": "/config/brokers/7{}",
    "/config/users/u": "/config/users/hostile-{}",
    "/config/clients/c": "/config/clients/hostile-{}",
    "/config/ips/1.2.3.4": "/config/ips/10.0.1.{}",
    "/kafka-acl/Topic/t": "/kafka-acl/Topic/hostile-{}",
    "/kafka-acl-extended/prefixed/Topic/t": "/kafka-acl-extended/prefixed/Topic/hostile-{}",
    "/delegation_token/tokens/id": "/delegation_token/tokens/hostile-{}",
    "/isr_change_notification/isr_change_0": "/isr_change_notification/isr_change_{}",
    "/log_dir_event_notification/log_dir_event_0": "/log_dir_event_notification/log_dir_event_{}",
    "/kafka-acl-extended-changes/acl_changes_0": "/kafka-acl-extended-changes/acl_changes_{}",
    "/config/changes/config_change_0000000000": "/config/changes/config_change_{}",
    "/brokers/ids/1": "/brokers/ids/8{}",
}
ALONE = ("/feature", "/latest_producer_id_block", "/admin/reassign_partitions", "/admin/preferred_replica_election")
ODD_TEXTS = ("a\x00b", "\u202egnp.exe\u2066", "\u0301" * 50, "x" * TEN_MEGABYTES, "9" * 20_000, "🗝", "")


def planted() -> dict[str, str]:
    """Hostile JSON by path."""
    found: dict[str, str] = {}
    for good, pattern in SEVERAL.items():
        text = one_of_each()[good]
        values = [value for value in HOSTILE_VALUES if len(value) < LONG]
        texts = [each for value in values for each in with_hostile_values(text, value)]
        texts += [with_hostile_values(text, value)[-2] for value in HOSTILE_VALUES if len(value) >= LONG]
        found |= {pattern.format(number): each for number, each in enumerate(texts)}
    found |= {path: with_hostile_values(one_of_each()[path], f'"{HALF}"')[0] for path in ALONE}
    entries = ",".join(f'"retention.ms":"{number}"' for number in range(5_000))
    found["/config/topics/repeated"] = f'{{"version":1,"config":{{{entries}}}}}'
    found["/config/topics/ten-megabytes"] = f'{{"version":1,"config":{{"retention.ms":"{"x" * TEN_MEGABYTES}"}}}}'
    return found


@in_fleet(CLUSTER)
def prepare(folder: Path) -> Content:
    source = capture("3.9.1", "5")
    tree = Tree(source / "zookeeper.jsonl.gz")
    for number, (path, text) in enumerate(planted().items()):
        at = At(5_000 + number, NOW)
        parent = path.rpartition("/")[0] or "/"
        if parent not in tree.nodes:
            tree.create(parent, None, at)
        if path in tree.nodes:
            tree.write(path, text, at)
        else:
            tree.create(path, text, at)
    logs = writable_copy(source / "kraft", folder / "kraft")
    for number, text in enumerate(ODD_TEXTS):
        records = [
            record("CONFIG_RECORD", resourceType=2, resourceName=f"odd-{number}", name="retention.ms", value=text),
            record("CONFIG_RECORD", resourceType=4, resourceName=str(number), name=f"plugin.{number}", value=text),
        ]
        if len(text) < LONG:
            entity = [{"entityType": "user", "entityName": text}]
            records += [
                record("CONFIG_RECORD", resourceType=2, resourceName=text, name=f"k{text}", value="1"),
                record("CLIENT_QUOTA_RECORD", entity=entity, key="producer_byte_rate", value=1.5, remove=False),
            ]
        append(logs, records, NOW + number)
    dump = tree.save(folder / "zookeeper.jsonl.gz")
    return settings_content(source, folder, zookeeper={"dump": str(dump)}, kraft={"folders": [str(logs)]})


def test_a_tree_of_hostile_content_is_audited_to_the_end(audited: Callable[[str], Audit]) -> None:
    found = audited(CLUSTER)
    said = Counter(row["code"] for row in found.rows(FINDINGS, "source = 'zookeeper'"))
    assert {
        "NOT-UTF8",
        "DUPLICATE-KEY",
        "START-13",
        "CONFIG-DATA",
        "TOPIC-DATA",
        "ACL-DATA",
        "TOKEN-DATA",
    } <= said.keys()
    assert said["NOT-UTF8"] >= len(SEVERAL)
    report = found.report
    assert report.verdict == "errors"
    checks = {check.id: check.verdict for check in report.checks}
    # The load is over: what would stop one is told by what must be parsed.
    assert checks["CAP-09"] in ("fail", "warn")
    stored = {row["path"] for row in found.rows(ZK_ZNODES)}
    assert planted().keys() <= stored


def test_its_report_is_one_that_can_be_read(audited: Callable[[str], Audit]) -> None:
    report = audited(CLUSTER).report
    text = to_json(report)
    assert from_json(text) == report
    assert len(text) < 5_000_000
    assert json.loads(text)["verdict"] == "errors"
    for shown in (render_html(report), render_text(report), str(render_mail(report))):
        assert len(shown) < 5_000_000
        assert not any(mark in shown for mark in ("\x00", "\u202e", "\u2066"))
        assert shown.encode()
