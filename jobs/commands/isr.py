"""`kraft-audit isr`: a partition's ISR, leaders and epochs step by step, and how a controller would answer an
AlterPartition request."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from jobs.commands.options import add_release_argument, add_run_argument, add_warehouse_arguments
from jobs.evidence.opening import Finished, open_warehouse
from jobs.evidence.past_run import PastRun, nothing_newer, past_run
from jobs.evidence.removed import changes_lines
from jobs.exit import OK, UsageError
from jobs.runtime.output import say
from jobs.sinks.reader import Reader, records
from schemas.checks import KRAFT, ZOOKEEPER, Phase
from schemas.entities.brokers import BROKERS
from schemas.entities.configs import CONFIGS
from schemas.entities.partitions import PARTITIONS
from schemas.entities.topics import TOPICS
from schemas.gold import ISR_BY_DAY, ISR_HISTORY, RUNS
from schemas.table import Table
from transforms.clusters import CLUSTER
from transforms.explain.keys import parse_key
from transforms.isr.days import Days, days_of, not_summed
from transforms.isr.history import ClassifiedChange
from transforms.isr.partition import RECOVERED, RECOVERING
from transforms.isr.partition_questions import Histories, at_levels, controller_of, histories, of_topic, recorded
from transforms.isr.validate import (
    AlterPartitionAnswer,
    AlterPartitionRequest,
    Controller,
    ControllerMode,
    api_name,
    listed,
    partition_epoch_name,
    validate,
)
from transforms.report.printable import counted, visible
from transforms.runs import CLEAN, ERRORS, WARNINGS
from transforms.times import utc_time

if TYPE_CHECKING:
    from jobs.evidence.past_cluster import PastCluster

_VALIDATE = "validate"
# A sum of gold isr_by_day: one of it, and several.
_SUMS = {
    "shrinks": ("shrink", "shrinks"),
    "expansions": ("expansion", "expansions"),
    "elections": ("election", "elections"),
    "lossy_elections": ("election that may have lost data", "elections that may have lost data"),
    "leader_losses": ("loss of the leader", "losses of the leader"),
    "reassignments": ("step of a reassignment", "steps of reassignments"),
    "elr_changes": ("change of the ELR", "changes of the ELR"),
}
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
    asked.add_argument(
        "--sender", type=int, metavar="B", help="the broker that sends the request (default: the leader)"
    )
    asked.add_argument("--sender-epoch", type=int, metavar="N", help="its broker epoch")
    asked.add_argument("--broker-epochs", metavar="B=N,…", help="the broker epochs of the proposed ISR (from 3.5 on)")
    asked.add_argument("--recovering", action="store_true", help="the request has the state RECOVERING")
    asked.add_argument("--request-version", type=int, metavar="N", help="default: the newest that the release accepts")
    asked.add_argument(
        "--mode", choices=[mode.value for mode in ControllerMode], help="default: the mode the cluster is in"
    )
    add_release_argument(parser, "--kafka-version", "the controller's release (default: the run's)")
    add_warehouse_arguments(parser)
    add_run_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the history or the answer. Returns 0, or 2 if the topic does not exist or an option is missing."""
    if arguments.what == _VALIDATE:
        missing = [name for name in _NEEDED if getattr(arguments, name) is None]
        if missing:
            options = ", ".join("--" + name.removesuffix("_name").replace("_", "-") for name in missing)
            raise UsageError(f"validate: {options} is needed")
    for line in _lines_of(arguments):
        say(visible(line, 400))
    return OK


def _lines_of(arguments: argparse.Namespace) -> list[str]:
    if arguments.what == _VALIDATE:
        from jobs.evidence.past_cluster import past_cluster  # noqa: PLC0415 - what judges takes a second that a history does not need

        with open_warehouse(arguments, in_spark=False) as run:
            past = past_run(run, arguments.run_id)
            answer = _answer(arguments, past_cluster(past, arguments.kafka_version))
            return [*past.standing.lines(run.stale_after_hours), *answer]
    if arguments.run_id is None:
        with open_warehouse(arguments, in_spark=False) as run:
            lines = _recorded(run, arguments.what)
            if lines is not None:
                return [*lines, *nothing_newer(run)]
    with open_warehouse(arguments) as run:
        past = past_run(run, arguments.run_id)
        return [*past.standing.lines(run.stale_after_hours), *_history(arguments.what, past)]


def _asked(what: str) -> tuple[str, int | None]:
    topic, slash, number = what.rpartition("/")
    return (topic, int(number)) if slash and number.isdecimal() and len(number) < 10 else (what, None)


def _recorded(run: Finished, what: str) -> list[str] | None:
    """What all runs have recorded, that of pruned logs too; None when none has recorded a change of it.

    Of changes that retention has summed up, the sums by day.
    """
    topic, partition = _asked(what)
    wanted = {CLUSTER: run.cluster, "topic": topic, **({} if partition is None else {"partition": partition})}
    changes, days = _changes_and_days(run.warehouse, wanted)
    shown = _shown(changes, None, days)
    return [*changes_lines(run.warehouse, run.cluster, changes, days), *shown] if shown else None


def _changes_and_days(tables: Reader, wanted: Mapping[str, Any]) -> tuple[Histories, Days]:
    rows = tables.rows(ISR_HISTORY, where=wanted)
    # Maintenance writes sums before it removes rows: read after these, they lack nothing that is gone.
    sums = tables.rows(ISR_BY_DAY, where=wanted)
    # Rows of a killed run do not count.
    judged = {CLUSTER: wanted[CLUSTER], "verdict": [CLEAN, WARNINGS, ERRORS]}
    finished = tables.rows(RUNS, ["run_id"], judged)["run_id"]
    rows = rows.filter(pl.col("run_id").is_in(finished.to_list()))
    return recorded(not_summed(rows, sums)), days_of(sums)


def _history(what: str, past: PastRun) -> list[str]:
    from jobs.evidence import missing  # noqa: PLC0415
    from jobs.evidence.past_log import migration_znodes, past_kraft  # noqa: PLC0415
    from jobs.evidence.row_records import lives_of, records_of_partitions  # noqa: PLC0415 - they look in Spark

    log = past_kraft(past, migration_znodes(past))
    if log is None:
        raise UsageError(f"run {past.run_id} has no metadata log: ZooKeeper keeps no history of its partitions")
    topic, partition = _asked(what)
    applied = log.applied()
    lives = lives_of(applied, parse_key(TOPICS.name, {"topic": topic}))
    if not lives:
        raise UsageError(f"there never was a topic {visible(topic, 120)} in the log of run {past.run_id}")
    mine = records_of_partitions(applied, lives, partition)
    found = histories(mine.filter(of_topic(lives, partition)), topic, lives)
    if not found:
        raise UsageError(f"there never was a partition {visible(what, 120)} in the log of run {past.run_id}")
    return [*missing.lines(missing.of_chain(past)), *_shown(found, log.side.committed.end_exclusive)]


def _shown(found: Histories, committed_end: int | None, days: Days | None = None) -> list[str]:
    summed = days or {}
    names = sorted(found.keys() | summed.keys())
    return [line for name in names for line in _lines(name, found.get(name, ()), summed.get(name, ()), committed_end)]


def _day_line(row: Mapping[str, Any]) -> str:
    kinds = [f"{row[name]:,} {one if row[name] == 1 else more}" for name, (one, more) in _SUMS.items() if row[name]]
    return f"  {row['day']}  {counted(row['changes'], 'change')}{': ' if kinds else ''}{', '.join(kinds)}"


def _lines(
    name: tuple[int, str],
    history: Sequence[ClassifiedChange],
    days: Sequence[Mapping[str, Any]],
    committed_end: int | None,
) -> list[str]:
    earlier = f", and {sum(row['changes'] for row in days):,} older ones by day (UTC)" if days else ""
    lines = [
        f"Partition {name[0]} of topic id {name[1]}: {counted(len(history), 'change')}{earlier}",
        *map(_day_line, days),
    ]
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


def _answer(arguments: argparse.Namespace, known: PastCluster) -> list[str]:
    views = known.views
    if views.release is None:
        raise UsageError("--kafka-version: give the controller's release, it is unknown to the run")
    mode = (
        ControllerMode(arguments.mode)
        if arguments.mode
        else ControllerMode.ZOOKEEPER
        if views.by_zookeeper
        else ControllerMode.KRAFT
    )
    request = AlterPartitionRequest(
        arguments.leader_epoch,
        arguments.partition_epoch,
        _ids(arguments.isr),
        arguments.sender,
        arguments.sender_epoch,
        _epochs(arguments.broker_epochs),
        RECOVERING if arguments.recovering else RECOVERED,
        arguments.request_version,
    )
    controller = _controller(known.past, mode, views.release, arguments.topic_name, arguments.partition)
    if mode is ControllerMode.KRAFT and views.kraft is not None:
        migrating = views.facts.phase is Phase.DUAL_WRITE
        controller = at_levels(controller, views.kraft.finalised, migrating=migrating)
    return _said(validate(request, controller), controller)


def _ids(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise UsageError(f"--isr: {visible(text, 80)} is not a list of broker ids such as 1,2") from None


def _epochs(text: str | None) -> dict[int, int]:
    try:
        pairs = [part.split("=") for part in (text or "").split(",") if part.strip()]
        return {int(broker): int(epoch) for broker, epoch in pairs}
    except ValueError:
        raise UsageError(f"--broker-epochs: {visible(str(text), 80)} is not of the form 1=100,2=200") from None


def _controller(
    past: PastRun, mode: ControllerMode, release: tuple[int, int], topic: str, partition: int
) -> Controller:
    source = ZOOKEEPER if mode is ControllerMode.ZOOKEEPER else KRAFT

    def rows(table: Table, **wanted: str) -> list[dict[str, Any]]:
        return list(records(past.rows(table, where={"source": source, **wanted}), table))

    leader = past.report.migration.leader_id
    configs = (
        [
            *rows(CONFIGS.table, resource_type="TOPIC", resource_name=topic),
            *rows(CONFIGS.table, resource_type="BROKER", resource_name=""),
            *([] if leader is None else rows(CONFIGS.table, resource_type="BROKER", resource_name=str(leader))),
        ]
        if source == KRAFT
        else ()
    )
    found = controller_of(
        mode,
        release,
        rows(BROKERS.table),
        rows(PARTITIONS.table, topic=topic),
        configs,
        partition,
    )
    if found is None:
        raise UsageError(f"--mode: run {past.run_id} has no brokers of {source}")
    return found


def _said(answer: AlterPartitionAnswer, controller: Controller) -> list[str]:
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
