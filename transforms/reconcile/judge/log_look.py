"""A look at the metadata log that sees each record once: counts by kind, times of writing, damage.

Records are not kept in memory: a log can have tens of millions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.kraft.mirrored import LOADED, MIRRORED
from transforms.kraft.coverage import Counted, PlannedLog
from transforms.kraft.decode.codec import UNKNOWN
from transforms.kraft.quorum import newest_checkpoint
from transforms.kraft.replay.extent import Ranges
from transforms.kraft.side import LEADER_CHANGE, KraftSide
from transforms.reconcile.judge.facts import state_name
from transforms.reconcile.judge.given import Given
from transforms.reconcile.judge.kraft_queries import HOUR, REGISTER_BROKER
from transforms.reconcile.judge.load import Load, recorded_load
from transforms.reconcile.judge.mirror import Mirrored, mirrored
from transforms.reconcile.judge.rules import RowRule, broken, said
from transforms.reconcile.judge.samples import Samples
from transforms.reconcile.judge.secret_rules import leaked

# What a running controller leaves at the end of its log: space not written yet, a batch not written whole.
_UNFINISHED = ("torn tail:", "zero-filled:")
_PROBLEM = pl.col("problem")
_PLACE, _WHERE = "controller {}, {} at byte {}: {}", ("controller_id", "file", "position")
# The states' bytes mean one thing in 3.4, another in later releases (S§2.6). Which one wrote the log is known only when all of it
# was replayed.
_NAMINGS = (None, "3.4")
REGISTRATIONS = pl.Schema({"offset": pl.Int64, "append_time": pl.Int64, "broker_id": pl.Int32})
APPENDED = pl.Schema({"offset": pl.Int64, "append_time": pl.Int64})


@dataclass(frozen=True)
class LogParams:
    """Known facts of a log before its records are read.

    `end_ms` is the append time of its last record, `checkpoint` the offset (exclusive) of the newest complete checkpoint,
    `read_from` the first offset (inclusive) after the state that an earlier run has kept, None where all was read.
    `loads` are the places where the load may be recorded, that by the states of releases after 3.4 first; None where there is none.
    `offsets` are those whose append times are asked for. `committed` is the committed end (exclusive).
    """

    planned: PlannedLog | None = None
    end_ms: int | None = None
    checkpoint: int | None = None
    mirrored: Mirrored | None = None
    loads: Sequence[Load | None] = ()
    offsets: frozenset[int] = frozenset()
    read_from: int | None = None
    committed: int | None = None

    @staticmethod
    def of(given: Given, planned: PlannedLog | None, offsets: Collection[int] = ()) -> LogParams:
        """A run's facts about a cluster's log."""
        side = given.side
        if side is None:
            return LogParams(planned, offsets=frozenset(offsets))
        return LogParams(
            planned,
            side.plan.leading.last_append_time,
            newest_checkpoint(side.copies),
            mirrored(given),
            _loads(side),
            frozenset(offsets),
            None if side.kept is None else side.extent().start,
            side.committed.proved_exclusive,
        )


def _loads(side: KraftSide) -> list[Load | None]:
    states = side.states()
    return [
        recorded_load([(offset, state_name(code, release)) for offset, code in states], side.transactions)
        for release in _NAMINGS
    ]


class LogLook:
    """What a log's records and its damage come to."""

    def __init__(
        self,
        params: LogParams,
        registrations: pl.DataFrame | None = None,
        appended: pl.DataFrame | None = None,
    ) -> None:
        """`registrations` and `appended` are what an earlier run's look had: they count where this run continues from its state."""
        goes_on = params.read_from is not None
        self._params = params
        self._counted = None if params.planned is None else Counted(params.planned)
        self._activity = _Activity(params.checkpoint, params.committed)
        self._position = None if params.mirrored is None else _Position(params.mirrored)
        self._found, self._of_loads = Samples(), [(load, Samples()) for load in params.loads]
        self._append_times: dict[int, int] = {}
        self._offsets = pl.Series(sorted(params.offsets), dtype=pl.Int64)
        self._registrations = [_earlier(registrations, params, REGISTRATIONS)] if goes_on else []
        self._earlier = _earlier(appended, params, APPENDED)
        self._appended: list[pl.DataFrame] = []

    @staticmethod
    def of(
        given: Given,
        planned: PlannedLog | None,
        offsets: Collection[int] = (),
        registrations: pl.DataFrame | None = None,
        appended: pl.DataFrame | None = None,
    ) -> LogLook:
        """The look at a cluster's log."""
        return LogLook(LogParams.of(given, planned, offsets), registrations, appended)

    def add(self, records: pl.DataFrame) -> None:
        """Add rows of bronze kraft_records: of the log, of checkpoints, and of damage."""
        if self._counted is not None:
            self._counted.add(records)
        self._judge(records)
        log = records.filter(pl.col("checkpoint_offset").is_null() & pl.col("problem").is_null())
        self._activity.add(log)
        if self._position is not None:
            self._position.add(log)
        if len(self._offsets):
            asked = log.filter(pl.col("offset").is_in(self._offsets.implode()) & pl.col("append_time").is_not_null())
            self._append_times.update(asked.select("offset", "append_time").iter_rows())
        if self._params.end_ms is not None:
            self._registrations.append(_registered_lately(log, self._params.end_ms))
        self._appended.append(_steps(log.filter(pl.col("offset") >= (self._params.checkpoint or 0))))

    def _judge(self, records: pl.DataFrame) -> None:
        self._found.add(leaked(records, "kraft_records", "offset", "data", "problem"))
        problems = records.filter(pl.col("problem").is_not_null())
        self._found.add(broken(problems, [_damaged(), _unknown()]))
        for load, found in self._of_loads:
            if load is not None:
                found.add(load_violations(records, load))

    @property
    def violations(self) -> Samples:
        """Secrets that show (SEC-05), damage (CAP-02), records of no known kind (CAP-12), and what the load does not write so (DUR-07),
        in a release after 3.4.
        """
        return self.violations_by(self._params.loads[0] if self._params.loads else None)

    def violations_by(self, load: Load | None) -> Samples:
        """The same where the load is known: `load` is that of `Known`."""
        found = Samples()
        found.merge(self._found)
        mine = next((each for known, each in self._of_loads if known == load), None)
        if mine is not None:
            found.merge(mine)
        return found

    def slices(self) -> list[dict[str, Any]]:
        """What was read of each slice of the plan, for `coverage.shortfall`."""
        return [] if self._counted is None else self._counted.rows()

    @property
    def append_times(self) -> dict[int, int]:
        """Append times (ms) of the records at the requested offsets, as far as they are in the log."""
        return self._append_times

    @property
    def registrations(self) -> pl.DataFrame:
        """Records of the log by which a broker registered in the last hour before its end: columns REGISTRATIONS, by offset."""
        every = pl.concat([pl.DataFrame(schema=REGISTRATIONS), *self._registrations])
        end = self._params.end_ms
        if end is None:
            return every.clear()
        # Like this run, an earlier run has read the record just before this run's start.
        return every.filter(pl.col("append_time") > end - HOUR).unique().sort(every.columns)

    @property
    def appended(self) -> pl.DataFrame:
        """When records from the newest checkpoint's offset on were appended: a row each time it is another time than before."""
        every = _steps(pl.concat([self._in_no_snapshot(), *self._appended]).unique().sort("offset"))
        self._appended = [every.filter(pl.col("offset") >= (self._params.read_from or 0))]
        return every

    def _in_no_snapshot(self) -> pl.DataFrame:
        """The part of `appended` below the first offset that this run read."""
        begin, rows = self._params.checkpoint or 0, self._earlier
        # The time of the first record is that of the row before it.
        before = rows.filter(pl.col("offset") < begin).tail(1).with_columns(pl.lit(begin, pl.Int64).alias("offset"))
        at_begin = rows.filter(pl.col("offset") == begin).height > 0
        kept = rows.filter(pl.col("offset") >= begin)
        below = kept if at_begin else pl.concat([before, kept])
        return below.filter(pl.col("offset") < (self._params.read_from or 0))

    def answers(self) -> dict[str, list[dict[str, Any]]]:
        """What records of the log come to, without those of checkpoints:

        - `activity`, a row for each type: records, bytes, first and last append time (ms), `below` that of the newest record
          below the newest checkpoint's offset, `behind` the bytes of those from it on; `unproved` how many are past the committed
          end, `unproved_first` the append time of the first of them; `leaderless` the time (ms) before elections from the newest
          checkpoint's offset on;
        - `restarts`: broker_id and its registrations in the log's last hour;
        - `append_times`, one row, where `/migration` says an offset;
        - `in_no_snapshot`, one row: append time of the `first` record in no snapshot, where an earlier run has read it.
        """
        by_broker = self.registrations.group_by("broker_id").agg(pl.len().cast(pl.Int64).alias("restarts"))
        first = self._in_no_snapshot()["append_time"].min()
        return {
            "activity": self._activity.rows(),
            "restarts": by_broker.sort("broker_id").to_dicts(),
            "append_times": [] if self._position is None else self._position.rows(),
            "in_no_snapshot": [] if first is None else [{"first": first}],
        }


def _earlier(rows: pl.DataFrame | None, params: LogParams, columns: pl.Schema) -> pl.DataFrame:
    """The part of the log below this run's start, from an earlier run's memory."""
    if rows is None or params.read_from is None:
        return pl.DataFrame(schema=columns)
    return rows.filter(pl.col("offset") < params.read_from).select(*columns).sort("offset")


def _steps(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows at which the append time is another one than before."""
    ordered = rows.select(*APPENDED).filter(pl.col("append_time").is_not_null()).sort("offset")
    return ordered.filter(pl.col("append_time").ne_missing(pl.col("append_time").shift(1)))


def _registered_lately(log: pl.DataFrame, end_ms: int) -> pl.DataFrame:
    """Registrations of the hour before the log's end: columns REGISTRATIONS."""
    mine = (pl.col("type") == REGISTER_BROKER) & (pl.col("append_time") > end_ms - HOUR)
    broker = pl.col("data").str.json_path_match("$.brokerId").cast(pl.Int32, strict=False).alias("broker_id")
    return log.filter(mine).select("offset", "append_time", broker)


def is_damage() -> pl.Expr:
    """Of rows of kraft_records, those of bytes that are not a record, except what a running controller has not finished."""
    others = ~pl.any_horizontal(_PROBLEM.str.starts_with(start) for start in (*_UNFINISHED, UNKNOWN))
    return _PROBLEM.is_not_null() & others


def _damaged() -> RowRule:
    """CAP-02."""
    return RowRule("CAP-02", is_damage(), said(_PLACE, *_WHERE, _PROBLEM))


def _unknown() -> RowRule:
    """CAP-12: records that no release in the tables writes."""
    what = _PROBLEM.str.strip_prefix(UNKNOWN)
    return RowRule("CAP-12", _PROBLEM.str.starts_with(UNKNOWN), said(_PLACE, *_WHERE, what))


def load_violations(records: pl.DataFrame, load: Load) -> pl.DataFrame:
    """Records within the load that the load never writes in this form (DUR-07): VIOLATIONS, of rows of kraft_records.

    What the load writes is of version 0 at every metadata.version, and inside its transaction if it has one.
    Registrations, their changes and no-ops of the brokers that wait lie between; nothing else is written before the end.
    """
    offset = pl.col("offset")
    between = records.filter(pl.col("checkpoint_offset").is_null() & (offset > load.after) & (offset < load.until))
    mine = between.filter(pl.col("type").is_in(LOADED) & ~_within(load.discarded))
    what = said("{} of version {} at offset {}", "type", "version", "offset")
    version = pl.concat_str(what, pl.lit(": the load writes version 0"))
    rules = [RowRule("DUR-07", pl.col("version") != 0, version)]
    if load.transaction is not None:
        begin, last = load.transaction
        where = pl.lit(f" is before MIGRATION and outside the load, {begin} to {last}")
        rules.append(RowRule("DUR-07", ~offset.is_between(begin, last), pl.concat_str(what, where)))
    return broken(mine, rules)


def _within(ranges: Ranges) -> pl.Expr:
    """Offsets in one of the ranges; both ends inclusive, None is the end of the log."""
    offset = pl.col("offset")
    inside = [(offset >= begin) & (True if last is None else offset <= last) for begin, last in ranges]
    return pl.any_horizontal(pl.lit(False), *inside)


class _Activity:
    """Records of the log by type."""

    def __init__(self, checkpoint: int | None, committed: int | None) -> None:
        self._checkpoint, self._committed = pl.lit(checkpoint, pl.Int64), pl.lit(committed, pl.Int64)
        self._found: dict[str | None, dict[str, Any]] = {}
        self._last: int | None = None

    def add(self, log: pl.DataFrame) -> None:
        time, length, below = pl.col("append_time"), pl.col("length"), pl.col("offset") < self._checkpoint
        unproved = pl.col("offset") >= self._committed
        elected = (pl.col("type") == LEADER_CHANGE) & ~below.fill_null(value=False)
        waited = (time - time.shift(1, fill_value=self._last)).clip(0)
        rows = log.with_columns(pl.when(elected).then(waited).alias("leaderless"))
        self._last = self._last if log.is_empty() else log["append_time"][-1]
        counts = rows.group_by("type").agg(
            pl.len().cast(pl.Int64).alias("records"),
            length.sum().alias("bytes"),
            time.min().alias("first"),
            time.max().alias("last"),
            time.filter(below).max().alias("below"),
            # Without records from the checkpoint on, the sum is null and not 0.
            pl.when((~below).any()).then(length.filter(~below).sum()).alias("behind"),
            unproved.sum().cast(pl.Int64).alias("unproved"),
            time.filter(unproved).min().alias("unproved_first"),
            pl.col("leaderless").sum().cast(pl.Int64),
        )
        for row in counts.iter_rows(named=True):
            known = self._found.get(row["type"])
            self._found[row["type"]] = row if known is None else _merged(known, row)

    def rows(self) -> list[dict[str, Any]]:
        return [row for _, row in sorted(self._found.items(), key=lambda item: item[0] or "")]


def _merged(known: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    merged = dict(known)
    for name, chosen in (
        ("records", sum),
        ("bytes", sum),
        ("behind", sum),
        ("first", min),
        ("last", max),
        ("below", max),
        ("unproved", sum),
        ("unproved_first", min),
        ("leaderless", sum),
    ):
        values = [each[name] for each in (known, more) if each[name] is not None]
        merged[name] = chosen(values) if values else None
    return merged


class _Position:
    """How far ZooKeeper is, by the log's own times."""

    def __init__(self, asked: Mirrored) -> None:
        self._asked = asked
        self._found: dict[str, Any] | None = None

    def add(self, log: pl.DataFrame) -> None:
        mine = log.filter(pl.col("offset") < self._asked.log_end)
        if not mine.height:
            return
        offset, time = pl.col("offset"), pl.col("append_time")
        behind = offset > self._asked.offset
        changes = behind & pl.col("type").is_in(MIRRORED) & ~_within(self._asked.aborted)
        [row] = mine.select(
            time.max().alias("newest"),
            time.filter(behind).min().alias("oldest_behind"),
            changes.sum().cast(pl.Int64).alias("changes"),
            time.filter(offset == self._asked.offset).max().alias("at_migration"),
            offset.filter(time < self._asked.written_by).max().alias("before_written"),
        ).to_dicts()
        known = self._found
        self._found = row if known is None else _further(known, row)

    def rows(self) -> list[dict[str, Any]]:
        """One row: append time of the newest record below the log's end (`newest`), of the first one past `/migration`'s
        offset (`oldest_behind`) and of the one at it (`at_migration`); how many past it change what ZooKeeper holds (`changes`),
        without those of aborted transactions; the last offset of a record appended before `written_by` (`before_written`). None
        without records.
        """
        return [] if self._found is None else [self._found]


def _further(known: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    merged = {"changes": known["changes"] + more["changes"]}
    for name, chosen in (("newest", max), ("oldest_behind", min), ("at_migration", max), ("before_written", max)):
        merged[name] = chosen((each[name] for each in (known, more) if each[name] is not None), default=None)
    return merged
