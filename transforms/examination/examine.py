"""The one pass over a cluster.

It begins with small inputs and those that the log's reading needs: the trees, which become tables, and the writes to ZooKeeper.
Then it reads the log, a batch at a time: state, history, and counts that need every record. Last come the questions: those on which
others depend (`FirstLook`), the comparison, and the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from schemas.bronze import QUARANTINE
from schemas.entities import ENTITIES
from schemas.entities.migration import MIGRATION
from schemas.gold import DIVERGENCES, ISR_HISTORY
from schemas.silver import ADMIN_OPERATIONS, FINDINGS
from transforms.chain.chain import Chain
from transforms.chain.index import Changed, changed_in, hashed_in, pieces, states_of
from transforms.examination.answers import CHAIN, CHANGES_SINCE, COMPARED, DELTAS, FIRST, KEEPING, RECORDED, SECOND
from transforms.examination.log import Log, LogRead
from transforms.examination.made import AGAIN, FOLD, INDEX, MEMORY, Made, Making, failure
from transforms.examination.memory import EPOCHS, Memory
from transforms.examination.stories import Stories
from transforms.examination.task import ClusterTask
from transforms.examination.trees import Trees, trees_of, znodes_without_data
from transforms.examination.written import Written, written_of
from transforms.frames import columns_of
from transforms.kraft.coverage import GONE, shortfall
from transforms.migration import migration_rows
from transforms.reconcile.compare.comparison import Compared, Inputs, compare
from transforms.reconcile.judge import kip_tables, summary
from transforms.reconcile.judge.contexts import context_of, ends_of
from transforms.reconcile.judge.deltas import deltas, offsets_asked
from transforms.reconcile.judge.evidence import ClusterFacts, first_facts, loaded_at
from transforms.reconcile.judge.first_look import FirstLook
from transforms.reconcile.judge.given import FIRST_ANSWERS, SECOND_ANSWERS, every_answer
from transforms.reconcile.judge.questions import first_questions, second_questions
from transforms.report.comparison import comparison
from transforms.units import Feed, UnitKind, stream
from transforms.zookeeper.read.bracket import moved_znodes
from transforms.zookeeper.read.trees import at_barrier

_EMPTY = {entity.name: pl.DataFrame(schema=columns_of(entity.row_columns)) for entity in ENTITIES}


class NotExaminedError(ValueError):
    """The feed does not have the rows that the plan names; the message is for users."""

    for_the_user = True


class _WholeLogNeededError(Exception):
    """What seems lost is looked for in the whole log, of which only the newest part was read."""


def examine(task: ClusterTask, feed: Feed) -> Iterator[Made]:
    """Examine a cluster: the pieces that were made, the answers last; of one that can't be examined, why."""
    making = Making(task.given.name, task.run_id)
    try:
        yield from _Examination(task, feed, making).made()
    except _WholeLogNeededError:
        yield Made(AGAIN, None, 0, b"")
    except Exception as error:
        if task.alone and not getattr(error, "for_the_user", False):
            raise
        yield failure(error)


@dataclass(frozen=True)
class _Sides:
    """Both sides as tables, and what else the questions look at."""

    tables: Mapping[str, pl.DataFrame]
    findings: pl.DataFrame
    admin_operations: pl.DataFrame
    row_versions: pl.DataFrame


class _Examination:
    def __init__(self, task: ClusterTask, feed: Feed, making: Making) -> None:
        self.task, self.given, self.feed, self.making = task, task.given, feed, making
        remembered = feed.bytes_of(UnitKind.MEMORY)
        self.memory = Memory() if remembered is None else Memory.from_bytes(remembered)

    def made(self) -> Iterator[Made]:
        """Everything, in an order in which nothing is yielded of a cluster that has to be examined again."""
        trees = trees_of(self.feed.batches(UnitKind.ZNODES))
        written = written_of(self.feed, self.given)
        moved = self._moved(trees)
        log = Log(self.task, self.feed, self.memory, written.offsets)
        self.memory = self.memory.without_changes()
        # If only the newest part of the log was read, its changes are few, and the whole log may be needed.
        goes_on = self.given.side is not None and self.given.side.kept is not None
        held: list[Made] = []
        for piece in self._history(log):
            if goes_on:
                held.append(piece.packed)
            else:
                yield piece
        read = log.read()
        self._refuse_uncovered(log, read)
        sides = self._sides(trees, read)
        first = every_answer(FIRST_ANSWERS, first_questions(self.given, sides, trees, read, written, moved))
        look = FirstLook(self.given, first)
        gathered = first_facts(look)
        compared = self._compared(gathered, sides, trees, written, moved, log)
        chain, changed = self._changed(sides)
        yield from held
        yield from self._rows(changed, sides, trees, read, compared)
        yield from self._kept(changed, sides, read, compared, log.stories)
        yield self.making.answers(
            {
                FIRST: first,
                SECOND: self._second(look, sides, trees, read, written),
                COMPARED: None if compared is None else compared.answers,
                DELTAS: self._deltas(gathered, compared, written),
                KEEPING: read.keeping_said,
                RECORDED: None if read.recorded is None else asdict(read.recorded),
                CHANGES_SINCE: read.changes_since,
                CHAIN: chain.said(),
            }
        )

    def _moved(self, trees: Trees) -> pl.DataFrame | None:
        if not self.given.bracketed:
            return None
        return moved_znodes(trees.znodes, znodes_without_data(self.feed.batches(UnitKind.SECOND_WALK)))

    def _history(self, log: Log) -> Iterator[Made]:
        yield from self.making.table(ISR_HISTORY, log.new_changes())

    def _refuse_uncovered(self, log: Log, read: LogRead) -> None:
        """Rows that differ from the plan are not judged: missing ones would count as lost, or as correct."""
        if log.gone is not None:
            raise NotExaminedError(f"{GONE}: {log.gone}; read the whole log again with `kraft-audit run --full`")
        short = None if self.task.planned is None else shortfall(self.task.planned, read.look.slices())
        if short is not None:
            raise NotExaminedError(f"the tables lack rows that the run has read: {short}; start another run")

    def _sides(self, trees: Trees, read: LogRead) -> _Sides:
        given = self.given
        zookeeper = trees.tables if given.has_zookeeper else {}
        of_migration = migration_rows(given.zookeeper, given.compared, given.side.milestones if given.side else ())
        made = {
            entity.name: pl.concat(
                [_EMPTY[entity.name], *(side[entity.name] for side in (zookeeper, read.tables) if side)]
            )
            for entity in ENTITIES
            if entity != MIGRATION
        }
        return _Sides(
            {**made, MIGRATION.name: of_migration},
            pl.concat([trees.findings, read.findings]),
            trees.admin_operations,
            read.row_versions,
        )

    def _compared(
        self,
        gathered: ClusterFacts,
        sides: _Sides,
        trees: Trees,
        written: Written,
        moved: pl.DataFrame | None,
        log: Log,
    ) -> Compared | None:
        if not summary.may_compare(gathered.facts):
            return None

        def versions(keys: Collection[tuple[str, str]]) -> pl.DataFrame:
            if not log.knows(keys):
                raise _WholeLogNeededError
            return log.versions_of(keys, context.migration_offset)

        context = context_of(gathered)
        inputs = Inputs(
            sides.tables,
            sides.row_versions,
            trees.znodes.filter(at_barrier()),
            self.memory.differences,
            versions,
            moved,
            written.barriers if self.given.reads_data_folder else None,
        )
        return compare(
            inputs, context, ends_of(gathered), self.task.run_id, self.given.report_rows, self.task.suppressions
        )

    def _deltas(self, gathered: ClusterFacts, compared: Compared | None, written: Written) -> list[dict[str, Any]]:
        """The barriers around what was lost, where transaction logs show them."""
        if compared is None or not self.given.reads_data_folder:
            return []
        rows = comparison(compared.answers, self.given.report_rows).known
        found = deltas(written.barriers, offsets_asked(rows), loaded_at(gathered.facts))
        return [{"offset": offset, "before": before, "after": after} for offset, (before, after) in found.items()]

    def _second(self, look: FirstLook, sides: _Sides, trees: Trees, read: LogRead, written: Written) -> dict[str, Any]:
        side = self.given.side
        history = None if side is None else read.judged
        answers = second_questions(look, sides, trees, read, written, history, self.memory.epochs)
        answers |= kip_tables.questions(
            sides.tables, sides.findings, read.recent, side, capped_min_isr=look.capped_min_isr
        )
        if self.given.has_zookeeper:
            answers |= {"formats": trees.formats.answer(), **trees.features.answers()}
        return every_answer(SECOND_ANSWERS, answers)

    def _changed(self, sides: _Sides) -> tuple[Chain, list[Changed]]:
        """The rows of the state to store, and the chain that it follows: what has changed, or all of it as a new base."""
        chain = self.task.chain
        states = states_of(self.feed.batches(UnitKind.INDEX)) if chain.parts else {}
        now = hashed_in(sides.tables)
        changed = changed_in(sides.tables, now, states)
        if not chain.parts or chain.takes(sum(each.rows.height for each in changed)):
            return chain, changed
        return Chain(), changed_in(sides.tables, now, {})

    def _rows(
        self, changed: Sequence[Changed], sides: _Sides, trees: Trees, read: LogRead, compared: Compared | None
    ) -> Iterator[Made]:
        for each in changed:
            yield from self.making.table(each.entity.table, each.rows)
        yield from self.making.table(ADMIN_OPERATIONS, sides.admin_operations)
        yield from self.making.table(FINDINGS, sides.findings)
        yield from self.making.table(QUARANTINE, pl.concat([trees.unreadable, read.damage]))
        if compared is not None:
            yield from self.making.table(DIVERGENCES, compared.rows)

    def _kept(
        self,
        changed: Sequence[Changed],
        sides: _Sides,
        read: LogRead,
        compared: Compared | None,
        stories: Stories,
    ) -> Iterator[Made]:
        """The input of the next run: what it resumes, and what it is compared with."""
        epochs = sides.tables["partitions"].filter(pl.col("source") == "zookeeper").select(EPOCHS.names())
        # What was not compared has neither come nor gone: the next run that compares is told what the last such run saw.
        memory = read.remembered(self.memory.differences if compared is None else compared.rows, epochs, stories)
        yield from self.making.kept(MEMORY, memory.to_bytes())
        if read.keeping is not None and read.keeping.state:
            yield from self.making.kept(FOLD, read.keeping.state)
        yield from self.making.kept_pieces(INDEX, (stream(piece) for piece in pieces(changed)))
