"""A cluster's replayed log, as the rules need it: state, versions, history and findings, and the state that the next run resumes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks.codes import CONFIG_ALONE, CONFIG_SKIPPED
from schemas.entities import ENTITIES
from schemas.entities.configs import CONFIGS
from schemas.entities.migration import MIGRATION
from schemas.entities.partitions import PARTITIONS
from schemas.entities.topics import TOPICS
from schemas.silver import FINDINGS as FINDINGS_TABLE
from transforms.clusters import CLUSTER
from transforms.frames import columns_of, from_arrow
from transforms.kernel.replay import DecodedCheckpoint, MadeTable, Plan, TableKind, replay
from transforms.kernel.shards import Shard
from transforms.kernel.versions import VERSIONS
from transforms.kraft.quorum import replayed_from
from transforms.kraft.replay.extent import Extent
from transforms.kraft.side import KraftSide, Milestone, checkpoints_to_verify, keep_at, versions_from

Records = Callable[[], Iterable[pa.RecordBatch]]
KRAFT = "kraft"
TABLES = {entity.name: columns_of(entity.row_columns) for entity in ENTITIES if entity != MIGRATION}
FINDINGS = columns_of(FINDINGS_TABLE.columns, CLUSTER, "run_id")


@dataclass(frozen=True)
class Keeping:
    """The state below `offset` (exclusive) for the next run; with offset -1 the next run must not resume any.

    `state` are its bytes; the other columns are those of `transforms.kraft.side.Kept`.
    """

    offset: int
    last_epoch: int | None = None
    last_append_time: int | None = None
    milestones: Sequence[Milestone] = ()
    base_run: str | None = None
    state: bytes = b""


NOTHING = Keeping(-1)


@dataclass(frozen=True)
class Replayed:
    """The results of replaying a log.

    `tables` are KRaft's silver rows at the committed end, by entity, without the migration's. `row_versions` are
    `schemas.replayed.ROW_VERSION_COLUMNS`, `findings` those of silver. `keeping` is None if the next run continues from the same state
    as this one.
    """

    tables: Mapping[str, pl.DataFrame]
    row_versions: pl.DataFrame
    findings: pl.DataFrame
    keeping: Keeping | None


def replaying(
    name: str,
    side: KraftSide,
    log: Iterable[pa.RecordBatch],
    checkpoints: Mapping[int, Records],
    migration_offset: int | None,
    kept: bytes | None = None,
    keep_every: int | None = None,
) -> Generator[pa.RecordBatch, None, Replayed]:
    """Replay a log; gives the changes of partitions in its committed part (`schemas.gold.ISR_CHANGE`) batch by batch, in the order of
    the log, and returns all else.

    `log` are records of bronze in the order of the log, without checkpoints; `checkpoints` the records of those of Kafka's, by
    offset (exclusive end): the one that the log begins with must be there, others are compared with the state. `kept` are the bytes
    that `side.kept` describes. With `keep_every` the state is kept for the next run when that many records are new.
    """
    committed = side.committed.end_exclusive
    after = versions_from(committed, migration_offset)
    at = None if keep_every is None else keep_at(side, after, keep_every)
    extent = side.extent()
    plan = Plan(
        name,
        extent,
        states_at=[max(committed, extent.start)],
        keep_at=at,
        versions_from=after,
        every_row=extent.base is not None and after < extent.base,
        committed=committed,
        checkpoints=_checkpoints(side, checkpoints, {*checkpoints_to_verify(side), extent.base}),
        snapshot=replayed_from(side.copies),
    )
    seen = _LastBefore(at)
    gathered = _Gathered()
    for made in replay(plan, seen.passed(log), kept):
        if made.kind == TableKind.HISTORY:
            yield made.rows.drop_columns([CLUSTER])
        else:
            gathered.add(made)
    findings = gathered.findings()
    return Replayed(gathered.tables, gathered.versions, findings, _keeping(side, at, seen, gathered.kept, findings))


def state_at(
    name: str,
    side: KraftSide,
    extent: Extent,
    log: Iterable[pa.RecordBatch],
    checkpoints: Mapping[int, Records],
    after: int | None = None,
) -> Replayed:
    """The state at the end of an extent (`KraftSide.whole`), and with `after` versions from there on; no history, and nothing kept.

    `log` and `checkpoints` must reach back as far as the extent does.
    """
    begin = extent.base is not None and after is not None and after < extent.base
    plan = Plan(
        name,
        extent,
        versions_from=after,
        every_row=begin,
        committed=extent.start,
        checkpoints=_checkpoints(side, checkpoints, {extent.base}),
    )
    gathered = _Gathered()
    for made in replay(plan, log):
        gathered.add(made)
    return Replayed(gathered.tables, gathered.versions, gathered.findings(), None)


def versions_of(
    side: KraftSide,
    extent: Extent,
    log: Iterable[pa.RecordBatch],
    checkpoints: Mapping[int, Records],
    asked: Collection[tuple[str, str]],
    until: int,
) -> pl.DataFrame:
    """Everything that happened to some rows up to offset `until` (inclusive), in all their lives: `row_versions`' columns.

    `asked` are (entity, canonical key). One row for each record on the row; what a removal removed is in its row. Rows
    of other entities than partitions hold all their columns, not the compared ones alone. `log` must reach back to the
    first offset that is needed; of the records, only those that can be on the rows are looked at.
    """
    upto = _up_to(extent, until)
    plan = Plan(
        "",
        upto,
        _few(asked),
        states_at=(),
        versions_from=0,
        every_row=True,
        committed=upto.start,
        checkpoints=_checkpoints(side, checkpoints, {upto.base}),
    )
    return _of_rows(asked, replay(plan, log))


def versions_since(
    side: KraftSide, log: Iterable[pa.RecordBatch], kept: bytes, asked: Collection[tuple[str, str]], until: int
) -> pl.DataFrame:
    """Of `versions_of` those that records from a kept state's offset on have made, and the ones that they replaced.

    `kept` are the bytes that `side.kept` describes; `log` are the records from its offset on.
    """
    upto = _up_to(side.extent(), until)
    if side.kept is None or upto.end <= side.kept.offset:
        return pl.DataFrame(schema=VERSIONS)
    plan = Plan("", upto, states_at=(), versions_from=0, committed=upto.start)
    return _of_rows(asked, replay(plan, log, kept))


def _up_to(extent: Extent, until: int) -> Extent:
    return replace(extent, end=min(until + 1, extent.end))


def _of_rows(asked: Collection[tuple[str, str]], tables: Iterable[MadeTable]) -> pl.DataFrame:
    gathered = _Gathered()
    for made in tables:
        gathered.add(made)
    wanted = pl.DataFrame(list(asked), schema={"entity": pl.String, "key": pl.String}, orient="row").unique()
    found = gathered.versions.join(wanted, on=["entity", "key"], how="semi", maintain_order="left")
    of_partitions = pl.col("entity") == PARTITIONS.name
    return found.with_columns(pl.when(of_partitions).then("created_offset").alias("created_offset"))


@dataclass(frozen=True)
class _Few(Shard):
    """Only what some rows need: topics by name, and with `rest` what belongs to no topic."""

    topics: frozenset[str] = frozenset()
    rest: bool = False

    def owns(self, topic: str) -> bool:
        return topic in self.topics

    @property
    def has_the_rest(self) -> bool:
        return self.rest


def _few(asked: Iterable[tuple[str, str]]) -> _Few:
    topics: set[str] = set()
    rest = False
    for entity, text in asked:
        key = json.loads(text)
        if entity in (TOPICS.name, PARTITIONS.name):
            topics.add(key["topic"])
        elif entity == CONFIGS.name and key["resource_type"] == "TOPIC":
            topics.add(key["resource_name"])
        else:
            rest = True
    return _Few(topics=frozenset(topics), rest=rest)


def _checkpoints(
    side: KraftSide, records: Mapping[int, Records], wanted: Collection[int | None]
) -> dict[int, DecodedCheckpoint]:
    return {
        offset: DecodedCheckpoint(side.metadata_version(offset), side.has_elr(offset), read)
        for offset, read in records.items()
        if offset in wanted
    }


@dataclass
class _Gathered:
    """The results of a pass, except its history."""

    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    versions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=VERSIONS))
    kept: bytes = b""
    found: list[pa.Table | pa.RecordBatch] = field(default_factory=list)

    def add(self, made: MadeTable) -> None:
        """Add the pass's results."""
        if made.kind == TableKind.STATE:
            rows = from_arrow(made.rows, TABLES[made.entity])
            self.tables[made.entity] = rows.with_columns(pl.lit(KRAFT).alias("source"))
        elif made.kind == TableKind.VERSIONS:
            self.versions = from_arrow(made.rows, VERSIONS)
        elif made.kind == TableKind.KEPT:
            self.kept = made.rows["kept"][0].as_py()
        else:
            self.found.append(made.rows)

    def findings(self) -> pl.DataFrame:
        """Records that break a rule of replay, and rows in which the replay is not Kafka's own checkpoint."""
        rows = [from_arrow(each, FINDINGS) for each in self.found]
        return pl.concat([pl.DataFrame(schema=FINDINGS), *rows])


class _Last(NamedTuple):
    epoch: int
    append_time: int


class _LastBefore:
    """The record just before an offset, found while the log is read."""

    def __init__(self, offset: int | None) -> None:
        self.offset = offset
        self.last: _Last | None = None

    def passed(self, log: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same records."""
        for rows in log:
            if self.offset is not None and self.last is None:
                self._look(rows, self.offset - 1)
            yield rows

    def _look(self, rows: pa.RecordBatch, offset: int) -> None:
        place = pc.index(rows["offset"], offset).as_py()
        if place >= 0:
            self.last = _Last(rows["epoch"][place].as_py(), rows["append_time"][place].as_py())


def _keeping(
    side: KraftSide, at: int | None, seen: _LastBefore, state: bytes, findings: pl.DataFrame
) -> Keeping | None:
    """What the next run may continue from: nothing of a log with findings, which each run must see itself.

    What Kafka itself skips is not a fault of the log, and what the state alone shows is found again.
    """
    if at is None:
        return None
    if seen.last is None or not findings.filter(~pl.col("code").is_in([CONFIG_ALONE, CONFIG_SKIPPED])).is_empty():
        return NOTHING
    below = [milestone for milestone in side.milestones if milestone["offset"] < at]
    base_run = None if side.kept is None else side.kept.run_id
    return Keeping(at, seen.last.epoch, seen.last.append_time, below, base_run, state)
