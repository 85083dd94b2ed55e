"""Inputs of a run besides its sources, stored for later commands: limits, reading time, property files.

No other table has them. A command about a finished run judges by them, so that its result equals the run's report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from transforms.leaks import without_leaks
from transforms.properties import NodeProperties, NodeSettings, PropertyFiles
from transforms.reconcile.judge.facts import Facts
from transforms.reconcile.judge.thresholds import JudgeLimits

# Kafka's longest version has a dozen characters; a file may hold anything.
_LONGEST = 80


@dataclass(frozen=True)
class Beside:
    """Inputs of a run besides its sources.

    `reading_ms` is that of `Facts`. From property files there are the settings that later questions need: the controllers' voters by
    id, and in the brokers' files the formats, min.insync.replicas and whether dead letter topics are created. None is a secret.
    """

    thresholds: JudgeLimits = field(default_factory=JudgeLimits)
    reading_ms: int = 0
    properties: PropertyFiles = field(default_factory=PropertyFiles)


def beside_of(facts: Facts) -> str:
    """The facts of a run that later commands need: the column `beside` of gold `runs`, one JSON object."""
    limits = JudgeLimits(
        facts.capture_skew_limit, facts.alive_limit, facts.lag_limit, restart_may_interrupt=facts.interruption_accepted
    )
    document, _ = without_leaks(
        {
            "thresholds": asdict(limits),
            "reading_ms": facts.reading_ms,
            "controllers": [
                {"node_id": file.node_id, "voters": sorted(file.settings.voter_ids)}
                for file in facts.properties.controllers
            ],
            "brokers": [
                {
                    "node_id": file.node_id,
                    "formats": {key: value[:_LONGEST] for key, value in file.settings.formats.items()},
                    "min_isr": file.settings.min_isr,
                    "creates_dead_letter_topics": file.settings.creates_dead_letter_topics,
                }
                for file in facts.properties.brokers
            ],
        }
    )
    return json.dumps(document)


def read_beside(text: str) -> Beside:
    """Read what `beside_of` wrote. Fields of another release are ignored, missing ones have their defaults."""
    document: Mapping[str, Any] = json.loads(text)
    limits = {name: value for name, value in document.get("thresholds", {}).items() if name in asdict(JudgeLimits())}
    return Beside(
        JudgeLimits(**limits),
        document.get("reading_ms", 0),
        PropertyFiles(
            controllers=tuple(_file(each) for each in document.get("controllers", ())),
            brokers=tuple(_file(each) for each in document.get("brokers", ())),
        ),
    )


def _file(stored: Mapping[str, Any]) -> NodeProperties:
    """A file with only the stored settings; a voter's id stands for its `id@host:port`."""
    settings = NodeSettings(
        voters=frozenset(map(str, stored.get("voters", ()))),
        formats=stored.get("formats", {}),
        min_isr=stored.get("min_isr"),
        creates_dead_letter_topics=stored.get("creates_dead_letter_topics", False),
    )
    return NodeProperties(
        "", stored.get("node_id"), has_encoder_secret=False, migration_enabled=False, settings=settings
    )
