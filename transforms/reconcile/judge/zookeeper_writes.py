"""What ZooKeeper's transaction logs tell of its writers: who took over when, what was refused, what nobody should have written.

Only a data folder has the logs. They begin where ZooKeeper purged what came before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from transforms.clusters import CLUSTER

# Of each kind as many rows go to the driver; elections are few, foreign writes decide what rows are (S§5.6).
MOST_FOREIGN = 10_000
MOST_ELECTIONS = 1_000
_MOST_REFUSED = 20
# What Kafka writes another way when it is refused: a znode that is there already, or is not there (`KeeperException.Code`).
_EXPECTED = (-110, -101)
_ERRORS: Mapping[int, str] = {
    -101: "NoNode",
    -102: "NoAuth",
    -103: "BadVersion",
    -110: "NodeExists",
    -111: "NotEmpty",
    -112: "SessionExpired",
    -114: "InvalidACL",
    -125: "QuotaExceeded",
}


@dataclass(frozen=True)
class Election:
    """A transaction that set `/controller_epoch`: a claim names the KRaft controller and its leader epoch."""

    zxid: int
    time: int
    session: int
    writer: str
    kind: str
    controller_epoch: int
    kraft_controller_id: int | None = None
    kraft_controller_epoch: int | None = None

    @property
    def is_claim(self) -> bool:
        """True when a KRaft controller took over."""
        return self.kind == "claim"

    @property
    def text(self) -> str:
        """Which transaction it is, for evidence."""
        return written(vars(self))


@dataclass(frozen=True)
class ZooKeeperWrites:
    """The transaction logs of one cluster: first and last transaction (None: there are none), and what matters in them.

    Elections are in the order of their transactions, the newest ones where there are too many. `refused` are changes of the
    controller in office that Kafka does not expect to be refused.
    """

    first_zxid: int | None = None
    last_zxid: int | None = None
    elections: Sequence[Election] = ()
    refused: tuple[int, tuple[str, ...]] = (0, ())
    foreign: tuple[int, tuple[str, ...]] = (0, ())

    def current_claims(self) -> list[Election]:
        """Claims since a ZooKeeper broker was elected last: those of the present quorum."""
        found: list[Election] = []
        for election in self.elections:
            if election.writer.startswith("broker"):
                found = []
            elif election.is_claim:
                found.append(election)
        return found


def questions(writes: DataFrame, transactions: DataFrame) -> dict[str, DataFrame]:
    """What is asked of silver zookeeper_writes and bronze zk_transactions: bounded answers by name, for `of_answers`."""
    foreign = writes.where("kind = 'foreign'")
    expected = F.coalesce(F.col("error").isin(list(_EXPECTED)), F.lit(False))
    refused = writes.where((F.col("kind") == "envelope_failed") & ~expected)
    elections = writes.where(F.col("controller_epoch").isNotNull())
    last = Window.partitionBy(CLUSTER).orderBy(F.col("zxid").desc())
    newest = elections.withColumn("number", F.row_number().over(last)).where(F.col("number") <= MOST_ELECTIONS)
    return {
        "foreign": _oldest(foreign, MOST_FOREIGN),
        "refused": _oldest(refused, _MOST_REFUSED),
        "elections": newest.select(
            CLUSTER,
            "zxid",
            "time",
            "session",
            "writer",
            "kind",
            "controller_epoch",
            "kraft_controller_id",
            "kraft_controller_epoch",
        ),
        "logged": transactions.groupBy(CLUSTER).agg(F.min("zxid").alias("first"), F.max("zxid").alias("last")),
    }


def _oldest(writes: DataFrame, most: int) -> DataFrame:
    mine = Window.partitionBy(CLUSTER)
    numbered = writes.withColumns(
        {"number": F.row_number().over(mine.orderBy("zxid")), "total": F.count("*").over(mine)}
    )
    columns = ("zxid", "time", "session", "writer", "type", "path", "error", "total")
    return numbered.where(F.col("number") <= most).select(CLUSTER, *columns)


def of_answers(answer: Callable[[str], Sequence[Mapping[str, Any]]]) -> ZooKeeperWrites:
    """One cluster's answers to `questions`; `answer` gives the rows of one."""
    logged = next(iter(answer("logged")), {})
    elections = sorted((Election(**row) for row in answer("elections")), key=lambda each: each.zxid)
    return ZooKeeperWrites(
        logged.get("first"),
        logged.get("last"),
        tuple(elections),
        _counted(answer("refused")),
        _counted(answer("foreign")),
    )


def _counted(rows: Iterable[Mapping[str, Any]]) -> tuple[int, tuple[str, ...]]:
    ordered = sorted(rows, key=lambda row: int(row["zxid"]))
    total = ordered[0]["total"] if ordered else 0
    return total, tuple(f"{written(row)}: {_change(row)}" for row in ordered[:_MOST_REFUSED])


def written(row: Mapping[str, Any]) -> str:
    """A write's transaction, writer, session and time."""
    moment = datetime.fromtimestamp(row["time"] / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    by = "" if row["writer"] == "unknown" else f" by {row['writer']}"
    return f"transaction {row['zxid']}{by}, session {row['session'] & _UNSIGNED:#x}, {moment}"


_UNSIGNED = (1 << 64) - 1


def _change(row: Mapping[str, Any]) -> str:
    if row["error"] is None:
        return f"{row['type']} {row['path']}"
    return f"refused with {_ERRORS.get(row['error'], row['error'])} ({row['type']})"
