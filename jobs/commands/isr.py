"""`kraft-audit isr`: a partition's ISR, leaders and epochs step by step, and what AlterPartition would be answered."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.finished import finished_runs, of_finished
from jobs.audit.past import Finished, PastRun, add_run_argument, add_warehouse_arguments, open_warehouse, past_run
from jobs.audit.standing import Standing, standing
from jobs.exit import OK, UsageError
from schemas.entities.brokers import BROKERS
from schemas.entities.configs import CONFIGS
from schemas.entities.partitions import PARTITIONS
from schemas.gold import ISR_HISTORY
from schemas.kraft.metadata_versions import FEATURE_NAME
from schemas.kraft.records import CLEAR_ELR
from transforms.clusters import CLUSTER
from transforms.explain.keys import parse_key
from transforms.explain.records import row_events
from transforms.explain.text import utc_time
from transforms.features.update import ELR
from transforms.isr.checks import bumps_on_shrink
from transforms.isr.frames import step_of
from transforms.isr.history import Record, Step, steps
from transforms.isr.hourly import RECORD
from transforms.isr.partition import CLEARED, RECOVERED, RECOVERING, change_of, state_of
from transforms.isr.validate import (
    Answer,
    Controller,
    Mode,
    Registration,
    Request,
    api_name,
    listed,
    offline_replicas,
    partition_epoch_name,
    validate,
)
from transforms.kraft.replay.entities import DELETE
from transforms.kraft.replay.events import PARTITION, PARTITION_TYPES
from transforms.report.printable import visible

_VALIDATE = "validate"
_NEEDED = ("topic_name", "partition", "leader_epoch", "partition_epoch", "isr")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit isr`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "isr TOPIC[/P]    every change of the topic's partitions, or of one, that any run has read; with --run, by its log\n"
        "isr validate --topic T --partition P --leader-epoch E --partition-epoch V --isr 1,2\n"
        "                 what the controller would answer to this AlterPartition request"
    )
    parser.add_argument("what", metavar="TOPIC[/P]|validate")
    asked = parser.add_argument_group("with validate")
    asked.add_argument("--topic", dest="topic_name", metavar="T")
    asked.add_argument("--partition", type=int, metavar="P")
    asked.add_argument("--leader-epoch", type=int, metavar="E")
    asked.add_argument("--partition-epoch", type=int, metavar="V", help="in ZooKeeper mode the state znode's version")
    asked.add_argument("--isr", metavar="IDS", help="the proposed ISR, e.g. 1,2")
    asked.add_argument("--sender", type=int, metavar="B", help="the broker that asks (default: the leader)")
    asked.add_argument("--sender-epoch", type=int, metavar="N", help="its broker epoch")
    asked.add_argument("--broker-epochs", metavar="B=N,…", help="the broker epochs of the proposed ISR (from 3.5 on)")
    asked.add_argument("--recovering", action="store_true", help="the request says RECOVERING")
    asked.add_argument("--request-version", type=int, metavar="N", help="default: the newest that the release takes")
    asked.add_argument("--mode", choices=[mode.value for mode in Mode], help="default: the mode the cluster is in")
    parser.add_argument("--kafka-version", metavar="V", help="the controller's release (default: the run's)")
    add_warehouse_arguments(parser)
    add_run_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the history or the answer. 0 whatever it is; 2 when there is no such topic or an option is missing."""
    if arguments.what == _VALIDATE:
        missing = [name for name in _NEEDED if getattr(arguments, name) is None]
        if missing:
            options = ", ".join("--" + name.removesuffix("_name").replace("_", "-") for name in missing)
            raise UsageError(f"validate: {options} is needed")
    with open_warehouse(arguments) as run:
        lines = None
        if arguments.what != _VALIDATE and arguments.run_id is None:
            lines = _recorded(run, arguments.what)
        if lines is None:
            known = standing(past_run(run, arguments.run_id), arguments.kafka_version)
            lines = _answer(arguments, known) if arguments.what == _VALIDATE else _history(arguments.what, known)
        for line in lines:
            print(visible(line, 400))
    return OK


def _asked(what: str) -> tuple[str, int | None]:
    topic, slash, number = what.rpartition("/")
    return (topic, int(number)) if slash and number.isdecimal() and len(number) < 10 else (what, None)


def _recorded(run: Finished, what: str) -> list[str] | None:
    """What all runs have recorded, that of pruned logs too; None when none has recorded a change of it."""
    topic, partition = _asked(what)
    mine = (F.col(CLUSTER) == run.cluster) & (F.col("topic") == topic)
    wanted = mine if partition is None else mine & (F.col("partition") == partition)
    # What a run has left that was killed counts for nobody.
    rows = of_finished(run.warehouse.read(ISR_HISTORY).where(wanted), finished_runs(run.warehouse, [run.cluster]))
    # Two runs at the same time may both have found a change new. A later run has a later part of a log, or another log.
    in_order = rows.dropDuplicates([*RECORD]).orderBy("run_id", "offset").collect()
    found: dict[tuple[int, str], list[Step]] = {}
    for row in in_order:
        found.setdefault((row["partition"], row["topic_id"]), []).append(step_of(row.asDict()))
    return [line for name, history in sorted(found.items()) for line in _lines(name, history, None)] or None


def _history(what: str, known: Standing) -> list[str]:
    if known.log is None:
        raise UsageError(f"run {known.past.run_id} has no metadata log: ZooKeeper keeps no history of its partitions")
    topic, partition = _asked(what)
    records = known.log.applied()
    lives = [row.asDict() for row in row_events(records, parse_key("topics", {"topic": topic})).collect()]
    if not lives:
        raise UsageError(f"there never was a topic {visible(topic, 120)} in the log of run {known.past.run_id}")
    histories = _steps(records, topic, lives, partition)
    if not histories:
        raise UsageError(f"there never was a partition {visible(what, 120)} in the log of run {known.past.run_id}")
    return [
        line
        for name, history in sorted(histories.items())
        for line in _lines(name, history, known.log.side.committed.end_exclusive)
    ]


def _steps(
    records: DataFrame, topic: str, lives: Sequence[Mapping[str, Any]], partition: int | None
) -> dict[tuple[int, str], list[Step]]:
    """Steps by partition and topic id: a topic that was made again has a history for each of its lives."""
    made = {_topic_id(event): event["offset"] for event in lives if event["op"] != DELETE}
    gone = {_topic_id(event): event["offset"] for event in lives if event["op"] == DELETE}
    mine = F.col("type").isin(list(PARTITION_TYPES)) & F.col("topic_id").isin(list(made))
    if partition is not None:
        mine = mine & (F.col("partition_id") == partition)
    named = F.get_json_object("data", "$.topicName")
    clears = (F.col("type") == CLEAR_ELR.name) & named.isin("", topic)
    rows = records.where(mine | clears).orderBy("offset").collect()
    found: dict[tuple[int, str], list[Record]] = {}
    for row in rows:
        if row["type"] == CLEAR_ELR.name:
            for (_, topic_id), changes in found.items():
                if row["offset"] < gone.get(topic_id, row["offset"] + 1):
                    changes.append(Record(row["offset"], row["append_time"], CLEARED, clears_elr=True))
            continue
        change = change_of(row.asDict(recursive=True), whole=row["type"] == PARTITION)
        key = (row["partition_id"], row["topic_id"])
        found.setdefault(key, []).append(Record(row["offset"], row["append_time"], change))
    return {key: list(steps(changes)) for key, changes in found.items()}


def _topic_id(event: Mapping[str, Any]) -> str:
    key: str = event["replay_key"]
    return key.strip('["]')


def _lines(name: tuple[int, str], history: Sequence[Step], committed_end: int | None) -> list[str]:
    lines = [f"Partition {name[0]} of topic id {name[1]}: {len(history)} changes"]
    for step in history:
        state = step.after
        proved = committed_end is None or step.offset < committed_end
        tail = "" if proved else "  (not proved committed)"
        elr = f" ELR {listed(state.elr)}" if state.elr else ""
        known = f" last known {listed(state.last_known_elr)}" if state.last_known_elr else ""
        recovering = " RECOVERING" if state.recovering else ""
        moved = [*([f"-{n}" for n in step.left]), *([f"+{n}" for n in step.joined] if step.before is not None else [])]
        lines.append(
            f"  {step.offset:>9}  {utc_time(step.time)}  leader {state.leader:>3}  epoch {state.leader_epoch:>3}"
            f"  partition epoch {state.partition_epoch:>4}  ISR {listed(state.isr)}{elr}{known}{recovering}"
            f"  {' '.join(moved)}  {', '.join(kind.value.replace('_', ' ') for kind in step.kinds)}{tail}"
        )
    return lines


def _answer(arguments: argparse.Namespace, known: Standing) -> list[str]:
    release = known.release
    if release is None:
        raise UsageError("--kafka-version: give the controller's release, the run does not know it")
    mode = Mode(arguments.mode) if arguments.mode else Mode.ZOOKEEPER if known.by_zookeeper else Mode.KRAFT
    request = Request(
        arguments.leader_epoch,
        arguments.partition_epoch,
        _ids(arguments.isr),
        arguments.sender,
        arguments.sender_epoch,
        _epochs(arguments.broker_epochs),
        RECOVERING if arguments.recovering else RECOVERED,
        arguments.request_version,
    )
    controller = _controller(known.past, mode, release, arguments.topic_name, arguments.partition)
    if mode is Mode.KRAFT and known.kraft is not None:
        migrating = known.phase == "dual_write"
        level = known.kraft.finalised.get(FEATURE_NAME)
        controller = replace(
            controller,
            bumps_on_shrink=bumps_on_shrink(release, level, migrating),
            elr=known.kraft.finalised.get(ELR, 0) > 0,
        )
    return _said(validate(request, controller), controller)


def _ids(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise UsageError(f"--isr: {visible(text, 80)} is no list of broker ids such as 1,2") from None


def _epochs(text: str | None) -> dict[int, int]:
    try:
        pairs = [part.split("=") for part in (text or "").split(",") if part.strip()]
        return {int(broker): int(epoch) for broker, epoch in pairs}
    except ValueError:
        raise UsageError(f"--broker-epochs: {visible(str(text), 80)} is not of the form 1=100,2=200") from None


def _controller(past: PastRun, mode: Mode, release: tuple[int, int], topic: str, partition: int) -> Controller:
    source = "zookeeper" if mode is Mode.ZOOKEEPER else "kraft"
    rows = past.read(PARTITIONS.table).where((F.col("source") == source) & (F.col("topic") == topic)).collect()
    mine = [row.asDict(recursive=True) for row in rows if row["partition"] == partition]
    brokers = past.read(BROKERS.table).where(F.col("source") == source).collect()
    registered = {
        row["broker_id"]: Registration(row["broker_epoch"], bool(row["fenced"]), bool(row["in_controlled_shutdown"]))
        for row in brokers
    }
    if not registered:
        raise UsageError(f"--mode: run {past.run_id} has no brokers of {source}")
    found = Controller(mode, release, registered, state_of(mine[0]) if mine else None, bool(rows))
    if mode is Mode.ZOOKEEPER or not mine:
        return found
    directories = {row["broker_id"]: row["log_dirs"] or () for row in brokers}
    replicas = min(len(row["replicas"]) for row in rows if row["partition"] == min(each["partition"] for each in rows))
    settings = _settings(past, topic)
    least = settings.get("min.insync.replicas")
    return replace(
        found,
        offline=offline_replicas(mine[0]["replicas"], mine[0]["directories"] or (), directories),
        min_isr=min(int(least), replicas) if least is not None and least.isdecimal() else None,
        unclean=settings.get("unclean.leader.election.enable") == "true",
    )


def _settings(past: PastRun, topic: str) -> dict[str, str]:
    """Configurations of a topic as the log has them: its own, else the cluster-wide ones. Static ones are not stored."""
    of_topic = (F.col("resource_type") == "TOPIC") & (F.col("resource_name") == topic)
    of_all = (F.col("resource_type") == "BROKER") & (F.col("resource_name") == "")
    rows = past.read(CONFIGS.table).where((F.col("source") == "kraft") & (of_topic | of_all)).collect()
    ordered = sorted(rows, key=lambda row: row["resource_type"] == "TOPIC")
    return {row["config"]: row["value"] for row in ordered if row["value"] is not None}


def _said(answer: Answer, controller: Controller) -> list[str]:
    rule = "" if answer.rule is None else f", rule {answer.rule}"
    kip = f" (KIP-497: {answer.kip_name})" if answer.kip_name != answer.error.value else ""
    release = f"{controller.release[0]}.{controller.release[1]}"
    lines = [
        f"{api_name(controller.release)} to a {controller.mode.value} controller of {release}: "
        f"{answer.error.value} ({answer.code}){kip}{rule}",
        f"  {answer.reason}",
        f"  {'A write follows.' if answer.writes else 'Nothing is written.'}",
    ]
    now = controller.partition
    if now is not None:
        lines.append(
            f"  now: leader {now.leader}, leader epoch {now.leader_epoch}, "
            f"{partition_epoch_name(controller.release)} {now.partition_epoch}, ISR {listed(now.isr)}"
        )
    if answer.result is not None and answer.writes:
        then = answer.result
        lines.append(
            f"  then: leader {then.leader}, leader epoch {then.leader_epoch}, "
            f"{partition_epoch_name(controller.release)} {then.partition_epoch}, ISR {listed(then.isr)}"
        )
    return [*lines, *(f"  not asked: {note}" for note in answer.unverified)]
