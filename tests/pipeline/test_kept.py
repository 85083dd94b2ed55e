"""What a run has kept for the next one: said and read, refused where it must be, and what is left by a run with little news."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.exit import AuditError
from jobs.run import kept
from jobs.run.examine import Examined
from jobs.run.kept import FOLD, FORMAT, MEMORY, Bytes, Kept, bases, left, look_up, needed_runs, newest, read, said
from schemas.examined import EXAMINED
from transforms.chain.chain import Chain, StoredPart, layout
from transforms.examination.answers import CHAIN
from transforms.examination.made import INDEX
from transforms.examination.task import Recorded
from transforms.secrets import Fingerprinter

KEPT = Kept(
    "r3",
    Bytes("r3", ("m1", "m2")),
    Bytes("r2", ("f1",)),
    offset=330,
    last_epoch=3,
    last_append_time=1_795_236_399_072,
    milestones=({"type": "FEATURE_LEVEL_RECORD", "offset": 3, "data": '{"name": "ü"}', "append_time": None},),
    base_run="r1",
    chain=Chain((StoredPart("r1", {"silver.topics": 40}, ("i1",)), StoredPart("r3", {"silver.topics": 1}, ("i3",)))),
    layout=layout(),
)
WITHOUT_FOLD = Kept("r3", Bytes("r3", ("m1",)))


def a_run(run_id: str = "r4", rows: Any = (), key: bytes = b"0" * 32, **more: Any) -> Any:
    """A run over cluster `c` that finds these rows of gold `runs`, oldest first."""
    previous = {"c": [{"own_log": None, **row} for row in rows]} if rows else {}
    cluster = SimpleNamespace(notes=[], failure=None, settings=SimpleNamespace(kraft=None))
    fingerprinter = Fingerprinter(key)
    values = {"run_id": run_id, "previous": previous, "clusters": {"c": cluster}, "fingerprinter": fingerprinter}
    values["warehouse"] = None
    return SimpleNamespace(**values, kept={}, **more)


def row(each: Kept = KEPT, run: Any = None, **changes: Any) -> dict[str, Any]:
    """A row of gold `runs`; `changes` of what it says."""
    document = json.loads(said(run or a_run(), each, None))
    return {"run_id": each.run_id, "kept": json.dumps({**document, **changes})}


# Of a run that did not say what it has recorded.
IN_HISTORY = Recorded(501, 1_700_000_000_000, None)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Clusters whose bytes are not those that were written; the tests on Delta look at the bytes, and at the history, themselves."""
    found: dict[str, str] = {}
    mine = lambda each: {name: why for name, why in found.items() if name in each}  # noqa: E731
    monkeypatch.setattr(kept, "_broken", lambda _, each: kept._Broken(mine(each)))
    monkeypatch.setattr(kept, "_short", lambda _warehouse, _chains: {})
    monkeypatch.setattr(kept, "_recorded_before", lambda _, clusters: dict.fromkeys(clusters, IN_HISTORY))
    return found


@pytest.mark.parametrize("each", [KEPT, WITHOUT_FOLD, replace(KEPT, base_run=None, milestones=())])
def test_it_is_read_as_it_was_said(each: Kept) -> None:
    assert read(each.run_id, said(a_run(), each, None)) == each


def test_what_the_plan_of_a_log_goes_on_from_is_named_by_the_run_that_wrote_it() -> None:
    of_log = KEPT.of_log
    assert of_log is not None
    assert (of_log.run_id, of_log.offset, of_log.base_run) == ("r2", 330, "r1")
    assert WITHOUT_FOLD.of_log is None
    assert KEPT.without_fold == Kept("r3", KEPT.memory, chain=KEPT.chain, layout=layout())
    assert needed_runs([KEPT, WITHOUT_FOLD]) == {"r1", "r2", "r3"}


@pytest.mark.usefixtures("broken")
def test_the_newest_run_is_gone_on_with() -> None:
    run = a_run(rows=[row(replace(KEPT, run_id="r2")), row()])
    look_up(run)
    assert run.kept == {"c": KEPT}
    assert run.clusters["c"].notes == []


@pytest.mark.usefixtures("broken")
def test_the_newest_run_of_its_own_log_is_gone_on_with_however_long_ago_it_was() -> None:
    """Since then a monthly job has read another cluster's copy more often than the history of a report is long."""
    own = {**row(), "unmoved_since": 1} | dict.fromkeys(
        ("leader_epochs", "cluster_id", "committed_end_offset", "log_end_offset", "newest_append_time")
    )
    run = a_run(rows=[{**row(replace(KEPT, run_id=f"r{number}")), "own_log": own} for number in range(4, 8)])
    look_up(run)
    assert run.kept == {"c": KEPT}
    assert run.clusters["c"].notes == []


OTHER_KEY, OTHER_RULES = "its secrets were masked with another key", "another release replayed the log by other rules"
OTHER_FORM = "another release stored it in another format"


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (row(format=1), OTHER_RULES),
        (row(run=a_run(key=b"1" * 32)), OTHER_KEY),
        (row(run=a_run(key=b"1" * 32), format=1), OTHER_KEY),
    ],
)
@pytest.mark.usefixtures("broken")
def test_a_log_whose_state_is_another_one_is_read_again_and_the_differences_stay_known(
    found: dict[str, Any], why: str
) -> None:
    """Else each difference of a cluster would be called new after the upgrade, or with the new key."""
    run = a_run(rows=[found])
    look_up(run)
    assert run.kept == {"c": KEPT.without_fold}
    assert run.clusters["c"].notes == [f"the whole log was read: the state that run r3 kept can't be resumed ({why})"]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (row(format=FORMAT + 1), OTHER_FORM),
        (row(format=0), OTHER_FORM),
        ({"run_id": "r3", "kept": None}, OTHER_FORM),
    ],
)
def test_what_can_t_be_continued_is_said_and_the_whole_log_is_read(
    broken: dict[str, str], found: dict[str, Any], why: str
) -> None:
    run = a_run(rows=[row(replace(KEPT, run_id="r2")), found])
    look_up(run)
    assert broken == {}
    assert run.kept == {}
    assert run.recorded_changes == ({"c": IN_HISTORY} if found["kept"] is None else {})
    assert run.clusters["c"].notes == [
        f"the whole log was read: the state that run r3 kept can't be resumed ({why})"
    ], "an older one is not gone on with instead"


def test_bytes_that_are_not_those_that_were_written_are_left_alone(broken: dict[str, str]) -> None:
    broken["c"] = f"0 of its 1 pieces are in {EXAMINED.full_name}"
    run = a_run(rows=[row()])
    look_up(run)
    assert run.kept == {}
    assert run.clusters["c"].notes == [
        f"the whole log was read: the state that run r3 kept can't be resumed ({broken['c']})"
    ]


@pytest.mark.parametrize(
    ("changes", "index", "short", "full", "why"),
    [
        ({}, {}, {}, False, None),
        ({}, {"c": "1 of its 2 pieces are there"}, {}, False, "1 of its 2 pieces are there"),
        ({}, {}, {"c": "3 of 4 rows are there"}, False, "3 of 4 rows are there"),
        ({"layout": "other"}, {}, {}, False, "another release stored them, with other columns"),
        # Who asks for everything knows why.
        ({}, {}, {}, True, ""),
    ],
)
@pytest.mark.usefixtures("broken")
def test_a_chain_that_can_t_be_followed_is_left_and_all_else_is_gone_on_with(
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    index: dict[str, str],
    short: dict[str, str],
    full: bool,
    why: str | None,
) -> None:
    monkeypatch.setattr(
        kept, "_broken", lambda _, each: kept._Broken(index={n: w for n, w in index.items() if n in each})
    )
    monkeypatch.setattr(kept, "_short", lambda _, chains: {name: why for name, why in short.items() if name in chains})
    found = replace(KEPT, **changes)
    run = a_run(rows=[row(found)])
    run.clusters["c"].settings.kraft = SimpleNamespace(full=full)
    look_up(run)
    assert run.kept == {"c": found if why is None else replace(found, chain=Chain())}
    said_of_it = f"all rows of the state were stored: the rows of run r3 can't be reused ({why})"
    assert run.clusters["c"].notes == ([said_of_it] if why else [])


class _Counting:
    """A warehouse of two clusters' tables, of which one file can't be read."""

    def counts(self, table: Any, where: Any) -> dict[tuple[str, str], int]:
        if "damaged" in where["cluster"]:
            raise AuditError(f"a file of {table.full_name} is gone")
        return {(name, run_id): 40 if run_id == "r1" else 1 for name in where["cluster"] for run_id in where["run_id"]}


def test_one_cluster_s_file_is_no_other_one_s() -> None:
    found = kept._short(_Counting(), {"c": KEPT.chain, "damaged": KEPT.chain})  # type: ignore[arg-type]
    assert found == {"damaged": "a file of silver.topics is gone"}


def test_a_release_that_stored_all_rows_in_every_run_leaves_no_chain_and_nothing_is_said() -> None:
    text = row()["kept"]
    document = {name: value for name, value in json.loads(text).items() if name != "state"}
    assert read("r3", json.dumps(document)) == replace(KEPT, chain=Chain(), layout=None)


def test_a_run_that_has_stored_rows_ends_its_chain_and_one_without_changes_adds_nothing() -> None:
    assert left(a_run(), "c", answers(KEEPING)).chain == KEPT.chain
    made = left(a_run(), "c", answers(KEEPING, rows=2)).chain
    assert made == Chain((*KEPT.chain.parts, StoredPart("r4", {"silver.topics": 2}, ("index",))))


def test_a_first_run_has_nothing_to_go_on_from_and_nothing_to_say() -> None:
    run = a_run()
    look_up(run)
    assert (run.kept, run.clusters["c"].notes) == ({}, [])
    assert newest(run, {}) == kept.Found()


@pytest.mark.usefixtures("broken")
def test_a_later_step_goes_on_as_the_step_that_read_the_log() -> None:
    """Another run may have finished meanwhile; and where the log was read from its start, no state comes before it."""
    rows = [row(replace(KEPT, run_id="r2")), row()]
    run = a_run(rows=rows)
    look_up(run, {"c": "r2"})
    assert run.kept == {"c": replace(KEPT, run_id="r2")}
    run = a_run(rows=rows)
    look_up(run, {"c": None})
    assert run.kept == {"c": KEPT.without_fold}, "what is remembered holds all the same"


def test_a_later_step_can_t_go_on_from_what_is_gone_meanwhile(broken: dict[str, str]) -> None:
    broken["c"] = "its bytes are gone"
    for rows in ([row()], [{"run_id": "r3", "kept": None}]):
        run = a_run(rows=rows)
        with pytest.raises(AuditError, match="cluster c: the state kept by run r3, which this run resumes, is gone"):
            look_up(run, {"c": "r3"})


def test_which_run_the_log_was_gone_on_from_is_asked_of_its_copies() -> None:
    settings = {name: SimpleNamespace(kraft=object()) for name in ("c", "d")}
    copies = {"c": [{"base_run": None}, {"base_run": "r2"}], "d": [{"base_run": None}]}
    run = SimpleNamespace(settings_of=lambda: settings, scanned=copies)
    assert bases(run) == {"c": "r2", "d": None}  # type: ignore[arg-type]


def answers(keeping: dict[str, Any] | None, rows: int = 0) -> Examined:
    """What a pass said that has stored so many rows of topics after those of r3."""
    digests = {MEMORY: ["new"], FOLD: ["fold"], INDEX: ["index"] if rows else []}
    before = KEPT.chain.said()
    return Examined({"digests": digests, "keeping": keeping, CHAIN: before}, {"silver.topics": rows, "gold.isr": 4})


KEEPING = {
    "offset": 400,
    "last_epoch": 4,
    "last_append_time": 5,
    "milestones": [{"offset": 3}],
    "base_run": "r2",
}


def test_a_run_leaves_what_it_has_kept_or_what_it_went_on_from() -> None:
    run = a_run()
    memory = Bytes("r4", ("new",))
    made = Kept("r4", memory, Bytes("r4", ("fold",)), 400, 4, 5, ({"offset": 3},), "r2", KEPT.chain, layout())
    assert left(run, "c", answers(KEEPING)) == made
    assert left(run, "c", answers(None)) == Kept("r4", memory, chain=KEPT.chain, layout=layout()), (
        "a log too short for a state of its own"
    )
    run.kept = {"c": KEPT}
    assert left(run, "c", answers(KEEPING)) == made
    assert left(run, "c", answers(None)) == replace(KEPT, run_id="r4", memory=memory), "too little is new"
    assert left(run, "c", answers({**KEEPING, "offset": -1})) == Kept(
        "r4", memory, chain=KEPT.chain, layout=layout()
    ), "each run must see its findings"
