"""ZooKeeper's clock against the controllers', from the times of what was mirrored as it was made."""

from __future__ import annotations

from typing import Any

from schemas.entities.configs import CONFIGS
from schemas.entities.partitions import PARTITIONS
from schemas.entities.producer_ids import PRODUCER_IDS
from transforms.frames import columns_of, frame
from transforms.reconcile.judge.skew import ClockSkew, OneByOne, clock_skew, mirroring_times

AHEAD = 30_000
LOADED, MIRRORED, LAST_WRITE = 100, 500, 9_000
Row = dict[str, Any]


def both(number: int, offset: int, delay: int, mzxid: int = 8_000) -> list[Row]:
    """A partition as both sides have it: its record's time, and its znode's so much later."""
    row = {"topic": "t", "partition": number}
    time = 1_000_000 + 1_000 * offset
    zookeeper = {"source": "zookeeper", "zk_path": f"/p/{number}", "zk_mzxid": mzxid, "zk_mtime": time + delay}
    return [{**row, **zookeeper}, {**row, "source": "kraft", "kraft_offset": offset, "kraft_append_time": time}]


def partitions() -> list[Row]:
    mirrored = [row for number in range(9) for row in both(number, 200 + number, AHEAD + 50 * (number % 3))]
    by_the_load = [row for number in range(20, 40) for row in both(number, LOADED - number, -900_000)]
    not_yet = [row for number in range(40, 60) for row in both(number, MIRRORED + number, -500_000)]
    by_somebody = [row for number in range(60, 80) for row in both(number, 300, 700_000, LAST_WRITE + number)]
    return [*mirrored, *by_the_load, *not_yet, *by_somebody]


def configs() -> list[Row]:
    """Two configurations of one topic lie in one znode, which the later change wrote last."""
    rows = []
    for name, offset in (("a", 210), ("b", 400)):
        row = {"resource_type": "TOPIC", "resource_name": "t", "config": name}
        written = {"zk_path": "/config/topics/t", "zk_mzxid": 8_000, "zk_mtime": 1_400_000 + AHEAD}
        rows.append({**row, "source": "zookeeper", **written})
        rows.append({**row, "source": "kraft", "kraft_offset": offset, "kraft_append_time": 1_000_000 + 1_000 * offset})
    return rows


def measured(of_partitions: list[Row], of_configs: list[Row]) -> ClockSkew | None:
    rows = [(PARTITIONS, of_partitions), (CONFIGS, of_configs), (PRODUCER_IDS, [])]
    tables = {entity.name: frame(mine, columns_of(entity.row_columns)) for entity, mine in rows}
    found = mirroring_times(tables, OneByOne(LOADED, MIRRORED, LAST_WRITE))
    return clock_skew(found[0]["quantiles"], found[0]["pairs"]) if found else None


def test_only_what_was_mirrored_one_by_one_counts() -> None:
    skew = measured(partitions(), configs())
    assert skew is not None
    assert (skew.pairs, skew.median) == (10, AHEAD + 50)
    assert skew.spread <= 50
    assert skew.furthest <= 100


def test_few_changes_tell_nothing() -> None:
    assert measured(both(1, 200, AHEAD), []) is None
    assert measured([], []) is None
