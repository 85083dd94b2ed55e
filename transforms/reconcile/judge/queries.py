"""Aggregates over silver and bronze that facts are made of: every result is bounded, whatever the cluster's size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from schemas.checks import KRAFT, ZOOKEEPER
from schemas.checks.codes import TO_DECODE
from schemas.kraft.mirrored import LOADED, MIRRORED
from schemas.sensitive import PASSWORD_CONFIGS
from transforms.clusters import CLUSTER, by_cluster, of_clusters
from transforms.kraft.replay.events import within
from transforms.leaks import WITHHELD, leaking
from transforms.reconcile.judge import kraft_queries, operation_queries
from transforms.reconcile.judge.kraft_queries import Health
from transforms.reconcile.judge.load import Load
from transforms.reconcile.judge.partition_health import by_broker, without_pending
from transforms.reconcile.judge.rules import RowRule, broken
from transforms.secrets import PREFIX
from transforms.unions import union_all
from transforms.zookeeper.read.trees import newest

SAMPLE = 20
# ZooKeeper's permissions: read 1, write 2, create 4, delete 8, admin 16.
_READ, _CHANGE, _ANY, _EVERYTHING = 1, 30, 31, 31
_READ_AT_ONCE_MS = 60_000
_WITH_NULLS = {"ignoreNullFields": "false"}
# What a running controller leaves at the end of its log: space not written yet, a batch not written whole.
_UNFINISHED = "problem LIKE 'torn tail:%' OR problem LIKE 'zero-filled:%'"


def samples(violations: DataFrame) -> DataFrame:
    """Exact totals and SAMPLE examples for each code: (cluster, code, text) in, (cluster, code, total, text) out.

    Every row of a code has the same total; the examples are in the order of their text.
    """
    by_code = Window.partitionBy(CLUSTER, "code")
    numbered = violations.withColumns(
        {"total": F.count("*").over(by_code), "number": F.row_number().over(by_code.orderBy("text"))}
    )
    return numbered.where(F.col("number") <= SAMPLE).select(CLUSTER, "code", "total", "text", "number")


@dataclass(frozen=True)
class Known:
    """What is known of a cluster already and the rules below need: broker ids, zxids, times and offsets.

    `starting` is true before the load; `live` brokers are in `/brokers/ids`, `down` ones were shut down on purpose.
    `claim` is the czxid of `/controller` when a KRaft controller holds it, `loaded_at` the time the load ended,
    `epoch_start` the first offset of the newest leader epoch (its full sync mirrored everything before), `load` where the
    log holds the load. `mirrored_until` is `/migration`'s mzxid when the migration is finalised: nothing is mirrored after.
    `newest_znode_time_ms` is the newest mtime of the tree in milliseconds since the epoch, `health` what the
    rules of KRaft's own health need.
    """

    starting: bool = False
    live: Sequence[int] = ()
    down: Sequence[int] = ()
    controller_epoch: int | None = None
    claim: int | None = None
    loaded_at: int | None = None
    epoch_start: int | None = None
    load: Load | None = None
    mirrored_until: int | None = None
    newest_znode_time_ms: int | None = None
    health: Health = field(default_factory=Health)


def violations(
    tables: Mapping[str, DataFrame], znodes: DataFrame, records: DataFrame, known: Mapping[str, Known]
) -> DataFrame:
    """Everything that is a violation by itself, as (cluster, code, text); each table is read once.

    `tables` are this run's silver rows by table name (entities, findings, admin_operations), its row_versions and, where
    there are any, bronze zk_transactions and, where there is a log, its isr_history (`transforms.isr.frames`); `znodes` (of
    both trees) and `records` are bronze rows.
    """
    findings = tables["findings"].where(~F.col("code").isin("START-03", "START-04"))
    judged = tables["partitions"]
    starting = [cluster for cluster, each in known.items() if each.starting]
    if starting:
        judged = without_pending(judged, tables["admin_operations"], starting)
    health = {cluster: each.health for cluster, each in known.items()}
    sides = by_cluster({cluster: ZOOKEEPER if each.starting else KRAFT for cluster, each in known.items()}, "string")
    frames = [
        broken(tables["topics"], [RowRule("START-03", _zookeeper() & F.col("topic_id").isNull(), F.col("topic"))]),
        broken(
            judged,
            [
                *_partition_rules(known),
                *kraft_queries.partition_rules(health),
                *operation_queries.partition_rules(health),
            ],
        ),
        by_broker(judged.where(F.col("source") == sides), {cluster: each.down for cluster, each in known.items()}),
        broken(
            tables["configs"],
            [*_config_rules(), kraft_queries.removed_config(), *operation_queries.config_rules(health)],
        ),
        broken(tables["acls"], [_slash_in_acl(), *operation_queries.acl_rules(health)]),
        broken(tables["scram_credentials"], [_credentials_in_clear(), *operation_queries.credential_rules()]),
        broken(tables["delegation_tokens"], operation_queries.token_rules(health)) if health else None,
        operation_queries.dead_letters(judged, tables["configs"]),
        broken(
            tables["admin_operations"],
            [*_admin_rules(known), _leak("admin_operations", "zk_path", "subject", "detail")],
        ),
        broken(tables["row_versions"], [_leak("row_versions", "entity", "key", "row")]),
        broken(tables["findings"], [_leak("findings", "code", "subject", "detail", "place")]),
        broken(_removed_quotas(tables), [_lost_removal(known)]),
        broken(znodes, _znode_rules(known)),
        findings.select(CLUSTER, "code", F.format_string("%s: %s (%s)", "subject", "detail", "place").alias("text")),
        broken(
            records,
            [
                _leak("kraft_records", "offset", "data", "problem"),
                _damaged(),
                *_load_rules({cluster: each.load for cluster, each in known.items()}),
            ],
        ),
        *kraft_queries.violations(judged, tables["configs"], tables.get("isr_history"), health),
        _epochs(tables["findings"]),
    ]
    if "zk_transactions" in tables:
        frames.append(broken(tables["zk_transactions"], [_leak("zk_transactions", "path", "data")]))
    return union_all([each for each in frames if each is not None])


def _leak(table: str, place: str, *columns: str) -> RowRule:
    """A secret that was not replaced where it was read: told by its place in the table, never by its text."""
    text = F.format_string(
        f"{table}: %s", F.when(leaking([place]), F.lit(WITHHELD)).otherwise(F.col(place).cast("string"))
    )
    return RowRule("SEC-05", leaking(columns), text)


def _zookeeper() -> Column:
    return F.col("source") == ZOOKEEPER


def _kraft() -> Column:
    return F.col("source") == KRAFT


def damaged(records: DataFrame) -> DataFrame:
    """Bronze kraft_records rows about bytes that are no record, but for what a running controller has not finished."""
    return records.where(_is_damaged())


def _is_damaged() -> Column:
    return F.col("problem").isNotNull() & ~F.expr(_UNFINISHED)


def _damaged() -> RowRule:
    text = F.format_string("controller %s, %s at byte %s: %s", "controller_id", "file", "position", "problem")
    return RowRule("CAP-02", _is_damaged(), text)


def load_violations(records: DataFrame, loads: Mapping[str, Load | None]) -> DataFrame:
    """Records of the load that the load does not write so (DUR-07): (cluster, code, text), of kraft_records rows."""
    return broken(records, _load_rules(loads) or [RowRule("DUR-07", F.lit(False), F.lit(""))])


def _load_rules(loads: Mapping[str, Load | None]) -> list[RowRule]:
    """What the load writes is of version 0 whatever the metadata.version, and inside its transaction if it has one.

    Registrations, their changes and no-ops of the brokers that wait lie between; nothing else is written before the end.
    """
    shown = {cluster: load for cluster, load in loads.items() if load is not None}
    if not shown:
        return []
    offset = F.col("offset")
    after = by_cluster({cluster: load.after for cluster, load in shown.items()}, "bigint")
    until = by_cluster({cluster: load.until for cluster, load in shown.items()}, "bigint")
    mine = F.col("checkpoint_offset").isNull() & F.col("type").isin(list(LOADED))
    mine = mine & (offset > after) & (offset < until)
    mine = mine & ~within({cluster: load.discarded for cluster, load in shown.items()})
    what = F.format_string("%s of version %d at offset %d", "type", "version", "offset")
    rules = [RowRule("DUR-07", mine & (F.col("version") != 0), F.concat(what, F.lit(": the load writes version 0")))]
    brackets = {cluster: load.transaction for cluster, load in shown.items() if load.transaction is not None}
    if brackets:
        begin = by_cluster({cluster: bracket[0] for cluster, bracket in brackets.items()}, "bigint")
        last = by_cluster({cluster: bracket[1] for cluster, bracket in brackets.items()}, "bigint")
        where = F.format_string(" is before MIGRATION and outside the load, %d to %d", begin, last)
        rules.append(RowRule("DUR-07", mine & ~offset.between(begin, last), F.concat(what, where)))
    return rules


def _each(known: Mapping[str, Known], name: str, sql_type: str) -> Column:
    return by_cluster({cluster: getattr(each, name) for cluster, each in known.items()}, sql_type)


def _ids(known: Mapping[str, Known], name: str) -> Column:
    return by_cluster({cluster: list(getattr(each, name)) for cluster, each in known.items()}, "array<int>")


def _partition_rules(known: Mapping[str, Known]) -> list[RowRule]:
    name = F.format_string("%s/%d", "topic", "partition")
    moving = F.size("adding_replicas") + F.size("removing_replicas") > 0
    reassigned = F.concat(name, F.lit(" is being reassigned"))
    leaderless = F.col("leader") == -1
    on_purpose = F.size(F.array_except("replicas", _ids(known, "down"))) == 0
    rules = [
        RowRule("START-04", _zookeeper() & F.col("leader").isNull(), name),
        RowRule("FIN-05", _kraft() & moving, reassigned),
        RowRule("FIN-05", _kraft() & leaderless & ~on_purpose, F.concat(name, F.lit(" has no leader"))),
    ]
    if any(each.starting for each in known.values()):
        starting = _zookeeper() & _each(known, "starting", "boolean")
        absent = (F.col("leader") >= 0) & ~F.array_contains(_ids(known, "live"), F.col("leader"))
        led = F.concat(name, F.format_string(" has leader %d", "leader"))
        rules.append(RowRule("START-12", starting & moving, reassigned))
        rules.append(RowRule("START-16", starting & (leaderless | absent), led))
    if any(each.controller_epoch is not None for each in known.values()):
        # The next election raises /controller_epoch by one.
        above = F.col("controller_epoch") > _each(known, "controller_epoch", "int") + 1
        written = F.concat(name, F.format_string(" was written in controller epoch %d", "controller_epoch"))
        rules.append(RowRule("RB-03", _zookeeper() & above, written))
        # The controller that is in office never elects a leader over a newer one's write.
        refused = F.col("controller_epoch") > _each(known, "controller_epoch", "int")
        rules.append(RowRule("RB-11", _zookeeper() & refused, written))
    return rules


def _config_rules() -> list[RowRule]:
    text = F.format_string("%s %s: %s", "resource_type", "resource_name", "config")
    hidden = ~F.col("comparable")
    return [
        RowRule("DUR-06", _kraft() & ~F.col("resource_type").isin("TOPIC", "BROKER"), text),
        RowRule("SEC-04", _kraft() & hidden, F.format_string("%s: %s", "resource_name", "config")),
        RowRule("CIPHERTEXT", _zookeeper() & hidden, text),
        RowRule(TO_DECODE, _zookeeper() & (F.col("resource_type") == "BROKER") & _is_password("config"), text),
        RowRule("SEC-05", (F.col("sensitive") | _is_password("config")) & _in_clear("value"), text),
        _leak("configs", "resource_name", "value"),
    ]


def _is_password(column: str) -> Column:
    """A configuration that brokers encrypt in ZooKeeper (`DynamicBrokerConfig.isPasswordConfig`)."""
    # Spark's `lower` loads the words of all languages when it is first asked: longer than all rules take on few rows.
    return F.col(column).rlike(rf"(?i)(?:{'|'.join(re.escape(name) for name in PASSWORD_CONFIGS)})\z")


def _in_clear(column: str) -> Column:
    """A value that is there and is no fingerprint, marked as ciphertext or not; an empty one hides nothing."""
    return (F.col(column) != "") & ~F.col(column).rlike(f"^([a-z]+:)*{PREFIX}[0-9a-f]+$")


def _credentials_in_clear() -> RowRule:
    shown = _in_clear("salt") | _in_clear("stored_key") | _in_clear("server_key")
    return RowRule("SEC-05", shown, F.format_string("%s of %s", "mechanism", "user"))


def _slash_in_acl() -> RowRule:
    text = F.format_string("an ACL of %s %s: ZooKeeper has no place for the name", "resource_type", "resource_name")
    return RowRule("RB-07", _kraft() & F.col("resource_name").contains("/"), text)


def _admin_rules(known: Mapping[str, Known]) -> list[RowRule]:
    asked = F.col("kind").isin("delete_topic", "reassign_partitions", "preferred_replica_election")
    text = F.format_string("%s of %s (%s)", "kind", "subject", "zk_path")
    rules = [RowRule("START-12", asked, text)]
    newest = {name: each.newest_znode_time_ms for name, each in known.items() if each.newest_znode_time_ms is not None}
    if newest:
        # A controller that is at work reads and deletes it within a second.
        left = (F.col("kind") == "isr_change") & (F.col("zk_mtime") < by_cluster(newest, "bigint") - _READ_AT_ONCE_MS)
        rules.append(RowRule("ISR-13", left, F.format_string("%s (%s)", "subject", "zk_path")))
    if any(each.claim is not None for each in known.values()):
        old = asked | F.col("kind").isin("isr_change", "log_dir_event")
        claim = _each(known, "claim", "bigint")
        rules.append(RowRule("DUR-16", old & (F.col("zk_czxid") > claim), text))
        left = (F.col("kind") == "delete_topic") & (F.col("zk_czxid") < claim)
        rules.append(RowRule("DUR-19", left, text))
    return rules


def _removed_quotas(tables: Mapping[str, DataFrame]) -> DataFrame:
    """Removals of quotas whose whole entity is gone: cluster, entity (JSON), from_offset."""
    entity = F.get_json_object("key", "$.entity").alias("entity")
    rows = tables["row_versions"].where("entity = 'client_quotas' AND removed").select(CLUSTER, entity, "from_offset")
    alive = tables["client_quotas"].where(_kraft()).select(CLUSTER, F.to_json("entity", _WITH_NULLS).alias("entity"))
    return rows.join(alive, [CLUSTER, "entity"], "left_anti")


def _lost_removal(known: Mapping[str, Known]) -> RowRule:
    """Users alone are mirrored rightly; what was removed before the newest leader's full sync is mirrored by it."""
    parts = F.col("entity").contains('"client-id"') | F.col("entity").contains('"ip"')
    recent = F.col("from_offset") >= F.coalesce(_each(known, "epoch_start", "bigint"), F.lit(0))
    return RowRule("DUR-17", parts & recent, F.format_string("%s at offset %d", "entity", "from_offset"))


def _anyone(permissions: int) -> Column:
    """Everybody has one of these permissions on the znode."""
    return F.exists(
        "acl", lambda entry: (entry["scheme"] == "world") & (entry["perms"].bitwiseAND(F.lit(permissions)) != 0)
    )


def _epochs(findings: DataFrame) -> DataFrame:
    """Partitions that a checkpoint has with other epochs, or otherwise, than the records make of them (ISR-06)."""
    mine = findings.where((F.col("code") == "CAP-08") & F.col("subject").startswith("partitions "))
    text = F.format_string("%s: %s (%s)", "subject", "detail", "place")
    return mine.select(CLUSTER, F.lit("ISR-06").alias("code"), text.alias("text"))


def _znode_rules(known: Mapping[str, Known]) -> list[RowRule]:
    path = F.col("path")
    secret = path.rlike("^/(config/users|config/brokers|delegation_token/tokens)/")
    claimed = path.isin("/controller", "/migration")
    open_to_read = F.concat(path, F.lit(" can be read by everybody: setAcl "), path, F.lit(f" {_KAFKA_ALONE}"))
    open_to_write = F.concat(
        path, F.lit(" can be written by everybody: setAcl "), path, F.lit(f" {_KAFKA_ALONE},{_ALL_READ}")
    )
    rules = [
        RowRule("SEC-01", secret & _anyone(_ANY), open_to_read),
        RowRule("SEC-03", claimed & _anyone(_CHANGE), open_to_write),
    ]
    if any(each.loaded_at is not None for each in known.values()):
        config = path.rlike("^/config/(users|brokers)/")
        since = F.col("ctime") >= _each(known, "loaded_at", "bigint")
        rules.append(RowRule("SEC-02", config & since & _anyone(_READ), open_to_read))
    if any(each.mirrored_until is not None for each in known.values()):
        late = F.col("mzxid") > _each(known, "mirrored_until", "bigint")
        rules.append(
            RowRule("POST-04", path.rlike(_METADATA) & late, F.format_string("%s in transaction %d", "path", "mzxid"))
        )
    digest = F.exists("acl", lambda entry: (entry["scheme"] == "digest") & entry["id"].rlike(":[A-Za-z0-9+/]{27}=$"))
    return [
        *[RowRule(rule.code, newest() & rule.condition, rule.text) for rule in rules],
        _leak("zk_znodes", "path", "data", "problem"),
        RowRule("SEC-05", F.coalesce(digest, F.lit(False)), F.format_string("zk_znodes: the ACL of %s", "path")),
    ]


# For zookeeper-shell.sh: scheme `auth` stands for whoever runs the command.
_KAFKA_ALONE, _ALL_READ = "auth::cdrwa", "world:anyone:r"
# Znodes that only a controller, a broker or an operator writes; not what brokers say of themselves, nor notifications.
_METADATA = (
    "^/(brokers/topics/|config/(topics|brokers|users|clients|ips)/|kafka-acl/|kafka-acl-extended/|delegation_token/tokens/|"
    "latest_producer_id_block$|admin/(delete_topics/|reassign_partitions$|preferred_replica_election$))"
)


def identities(znodes: DataFrame) -> DataFrame:
    """Who may do everything with the znodes that say who made them: cluster, path, scheme, id; a few rows for each broker.

    `/migration` is made by a KRaft controller, `/brokers/ids/<id>` by that broker, `/brokers/topics` by brokers before.
    """
    made = znodes.where(
        F.col("path").isin("/migration", "/brokers/topics") | F.col("path").rlike("^/brokers/ids/[0-9]+$")
    )
    entries = made.select(CLUSTER, "path", F.explode("acl").alias("entry"))
    whole = entries.where((F.col("entry.perms") == F.lit(_EVERYTHING)) & (F.col("entry.scheme") != "world"))
    return whole.select(CLUSTER, "path", "entry.scheme", "entry.id").distinct()


def protection(znodes: DataFrame) -> DataFrame:
    """For each cluster: znodes of Kafka's secured roots with an ACL, those open to be changed by all, the newest change.

    Topics' own znodes are left out: they are most of a tree, and protected like the rest.
    """
    mine = (F.col("path") != "/") & ~F.col("path").rlike("^/(zookeeper|consumers|brokers/topics/.)")
    judged = mine & F.col("acl").isNotNull() & (F.size("acl") > 0)
    return znodes.groupBy(CLUSTER).agg(
        F.count_if(judged).alias("znodes"),
        F.count_if(judged & _anyone(_CHANGE)).alias("open"),
        F.max("mtime").alias("time"),
        F.max(F.greatest("czxid", "mzxid", "pzxid")).alias("zxid"),
    )


def replica_counts(partitions: DataFrame, pending_deletes: DataFrame) -> DataFrame:
    """Replicas per broker, topics pending deletion left out: cluster, broker_id, replicas, adding (of these).

    `partitions` are rows of one side of each cluster.
    """
    kept = partitions.join(F.broadcast(pending_deletes), [CLUSTER, "topic"], "left_anti")
    each = kept.select(CLUSTER, F.explode("replicas").alias("broker_id"), "adding_replicas")
    added = F.array_contains("adding_replicas", F.col("broker_id"))
    return each.groupBy(CLUSTER, "broker_id").agg(F.count("*").alias("replicas"), F.count_if(added).alias("adding"))


def partitions_on(partitions: DataFrame, broker_ids: Mapping[str, Sequence[int]], limit: int) -> DataFrame:
    """A few topics of which a broker holds replicas, users' topics before internal ones: (cluster, broker_id, text).

    The text is the topic's first partition there, and how many more of the topic it holds. `broker_ids` are the brokers
    of each cluster that are not asked for.
    """
    known = F.coalesce(by_cluster({c: list(ids) for c, ids in broker_ids.items()}, "array<int>"), F.array())
    replicas = partitions.where(F.size(F.array_except("replicas", known)) > 0).select(
        CLUSTER, "topic", "partition", F.explode(F.array_except("replicas", known)).alias("broker_id")
    )
    by_topic = replicas.groupBy(CLUSTER, "broker_id", "topic").agg(
        F.min("partition").alias("partition"), F.count("*").alias("count")
    )
    order = Window.partitionBy(CLUSTER, "broker_id").orderBy(F.col("topic").startswith("__"), "topic")
    numbered = by_topic.withColumn("number", F.row_number().over(order)).where(F.col("number") <= limit)
    more = F.when(F.col("count") > 1, F.format_string(" and %d more", F.col("count") - 1)).otherwise("")
    text = F.concat(F.format_string("%s/%d", "topic", "partition"), more)
    return numbered.select(CLUSTER, "broker_id", "number", text.alias("text"))


def row_counts(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Rows per entity and side: cluster, entity, source, rows."""
    return union_all(
        [
            rows.groupBy(CLUSTER, "source")
            .agg(F.count("*").alias("rows"))
            .select(CLUSTER, F.lit(name).alias("entity"), "source", "rows")
            for name, rows in silver.items()
        ]
    )


@dataclass(frozen=True)
class Mirrored:
    """What `/migration` says of a cluster: its offset (inclusive), the log's end (exclusive), when a write is surely in."""

    offset: int
    log_end: int
    written_by: int = 0


def append_times(records: DataFrame, mirrored: Mapping[str, Mirrored]) -> DataFrame:
    """For each cluster of `mirrored`: append time of the newest record below the log's end (`newest`), of the first one
    past `/migration`'s offset (`oldest_behind`) and of the one at it (`at_migration`); how many past it change what
    ZooKeeper holds (`changes`); the last offset of a record appended before `written_by`, in ms (`before_written`).
    """
    asked = records.where(of_clusters(mirrored)) if mirrored else records.where(F.lit(False))
    offset, end, by = (
        by_cluster({cluster: getattr(each, name) for cluster, each in mirrored.items()}, "bigint")
        if mirrored
        else F.lit(0)
        for name in ("offset", "log_end", "written_by")
    )
    log = asked.where(F.col("checkpoint_offset").isNull() & (F.col("offset") < end))
    behind = F.col("offset") > offset
    return log.groupBy(CLUSTER).agg(
        F.max("append_time").alias("newest"),
        F.min(F.when(behind, F.col("append_time"))).alias("oldest_behind"),
        F.count_if(behind & F.col("type").isin(list(MIRRORED))).alias("changes"),
        F.max(F.when(F.col("offset") == offset, F.col("append_time"))).alias("at_migration"),
        F.max(F.when(F.col("append_time") < by, F.col("offset"))).alias("before_written"),
    )


def barriers_between(barriers: DataFrame, offsets: Mapping[str, Sequence[int]]) -> DataFrame:
    """Barriers grouped by how many of their cluster's ascending `offsets` they have passed: passed, lowest, highest."""
    barrier = F.col("kraft_metadata_offset")
    asked = by_cluster({cluster: list(mine) for cluster, mine in offsets.items()}, "array<bigint>")
    passed = F.size(F.filter(asked, lambda offset: offset <= barrier))
    grouped = barriers.where(of_clusters(offsets)).groupBy(CLUSTER, passed.alias("passed"))
    return grouped.agg(F.min(barrier).alias("lowest"), F.max(barrier).alias("highest"))


def as_facts(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Rows of several small answers as one frame to collect: cluster, fact (the answer's name), row (JSON)."""
    return union_all(
        [
            frame.select(
                CLUSTER,
                F.lit(name).alias("fact"),
                F.to_json(
                    F.struct(*[F.col(column) for column in frame.columns if column != CLUSTER]), _WITH_NULLS
                ).alias("row"),
            )
            for name, frame in frames.items()
        ]
    )
