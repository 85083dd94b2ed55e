"""The facts that checks and gates judge, built from a cluster's inputs and the answers of its rows: only here."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from schemas.checks import KRAFT, ZOOKEEPER
from schemas.kraft.metadata_versions import FEATURE_NAME
from schemas.report import DivergenceRow, LagPoint
from transforms.kraft.quorum import LogCopy, NoUsableLogError, plan_read
from transforms.kraft.release import Release, before
from transforms.properties import PropertyFiles
from transforms.reconcile.judge import kraft_health, zookeeper_writes
from transforms.reconcile.judge.deltas import Delta
from transforms.reconcile.judge.facts import (
    Facts,
    Identities,
    LogActivity,
    Protection,
    ReplicaUse,
    Sample,
    known_identities,
)
from transforms.reconcile.judge.first_look import FirstLook
from transforms.reconcile.judge.given import Answers, Given, Row, Rows
from transforms.reconcile.judge.lag_series import points
from transforms.reconcile.judge.mirror import MirrorPosition, mirror_position
from transforms.reconcile.judge.skew import ClockSkew, clock_skew

# What `/migration` is called among the znodes that moved between two walks: it moves all the time in dual write.
WRITTEN = "written"
MOVED = "moved"
# Others are no broker's: anybody may have written such a znode.
_BROKER_ID = re.compile(r"[0-9]{1,10}")
_NOT_READ: Mapping[str, int] = {"znodes": 0, "open": 0}


@dataclass(frozen=True)
class ClusterFacts:
    """One cluster's facts, and the other inputs of its comparison and its report.

    `pending_deletes` are topics queued for deletion in ZooKeeper, `foreign_writes` transactions (zxid, path) that were not the
    KRaft controller's, `claims` the zxids by which KRaft controllers took over; `answers` all that was answered.
    """

    name: str
    facts: Facts
    release: Release
    pending_deletes: frozenset[str]
    foreign_writes: Sequence[tuple[int, str]]
    claims: frozenset[int]
    lag_series: Sequence[LagPoint] = ()
    answers: Rows = field(default_factory=dict)


def facts_of(given: Given, first: Rows, second: Rows, properties: PropertyFiles) -> ClusterFacts:
    """The facts by all answers; `properties` are the property files of the nodes."""
    look, samples = FirstLook(given, first), Answers(second)
    gathered = first_facts(look, properties)
    facts = replace(
        gathered.facts,
        findings=_by_code([*samples.of("samples"), *samples.of("fallen")]),
        replicas=_replicas(look, samples),
        left_behind=_left_behind(look, samples),
        previous_partitions=samples.first("earlier_epochs") is not None,
    )
    return replace(gathered, facts=facts, answers={**first, **second})


def first_facts(look: FirstLook, properties: PropertyFiles | None = None) -> ClusterFacts:
    """All facts but those of the second questions, and what the comparison adds."""
    given, answers, side = look.given, look.answers, look.given.side
    measured = mirror_position(answers.first("append_times"), given, look.release.version)
    writes = zookeeper_writes.of_answers(answers.of) if given.reads_data_folder else None
    moved = _by_code(answers.of("moved"))
    newest_change, producer_ids = look.newest_change, _producer_ids(answers)
    facts = Facts(
        phase=look.phase,
        collected=given.collected,
        kafka_version=look.release.version,
        zookeeper=given.zookeeper,
        compared_at=None if given.compared == given.zookeeper else given.compared,
        copies=[LogCopy.from_row(row) for row in given.copies] if side is None else side.copies,
        plan=side.plan if side else None,
        plan_problem=_plan_problem(given),
        committed=side.committed if side else None,
        transactions=side.transactions if side else None,
        states=look.states,
        epochs=look.epochs,
        log_begun_ms=side.begun_ms if side else None,
        brokers_in_zookeeper=[row for row in look.brokers if row["source"] == ZOOKEEPER],
        brokers_in_kraft=[row for row in look.brokers if row["source"] == KRAFT],
        controllers=look.controllers,
        features=look.features,
        brokers_with_config=_configured_brokers(answers, ZOOKEEPER, KRAFT),
        configured_in_kraft=_configured_brokers(answers, KRAFT),
        counts=look.counts,
        levels=[change for change in look.levels if change.feature == FEATURE_NAME],
        other_levels=[change for change in look.levels if change.feature != FEATURE_NAME],
        next_producer_id=producer_ids[0],
        producer_block_end=producer_ids[1],
        protection=_protection(given, answers),
        newest_znode_time_ms=newest_change[0],
        newest_zxid=newest_change[1],
        captured_at_ms=given.captured_at_ms,
        written_while_read=WRITTEN in moved,
        reading_ms=given.reading_ms,
        skew=_skew(answers),
        properties=PropertyFiles() if properties is None else properties,
        capture_skew_limit=given.thresholds.capture_skew_seconds,
        alive_limit=given.thresholds.alive_seconds,
        interruption_accepted=given.thresholds.restart_may_interrupt,
        lag_limit=given.thresholds.lag_seconds,
        lag=measured.lag,
        mirrored_offset=measured.mirrored_offset,
        load_time_ms=_load_time(look, measured),
        at_barrier=answers.first("at_barrier") is not None,
        moved=moved.get(MOVED, Sample()) if given.bracketed else None,
        foreign_writes=Sample() if writes is None else Sample(*writes.foreign),
        reads_data_folder=given.reads_data_folder,
        zookeeper_writes=writes,
        identities=_identities(given, answers),
        quorum=None if side is None else kraft_health.quorum_of(side),
        activity=_activity(given, answers),
        broker_configs=kraft_health.configs_of(answers.of("broker_configs")),
        zookeeper_features=_zookeeper_features(given, answers),
        partition_counts=kraft_health.partition_counts(answers.of("partition_health")),
        out_of_sync=kraft_health.out_of_sync_of(answers.of("out_of_sync")),
        previous_end=given.previous_end,
        earlier=given.earlier,
        claim=given.claim,
    )
    return ClusterFacts(
        name=given.name,
        facts=facts,
        release=look.release,
        pending_deletes=frozenset(row["topic"] for row in answers.of("pending")),
        foreign_writes=[(row["zxid"], row["path"]) for row in answers.of("foreign")],
        claims=frozenset(each.zxid for each in (writes.elections if writes else ()) if each.is_claim),
        answers=answers.rows,
        lag_series=points(answers.of("lag_series"), 0.0 if facts.skew is None else facts.skew.median),
    )


def with_differences(
    facts: Facts,
    *,
    compared: bool,
    samples: Mapping[str, Sample],
    rows: Sequence[DivergenceRow],
    duplicated: Sample | None,
    deltas: Mapping[int, Delta],
) -> Facts:
    """The facts with what the comparison found: `samples` by class, the `rows` that are known one by one, rows that stand
    twice, and the barriers around lost changes (`deltas_of`). `compared` is false where the sides could not be compared.
    """
    return replace(
        facts,
        compared=compared,
        divergences=samples,
        defect_rows=tuple(rows),
        duplicated=duplicated,
        deltas=deltas,
    )


def loaded_at(facts: Facts) -> int | None:
    """Time of the load's end in the log, milliseconds since the epoch: earlier barriers are of another migration."""
    return next((change.append_time_ms for change in facts.states if facts.name_of(change) == "MIGRATION"), None)


def _load_time(look: FirstLook, measured: MirrorPosition) -> int | None:
    """When the load ended. 3.4 keeps its last offset in `/migration`; later releases record a state."""
    return measured.loaded_at if before(look.release.version, 3, 5) else look.loaded_at


def _plan_problem(given: Given) -> str | None:
    if given.side is not None or not given.has_kraft:
        return None
    try:
        plan_read([LogCopy.from_row(row) for row in given.copies])
    except NoUsableLogError as error:
        return str(error)
    return None


def _configured_brokers(answers: Answers, *sides: str) -> frozenset[int]:
    """Brokers that a side has a configuration of; answers of an earlier release do not name the side."""
    names = [row["resource_name"] for row in answers.of("configured") if row.get("source", KRAFT) in sides]
    return frozenset(int(name) for name in names if _BROKER_ID.fullmatch(name))


def _producer_ids(answers: Answers) -> tuple[int | None, int | None]:
    """The next id of KRaft, and the end of ZooKeeper's block."""
    rows = {row["source"]: row for row in answers.of("producer_ids")}
    following, block = rows.get(KRAFT, {}), rows.get(ZOOKEEPER, {})
    return following.get("next_producer_id"), block.get("block_end")


def _protection(given: Given, answers: Answers) -> Protection | None:
    if not given.has_zookeeper:
        return None
    row = answers.first("protection") or _NOT_READ
    return Protection(row["znodes"], row["open"])


def _skew(answers: Answers) -> ClockSkew | None:
    row = answers.first("skew")
    return None if row is None else clock_skew(row["quantiles"], row["pairs"])


def _identities(given: Given, answers: Answers) -> Identities | None:
    if not given.has_zookeeper:
        return None
    return known_identities((row["path"], row["scheme"], row["id"]) for row in answers.of("identities"))


def _activity(given: Given, answers: Answers) -> LogActivity | None:
    if given.side is None:
        return None
    earlier = answers.first("in_no_snapshot")
    return kraft_health.activity_of(answers.of("activity"), given.side, None if earlier is None else earlier["first"])


def _zookeeper_features(given: Given, answers: Answers) -> dict[str, int] | None:
    if not given.has_zookeeper:
        return None
    return {row["feature"]: row["level"] for row in answers.of("features") if row["source"] == ZOOKEEPER}


def _replicas(look: FirstLook, samples: Answers) -> list[ReplicaUse]:
    """Replicas of each broker, with the requested examples."""
    examples: dict[int, list[str]] = defaultdict(list)
    for row in sorted(samples.of("examples"), key=lambda row: int(row["number"])):
        examples[row["broker_id"]].append(row["text"])
    uses = [
        ReplicaUse(row["broker_id"], row["replicas"], tuple(examples[row["broker_id"]]), row["adding"])
        for row in look.answers.of("replicas")
    ]
    return sorted(uses, key=lambda use: use.broker_id)


def _left_behind(look: FirstLook, samples: Answers) -> Sample | None:
    if look.rolled_back_from is None:
        return None
    return next(iter(_by_code(samples.of("left_behind")).values()), Sample())


def _by_code(rows: Sequence[Row]) -> dict[str, Sample]:
    totals: dict[str, int] = {}
    examples: dict[str, list[str]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: int(row["number"])):
        totals[row["code"]] = row["total"]
        examples[row["code"]].append(row["text"])
    return {code: Sample(total, tuple(examples[code])) for code, total in totals.items()}
