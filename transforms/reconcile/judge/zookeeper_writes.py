"""The writers in ZooKeeper's transaction logs: claims and elections, refused changes, foreign writes.

Only a data folder has the logs. They begin after the last log that ZooKeeper purged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from schemas.zookeeper.writes import MISSING

# At most this many rows of each kind are kept; elections are few, foreign writes decide the class of rows (S§5.6).
MOST_FOREIGN = 10_000
MOST_ELECTIONS = 1_000
_MOST_HOLES = 1_000
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
    """The transaction logs of one cluster: first transaction (None: there is none), and what matters in them.

    Elections are in the order of their transactions, the newest ones where there are too many. `refused` are changes of the
    controller in office that Kafka does not expect to be refused. `holes` are the transactions that the logs lack: the first
    zxid that is missing, and what is known of it; the newest ones where there are too many.
    """

    first_zxid: int | None = None
    elections: Sequence[Election] = ()
    refused: tuple[int, tuple[str, ...]] = (0, ())
    foreign: tuple[int, tuple[str, ...]] = (0, ())
    holes: Sequence[tuple[int, str]] = ()

    def unseen(self) -> list[str]:
        """What is known of the holes that may hide a write since KRaft took over.

        Others lie before that: a broker was elected after them, or KRaft's first claim is the next election after a broker's by
        its number, so that none of both is missing.
        """
        brokers = [each for each in self.elections if each.writer.startswith("broker")]
        since = brokers[-1].zxid if brokers else -1
        following = next((each for each in self.elections if each.zxid > since), None)
        next_one = following is not None and brokers and following.controller_epoch == brokers[-1].controller_epoch + 1
        if following is not None and following.is_claim and next_one:
            since = following.zxid
        return [text for zxid, text in self.holes if zxid > since]

    def between(self, before: Election, after: Election) -> bool:
        """Whether a hole may hide an election between these two."""
        return any(before.zxid < zxid <= after.zxid for zxid, _ in self.holes)

    def current_claims(self) -> list[Election]:
        """Claims since a ZooKeeper broker was elected last: those of the present quorum."""
        found: list[Election] = []
        for election in self.elections:
            if election.writer.startswith("broker"):
                found = []
            elif election.is_claim:
                found.append(election)
        return found


_ELECTION = (
    "zxid",
    "time",
    "session",
    "writer",
    "kind",
    "controller_epoch",
    "kraft_controller_id",
    "kraft_controller_epoch",
)
_HOLE = {"zxid": "zxid", "file": "path", "why": "type"}
_WRITE = ("zxid", "time", "session", "writer", "type", "path", "error", "total")
_ENDS = pl.Schema({"first": pl.Int64, "last": pl.Int64, "time": pl.Int64})


def questions(writes: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """The questions about silver zookeeper_writes: bounded answers by name, for `of_answers`."""
    foreign = writes.filter(pl.col("kind") == "foreign")
    expected = pl.col("error").is_in(_EXPECTED).fill_null(value=False)
    refused = writes.filter((pl.col("kind") == "envelope_failed") & ~expected)
    elections = writes.filter(pl.col("controller_epoch").is_not_null())
    return {
        "foreign": _oldest(foreign, MOST_FOREIGN),
        "refused": _oldest(refused, _MOST_REFUSED),
        "elections": elections.sort("zxid").tail(MOST_ELECTIONS).select(_ELECTION).to_dicts(),
    }


def holes_of(writes: pl.DataFrame) -> list[dict[str, Any]]:
    """Where the logs lack transactions, from silver zookeeper_writes: in order, the newest ones where there are too many."""
    holes = writes.filter(pl.col("kind") == MISSING).sort("zxid").tail(_MOST_HOLES)
    return holes.select(**{name: pl.col(column) for name, column in _HOLE.items()}).to_dicts()


def _oldest(writes: pl.DataFrame, most: int) -> list[dict[str, Any]]:
    rows = writes.with_columns(total=pl.lit(writes.height, pl.Int64))
    return rows.sort("zxid").head(most).select(_WRITE).to_dicts()


class Logged:
    """What transaction logs hold, from bronze zk_transactions as they are read: which part of history, and until when."""

    def __init__(self) -> None:
        """Nothing was read."""
        self._ends = pl.DataFrame(schema=_ENDS)

    def add(self, transactions: pl.DataFrame) -> None:
        """Take in a batch (zxid, time), in any order."""
        if transactions.height:
            zxid, time = pl.col("zxid"), pl.col("time")
            of_batch = transactions.select(first=zxid.min(), last=zxid.max(), time=time.max()).cast(_ENDS)
            self._ends = pl.concat([self._ends, of_batch])

    def answers(self, holes: Sequence[Mapping[str, Any]] = ()) -> dict[str, list[dict[str, Any]]]:
        """First and last zxid with the holes between, if there are any (`logged`, for `of_answers`), and the newest time with its
        zxid (`transactions`); none of nothing.
        """
        within = {"holes": list(holes)} if holes else {}
        if self._ends.is_empty():
            return {"logged": [{"first": None, "last": None, **within}] if holes else [], "transactions": []}
        first, last, time = self._ends.select(pl.col("first").min(), pl.col("last").max(), pl.col("time").max()).row(0)
        return {"logged": [{"first": first, "last": last, **within}], "transactions": [{"time": time, "zxid": last}]}


def at_barrier(barriers: pl.DataFrame, zxid: int | None) -> list[dict[str, Any]]:
    """The barrier of silver barriers that `/migration`'s last write (its mzxid) is; none where that is not a barrier."""
    return barriers.filter(pl.col("zxid") == pl.lit(zxid, pl.Int64)).select("zxid").to_dicts()


def of_answers(answer: Callable[[str], Sequence[Mapping[str, Any]]]) -> ZooKeeperWrites:
    """The answers to `questions`, and `logged`; `answer` gives the rows of one."""
    logged = next(iter(answer("logged")), {})
    elections = sorted((Election(**row) for row in answer("elections")), key=lambda each: each.zxid)
    return ZooKeeperWrites(
        logged.get("first"),
        tuple(elections),
        _counted(answer("refused")),
        _counted(answer("foreign")),
        tuple((hole["zxid"], f"{hole['file']}: {hole['why']}") for hole in logged.get("holes", ())),
    )


def _counted(rows: Iterable[Mapping[str, Any]]) -> tuple[int, tuple[str, ...]]:
    ordered = sorted(rows, key=lambda row: int(row["zxid"]))
    total = ordered[0]["total"] if ordered else 0
    return total, tuple(f"{written(row)}: {_change(row)}" for row in ordered[:_MOST_REFUSED])


def written(row: Mapping[str, Any]) -> str:
    """A write's transaction, writer, session and time."""
    moment = datetime.fromtimestamp(row["time"] / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    by = "" if row["writer"] == "unknown" else f" by {row['writer']}"
    return f"transaction {row['zxid']:#x}{by}, session {row['session'] & _UNSIGNED:#x}, {moment}"


_UNSIGNED = (1 << 64) - 1


def _change(row: Mapping[str, Any]) -> str:
    if row["error"] is None:
        return f"{row['type']} {row['path']}"
    return f"refused with {_ERRORS.get(row['error'], row['error'])} ({row['type']})"
