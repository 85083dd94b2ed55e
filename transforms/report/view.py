"""A report in reading order, shortened to fit a page; every shortened list has the number of entries left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, TypeVar

from schemas.classes import CLASSES, DEFECTS, ORDER
from schemas.references import spelled_out
from schemas.report import BrokerPresence, CheckResult, Defect, DivergenceRow, Divergences, LogCopyLine, Report
from transforms.report.banner import check_rank, rank, remedy_of
from transforms.report.printable import key_text, visible
from transforms.report.row_text import kraft_text, zookeeper_text
from transforms.report.words import SEVERITY_ORDER

MOST_ROWS = 200
MOST_RESOLVED = 30
MOST_EVIDENCE = 10
MOST_BROKERS = 300
MOST_COPIES = 40
MOST_NOTES = 60

Item = TypeVar("Item")
_KNOWN_PAGE = re.compile(r"KAFKA-\d{1,6}|KIP-\d{1,5}|(?:PR ?|#)\d{4,6}")
_KIP_866 = "https://cwiki.apache.org/confluence/display/KAFKA/KIP-866+ZooKeeper+to+KRaft+Migration"
_ALL_KIPS = "https://cwiki.apache.org/confluence/display/KAFKA/Kafka+Improvement+Proposals"


@dataclass(frozen=True)
class Bounded(Generic[Item]):
    """The first of many: `shown`, and how many there are in all."""

    shown: Sequence[Item]
    total: int

    @property
    def left_out(self) -> int:
        """How many are not shown."""
        return self.total - len(self.shown)


@dataclass(frozen=True)
class RowView:
    """One difference as text: the row, both values with their places, and its own remedy if the group has none."""

    entity: str
    key: str
    column: str
    zookeeper: str
    kraft: str
    zk_path: str
    zxid: str
    kraft_offset: str
    status: str
    explanation: str
    remedy: str


@dataclass(frozen=True)
class SuppressedView:
    """A suppressed difference: its class, its text, who accepts it, why and until when."""

    class_: str
    row: RowView
    who: str
    why: str
    until: str


@dataclass(frozen=True)
class RowGroup:
    """The differences of one class that are not suppressed; `explanation` and `remedy` are those that several rows share.

    `total` counts all of the class, `suppressed` those of them that are listed separately; `listed` are `rows` as data.
    """

    class_: str
    tone: str
    meaning: str
    total: int
    explanation: str
    remedy: str
    rows: list[RowView]
    suppressed: int = 0
    listed: Sequence[DivergenceRow] = ()


def bounded(items: Sequence[Item], most: int, total: int | None = None) -> Bounded[Item]:
    """Keep the first `most` items."""
    return Bounded(items[:most], max(total or 0, len(items)))


def row_groups(report: Report, most: int = MOST_ROWS) -> list[RowGroup]:
    """Group the listed differences by class, defects first, gravest rows first, `most` rows in all.

    Suppressed ones are left out: `suppressed_views` lists them, last.
    """
    rows = sorted((row for row in report.divergences.rows if row.suppressed is None), key=_row_rank)[:most]
    return [
        _group(class_, list(members), report.divergences)
        for class_, members in groupby(rows, key=lambda row: row.class_)
    ]


def suppressed_views(report: Report, most: int = MOST_ROWS) -> Bounded[SuppressedView]:
    """The first `most` suppressed differences, defects first, and how many there are."""
    rows = sorted((row for row in report.divergences.rows if row.suppressed is not None), key=_row_rank)
    views = [
        SuppressedView(row.class_, row_view(row), word.who, word.why, word.until)
        for row in rows[:most]
        if (word := row.suppressed) is not None
    ]
    return bounded(views, most, report.divergences.suppressed)


def row_view(row: DivergenceRow, said: tuple[str, str] = ("", "")) -> RowView:
    """Turn a difference into text; `said` is the (explanation, remedy) that its group already shows."""
    missing = row.column is None
    return RowView(
        entity=row.entity.replace("_", " "),
        key=key_text(row.entity, row.key),
        column="" if missing else visible(row.column or "", 80),
        zookeeper=zookeeper_text(row),
        kraft=kraft_text(row),
        zk_path=visible(row.zk_path or "", 120),
        zxid="" if row.zk_mzxid is None else f"zxid {row.zk_mzxid:#x}",
        kraft_offset="" if row.kraft_offset is None else f"offset {row.kraft_offset}",
        status=row.status,
        explanation="" if row.explanation == said[0] else row.explanation,
        remedy="" if remedy_of(row) == said[1] else remedy_of(row),
    )


def checks_in_order(report: Report) -> tuple[list[CheckResult], list[CheckResult]]:
    """Split the checks: those that need a reader (failing first), and those that passed or do not apply."""
    ordered = sorted(report.checks, key=check_rank(report))
    calm = ("pass", "not_applicable")
    return [check for check in ordered if check.verdict not in calm], [each for each in ordered if each.verdict in calm]


def unjudged(report: Report, checks: Sequence[CheckResult]) -> list[CheckResult]:
    """Those of the checks that could not be judged and that no gate waits for."""
    awaited = {check_id for gate in report.gates.values() for check_id in gate.blocking}
    return [check for check in checks if check.verdict == "unknown" and check.id not in awaited]


def brokers_in_order(report: Report) -> list[BrokerPresence]:
    """Order the ledger: brokers that block something first, then by id."""
    return sorted(report.broker_presence, key=lambda broker: (not broker.blocks, broker.broker_id))


def copies_in_order(report: Report) -> list[LogCopyLine]:
    """Order the log copies: the one that was used first."""
    used = report.migration.copy_used
    return sorted(report.log_copies, key=lambda copy: (copy.controller_id != used, copy.controller_id is None))


def defects_in_order(report: Report) -> list[Defect]:
    """Order known Kafka defects: traces found, then exposed, then the others."""
    return sorted(report.defects, key=lambda defect: (not defect.evidence, not defect.exposed, defect.jira))


def classes_in_order(report: Report) -> list[tuple[str, int, str, str]]:
    """List (class, count, tone, meaning), defects first."""
    counts = report.divergences.by_class
    return [
        (name, counts[name], class_tone(name), class_meaning(name))
        for name in sorted(counts, key=lambda name: (rank(ORDER, name), name))
    ]


def class_tone(class_: str) -> str:
    """Colour of a class: bad for defects, warn for lag and for what could not be judged, quiet otherwise."""
    if class_ in DEFECTS or class_ not in ORDER:
        return "bad"
    return "warn" if class_ in ("lag", "not_comparable") else "quiet"


def class_meaning(class_: str) -> str:
    """A class's meaning as a sentence; empty for one the catalogue does not have."""
    known = CLASSES.get(class_)
    return f"{known.meaning[0].upper()}{known.meaning[1:]}." if known else ""


def reference_parts(reference: str) -> list[tuple[str, str | None]]:
    """Split a reference into (text, public page or None); only Kafka's own trackers are ever linked.

    Reports that earlier releases stored cite rules by their short form.
    """
    reference = spelled_out(reference)
    parts: list[tuple[str, str | None]] = []
    end = 0
    for found in _KNOWN_PAGE.finditer(reference):
        parts.append((reference[end : found.start()], None))
        parts.append((found.group(), _page(found.group())))
        end = found.end()
    parts.append((reference[end:], None))
    return [part for part in parts if part[0]]


def _page(name: str) -> str:
    if name.startswith("KAFKA-"):
        return f"https://issues.apache.org/jira/browse/{name}"
    if name.startswith("KIP-"):
        return _KIP_866 if name == "KIP-866" else _ALL_KIPS
    return f"https://github.com/apache/kafka/pull/{re.sub('[^0-9]', '', name)}"


def _row_rank(row: DivergenceRow) -> tuple[int, str, int, str, str, str]:
    key = key_text(row.entity, row.key)
    return (
        rank(ORDER, row.class_),
        row.class_,
        rank(SEVERITY_ORDER, row.severity),
        row.entity,
        key,
        row.column or "",
    )


def _group(class_: str, rows: list[DivergenceRow], all_rows: Divergences) -> RowGroup:
    explanation = _shared([row.explanation for row in rows])
    remedy = _shared([remedy_of(row) for row in rows])
    return RowGroup(
        class_=class_,
        tone=class_tone(class_),
        meaning=class_meaning(class_),
        total=max(all_rows.by_class.get(class_, 0), len(rows)),
        explanation=explanation,
        remedy=remedy,
        rows=[row_view(row, said=(explanation, remedy)) for row in rows],
        suppressed=all_rows.suppressed_by_class.get(class_, 0),
        listed=rows,
    )


def _shared(texts: list[str]) -> str:
    """The text that occurs most often, if several rows have it or there is only one: the group shows it once."""
    text, times = Counter(texts).most_common(1)[0]
    return text if times > 1 or len(texts) == 1 else ""
