"""What a configuration can't mean is refused before anything starts, in one line that names the key and never shows the value."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from jobs.exit import UsageError
from jobs.settings import Settings, validated

INF, NAN = float("inf"), float("nan")
MAIL: dict[str, Any] = {"host": "smtp.example.com", "sender": "a@example.com", "recipients": ["b@example.com"]}
LIVE: dict[str, Any] = {"controllers": ["c1.example.com:9093"], "cluster_id": "x"}


def settings(**values: Any) -> Settings:
    return validated({"cluster": "c", "warehouse": "w", "kraft": {"folders": ["/x"]}, **values}, "test")


def mail(**values: Any) -> dict[str, Any]:
    return {"report": {"mail": {**MAIL, **values}}}


def zookeeper(**values: Any) -> dict[str, Any]:
    return {"zookeeper": values}


# A number that no run gets past would open every gate that depends on it, or end a run whose work is done.
NUMBERS = [
    ({"report": {"stale_after_hours": INF}}, "report.stale_after_hours"),
    ({"report": {"stale_after_hours": NAN}}, "report.stale_after_hours"),
    ({"report": {"stale_after_hours": 1e300}}, "report.stale_after_hours"),
    ({"thresholds": {"lag_seconds": INF}}, "thresholds.lag_seconds"),
    ({"thresholds": {"alive_seconds": INF}}, "thresholds.alive_seconds"),
    ({"thresholds": {"capture_skew_seconds": INF}}, "thresholds.capture_skew_seconds"),
    ({"maintain": {"isr_days": INF}}, "maintain.isr_days"),
    ({"maintain": {"judged_days": 1e9}}, "maintain.judged_days"),
    ({"maintain": {"every_hours": INF}}, "maintain.every_hours"),
    ({"maintain": {"vacuum_hours": 1e9}}, "maintain.vacuum_hours"),
    (mail(remind_after_hours=INF), "report.mail.remind_after_hours"),
    (zookeeper(connect="zk:2181", session_timeout_seconds=INF), "zookeeper.session_timeout_seconds"),
    (zookeeper(connect="zk:2181", session_timeout_seconds=1e7), "zookeeper.session_timeout_seconds"),
    ({"spark": {"driver_memory": "0g"}}, "spark.driver_memory"),
    # A date without its hyphens would be a day of 1970.
    ({"as_of": 20260131}, "as_of"),
    ({"as_of": "20260131"}, "as_of"),
    ({"as_of": date(2026, 1, 31)}, "as_of"),
]
# As a path an empty text is the folder that the run happens to be in.
EMPTY = [
    ({"warehouse": ""}, "`warehouse` is empty"),
    ({"warehouse": " "}, "`warehouse` is empty"),
    (zookeeper(folder=""), "`zookeeper`: `folder` is empty"),
    (zookeeper(connect=" "), "`zookeeper`: `connect` is empty"),
    ({"kraft": {"folders": ["/x", ""]}}, "`kraft`: `folders` is empty"),
    ({"kraft": {**LIVE, "keep_copy": ""}}, "`kraft`: `keep_copy` is empty"),
    ({"report": {"folder": ""}}, "`report`: `folder` is empty"),
    ({"metrics": {"textfile": ""}}, "`metrics`: `textfile` is empty"),
    ({"suppressions": ""}, "`suppressions` is empty"),
    (mail(host=""), "`report.mail`: `host` is empty"),
]
ENSEMBLES = [
    ",",
    "zk1:0",
    "zk1:99999",
    "zk1:abc",
    "zk1:2181,,zk2:2181",
    "zk1:2181;zk2:2181",
    "zk1:2181 zk2:2181",
    "http://zk1:2181",
    "ann:secret@zk1:2181",
    "zk1:2181,zk..example.com:2181",
    "zk1:2181/kafka,zk2:2181/kafka",
    "zk1:2181/a/../b",
]
CONTROLLERS = [
    "c1",
    "c1:0",
    "c1:99999",
    "http://c1:9093",
    "c1:9093,c2:9093",
    "c1/x:9093",
    "[c1]:9093",
    "c..example:9093",
]
URLS = ["https://", "https:///x", "https://h:99999/x", "https://h:abc", "ftp://h", "h"]
ADDRESSES = ["nobody", "a@b.c\r\nBcc: x@evil.example", "a@", "@b", "münch@example.com", "a b@c.d"]


@pytest.mark.parametrize(("values", "key"), NUMBERS)
def test_a_number_that_means_nothing(values: dict[str, Any], key: str) -> None:
    with pytest.raises(UsageError, match=rf"^test: `{key}`: "):
        settings(**values)


@pytest.mark.parametrize(("values", "said"), EMPTY)
def test_an_empty_text(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=rf"^test: {said}: give a value, or leave the key out$"):
        settings(**values)


def refused(key: str, text: str, **values: Any) -> None:
    with pytest.raises(UsageError, match=rf"^test: `{key}`: ") as caught:
        settings(**values)
    assert "\n" not in str(caught.value)
    # It may have a password in it.
    assert text not in str(caught.value)


@pytest.mark.parametrize("connect", ENSEMBLES)
def test_an_ensemble_that_can_not_be(connect: str) -> None:
    refused("zookeeper.connect", "ann:secret", zookeeper={"connect": connect})


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_a_controller_that_can_not_be(controller: str) -> None:
    refused(r"kraft\.controllers\.0", controller, kraft={**LIVE, "controllers": [controller]})


@pytest.mark.parametrize("url", URLS)
def test_a_page_that_can_not_be(url: str) -> None:
    with pytest.raises(UsageError, match=r"^test: `report\.url`: "):
        settings(report={"url": url})
    with pytest.raises(UsageError, match=r"^test: `metrics\.push_gateway`: "):
        settings(metrics={"push_gateway": url})


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_no_person_has(address: str) -> None:
    refused(r"report\.mail\.recipients\.1", address, **mail(recipients=["b@example.com", address]))
    refused(r"report\.mail\.error_recipients\.0", address, **mail(error_recipients=[address]))
    refused(r"report\.mail\.sender", address, **mail(sender=address))


@pytest.mark.parametrize("host", ["a b", "smtp://h", "h:25"])
def test_a_mail_server_that_can_not_be(host: str) -> None:
    refused(r"report\.mail\.host", host, **mail(host=host))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            zookeeper(connect="zk", auth={"scheme": "digest"}),
            "`zookeeper.auth`: digest needs username and password_env",
        ),
        (
            zookeeper(connect="zk", auth={"scheme": "sasl_digest_md5", "username": "ann"}),
            "`zookeeper.auth`: sasl_digest_md5 needs password_env",
        ),
        (zookeeper(connect="zk", tls={"key_file": "/k"}), "`zookeeper.tls`: key_file needs certificate_file"),
        (mail(username_env="USER"), "`report.mail`: username_env and password_env go together"),
        ({"hold": "for-ever"}, "`hold`: give `until-finalised`, or a list of run ids"),
        (
            {"kafka_version": 3.9},
            "`kafka_version`: a text is expected; what looks like a number or a date needs quotes",
        ),
    ],
)
def test_what_would_be_ignored_or_misread(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        settings(**values)
    assert str(caught.value) == f"test: {said}"


@pytest.mark.parametrize(
    ("given", "connect"),
    [
        ("zk1", "zk1"),
        ("zk1:2181, zk_2:2181 ,10.0.0.3/kafka", "zk1:2181,zk_2:2181,10.0.0.3/kafka"),
        ("[2001:db8::1]:2181/a/b c/", "[2001:db8::1]:2181/a/b c/"),
        ("zkü.example.com:2181/", "zkü.example.com:2181/"),
    ],
)
def test_ensembles_as_people_write_them(given: str, connect: str) -> None:
    source = settings(zookeeper={"connect": given}).zookeeper
    assert source is not None
    assert source.connect == connect


def test_other_addresses_as_people_write_them() -> None:
    settings(kraft={**LIVE, "controllers": ["c1:9093", "[::1]:9093", "10.0.0.1:9093", "c_1.example.com:1"]})
    settings(report={"url": "https://audits.example.com:8443/kafka", "mail": {**MAIL, "host": "::1"}})
    settings(metrics={"push_gateway": "http://10.0.0.1:9091"}, **mail(sender="Kafka audit <a@example.com>"))
    settings(as_of=None, hold=["20260131T040000Z-1a2b3c"], maintain={"judged_days": 36_525})
    settings(as_of="2026-01-31T04:00:00Z", hold="until-finalised")
