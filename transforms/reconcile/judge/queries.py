"""Rules over the rows of one cluster that must hold, and counts over them: every answer is bounded, regardless of the cluster's size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from schemas.checks import KRAFT, ZOOKEEPER
from schemas.checks.codes import ENCODED_NAME, HALF_LOADED, LOADED_AGAIN, MADE_AGAIN, SCRAM_LEFT_OUT, TO_DECODE
from transforms.frames import except_ids, json_of
from transforms.reconcile.compare.context import CLOCK_MARGIN_MS
from transforms.reconcile.compare.home import NO_ZNODE_NAME
from transforms.reconcile.compare.names import FOLDERS
from transforms.reconcile.judge import kraft_queries, operation_queries
from transforms.reconcile.judge.kraft_queries import Health
from transforms.reconcile.judge.load import Load
from transforms.reconcile.judge.partition_health import by_broker, moving, without_pending
from transforms.reconcile.judge.rules import RowRule, broken, said
from transforms.reconcile.judge.secret_rules import configuration_in_clear, credentials_in_clear, is_password, leaked

_READ_AT_ONCE_MS = 60_000
# A part of a quota's entity, as its key has it in compact JSON.
_NAMED = r'\{"type":"([^"]*)","name":"((?:[^"\\]|\\.)*)"\}'
_DEFAULT = r'\{"type":"([^"]*)","name":null\}'
# Other rules report the same as these findings, once for each row.
_TOLD_BY_ROWS = ("START-03", "START-04")


@dataclass(frozen=True)
class Known:
    """Known facts of a cluster that the rules below need: broker ids, zxids, times and offsets.

    `starting` is true before the load; `live` brokers are in `/brokers/ids`, `down` ones were shut down on purpose.
    `claim` is the czxid of `/controller` when a KRaft controller holds it, `loaded_at` the time the load ended,
    `epoch_start` the first offset of the newest leader epoch (its full sync mirrored everything before), `load` where the
    log holds the load. `mirrored_until` is `/migration`'s mzxid when the migration is finalised: nothing is mirrored after.
    `default_is_empty` is true for a release of 3.5 or later that takes an empty name for the default of a quota (KAFKA-16411).
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
    default_is_empty: bool | None = None
    health: Health = field(default_factory=Health)


def violations(tables: Mapping[str, pl.DataFrame], known: Known) -> Iterator[pl.DataFrame]:
    """All rows that are violations on their own, table by table: frames of VIOLATIONS.

    `tables` are silver rows by table name (entities, findings, admin_operations of the newest tree), `row_versions` and,
    where there is a log, `isr_history`. What lies in znodes, records and transactions is found while they are read
    (`ZnodeLook`, `LogLook`, `TransactionLook`), and in the znodes that are held (`znode_rules`).
    """
    judged = tables["partitions"]
    if known.starting:
        judged = without_pending(judged, tables["admin_operations"])
    yield from _of_partitions(judged, known)
    yield from _of_configs(tables["configs"], judged)
    yield from _of_security(tables, known)
    yield from _of_operations(tables, known)
    found = _still_lost(tables["findings"], tables["scram_credentials"])
    yield from _of_findings(_until_loaded(found, known.load))
    yield operation_queries.dead_letters(judged, tables["configs"])
    yield from kraft_queries.violations(judged, tables["configs"], tables.get("isr_history"), known.health)
    yield broken(tables["topics"], _topic_rules(known))


def _zookeeper() -> pl.Expr:
    return pl.col("source") == ZOOKEEPER


def _kraft() -> pl.Expr:
    return pl.col("source") == KRAFT


def _topic_rules(known: Known) -> list[RowRule]:
    rules = [RowRule("START-03", _zookeeper() & pl.col("topic_id").is_null(), pl.col("topic"))]
    if known.starting and known.epoch_start is not None:
        # The load that runs now is the newest leader's.
        earlier = _kraft() & (pl.col("kraft_created_offset") < known.epoch_start)
        text = said(
            "topic {} is in the log since offset {}: the load of an earlier leader ended halfway",
            "topic",
            "kraft_created_offset",
        )
        rules.append(RowRule(HALF_LOADED, earlier, text))
    return rules


def _of_partitions(partitions: pl.DataFrame, known: Known) -> Iterator[pl.DataFrame]:
    of_zookeeper, of_kraft = partitions.filter(_zookeeper()), partitions.filter(_kraft())
    yield broken(of_zookeeper, [*_zookeeper_rules(known), *kraft_queries.zookeeper_rules(known.health)])
    yield broken(
        of_kraft,
        [
            *_kraft_rules(known),
            *kraft_queries.kraft_rules(known.health),
            *operation_queries.partition_rules(known.health),
        ],
    )
    yield by_broker(of_zookeeper if known.starting else of_kraft, known.down)


def _of_configs(configs: pl.DataFrame, partitions: pl.DataFrame) -> Iterator[pl.DataFrame]:
    throttles = operation_queries.config_rules(partitions)
    yield broken(configs, [*_config_rules(), *kraft_queries.topic_config_rules(), *throttles])
    yield leaked(configs, "configs", "resource_name", "value")


def _of_security(tables: Mapping[str, pl.DataFrame], known: Known) -> Iterator[pl.DataFrame]:
    yield broken(tables["acls"], [_acl_without_place(), *operation_queries.acl_rules(known.health)])
    quotas, credentials = zip(_names_without_place(known), _encoded_names(), _empty_names(), strict=True)
    yield broken(tables["client_quotas"], [*quotas, _folders_for_types()])
    yield broken(
        tables["scram_credentials"], [*credentials, credentials_in_clear(), *operation_queries.credential_rules()]
    )
    yield broken(tables["delegation_tokens"], operation_queries.token_rules(known.health))


def _of_operations(tables: Mapping[str, pl.DataFrame], known: Known) -> Iterator[pl.DataFrame]:
    operations, versions = tables["admin_operations"], tables["row_versions"]
    yield broken(operations, _admin_rules(known))
    yield leaked(operations, "admin_operations", "zk_path", "subject", "detail")
    yield leaked(versions, "row_versions", "entity", "key", "row")
    yield broken(_removed_quotas(versions, tables["client_quotas"]), [_lost_removal(known.epoch_start)])


def _still_lost(findings: pl.DataFrame, credentials: pl.DataFrame) -> pl.DataFrame:
    """Without credentials that a checkpoint lacks and that were set again, or removed, since: a node that starts with it reads that."""
    if not (findings["code"] == SCRAM_LEFT_OUT).any():
        return findings
    mine = credentials.filter(_kraft()).select("user", "mechanism", "kraft_offset").rows()
    keys = {f"scram_credentials {json.dumps([user, mechanism])}": offset for user, mechanism, offset in mine}
    made = pl.DataFrame(
        {"subject": list(keys), "set_at": list(keys.values())}, {"subject": pl.String, "set_at": pl.Int64}
    )
    checkpoint = pl.col("place").str.strip_prefix("checkpoint ").cast(pl.Int64, strict=False)
    lost = (pl.col("set_at") < checkpoint).fill_null(value=False)
    joined = findings.join(made, on="subject", how="left", maintain_order="left")
    return joined.filter((pl.col("code") != SCRAM_LEFT_OUT) | lost).drop("set_at")


def _until_loaded(findings: pl.DataFrame, load: Load | None) -> pl.DataFrame:
    """Topics that came again under their id before the first load ended have a code of their own: that load was the last one.

    Kafka takes such a TopicRecord for a topic without partitions, and the load makes all of them again (`TopicsDelta.replay`).
    """
    if load is None:
        return findings
    offset = pl.col("place").str.strip_prefix("offset ").cast(pl.Int64, strict=False)
    again = (pl.col("code") == "DUR-08") & pl.col("detail").str.ends_with(MADE_AGAIN)
    before = again & (offset <= load.until).fill_null(value=False)
    return findings.with_columns(pl.when(before).then(pl.lit(LOADED_AGAIN)).otherwise("code").alias("code"))


def _of_findings(findings: pl.DataFrame) -> Iterator[pl.DataFrame]:
    yield leaked(findings, "findings", "code", "subject", "detail", "place")
    text = said("{}: {} ({})", "subject", "detail", "place").alias("text")
    yield findings.filter(~pl.col("code").is_in(_TOLD_BY_ROWS)).select("code", text)
    # Partitions that a checkpoint has with other epochs, or otherwise, than the records make of them.
    epochs = (pl.col("code") == "CAP-08") & pl.col("subject").str.starts_with("partitions ")
    yield findings.filter(epochs).select(pl.lit("ISR-06").alias("code"), text)


def _name() -> pl.Expr:
    return said("{}/{}", "topic", "partition")


def _reassigned() -> pl.Expr:
    return pl.concat_str(_name(), pl.lit(" is being reassigned"))


def _kraft_rules(known: Known) -> list[RowRule]:
    on_purpose = except_ids("replicas", known.down).list.len() == 0
    leaderless = pl.concat_str(_name(), pl.lit(" has no leader"))
    return [
        RowRule("FIN-05", moving(), _reassigned()),
        RowRule("FIN-05", (pl.col("leader") == -1) & ~on_purpose, leaderless),
    ]


def _zookeeper_rules(known: Known) -> list[RowRule]:
    leader, name = pl.col("leader"), _name()
    rules = [RowRule("START-04", leader.is_null(), name)]
    if known.starting:
        absent = (leader >= 0) & ~leader.is_in([*known.live])
        led = pl.concat_str(name, said(" has leader {}", "leader"))
        rules.append(RowRule("START-12", moving(), _reassigned()))
        rules.append(RowRule("START-16", (leader == -1) | absent, led))
    if known.controller_epoch is not None:
        epoch = pl.col("controller_epoch")
        written = pl.concat_str(name, said(" was written in controller epoch {}", "controller_epoch"))
        # The next election raises /controller_epoch by one.
        rules.append(RowRule("RB-03", epoch > known.controller_epoch + 1, written))
        # The controller that is in office never elects a leader over a newer one's write.
        rules.append(RowRule("RB-11", epoch > known.controller_epoch, written))
    return rules


def _config_rules() -> list[RowRule]:
    text = said("{} {}: {}", "resource_type", "resource_name", "config")
    hidden = ~pl.col("comparable")
    to_decode = (pl.col("resource_type") == "BROKER") & is_password("config")
    return [
        RowRule("DUR-06", _kraft() & ~pl.col("resource_type").is_in(["TOPIC", "BROKER"]), text),
        RowRule("SEC-04", _kraft() & hidden, said("{}: {}", "resource_name", "config")),
        RowRule("CIPHERTEXT", _zookeeper() & hidden, text),
        RowRule(TO_DECODE, _zookeeper() & to_decode, text),
        configuration_in_clear(),
    ]


def _acl_without_place() -> RowRule:
    text = said("an ACL of {} {}: ZooKeeper has no place for the name", "resource_type", "resource_name")
    return RowRule("RB-07", _kraft() & pl.col("resource_name").str.contains(NO_ZNODE_NAME), text)


def _names_without_place(known: Known) -> tuple[RowRule, RowRule]:
    """Of quotas and credentials. Names are encoded, but for dots; a default is null, or empty in releases that throw on null."""
    refused = "^[.]{0,2}$" if known.default_is_empty is False else "^[.]{1,2}$"
    return _by_name("RB-07", refused, "ZooKeeper has no place for the name", or_default=bool(known.default_is_empty))


def _encoded_names() -> tuple[RowRule, RowRule]:
    """Of quotas and credentials: names as `Sanitizer` writes them into paths (KAFKA-16222). The Admin API takes such a name, too."""
    why = "spelled as a load of Kafka 3.4 to 3.7.0 stores names; it applies to nobody whose name is not spelled so"
    return _by_name(ENCODED_NAME, "%[0-9A-F]{2}", why)


def _empty_names() -> tuple[RowRule, RowRule]:
    """Of quotas and credentials: those without a name, as a load stores defaults (KAFKA-16411)."""
    return _by_name(ENCODED_NAME, "^$", "a load of Kafka 3.4 to 3.7.0 stores a default so, and it applies to nobody")


def _folders_for_types() -> RowRule:
    """Of quotas: those that Kafka 3.4 stored under the name of ZooKeeper's folder instead of the entity's type."""
    odd = pl.element().struct.field("type").is_in(FOLDERS)
    text = said("a quota of {}: Kafka 3.4 stored it under the folder's name, and it applies to nobody", _quota())
    return RowRule(ENCODED_NAME, _kraft() & pl.col("entity").list.eval(odd).list.any(), text)


def _quota() -> pl.Expr:
    return _spelled(json_of("entity").str.json_path_match("$.entity"))


def _by_name(code: str, names: str, why: str, *, or_default: bool = False) -> tuple[RowRule, RowRule]:
    """Rules for KRaft's quotas and credentials, by a pattern of names; `or_default` also of a quota's default, whose name is null."""
    parts = pl.element().struct.field("name").str.contains(names)
    odd = parts.fill_null(value=True) if or_default else parts
    quota = said(f"a quota of {{}}: {why}", _quota())
    credential = said(f"a credential of user {{}}: {why}", "user")
    return (
        RowRule(code, _kraft() & pl.col("entity").list.eval(odd).list.any(), quota),
        RowRule(code, _kraft() & pl.col("user").str.contains(names), credential),
    )


def _spelled(entity: pl.Expr) -> pl.Expr:
    """A quota's entity, as its key has it in compact JSON, in words."""
    named = entity.str.replace_all(_NAMED, "${1}=${2}").str.replace_all(_DEFAULT, "${1}=<default>")
    return named.str.strip_chars("[]")


def _admin_rules(known: Known) -> list[RowRule]:
    kind, czxid = pl.col("kind"), pl.col("zk_czxid")
    asked = kind.is_in(["delete_topic", "reassign_partitions", "preferred_replica_election"])
    text = said("{} of {} ({})", "kind", "subject", "zk_path")
    rules = [RowRule("START-12", asked, text)]
    if known.newest_znode_time_ms is not None:
        # A controller that is running reads and deletes it within a second.
        left = (kind == "isr_change") & (pl.col("zk_mtime") < known.newest_znode_time_ms - _READ_AT_ONCE_MS)
        rules.append(RowRule("ISR-13", left, said("{} ({})", "subject", "zk_path")))
    if known.claim is not None:
        old = asked | kind.is_in(["isr_change", "log_dir_event"])
        rules.append(RowRule("DUR-16", old & _since_kraft_took_over(known), text))
        rules.append(RowRule("DUR-19", (kind == "delete_topic") & (czxid < known.claim), text))
    return rules


def _since_kraft_took_over(known: Known) -> pl.Expr:
    """By the newest claim's transaction; before it, which each failover moves, surely later than the load by two clocks."""
    since = pl.col("zk_czxid") > known.claim
    if known.loaded_at is None:
        return since
    return since | (pl.col("zk_mtime") > known.loaded_at + CLOCK_MARGIN_MS)


def _removed_quotas(versions: pl.DataFrame, quotas: pl.DataFrame) -> pl.DataFrame:
    """Removals of quotas whose whole entity is gone: entity (JSON), from_offset."""
    removed = versions.filter((pl.col("entity") == "client_quotas") & pl.col("removed"))
    rows = removed.select(_entity_of(pl.col("key")).alias("entity"), "from_offset")
    if rows.is_empty():
        return rows
    alive = quotas.filter(_kraft()).select(_entity_of(json_of("entity")).alias("entity")).unique()
    return rows.join(alive, on="entity", how="anti")


def _entity_of(document: pl.Expr) -> pl.Expr:
    """The field `entity` of a JSON object, as compact JSON."""
    return document.str.json_path_match("$.entity")


def _lost_removal(epoch_start: int | None) -> RowRule:
    """Only users' quotas are mirrored correctly; the newest leader's full sync mirrors what was removed before it."""
    parts = pl.col("entity").str.contains_any(['"client-id"', '"ip"'])
    recent = pl.col("from_offset") >= (epoch_start or 0)
    text = said("quotas of {}, removed at offset {}", _spelled(pl.col("entity")), "from_offset")
    return RowRule("DUR-17", parts & recent, text)


def replica_counts(partitions: pl.DataFrame, pending_deletes: pl.DataFrame) -> pl.DataFrame:
    """Replicas per broker, topics pending deletion (column `topic`) left out: broker_id, replicas, adding (of these).

    `partitions` are rows of one side.
    """
    kept = partitions.join(pending_deletes, on="topic", how="anti")
    each = kept.select(pl.col("replicas").alias("broker_id"), "adding_replicas")
    each = each.filter(pl.col("broker_id").list.len() > 0).explode("broker_id")
    added = pl.col("adding_replicas").list.contains(pl.col("broker_id"))
    counts = each.group_by("broker_id").agg(pl.len().alias("replicas"), added.sum().alias("adding"))
    return counts.sort("broker_id")


def partitions_on(partitions: pl.DataFrame, known: Sequence[int], limit: int) -> pl.DataFrame:
    """A few topics of which a broker that is not `known` holds replicas, users' topics before internal ones: broker_id,
    number, text.

    The text is the topic's first partition there, and how many more of the topic it holds.
    """
    held = partitions.select("topic", "partition", except_ids("replicas", known).alias("broker_id"))
    replicas = held.filter(pl.col("broker_id").list.len() > 0).explode("broker_id")
    by_topic = replicas.group_by("broker_id", "topic").agg(pl.col("partition").min(), pl.len().alias("count"))
    ordered = by_topic.sort("broker_id", pl.col("topic").str.starts_with("__"), "topic")
    number = pl.int_range(1, pl.len() + 1).over("broker_id").alias("number")
    more = pl.when(pl.col("count") > 1).then(said(" and {} more", pl.col("count") - 1)).otherwise(pl.lit(""))
    text = pl.concat_str(_name(), more).alias("text")
    return ordered.with_columns(number).filter(pl.col("number") <= limit).select("broker_id", "number", text)


def row_counts(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Rows per entity and side: entity, source, rows."""
    counts = [
        rows.lazy()
        .group_by("source")
        .agg(pl.len().alias("rows"))
        .select(pl.lit(name).alias("entity"), "source", "rows")
        for name, rows in tables.items()
    ]
    return pl.concat(counts).sort("entity", "source").collect()
