"""What a run stores for the comparison with the next one: the cluster of its log, and how far the log was committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# A column of gold `runs` for each field of `LogKnown`.
COLUMNS = ("cluster_id", "committed_end_offset", "log_end_offset", "newest_append_time", "leader_epochs")
# Violations of these mean that a run's log was not the one that earlier runs had read.
OTHER_LOG = ("CAP-11", "RUN-01", "RUN-02", "RUN-03")
MOST_EPOCHS = 1000


@dataclass(frozen=True)
class LogKnown:
    """A run's facts about its cluster and the log that it read.

    Offsets are inclusive, `newest_append_time` is in milliseconds since the epoch, `leader_epochs` are (epoch, first offset),
    ascending: the newest MOST_EPOCHS. What the run did not read is None.
    """

    cluster_id: str | None = None
    committed_end_offset: int | None = None
    log_end_offset: int | None = None
    newest_append_time: int | None = None
    leader_epochs: tuple[tuple[int, int], ...] = ()

    def row(self) -> dict[str, Any]:
        """The columns of gold `runs`."""
        return {name: getattr(self, name) for name in COLUMNS} | {
            "leader_epochs": [{"epoch": epoch, "start_offset": start} for epoch, start in self.leader_epochs]
        }

    def epoch_at(self, offset: int) -> int | None:
        """Leader epoch of the record at an offset; None if unknown."""
        epochs = [epoch for epoch, start in self.leader_epochs if start <= offset]
        return epochs[-1] if epochs else None


def is_comparable(verdicts: Mapping[str, str]) -> bool:
    """True if later runs may be compared with this run, by its checks' verdicts: its log was neither another one nor an
    older one.

    If a log may begin again, RUN-03 only warns: the new log is the cluster's own from then on.
    """
    if any(verdicts.get(name) == "fail" for name in OTHER_LOG):
        return False
    return verdicts.get("RUN-02") != "warn" or verdicts.get("RUN-03") == "warn"


@dataclass(frozen=True)
class EarlierRun:
    """The newest finished run whose log was the cluster's own.

    `unmoved_since` is the start of the first run that saw the log end where this one did, milliseconds since the epoch.
    """

    run_id: str
    log: LogKnown
    unmoved_since: int | None = None

    @staticmethod
    def of_row(row: Mapping[str, Any]) -> EarlierRun:
        """Read the columns of gold `runs`, with `unmoved_since` beside them."""
        epochs: Sequence[Mapping[str, int]] = row["leader_epochs"] or ()
        known = LogKnown(
            row["cluster_id"],
            row["committed_end_offset"],
            row["log_end_offset"],
            row["newest_append_time"],
            tuple((each["epoch"], each["start_offset"]) for each in epochs),
        )
        return EarlierRun(row["run_id"], known, row["unmoved_since"])


@dataclass(frozen=True)
class Claim:
    """How new a run's sources claim to be. Times in milliseconds since the epoch, spans in seconds.

    `now` is when the run began, `read_by` when all sources had been read (None if that is not known). `one_off` is true for an
    audit of files that belongs to no series of runs, `dated` where the configuration names another moment than now, `current`
    where the log is read live or said to be copied before each run.
    """

    now: int
    stale_after: float
    one_off: bool = False
    dated: bool = False
    current: bool = False
    read_by: int | None = None
