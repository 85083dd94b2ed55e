"""Rules of order between a broker's format settings (KIP-384; S§10.1, S§10.4): message format <= persistent <= protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping

from transforms.features.levels import Release, release_name

IBP = "inter.broker.protocol.version"
MESSAGE_FORMAT = "log.message.format.version"
PERSISTENT = "persistent.metadata.version"
# From this protocol on the message format is taken for 3.0 (`shouldIgnoreMessageFormatVersion`).
IGNORED_FROM: Release = (3, 0)
Configurations = Mapping[int, Mapping[str, str]]
# Anybody may have written a topic's message format.
_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})(?:\.[0-9]{1,9})*")


def version_of(text: str) -> Release | None:
    """`3.5`, `3.5.1`, `3.5-IV2` or `0.10.2-IV0` as major and minor; None for any other text.

    Before 1.0 the second and third number were what major and minor are now: 0.11.0 is (0, 11).
    """
    found = _VERSION.fullmatch(text.strip().partition("-")[0])
    return None if found is None else (int(found[1]), int(found[2]))


def record_format(version: Release) -> int:
    """The version of record batches that a message format has: 0, 1 (0.10) or 2 (0.11 and later)."""
    return 2 if version >= (0, 11) else 1 if version >= (0, 10) else 0


def violations(configurations: Configurations | None, topic_formats: Mapping[str, str]) -> list[str]:
    """What breaks the order, with where it is set. `topic_formats` are topics' message.format.version.

    Without the brokers' property files only the topics' own values can be looked at.
    """
    if configurations is None:
        return [
            f"topic {topic}: message.format.version {value} is not a version"
            for topic, value in sorted(topic_formats.items())
            if version_of(value) is None
        ]
    texts = [text for broker, conf in sorted(configurations.items()) for text in _of_broker(broker, conf)]
    for key in (IBP, MESSAGE_FORMAT):
        values = {conf.get(key) for conf in configurations.values()}
        if len(values) > 1:
            stated = ", ".join(
                f"broker {broker}: {conf.get(key, 'unset')}" for broker, conf in sorted(configurations.items())
            )
            texts.append(f"brokers disagree on {key} ({stated})")
    return [*texts, *_of_topics(configurations, topic_formats)]


def _of_broker(broker: int, conf: Mapping[str, str]) -> list[str]:
    texts = []
    if PERSISTENT in conf:
        texts.append(f"broker {broker}: {PERSISTENT} is set, which no release of Kafka has: it is ignored")
    protocol = conf.get(IBP)
    if protocol is None:
        return [
            *texts,
            f"broker {broker}: {IBP} is not set: the next release would raise it silently at its first start",
        ]
    limit = version_of(protocol)
    if limit is None:
        return [*texts, f"broker {broker}: {IBP} {protocol} is not a version"]
    return [*texts, *_order(broker, conf, protocol, limit)]


def _order(broker: int, conf: Mapping[str, str], protocol: str, limit: Release) -> list[str]:
    texts = []
    message, persistent = conf.get(MESSAGE_FORMAT), conf.get(PERSISTENT)
    parsed = None if message is None else version_of(message)
    # Kafka compares the formats of records only, and not at all from protocol 3.0 on.
    if parsed is not None and limit < IGNORED_FROM and record_format(parsed) > record_format(limit):
        texts.append(f"broker {broker}: {MESSAGE_FORMAT} {message} has another record format than {IBP} {protocol}")
    wanted = None if persistent is None else version_of(persistent)
    if wanted is not None and wanted > limit:
        texts.append(f"broker {broker}: {PERSISTENT} {persistent} is above {IBP} {protocol}")
    if wanted is not None and wanted == limit:
        texts.append(
            f"broker {broker}: {PERSISTENT} {persistent} is as high as {IBP}: raise it last: after that there is no way "
            "back"
        )
    if wanted is not None and parsed is not None and parsed > wanted:
        texts.append(f"broker {broker}: {MESSAGE_FORMAT} {message} is above {PERSISTENT} {persistent}")
    return texts


def _of_topics(configurations: Configurations, topic_formats: Mapping[str, str]) -> list[str]:
    limits = [limit for conf in configurations.values() if (limit := _message_format(conf)) is not None]
    if not limits:
        return []
    lowest = min(limits)
    return [
        f"topic {topic}: message.format.version {value} is above the brokers' message format {release_name(lowest)}"
        for topic, value in sorted(topic_formats.items())
        if (parsed := version_of(value)) is not None and parsed > lowest
    ]


def _message_format(conf: Mapping[str, str]) -> Release | None:
    """None if the message format is ignored, or not set in this file."""
    protocol = version_of(conf[IBP]) if IBP in conf else None
    if protocol is None or protocol >= IGNORED_FROM:
        return None
    return version_of(conf.get(MESSAGE_FORMAT, conf[IBP]))
