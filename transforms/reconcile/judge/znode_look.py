"""What ZooKeeper's trees show while they are read, znode by znode, and the rules that the znodes kept in memory break (S§6)."""

from __future__ import annotations

from typing import Any

import polars as pl

from transforms.reconcile.judge.queries import Known
from transforms.reconcile.judge.rules import VIOLATIONS, RowRule, broken, said
from transforms.reconcile.judge.samples import Samples
from transforms.reconcile.judge.secret_rules import digests_in_clear, leaked
from transforms.zookeeper.read.trees import newest
from transforms.zookeeper.zxids import hexadecimals

# ZooKeeper's permissions: read 1, write 2, create 4, delete 8, admin 16.
_READ, _CHANGE, _ANY, _EVERYTHING = 1, 30, 31, 31
# For zookeeper-shell.sh: scheme `auth` stands for whoever runs the command.
_KAFKA_ALONE, _ALL_READ = "auth::cdrwa", "world:anyone:r"
_OTHERS_ROOTS = r"^/(zookeeper|consumers|brokers/topics/.)"
_HIDING = "^/(config/users|config/brokers|delegation_token/tokens)/"
_CLAIMED = ("/controller", "/migration")
# Znodes that only a controller, a broker or an operator writes; not brokers' registrations, nor notifications.
_METADATA = (
    "^/(brokers/topics/|config/(topics|brokers|users|clients|ips)/|kafka-acl/|kafka-acl-extended/|delegation_token/tokens/|"
    "latest_producer_id_block$|admin/(delete_topics/|reassign_partitions$|preferred_replica_election$))"
)
_IDENTITY = pl.Schema({"path": pl.String, "scheme": pl.String, "id": pl.String})


class ZnodeLook:
    """What both trees hold: who may change and read them, who made them, secrets that show."""

    def __init__(self) -> None:
        """Nothing was read."""
        self.violations = Samples()
        self._protection: dict[str, Any] | None = None
        self._identities = pl.DataFrame(schema=_IDENTITY)

    def add(self, znodes: pl.DataFrame) -> None:
        """Take in some znodes of both trees: rows of bronze zk_znodes, with `tree`."""
        self.violations.add(leaked(znodes, "zk_znodes", "path", "data", "problem"))
        self.violations.add(digests_in_clear(znodes))
        judged = znodes.filter(newest())
        self._identities = pl.concat([self._identities, _identities(judged)]).unique()
        if judged.height:
            [row] = judged.select(*_protection()).to_dicts()
            self._protection = row if self._protection is None else _added(self._protection, row)

    def answers(self) -> dict[str, list[dict[str, Any]]]:
        """Of the tree as it was when it was read:

        - `protection`, one row: znodes of Kafka's secured roots with an ACL, those `open` to be changed by all, time (ms) and
          zxid of the newest change; none of a tree without znodes;
        - `identities`, a few rows for each broker: path, scheme and id of who may do everything with the znodes that say who
          made them.
        """
        return {
            "protection": [] if self._protection is None else [self._protection],
            "identities": self._identities.sort(self._identities.columns).to_dicts(),
        }


def _added(known: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    sums = {name: known[name] + more[name] for name in ("znodes", "open")}
    newest_of = {
        name: max((each[name] for each in (known, more) if each[name] is not None), default=None)
        for name in ("time", "zxid")
    }
    return {**sums, **newest_of}


def _anyone(permissions: int) -> pl.Expr:
    """Everybody has one of these permissions on the znode."""
    scheme, allowed = (pl.element().struct.field(name) for name in ("scheme", "perms"))
    return pl.col("acl").list.eval((scheme == "world") & ((allowed & permissions) != 0)).list.any()


def _protection() -> list[pl.Expr]:
    """Topics' own znodes are left out: they are most of a tree, and protected like the rest."""
    path = pl.col("path")
    mine = (path != "/") & ~path.str.contains(_OTHERS_ROOTS)
    judged = mine & (pl.col("acl").list.len() > 0)
    return [
        judged.sum().cast(pl.Int64).alias("znodes"),
        (judged & _anyone(_CHANGE)).sum().cast(pl.Int64).alias("open"),
        pl.col("mtime").max().alias("time"),
        pl.max_horizontal("czxid", "mzxid", "pzxid").max().alias("zxid"),
    ]


def _identities(znodes: pl.DataFrame) -> pl.DataFrame:
    """`/migration` is made by a KRaft controller, `/brokers/ids/<id>` by that broker, `/brokers/topics` by brokers before."""
    path = pl.col("path")
    made = znodes.filter(path.is_in(["/migration", "/brokers/topics"]) | path.str.contains("^/brokers/ids/[0-9]+$"))
    entries = made.select("path", "acl").filter(pl.col("acl").list.len() > 0).explode("acl").unnest("acl")
    whole = (pl.col("perms") == _EVERYTHING) & (pl.col("scheme") != "world")
    return entries.filter(whole).select(*_IDENTITY)


def znode_rules(znodes: pl.DataFrame, known: Known) -> pl.DataFrame:
    """Rules about znodes that need more facts of the cluster: VIOLATIONS. `znodes` are those of both trees, without data."""
    judged, path = znodes.filter(newest()), pl.col("path")
    to_read = said(f"{{}} can be read by everybody: setAcl {{}} {_KAFKA_ALONE}", path, path)
    to_write = said(f"{{}} can be written by everybody: setAcl {{}} {_KAFKA_ALONE},{_ALL_READ}", path, path)
    found = [
        broken(judged.filter(path.str.contains(_HIDING)), [RowRule("SEC-01", _anyone(_ANY), to_read)]),
        broken(judged.filter(path.is_in(_CLAIMED)), [RowRule("SEC-03", _anyone(_CHANGE), to_write)]),
    ]
    if known.loaded_at is not None:
        since = (pl.col("ctime") >= known.loaded_at) & path.str.contains("^/config/(users|brokers)/")
        found.append(broken(judged.filter(since), [RowRule("SEC-02", _anyone(_READ), to_read)]))
    if known.mirrored_until is not None:
        # Of a whole tree little was written late: only there paths are looked at.
        late = judged.filter((pl.col("mzxid") > known.mirrored_until) & path.str.contains(_METADATA))
        text = said("{} in transaction {}", path, hexadecimals(pl.col("mzxid")))
        found.append(broken(late, [RowRule("POST-04", path.str.contains(_METADATA), text)]))
    return pl.concat([pl.DataFrame(schema=VIOLATIONS), *found])


class TransactionLook:
    """Secrets that show in the data of ZooKeeper's transactions (SEC-05), gathered while these are read."""

    def __init__(self) -> None:
        """Nothing was read."""
        self.violations = Samples()

    def add(self, transactions: pl.DataFrame) -> None:
        """Take in rows of bronze zk_transactions (path, data)."""
        self.violations.add(leaked(transactions, "zk_transactions", "path", "data"))
