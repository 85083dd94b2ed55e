"""A KRaft cluster's own page: the figures of its banner, in the words of Kafka's tools."""

from __future__ import annotations

from schemas.report import KraftHealth, Report
from transforms.report.printable import counted


def kraft_facts(report: Report) -> list[tuple[str, str]]:
    """Name and value of each figure, the quorum first; unknown figures are left out."""
    health = report.kraft
    leader = report.migration.leader_id
    known = "unknown" if leader is None else f"{leader}, epoch {report.migration.leader_epoch}"
    if health is None:
        return [("Leader", known), ("Kafka", report.kafka_version)]
    return [
        ("Quorum", _quorum(health)),
        ("Leader", known),
        ("Brokers", f"{health.at_work:,} running of {health.brokers:,} registered"),
        ("Partitions", _partitions(health)),
        ("Level", f"metadata.version {health.metadata_version}"),
        ("Kafka", report.kafka_version),
    ]


def _quorum(health: KraftHealth) -> str:
    voters = [member for member in health.quorum if member.voter]
    others = [str(member.controller_id) for member in health.quorum if not member.voter]
    kind = "dynamic" if health.kraft_version else "static"
    beside = f", registered but not a voter: {', '.join(others)}" if others else ""
    return f"{counted(len(voters), 'voter')} ({kind}, kraft.version {health.kraft_version}){beside}"


def _partitions(health: KraftHealth) -> str:
    parts = [f"{health.partitions:,}"]
    for number, what in (
        (health.leaderless, "without a leader"),
        (health.under_replicated, "not fully in sync"),
        (health.recovering, "recovering"),
        (health.not_preferred, "not led by the preferred replica"),
    ):
        if number:
            parts.append(f"{number:,} {what}")
    return ", ".join(parts) if len(parts) > 1 else f"{parts[0]}, all in sync"
