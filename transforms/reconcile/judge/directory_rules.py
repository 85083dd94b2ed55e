"""Rules about the log directories that replicas are in (KIP-858, S§8.6), over KRaft's partitions of one cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from schemas.checks.codes import CORDONED, DIRECTORY_LOST, DIRECTORY_UNKNOWN
from transforms.reconcile.judge.rules import RowRule, broken, said

# `DirectoryId`: ids that stand for no directory.
MIGRATING, UNASSIGNED, LOST = "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
# The metadata.version that introduced directories, 3.7-IV2.
DIRECTORIES_FROM = 17
_HOUR = 3_600_000


def directories(
    partitions: pl.DataFrame,
    level: int,
    of_brokers: Mapping[int, Sequence[str]],
    cordoned: Collection[str] = (),
    log_end_ms: int | None = None,
) -> pl.DataFrame:
    """DIR-01 to DIR-04: replicas in a directory that is lost or not their broker's, or known below the level for it; in one that
    is cordoned; and those whose directory has not been reported for an hour, where their broker has several.

    `partitions` are KRaft's silver rows, `level` is the metadata.version, `of_brokers` has the directories that each broker
    names, `log_end_ms` is the append time of the log's newest record. Directories are known from metadata.version 3.7-IV2
    (17) on; a broker that names none is not asked.
    """
    reported = partitions.filter(pl.col("directories").list.len() == pl.col("replicas").list.len())
    replicas = (
        reported.select(
            "topic",
            "partition",
            (pl.lit(log_end_ms, pl.Int64) - pl.col("kraft_append_time")).alias("age"),
            pl.col("replicas").alias("broker"),
            pl.col("directories").alias("directory"),
        )
        .filter(pl.col("broker").list.len() > 0)
        .explode("broker", "directory")
    )
    # Brokers have few directories: each is classified once.
    meanings = _meanings(replicas.select("broker", "directory").unique(), level, of_brokers, cordoned)
    return broken(replicas.join(meanings, on=["broker", "directory"], nulls_equal=True), _rules())


def _meanings(
    pairs: pl.DataFrame, level: int, of_brokers: Mapping[int, Sequence[str]], cordoned: Collection[str]
) -> pl.DataFrame:
    """Of the pairs (broker, directory), those that may break a rule: which one they may break, a column for each."""
    known, directory = level >= DIRECTORIES_FROM, pl.col("directory")
    named = [(broker, each) for broker, mine in of_brokers.items() for each in mine]
    its_own = pl.DataFrame(named, schema={"broker": pl.Int32, "directory": pl.String}, orient="row")
    number = its_own.group_by("broker").agg(pl.len().alias("number"))
    own = its_own.unique().with_columns(pl.lit(True).alias("own"))
    asked = pairs.join(number, on="broker", how="left").join(own, on=["broker", "directory"], how="left")
    strange = ~directory.is_in([UNASSIGNED, LOST, MIGRATING]) & (pl.col("number") > 0) & pl.col("own").is_null()
    return asked.select(
        "broker",
        "directory",
        ((directory != MIGRATING) & (not known)).alias("early"),
        ((directory == LOST) & known).alias("lost"),
        (strange & known).alias("strange"),
        (directory.is_in([UNASSIGNED, MIGRATING]) & (pl.col("number") > 1) & known).alias("unnamed"),
        directory.is_in([*cordoned]).alias("shut"),
    ).filter(pl.any_horizontal("early", "lost", "strange", "unnamed", "shut"))


def _rules() -> list[RowRule]:
    name = said("{}/{}: ", "topic", "partition")
    lost = said("{}broker {}'s directory is lost", name, "broker")
    strange = said("{}directory {} does not belong to broker {}", name, "directory", "broker")
    return [
        RowRule("DIR-01", pl.col("early"), said("{}broker {} has directory {}", name, "broker", "directory")),
        RowRule(DIRECTORY_LOST, pl.col("lost") | pl.col("strange"), pl.when("lost").then(lost).otherwise(strange)),
        RowRule(
            DIRECTORY_UNKNOWN,
            pl.col("unnamed") & (pl.col("age") > _HOUR),
            said("{}broker {} has not reported which of its directories", name, "broker"),
        ),
        RowRule(CORDONED, pl.col("shut"), said("{}broker {}'s directory {} is cordoned", name, "broker", "directory")),
    ]
