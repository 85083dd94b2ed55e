"""Passes that follow each other through a migration: each stores what changed, and the chain comes to what a whole pass makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from schemas.entities import ENTITIES
from tests.captures import capture
from tests.examination.one_pass import Files, Outcome, examined
from transforms.chain.chain import Chain, StoredPart, chain_of, newest_rows
from transforms.examination.answers import CHAIN
from transforms.examination.made import INDEX
from transforms.frames import columns_of, frame, shaped
from transforms.units import UnitKind

STAGES = {
    # Waiting, dual write, failovers, ZooKeeper behind, healed, a partition of the quorum, finalised; twice as it was.
    "3.9.1": ("3", "4", "4", "5", "6", "7", "8", "9", "8", "9", "10", "11", "12", "12"),
    "4.3.1-kraft": ("7-elr-cleared", "8-unclean", "8-unclean", "9-unclean-healed"),
}


class Chained:
    """What runs have stored of a cluster."""

    def __init__(self) -> None:
        self.chain = Chain()
        self.indexes: dict[str, list[bytes]] = {}
        self.stored: dict[str, list[pl.DataFrame]] = {entity.name: [] for entity in ENTITIES}

    def run(self, release: str, stage: str, run_id: str) -> Outcome:
        files = Files(capture(release, stage))
        fed = [(int(UnitKind.INDEX), piece) for each in self.chain.runs for piece in self.indexes[each]]
        made = examined(replace(files.asked(run_id), chain=self.chain), [*files.payloads(), *fed])
        rows = {entity.table.full_name: made.rows(entity.table.full_name) for entity in ENTITIES}
        counts = {name: len(mine) for name, mine in rows.items() if mine}
        self.indexes[run_id] = [piece.payload for piece in made.pieces if piece.kind == INDEX]
        own = StoredPart(run_id, counts, tuple(made.answers["digests"][INDEX]))
        self.chain = chain_of(made.answers[CHAIN]).followed_by(own)
        for entity in ENTITIES:
            columns = columns_of(entity.table.columns, "cluster", "run_id")
            mine = frame(rows[entity.table.full_name], columns).with_columns(run_id=pl.lit(run_id))
            self.stored[entity.name].append(mine)
        return made

    def state(self, name: str, runs: Sequence[str]) -> list[str]:
        [entity] = [each for each in ENTITIES if each.name == name]
        found = newest_rows(pl.concat(self.stored[name]).lazy(), runs).collect()
        return told(shaped(found, columns_of(entity.row_columns)))


def told(rows: pl.DataFrame) -> list[str]:
    return sorted(str(row) for row in rows.iter_rows())


def whole(release: str, stage: str) -> dict[str, list[str]]:
    made = Files(capture(release, stage)).examined("whole")
    return {
        entity.name: told(frame(made.rows(entity.table.full_name), columns_of(entity.row_columns)))
        for entity in ENTITIES
    }


@pytest.mark.parametrize("release", STAGES)
def test_the_state_as_of_each_run_is_that_of_a_run_that_stored_all(release: str) -> None:
    wanted = {stage: whole(release, stage) for stage in STAGES[release]}
    runs, chains, counts = Chained(), [], []
    for number, stage in enumerate(STAGES[release]):
        made = runs.run(release, stage, f"r{number}")
        chains.append((stage, runs.chain.runs))
        counts.append(sum(len(made.rows(entity.table.full_name)) for entity in ENTITIES))
    # Also of runs that others have followed since.
    for stage, chain in chains:
        for entity in ENTITIES:
            assert runs.state(entity.name, chain) == wanted[stage][entity.name], (stage, chain, entity.name)
    whole_rows = {stage: sum(map(len, rows.values())) for stage, rows in wanted.items()}
    for before, stage, count in zip(STAGES[release], STAGES[release][1:], counts[1:], strict=False):
        assert (count == 0) == (before == stage)
    assert counts[0] == whole_rows[STAGES[release][0]]


def answers(made: Outcome) -> dict[str, Any]:
    """What a pass has answered, but for what it has stored."""
    return {name: each for name, each in made.answers.items() if name not in ("digests", CHAIN)}


def test_what_is_stored_decides_nothing() -> None:
    runs = Chained()
    runs.run("3.9.1", "4", "r0")
    made = runs.run("3.9.1", "8", "r1")
    assert len(runs.chain.parts) == 2
    assert answers(made) == answers(Files(capture("3.9.1", "8")).examined("r1"))
