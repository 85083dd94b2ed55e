"""What the report's page shows of the partitions' history, the features and the way back: short, and the worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from schemas.kraft.metadata_versions import FEATURE_NAME, level_name
from schemas.report import DowngradeReadiness, DowngradeReason, DowngradeTarget, FeatureLine, IsrLine, Report
from transforms.report.banner import duration
from transforms.report.printable import counted
from transforms.report.view import Bounded, bounded
from transforms.times import utc_time

MOST_LINES = 15
MOST_NODES = 12
MOST_REASONS = 3
MOST_FEATURES = 40
MOST_RELEASES = 40
_TONES = {"blocked": "bad", "unknown": "warn", "loses": "warn", "safe": "good"}


@dataclass(frozen=True)
class IsrView:
    """One line of the partitions' history: the subject, the time, and what happened."""

    subject: str
    when: str
    seen: str
    tone: str


@dataclass(frozen=True)
class FeatureView:
    """One feature: its finalised level, the ranges of the nodes, and the problem."""

    feature: str
    finalised: str
    supported: list[str]
    gaps: Bounded[str]


@dataclass(frozen=True)
class DowngradeView:
    """Releases in a row that get the same answer for the same reasons."""

    releases: str
    verdict: str
    tone: str
    reasons: Bounded[DowngradeReason]


@dataclass(frozen=True)
class KipsView:
    """The three sections; each is empty where there is nothing to show."""

    hours: int
    partitions: Bounded[IsrView]
    brokers: Bounded[IsrView]
    features: list[FeatureView]
    downgrade: list[DowngradeView]
    floor: str | None
    mode: str
    settings: Bounded[str]


def kips_view(report: Report) -> KipsView:
    """Everything that the page shows about the three."""
    history, readiness = report.isr_history, report.downgrade or DowngradeReadiness("")
    lines = [] if history is None else history.lines
    totals = {} if history is None else history.totals
    others = [line for line in lines if line.subject != "partition"]
    return KipsView(
        hours=0 if history is None else history.hours,
        partitions=bounded(
            [_isr(line) for line in lines if line.subject == "partition"], MOST_LINES, totals.get("partition")
        ),
        brokers=bounded(
            [_isr(line) for line in others], MOST_LINES, sum(totals.get(name, 0) for name in ("broker", "leadership"))
        ),
        features=_features(report.features),
        downgrade=_downgrade(readiness.targets)[:MOST_RELEASES],
        floor=readiness.floor,
        mode=readiness.mode.replace("_", " "),
        settings=bounded(readiness.settings, MOST_LINES),
    )


def _isr(line: IsrLine) -> IsrView:
    subject = f"{line.topic}-{line.partition}" if line.subject == "partition" else f"broker {line.broker_id}"
    when = "at the end" if line.hour is None else utc_time(line.hour)[:16]
    if line.subject == "leadership":
        seen = f"leads {counted(line.leads, 'partition')}, is the preferred leader of {line.preferred:,}"
        return IsrView(subject, when, seen, "")
    return IsrView(subject, when, ", ".join(_seen(line)), _tone(line))


def _tone(line: IsrLine) -> str:
    grave = line.lossy_elections or (line.hour is None and line.leaderless_ms)
    return "bad" if grave else "warn" if line.leaderless_ms else ""


def _seen(line: IsrLine) -> list[str]:
    counts = [
        (line.lossy_elections, "election that can have lost data", "elections that can have lost data"),
        (line.shrinks, "shrink", "shrinks"),
        (line.expansions, "expansion", "expansions"),
        (line.elections, "election", "elections"),
    ]
    seen = [f"{number:,} {one if number == 1 else many}" for number, one, many in counts if number]
    if line.flaps > 2:
        seen.append(f"one broker left or joined {line.flaps:,} times within an hour")
    times = (
        (line.leaderless_ms, "without a leader"),
        (line.under_min_ms, "below min.insync.replicas"),
        (line.out_of_sync_ms, "with a replica out of sync"),
    )
    seen += [f"{duration(ms / 1000)} {what}" for ms, what in times if ms]
    return seen


def _features(lines: Sequence[FeatureLine]) -> list[FeatureView]:
    found = []
    for feature, members in groupby(lines, key=lambda line: line.feature):
        mine = list(members)
        level = mine[0].finalised_level
        finalised = "not finalised" if level is None else _level(feature, level)
        gaps = bounded([line.gap for line in mine if line.gap], MOST_LINES)
        found.append(FeatureView(feature, finalised, _supported(feature, mine)[:MOST_NODES], gaps))
    return sorted(found, key=lambda view: not view.gaps.total)[:MOST_FEATURES]


def _supported(feature: str, lines: Sequence[FeatureLine]) -> list[str]:
    """Nodes of the same kind that support the same levels, together."""
    by_range: dict[tuple[str, int, int], list[FeatureLine]] = {}
    for line in lines:
        by_range.setdefault((line.node_kind, line.min_level, line.max_level), []).append(line)
    return [
        f"{_nodes(kind, mine)}: "
        + (f"{_level(feature, lowest)} to {_level(feature, highest)}" if highest else "not supported")
        for (kind, lowest, highest), mine in sorted(by_range.items())
    ]


def _nodes(kind: str, lines: Sequence[FeatureLine]) -> str:
    named = [f"{line.node_id}{' (fenced)' if line.fenced else ''}" for line in lines[:MOST_NODES]]
    rest = len(lines) - len(named)
    return f"{kind}{'s' if len(lines) > 1 else ''} {', '.join(named)}{f' and {rest:,} more' if rest else ''}"


def _level(feature: str, level: int) -> str:
    return level_name(level) if feature == FEATURE_NAME and level else str(level)


def _downgrade(targets: Sequence[DowngradeTarget]) -> list[DowngradeView]:
    found = []
    # Reasons with the same evidence may ask for another level in each release.
    for (verdict, _), members in groupby(targets, key=lambda each: (each.verdict, each.reasons)):
        mine = list(members)
        names = mine[0].release if len(mine) == 1 else f"{mine[0].release} to {mine[-1].release}"
        reasons = bounded(mine[0].reasons, MOST_REASONS)
        found.append(DowngradeView(names, verdict, _TONES.get(verdict, ""), reasons))
    return found
