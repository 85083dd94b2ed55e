"""ZooKeeper's transaction logs with a hole in an older one: what it hides is unknown, and what is behind it is seen.

The tree does not show such a hole, because it begins with a later snapshot, and its digest proves it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.sources.zookeeper.folder import DataFolder
from schemas.classes import DEFECTS
from schemas.report import CheckResult
from schemas.silver import BARRIERS, ZOOKEEPER_WRITES
from tests.captures import capture
from tests.pipeline.audits import Audit, Content, audits, settings_content
from tests.pipeline.logs import writable_copy
from tests.zookeeper.journal import buffer, i32, i64, set_data

pytestmark = pytest.mark.slow

STAGE = capture("3.9.1", "10-brokers-rolling")
# KRaft took over in log.2d7; the newest snapshot is that before log.6d9.
BEFORE_THE_CLAIM, OLDER, SINCE_THE_CLAIM, NEWEST = "log.103", "log.465", "log.598", "log.6d9"
FOREIGN = b'{"version":1,"config":{"flush.ms":"5"}}'
TXN = ("TXN-01", "TXN-02", "TXN-03", "TXN-04", "TXN-05")


def written_by_hand(folder: Path) -> None:
    """Somebody has set a topic's configuration at the end of the newest log."""
    last = list(DataFolder(folder / "zookeeper").transactions())[-1]
    path = folder / "zookeeper" / "version-2" / NEWEST
    data = path.read_bytes()
    head = i64(0x99999) + i32(0) + i64(last.zxid + 1) + i64(last.time + 5) + i32(5)
    body = head + set_data("/config/topics/orders", FOREIGN, 3)
    written = data.rstrip(b"\0") + i64(zlib.adler32(body)) + buffer(body) + b"B"
    path.write_bytes(written + bytes(len(data) - len(written)))


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "zookeeper" / "version-2" / name).unlink()


def damaged(folder: Path) -> None:
    path = folder / "zookeeper" / "version-2" / OLDER
    data = bytearray(path.read_bytes())
    data[3000] ^= 0xFF
    path.write_bytes(data)


def torn(folder: Path) -> None:
    """As in the copy of a running server."""
    path = folder / "zookeeper" / "version-2" / NEWEST
    path.write_bytes(path.read_bytes().rstrip(b"\0") + b"\1\2\3")


FAULTS: dict[str, list[Callable[[Path], None]]] = {
    "whole": [],
    "purged": [without("log.1"), without(BEFORE_THE_CLAIM), without("log.1ff"), without("log.2d7")],
    "torn": [torn],
    "before-the-claim": [without(BEFORE_THE_CLAIM)],
    "by-hand": [written_by_hand],
    "lost": [without(SINCE_THE_CLAIM)],
    "lost-by-hand": [written_by_hand, without(SINCE_THE_CLAIM)],
    "damaged": [damaged],
    "claim-lost": [without("log.2d7")],
}
HEALTHY = ("whole", "purged", "torn", "before-the-claim")
HOLES = ("lost", "lost-by-hand", "damaged", "claim-lost")


@pytest.fixture(scope="module")
def found(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Audit]:
    root = tmp_path_factory.mktemp("holes")
    return audits([prepared(root, name) for name in FAULTS])


def prepared(root: Path, name: str) -> Content:
    folder = writable_copy(STAGE, root / name)
    for fault in FAULTS[name]:
        fault(folder)
    return {**settings_content(folder, root / "tables", data_folder=True), "cluster": name}


def check(audit: Audit, check_id: str) -> CheckResult:
    return next(each for each in audit.report.checks if each.id == check_id)


def defects(audit: Audit) -> dict[str, int]:
    return {name: number for name, number in audit.report.divergences.by_class.items() if name in DEFECTS}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_history_that_begins_later_or_ends_in_the_middle_of_an_entry_is_whole(
    found: dict[str, Audit], name: str
) -> None:
    """ZooKeeper purges old logs, a copy of a running server ends anywhere, and a follower takes the leader's snapshot."""
    assert [check(found[name], each).verdict for each in TXN] == ["pass"] * 5
    assert check(found[name], "CAP-10").verdict == "pass"
    assert defects(found[name]) == {}
    whole, mine = found["whole"].report, found[name].report
    assert {gate: each.verdict for gate, each in mine.gates.items()} == {
        gate: each.verdict for gate, each in whole.gates.items()
    }
    assert (mine.mode, mine.exit_code) == (whole.mode, whole.exit_code)


@pytest.mark.parametrize("name", HOLES)
def test_what_a_hole_hides_is_unknown(found: dict[str, Audit], name: str) -> None:
    for check_id in TXN:
        judged = check(found[name], check_id)
        assert judged.verdict == "unknown", check_id
        assert "transaction logs have holes" in judged.evidence[0]
    assert check(found[name], "CAP-10").verdict == "warn"
    gates = found[name].report.gates
    assert [gates[gate].verdict for gate in ("dual_write", "rollback")] == ["unknown"] * 2
    assert check(found[name], "CAP-20").verdict != "fail", "the tree is the server's"


def test_the_hole_is_named(found: dict[str, Audit]) -> None:
    (lost,) = found["lost"].rows(ZOOKEEPER_WRITES, "kind = 'missing'")
    assert (lost["zxid"], lost["path"]) == (0x598, NEWEST)
    assert lost["type"] == "transactions between 0x597 and 0x6d9 are missing: a log file is not there"
    assert f"{lost['path']}: {lost['type']}" in check(found["lost"], "TXN-01").evidence[0]
    (bad,) = found["damaged"].rows(ZOOKEEPER_WRITES, "kind = 'missing'")
    assert bad["path"] == OLDER
    assert "fails its checksum" in bad["type"]
    assert found["whole"].rows(ZOOKEEPER_WRITES, "kind = 'missing'") == []


def test_what_is_behind_a_hole_is_seen(found: dict[str, Audit]) -> None:
    whole = {row["zxid"] for row in found["whole"].rows(BARRIERS)}
    for name in HOLES:
        mine = {row["zxid"] for row in found[name].rows(BARRIERS)}
        assert mine <= whole
        assert max(mine) == max(whole)
    for name in ("by-hand", "lost-by-hand"):
        (written,) = found[name].rows(ZOOKEEPER_WRITES, "kind = 'foreign'")
        assert written["path"] == "/config/topics/orders"
        assert any("setData /config/topics/orders" in line for line in check(found[name], "TXN-01").evidence)
    assert check(found["by-hand"], "TXN-01").verdict == "warn"


@pytest.mark.parametrize("name", ["lost", "damaged", "claim-lost"])
def test_a_hole_makes_no_row_differ(found: dict[str, Audit], name: str) -> None:
    """Rows are compared at the newest barrier, not at the last one before the hole."""
    whole, mine = found["whole"].report, found[name].report
    assert mine.divergences.by_class == whole.divergences.by_class
    assert (mine.mode, mine.migration.compared_zxid) == (whole.mode, whole.migration.compared_zxid)


def test_a_barrier_behind_a_hole_waited_no_longer(found: dict[str, Audit]) -> None:
    """The barrier before it is not known."""
    whole = {point.zxid: point for point in found["whole"].report.lag_series}
    for name in HOLES:
        assert all(whole[point.zxid] == point for point in found[name].report.lag_series)
