"""What a run stores of a state, and what the runs of a chain come to: always the state that was whole, whatever changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.entities import ENTITIES
from schemas.entities.configs import CONFIGS
from schemas.entities.migration import MIGRATION
from schemas.entities.topics import TOPICS
from transforms.chain import index
from transforms.chain.chain import MOST_PARTS, Chain, StoredPart, chain_of, newest_rows
from transforms.chain.index import changed_in, hashed, hashed_in, pieces, states_of
from transforms.frames import columns_of, frame, shaped
from transforms.units import batches_of, stream

COLUMNS = {entity.name: columns_of(entity.row_columns) for entity in ENTITIES}
Tables = dict[str, pl.DataFrame]


def tables(**rows: Sequence[dict[str, Any]]) -> Tables:
    return {name: frame(rows.get(name, ()), columns) for name, columns in COLUMNS.items()}


def topic(name: str | None, topic_id: str | None = None, source: str = "kraft", offset: int = 1) -> dict[str, Any]:
    return {"source": source, "topic": name, "topic_id": topic_id, "kraft_offset": offset}


class Store:
    """Runs that follow each other, as their tables hold them."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.indexes: list[Any] = []
        self.stored: dict[str, list[pl.DataFrame]] = {name: [] for name in COLUMNS}
        self.rows = 0

    def run(self, state: Tables) -> None:
        changed = changed_in(state, hashed_in(state), states_of(self.indexes) if self.runs else {})
        run_id = f"r{len(self.runs)}"
        self.runs.append(run_id)
        # As bytes, as they are kept.
        self.indexes += [batch for piece in pieces(changed) for batch in batches_of(stream(piece))]
        self.rows = sum(each.rows.height for each in changed)
        for each in changed:
            self.stored[each.entity.name].append(each.rows.with_columns(run_id=pl.lit(run_id)))

    def state(self, name: str) -> pl.DataFrame:
        rows = pl.concat([*self.stored[name]], how="diagonal")
        # In whatever order a table has them.
        found = newest_rows(rows.sample(fraction=1, shuffle=True, seed=len(self.runs)).lazy(), self.runs).collect()
        return shaped(found, COLUMNS[name])


def sorted_rows(rows: pl.DataFrame) -> list[str]:
    return sorted(str(row) for row in rows.iter_rows())


NAMES = st.sampled_from(["a", "b", "c", "d", None])
TOPIC_ROWS = st.lists(
    st.builds(topic, NAMES, st.sampled_from(["1", "2", None]), st.sampled_from(["kraft", "zookeeper"]))
)


@settings(deadline=None, max_examples=120)
@given(st.lists(st.tuples(TOPIC_ROWS, TOPIC_ROWS), min_size=1, max_size=6))
def test_the_runs_of_a_chain_come_to_the_state_that_each_saw(states: list[tuple[list[Any], list[Any]]]) -> None:
    """Rows with one key, which only a broken cluster has, among them."""
    store = Store()
    for topics, again in states:
        # An entity with other columns and keys beside it.
        configs = [{"source": each["source"], "resource_name": each["topic"]} for each in again]
        state = tables(topics=topics, configs=configs)
        store.run(state)
        for name in ("topics", "configs", "partitions"):
            assert sorted_rows(store.state(name)) == sorted_rows(state[name])


def test_only_what_changed_is_stored_and_a_quiet_run_stores_nothing() -> None:
    store = Store()
    store.run(tables(topics=[topic("a", "1"), topic("b", "2"), topic("c", "3")]))
    assert store.rows == 3
    store.run(tables(topics=[topic("c", "3"), topic("b", "2"), topic("a", "1")]))
    assert store.rows == 0, "the order of rows is no change"
    store.run(tables(topics=[topic("a", "1"), topic("b", "2", offset=9), topic("d", "4")]))
    assert sorted_rows(store.stored["topics"][-1].select("topic", "kraft_offset", "gone")) == [
        "('b', 9, None)",
        "('d', 1, None)",
        "(None, None, True)",
    ]
    store.run(tables(topics=[topic("a", "1"), topic("b", "2", offset=9), topic("d", "4"), topic("c", "3")]))
    assert store.rows == 1, "a row that comes back is stored again"


def test_a_rows_key_is_that_of_what_it_is_of() -> None:
    rows = [topic("a", "1"), topic("a", "2"), topic("a", source="zookeeper"), topic("b")]
    keys = [hashed(TOPICS, frame([each], COLUMNS["topics"])).keys[0] for each in rows]
    assert keys[0] == keys[1]
    assert len({*keys}) == 3
    trees = [{"source": "zookeeper", "tree": tree} for tree in ("newest", "barrier", None)]
    assert len(set(hashed(MIGRATION, frame(trees, COLUMNS["migration"])).keys)) == 3


def test_keys_that_are_the_same_by_chance_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all hashes of keys fell together: what is read is right all the same."""
    real = index.row_hashes

    def colliding(rows: pl.DataFrame, columns: Sequence[str]) -> Any:
        found = real(rows, columns)
        return found if len([*columns]) > 4 else np.zeros_like(found)

    monkeypatch.setattr(index, "row_hashes", colliding)
    store = Store()
    for names in ("abc", "abd", "d", "dabc"):
        state = tables(topics=[topic(name) for name in names])
        store.run(state)
        assert len(set(hashed(TOPICS, state["topics"]).keys)) == len(names)
        assert sorted_rows(store.state("topics")) == sorted_rows(state["topics"])


def test_an_index_is_cut_into_pieces_and_takes_few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_PIECE_ROWS", 1000)
    state = tables(topics=[topic(f"t{number}") for number in range(2500)])
    now = hashed_in(state)
    changed = changed_in(state, now, {})
    made = [stream(piece) for piece in pieces(changed)]
    assert len(made) == 3
    assert sum(map(len, made)) < 20 * 2500
    found = states_of(batch for piece in made for batch in batches_of(piece))
    assert len(found["topics"].keys) == 2500
    assert [each.rows.height for each in changed_in(state, now, found)] == [0] * len(ENTITIES)
    assert list(pieces(changed_in(tables(), hashed_in(tables()), {}))) == []
    assert not len(states_of([])["topics"].keys)


CHAIN = Chain(
    (
        StoredPart("r1", {"silver.topics": 6, "silver.configs": 4}, ("i1", "i2")),
        StoredPart("r2", {"silver.topics": 5}, ("i3",)),
    )
)


def test_a_chain_is_read_as_it_was_said_and_takes_no_more_than_its_base_has() -> None:
    assert chain_of(CHAIN.said()) == CHAIN
    assert CHAIN.runs == ("r1", "r2")
    assert [CHAIN.takes(rows) for rows in (0, 5, 6)] == [True, True, False]
    long = Chain(
        tuple(StoredPart(f"r{number}", {"silver.topics": 1 if number else 10_000}) for number in range(MOST_PARTS))
    )
    assert (long.takes(0), long.takes(1), Chain(long.parts[1:]).takes(1)) == (True, False, False)
    assert Chain(long.parts[:-1]).takes(1)


def test_a_run_follows_its_chain_where_it_has_stored_anything_or_is_the_base() -> None:
    nothing = StoredPart("r3", {})
    assert CHAIN.followed_by(nothing) is CHAIN
    assert CHAIN.followed_by(StoredPart("r3", {"silver.acls": 1})).runs == ("r1", "r2", "r3")
    assert Chain().followed_by(nothing).runs == ("r3",)


def test_rows_that_are_not_there_are_told() -> None:
    there = {
        ("r1", "silver.topics"): 6,
        ("r1", "silver.configs"): 4,
        ("r2", "silver.topics"): 5,
        ("r9", "silver.acls"): 9,
    }
    assert CHAIN.rows_gone(there) is None
    assert CHAIN.rows_gone({**there, ("r2", "silver.topics"): 4}) == "4 of 5 rows of run r2 are in silver.topics"
    assert CHAIN.rows_gone({**there, ("r2", "silver.topics"): 6}) == "6 of 5 rows of run r2 are in silver.topics"
    without = {key: rows for key, rows in there.items() if key != ("r1", "silver.configs")}
    assert CHAIN.rows_gone(without) == "0 of 4 rows of run r1 are in silver.configs"
    assert CHAIN.only("silver.topics").rows_gone(without) is None


def test_rows_of_other_runs_and_those_of_a_release_without_chains_are_left_as_they_are() -> None:
    rows = pl.DataFrame(
        {"run_id": ["r1", "r1", "r2"], "row_key": [None, None, None], "gone": pl.Series([None] * 3, dtype=pl.Boolean)}
    )
    assert newest_rows(rows.lazy(), ["r1"]).collect().height == 2
    assert CONFIGS.table.chained
