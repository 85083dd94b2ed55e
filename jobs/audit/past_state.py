"""A finished run's sides at any offset: ZooKeeper as the run read it, and KRaft's image replayed to the offset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.facts import MirrorPosition, mirror_position, mirrored
from jobs.audit.homes import classified
from jobs.audit.kraft_side import IN_MIGRATION, KraftSide, kraft_sides, milestone_rows, whole_records
from jobs.audit.past import PastRun
from jobs.exit import UsageError
from jobs.steps.materialize import both_sides
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from schemas.checks import Phase
from schemas.entities import MIRRORED
from schemas.entities.migration import MIGRATION
from schemas.silver import ADMIN_OPERATIONS, ZOOKEEPER_WRITES
from transforms.kraft.replay.events import Cache, applied
from transforms.kraft.replay.extent import Extent
from transforms.kraft.replay.image import Log, image, row_versions, versions_of
from transforms.kraft.replay.rows import fold
from transforms.reconcile.compare.between import located
from transforms.reconcile.compare.canonical import canonical
from transforms.reconcile.compare.context import Context
from transforms.reconcile.compare.difference import Ends, differing_rows, without_moved
from transforms.reconcile.compare.divergences import seen_from
from transforms.reconcile.compare.release_limits import limits
from transforms.reconcile.judge import queries
from transforms.reconcile.judge.facts import state_name
from transforms.reconcile.judge.load import history_from, load_claim, load_range
from transforms.unions import union_all
from transforms.zookeeper.read.bracket import bracket
from transforms.zookeeper.read.trees import at_barrier

_COMPARED = (Phase.DUAL_WRITE.value, Phase.FINALIZED.value)


@dataclass(frozen=True)
class PastKraft:
    """A finished run's log: `records` are all it was replayed from, `extent` what of them the run applied.

    `first` and `last` are the offsets (inclusive) whose state it can tell. `cache` keeps what several queries read.
    """

    cluster: str
    side: KraftSide
    records: DataFrame
    extent: Extent
    first: int
    last: int
    cache: Cache

    def log(self, end: int) -> Log:
        """The log below `end` (exclusive), without what was not in force there; its rows are held by `cache`."""
        return Log.of(self.records, {self.cluster: self.up_to(end)}, cache=self.cache)

    def up_to(self, end: int) -> Extent:
        """What of the records applies below `end` (exclusive)."""
        return replace(self.extent, end=end, discarded=self.side.transactions.discarded_at(end - 1))

    def applied(self) -> DataFrame:
        """The records that the run applied."""
        return applied(self.records, {self.cluster: self.extent})

    def checked(self, offset: int) -> int:
        """The offset, if its state can be told. Raises UsageError with the range that can."""
        if not self.first <= offset <= self.last:
            raise UsageError(
                f"--as-of: offset {offset} is not in the run's log; give one from {self.first} to {self.last} (inclusive)"
            )
        return offset


def migration_znodes(past: PastRun) -> Mapping[str, Any] | None:
    """The run's silver row of /migration, /controller and /controller_epoch as they were compared; None without ZooKeeper."""
    rows = past.read(MIGRATION.table).where((F.col("source") == "zookeeper") & at_barrier()).collect()
    return rows[0].asDict() if rows else None


def past_kraft(past: PastRun, znodes: Mapping[str, Any] | None) -> PastKraft | None:
    """The run's log as the run applied it; None when the run had none that could be used."""
    copies = [row.asDict(recursive=True) for row in past.read(KRAFT_LOG_COPIES).collect()]
    if not copies:
        return None
    milestones = [row.asDict() for row in milestone_rows(past.read(KRAFT_RECORDS)).collect()]
    name = past.cluster
    side = kraft_sides(past.warehouse, {name: copies}, {name: milestones}, {name: znodes}).get(name)
    if side is None:
        return None
    records, extent = whole_records(past.warehouse, name, past.run_id, side)
    start = (
        side.plan.base_checkpoint[1].offset - 1
        if side.plan.base_checkpoint
        else side.plan.slices[0].from_offset_inclusive
    )
    # Small ones are read once for all questions; of large ones a question reads what it needs.
    records = past.cache(records) if past.small else records
    return PastKraft(name, side, records, extent, start, side.plan.leading.end - 1, past.cache)


def divergences_as_of(past: PastRun, offset: int) -> DataFrame:
    """The run's comparison with KRaft's image at `offset` (inclusive) instead of the committed end.

    Rows of `transforms.reconcile.compare.between.located`. From /migration's offset on, it is the audit as if the log
    had ended there. Below it, ZooKeeper is ahead: what it has of a later record is in_flight.
    Raises UsageError when the run compared nothing or its log does not hold the offset.
    """
    znodes = migration_znodes(past)
    kraft = past_kraft(past, znodes)
    if (
        kraft is None
        or znodes is None
        or znodes.get("kraft_metadata_offset") is None
        or past.report.migration.phase not in _COMPARED
    ):
        raise UsageError(
            f"run {past.run_id} compared nothing (mode {past.report.mode}): there is no difference to show"
        )
    kraft.checked(offset)
    position = _mirror_position(past, kraft, znodes)
    reached = position.mirrored_offset
    if reached is None:
        reached = znodes["kraft_metadata_offset"]
    end = max(offset + 1, kraft.side.committed.end_exclusive) if offset < reached else offset + 1
    at = kraft.log(offset + 1)
    whole = at if end == offset + 1 else kraft.log(end)
    context = replace(
        _context(past, kraft.side, znodes, position), migration_offset=min(offset, reached), committed_end=end
    )
    after = {past.cluster: min(offset, reached) + 1}
    folded = past.cache(fold(at.events))
    folded_whole = folded if whole is at else past.cache(fold(whole.events))
    versions = past.cache(row_versions(whole, folded_whole, after, MIRRORED))
    sides = _sides(past, image(at, folded))
    differing = without_moved(differing_rows(sides, versions, {past.cluster: Ends(end)}), _moved(past))
    contexts = {past.cluster: context}
    found = classified(past.walk(), past.cache(differing), contexts, past.cache, partial(versions_of, whole))
    found = found.where("class <> 'not_comparable'")
    # The transactions between which something was lost are those of the run's own comparison.
    found = located(found, None)
    return found if offset >= reached else seen_from(found, offset, reached)


def _mirror_position(past: PastRun, kraft: PastKraft, znodes: Mapping[str, Any]) -> MirrorPosition:
    asked = mirrored(znodes, znodes, kraft.side)
    if asked is None:
        return MirrorPosition()
    times = queries.append_times(kraft.records, {past.cluster: asked}).first()
    return mirror_position(None if times is None else times.asDict(), kraft.side, znodes, _version(past))


def _sides(past: PastRun, images: Mapping[str, DataFrame]) -> DataFrame:
    """Both sides as `canonical` rows: ZooKeeper's from the run's silver, KRaft's from the log's image."""
    zookeeper = {entity.name: past.read(entity.table).where("source = 'zookeeper'") for entity in MIRRORED}
    unstamped = {name: rows.drop("run_id", "source") for name, rows in zookeeper.items()}
    return union_all(
        [
            canonical(
                entity,
                both_sides(
                    past.spark, entity, [("zookeeper", unstamped[entity.name]), ("kraft", images.get(entity.name))]
                ),
            )
            for entity in MIRRORED
        ]
    )


def _version(past: PastRun) -> str | None:
    return None if past.report.kafka_version == "unknown" else past.report.kafka_version


def _context(past: PastRun, side: KraftSide, znodes: Mapping[str, Any], position: MirrorPosition) -> Context:
    """What the run knew when it compared, but for the offsets; the same sources as `jobs.steps.reconcile`."""
    states = past.read(MIGRATION.table).where("source = 'kraft'")
    recorded = states.select("kraft_offset", "state_code", "kraft_append_time").collect()
    recorded.sort(key=lambda row: (row["kraft_offset"], row["state_code"]))
    loaded = [appended for _, code, appended in recorded if code == IN_MIGRATION]
    written = past.read(ZOOKEEPER_WRITES).where("kind IN ('foreign', 'claim')").select("kind", "zxid", "path").collect()
    foreign = [row for row in written if row["kind"] == "foreign"]
    claim = znodes.get("controller_czxid") if znodes.get("controller_persistent") else None
    load = load_range([(offset, state_name(code, _version(past))) for offset, code, _ in recorded], side.transactions)
    pending = (
        past.read(ADMIN_OPERATIONS)
        .where((F.col("kind") == "delete_topic") & at_barrier())
        .select("subject")
        .distinct()
        .collect()
    )
    return Context(
        frozen=past.report.migration.phase == Phase.FINALIZED.value,
        migration_offset=0,
        migration_mzxid=znodes.get("migration_mzxid"),
        committed_end=0,
        load_time_ms=position.loaded_at if position.mirrored_offset is not None or not loaded else loaded[0],
        newest_append_time_ms=side.plan.leading.last_append_time,
        pending_deletes=frozenset(row[0] for row in pending),
        foreign_zxids=frozenset(row["zxid"] for row in foreign),
        foreign_paths=frozenset(row["path"] for row in foreign),
        claim_zxid=claim,
        limits=limits(_version(past)),
        load=load,
        load_claim=load_claim(znodes, side.plan, load),
        history_from=history_from(side.plan),
        transactions_known=any(row["kind"] == "claim" and row["zxid"] == claim for row in written),
    )


def _moved(past: PastRun) -> DataFrame | None:
    if past.report.mode != "bracket":
        return None
    return bracket(past.walk(), past.walk(1))[1]
