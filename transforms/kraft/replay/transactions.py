"""Metadata transactions (KIP-868, S§2.7): which offsets must not be applied.

The markers are few (bootstrap, the load, its retries), so they are plain rows here, not a DataFrame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BEGIN = "BEGIN_TRANSACTION_RECORD"
END = "END_TRANSACTION_RECORD"
ABORT = "ABORT_TRANSACTION_RECORD"
MARKERS = (BEGIN, END, ABORT)


@dataclass(frozen=True)
class Marker:
    """One marker record, in log order."""

    offset: int
    type: str
    name: str | None
    append_time: int | None


@dataclass(frozen=True)
class MetadataTransaction:
    """Records in [begin_inclusive, end_inclusive] share one fate: `outcome` is end, abort or open (`end_inclusive` is then None)."""

    begin_inclusive: int
    end_inclusive: int | None
    outcome: str
    name: str | None


@dataclass(frozen=True)
class TransactionLog:
    """All transactions of a log, and the markers that make no sense (Kafka throws on those)."""

    transactions: tuple[MetadataTransaction, ...]
    unmatched: tuple[Marker, ...]

    @property
    def discarded(self) -> tuple[tuple[int, int | None], ...]:
        """Offset ranges, both ends inclusive, that must not be applied; None is 'to the end of the log'."""
        return tuple((t.begin_inclusive, t.end_inclusive) for t in self.transactions if t.outcome != "end")

    @property
    def aborted(self) -> tuple[tuple[int, int | None], ...]:
        """Offset ranges, both ends inclusive, that never take effect."""
        return tuple((t.begin_inclusive, t.end_inclusive) for t in self.transactions if t.outcome == "abort")

    def discarded_at(self, offset: int) -> tuple[tuple[int, int | None], ...]:
        """Offset ranges, both ends inclusive, without effect on the state at `offset` (inclusive).

        A transaction takes effect with its end marker: one that ends later is still open at `offset`.
        """
        begun = [t for t in self.transactions if t.begin_inclusive <= offset]
        return tuple(
            (t.begin_inclusive, t.end_inclusive)
            for t in begun
            if t.outcome != "end" or t.end_inclusive is None or t.end_inclusive > offset
        )

    def open_at(self, end: int) -> MetadataTransaction | None:
        """The transaction that has begun below `end` (exclusive) and has not ended there; None without one."""
        begun = [t for t in self.transactions if t.begin_inclusive < end]
        return next((t for t in begun if t.end_inclusive is None or t.end_inclusive >= end), None)

    @property
    def open(self) -> MetadataTransaction | None:
        """The transaction that is still open at the end of the log."""
        return next((t for t in self.transactions if t.outcome == "open"), None)


def read_transactions(markers: Sequence[Marker]) -> TransactionLog:
    """Pair begin markers with their end or abort.

    A second begin inside a transaction, or an end without a begin, is corrupt (`OffsetControlManager` throws): it is
    reported, and the transaction that was open is taken as still open until its own end.
    """
    done: list[MetadataTransaction] = []
    unmatched: list[Marker] = []
    begun: Marker | None = None
    for marker in sorted(markers, key=lambda m: m.offset):
        if marker.type == BEGIN:
            if begun is None:
                begun = marker
            else:
                unmatched.append(marker)
        elif begun is None:
            unmatched.append(marker)
        else:
            outcome = "end" if marker.type == END else "abort"
            done.append(MetadataTransaction(begun.offset, marker.offset, outcome, begun.name))
            begun = None
    if begun is not None:
        done.append(MetadataTransaction(begun.offset, None, "open", begun.name))
    return TransactionLog(tuple(done), tuple(unmatched))
