"""Every packed capture: state and history are what Kafka's own dump says, record by record, and every checkpoint is met."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path

import pyarrow as pa
import pytest

from schemas.kraft.feature_levels import ELR_VERSION
from tests.captures import KRAFT_VERSIONS, VERSIONS, capture, stages
from tests.isr.random_logs import bronze_row
from tests.kernel.logs import ONE, Outcome, Row, cut, in_shards, plan, run
from tests.kernel.plain import Plain, without_nothing
from tests.kraft.dumps import parse_dump
from transforms.isr.history import ChangeKind
from transforms.kernel.replay import DecodedCheckpoint, Plan
from transforms.kraft.decode.rows import Origin
from transforms.kraft.decode.segments import decode_checkpoint, decode_segment
from transforms.kraft.replay.extent import Ranges
from transforms.kraft.replay.transactions import MARKERS, Marker, read_transactions
from transforms.secrets import Fingerprinter

MASKING = Fingerprinter(b"tests")


def copies() -> list[tuple[str, str, str]]:
    """(version, stage, controller) of a copy of each log: one of those of a stage that begin at the same offset."""
    found: dict[tuple[str, str, str], tuple[str, str, str]] = {}
    for version in (*VERSIONS, *KRAFT_VERSIONS):
        for stage in stages(version):
            for folder in sorted(capture(version, stage).glob("kraft/*/__cluster_metadata-0")):
                begin = min(path.name for path in folder.glob("*.log"))
                found[version, stage, begin] = (version, stage, folder.parent.name)
    return [*found.values()]


class Copy:
    """A controller's log: its records as the decoder gives them, and as Kafka's tool printed them."""

    def __init__(self, version: str, stage: str, controller: str) -> None:
        folder = capture(version, stage) / "kraft" / controller / "__cluster_metadata-0"
        self.batches = [rows for path in sorted(folder.glob("*.log")) for rows in _segment(path)]
        self.checkpoints = {int(path.name[:20]): path for path in sorted(folder.glob("*.checkpoint"))}
        dump = parse_dump(capture(version, stage) / f"dump-log-{controller}.txt.gz")
        self.records = [bronze_row(each, ONE) for name in sorted(dump) if name.endswith(".log") for each in dump[name]]
        self.start = self.records[0]["offset"]
        self.end = self.records[-1]["offset"] + 1
        # The oldest checkpoint that the log continues from.
        self.base = None if self.start == 0 else min(at for at in self.checkpoints if at >= self.start)
        checkpoint = next((name for name in dump if self.base is not None and _begins(name, self.base)), None)
        self.held = [] if checkpoint is None else [bronze_row(each, ONE) for each in dump[checkpoint]]

    @cached_property
    def discarded(self) -> Ranges:
        markers = [Marker(row["offset"], row["type"], None, None) for row in self.records if row["type"] in MARKERS]
        return read_transactions(markers).discarded

    def plan(self, **more: object) -> Plan:
        checkpoints = {at: _checkpoint(path, self.level(at)) for at, path in self.checkpoints.items()}
        more |= {"checkpoints": checkpoints, "snapshot": max(checkpoints, default=None)}
        return plan(self.end, base=self.base, discarded=self.discarded, **more)

    def level(self, offset: int) -> int | None:
        """metadata.version below an offset."""
        levels = [row for row in (*self.held, *self.records) if row["type"] == "FEATURE_LEVEL_RECORD"]
        below = [row for row in levels if row in self.held or row["offset"] < offset]
        found = [row["data"] for row in below if '"metadata.version"' in row["data"]]
        return int(found[-1].split('"featureLevel": ')[1].rstrip("}")) if found else None

    def expected(self) -> Plain:
        base = -1 if self.base is None else self.base
        held = [{**row, "offset": base - 1} for row in self.held if not row["control"]]
        later = [row for row in self.records if row["offset"] >= base and not row["control"]]
        later = [row for row in later if not _within(row["offset"], self.discarded)]
        return Plain().read(held, base=True).read(later)


def _begins(name: str, offset: int) -> bool:
    return name.endswith(".checkpoint") and name.startswith(f"{offset:020}")


def _within(offset: int, ranges: Ranges) -> bool:
    return any(begin <= offset and (last is None or offset <= last) for begin, last in ranges)


def _segment(path: Path) -> Iterator[pa.RecordBatch]:
    yield from decode_segment(path.read_bytes(), Origin(1, path.name), MASKING)


def _checkpoint(path: Path, level: int | None) -> DecodedCheckpoint:
    origin = Origin(1, path.name, int(path.name[:20]))

    def records() -> Iterator[pa.RecordBatch]:
        yield from decode_checkpoint(path.read_bytes(), origin, MASKING)

    elr = any(ELR_VERSION in (data or "") for rows in records() for data in rows["data"].to_pylist())
    return DecodedCheckpoint(level, elr, records)


@cache
def outcome(copy: tuple[str, str, str]) -> tuple[Copy, Outcome]:
    mine = Copy(*copy)
    return mine, run(mine.plan(), mine.batches)


# Fingerprints, and what Kafka's tool prints in another form, are the decoder's, and tested there.
SPELLED = ("scram_credentials", "delegation_tokens")


def told(state: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    return {name: without_nothing(rows) for name, rows in state.items() if rows and name not in SPELLED}


@pytest.mark.parametrize("copy", copies(), ids="/".join)
def test_state_and_history_are_what_kafka_printed(copy: tuple[str, str, str]) -> None:
    mine, found = outcome(copy)
    expected = mine.expected()
    history = [{name: value for name, value in row.items() if name != "cluster"} for row in found.history]
    assert history == sorted(expected.history, key=lambda row: (row["offset"], row["topic_id"], row["partition"]))
    wanted = {name: rows for name, rows in expected.state().items() if rows and name not in SPELLED}
    made = told(found.states[mine.end])
    # Passwords are fingerprints here and clear text there.
    for state in (wanted, made):
        for row in state.get("configs", []):
            row["value"] = None if row["sensitive"] else row["value"]
    assert made.keys() == wanted.keys()
    for name, rows in wanted.items():
        assert without_nothing(made[name]) == without_nothing(rows), name


# A ghost of an older release, which does not know groups: in its own snapshot their type is 0.
GHOST = {f"upgrade-{stage}" for stage in ("2-blocked-by-ghost", "3-done", "4-used-and-downgraded")}
OF_THE_GHOST = {
    ('configs ["unknown(0)", "g-orders", "consumer.session.timeout.ms"]', "in the checkpoint, not in the replay"),
    ('configs ["GROUP", "g-orders", "consumer.session.timeout.ms"]', "in the replay, not in the checkpoint"),
}


@pytest.mark.parametrize("copy", copies(), ids="/".join)
def test_no_checkpoint_differs_and_nothing_is_wrong(copy: tuple[str, str, str]) -> None:
    version, stage, controller = copy
    _, found = outcome(copy)
    of_a_ghost = (version, controller) == ("4.4.0-kraft", "3003") and stage in GHOST
    assert {(row["subject"], row["detail"]) for row in found.differences} == (OF_THE_GHOST if of_a_ghost else set())
    # Topics of a cluster that is younger than its first checkpoint, or were made since the last one.
    assert {row["code"] for row in found.findings} <= {"CLEAR-REMOVED"}


def test_captures_hold_what_they_are_for() -> None:
    outcomes = [outcome(copy) for copy in copies()]
    kinds = Counter(kind for _, found in outcomes for row in found.history for kind in row["kinds"])
    assert {*ChangeKind} - {*kinds} <= {
        ChangeKind.REPLACED,
        ChangeKind.REORDERED,
        ChangeKind.REASSIGNMENT_CHANGED,
        ChangeKind.DIRECTORIES,
    }
    assert sum(kinds.values()) > 10_000
    compared = [
        at for mine, _ in outcomes for at in mine.checkpoints if mine.start < at <= mine.end and at != mine.base
    ]
    assert len(compared) > 80
    assert sum(mine.base is not None for mine, _ in outcomes) > 10


@pytest.mark.parametrize("copy", [("3.9.1", "12-finalized", "3002"), ("4.3.1-kraft", "12-broker-unregistered", "3000")])
def test_a_capture_is_the_same_in_shards_in_pieces_and_from_the_middle(copy: tuple[str, str, str]) -> None:
    mine, whole = outcome(copy)
    [rows] = pa.Table.from_batches(mine.batches).combine_chunks().to_batches()
    for number in (1, 3):
        assert in_shards(mine.plan(), rows, number) == whole
    chance = random.Random(7)  # noqa: S311 - the seed makes a failure repeatable
    assert run(mine.plan(), cut(rows, chance)) == whole
    middle = (mine.end + max(mine.start, mine.base or 0)) // 2
    kept = run(mine.plan(keep_at=middle), mine.batches).kept[middle]
    assert run(mine.plan(), mine.batches, kept).since(middle) == whole.since(middle)
