"""The facts of a cluster that are known before its rows are judged, and the answers of its rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.checks import KRAFT, ZOOKEEPER
from transforms.kraft.side import KraftSide
from transforms.reconcile.judge.earlier import Claim, EarlierRun
from transforms.reconcile.judge.thresholds import JudgeLimits

Row = Mapping[str, Any]
Rows = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Given:
    """One cluster as a run knows it before it judges: its configuration, the plan of its log, `/migration`, the runs before.

    `kafka_version` is the configured one. `has_zookeeper` and `has_kraft` say which sides are configured,
    `reads_data_folder` that ZooKeeper's is a data folder, whose transaction logs are read; `walks` is how many times its tree
    was walked. `captured_at_ms` and `reading_ms` are those of `Facts`. `copies` are rows of bronze kraft_log_copies, `side` the
    plan made of them, None where none of them can be used. `zookeeper` is the row of `/migration`, `/controller` and
    `/controller_epoch` (silver `migration`) as they were when ZooKeeper was read, `compared` the same of the tree whose rows are
    compared. `report_rows` is how many rows of a kind a report lists.

    `static_min_isr` has min.insync.replicas of each broker whose property file was given.

    `previous_end` is the last offset (inclusive) of the log of the finished run before this one, `earlier` the newest run whose
    log was the cluster's own, `claim` how new this run's sources claim to be.
    """

    name: str
    kafka_version: str | None = None
    has_zookeeper: bool = False
    has_kraft: bool = False
    reads_data_folder: bool = False
    walks: int = 0
    captured_at_ms: int | None = None
    reading_ms: int = 0
    thresholds: JudgeLimits = field(default_factory=JudgeLimits)
    copies: Sequence[Row] = ()
    side: KraftSide | None = None
    zookeeper: Row | None = None
    compared: Row | None = None
    report_rows: int = 1000
    static_min_isr: Mapping[int, int] = field(default_factory=dict)
    previous_end: int | None = None
    earlier: EarlierRun | None = None
    claim: Claim | None = None

    @property
    def collected(self) -> frozenset[str]:
        """Sides that were read."""
        sides = {ZOOKEEPER} if self.has_zookeeper else set()
        return frozenset(sides | ({KRAFT} if self.side is not None else set()))

    @property
    def deciding_side(self) -> str:
        """Side whose assignments count."""
        return ZOOKEEPER if self.has_zookeeper else KRAFT

    @property
    def bracketed(self) -> bool:
        """True where the tree was walked before the log was read, and again after it."""
        return self.walks > 1

    @property
    def log_end_ms(self) -> int | None:
        """Append time of the log's last record, milliseconds since the epoch; None without a log."""
        return None if self.side is None else self.side.plan.leading.last_append_time


# Every pass gives all of these, empty where its cluster leaves nothing to ask: so a missing answer is never taken for "nothing found".
FIRST_ANSWERS = frozenset(
    {
        *("brokers", "controllers", "features", "producer_ids", "counts", "replicas", "pending", "configured"),
        *("partition_health", "out_of_sync", "broker_configs", "activity", "restarts", "append_times"),
        *("in_no_snapshot", "protection", "identities", "skew", "at_barrier", "foreign", "refused", "elections"),
        *("logged", "transactions", "lag_series", "moved"),
    }
)
SECOND_ANSWERS = frozenset(
    {
        *("samples", "fallen", "earlier_epochs", "examples", "left_behind", "isr_audit", "topic_formats"),
        *("kraft_formats", "formats", "feature_znode"),
    }
)


class MissingAnswerError(ValueError):
    """An answer that every pass gives is not among those that are stored; the message is for a person."""

    for_the_user = True

    def __init__(self, name: str) -> None:
        """`name` is that of the answer."""
        super().__init__(f"the stored answers come from another release ({name} is missing): run the audit again")


def every_answer(names: Collection[str], answers: Rows) -> dict[str, Sequence[Row]]:
    """All answers of these names: those that were not requested are empty. Raises ValueError for another name."""
    unknown = sorted(answers.keys() - set(names))
    if unknown:
        raise ValueError(f"these answers are not declared: {', '.join(unknown)}")
    return {name: answers.get(name, []) for name in sorted(names)}


@dataclass(frozen=True)
class Answers:
    """What the questions about one cluster were answered: rows by the name of the answer."""

    rows: Rows

    def of(self, name: str) -> Sequence[Row]:
        """Rows of one answer. Raises MissingAnswerError where it is not there."""
        try:
            return self.rows[name]
        except KeyError:
            raise MissingAnswerError(name) from None

    def first(self, name: str) -> Row | None:
        """The row of an answer that has one at most."""
        return next(iter(self.of(name)), None)
