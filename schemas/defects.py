"""Known defects of Kafka's migration (S§12.2): which releases have them, what they do, what shows that they struck.

`latent` ones have no ticket: they were found by reading Kafka's source or by running it, and no release repairs them.
"""

from __future__ import annotations

from dataclasses import dataclass

# The newest patch of each release that can migrate: a release named without its patch may be any of these.
LAST_PATCH: dict[str, int] = {"3.4": 1, "3.5": 2, "3.6": 2, "3.7": 2, "3.8": 1, "3.9": 2}
# The migration was removed in this release.
REMOVED_IN = "4.0.0"


@dataclass(frozen=True)
class RowTrace:
    """Divergences that a defect leaves; a field that is None matches anything. `parts` are types in a quota's entity."""

    entity: str
    classes: tuple[str, ...] = ("lost_write",)
    kind: str | None = None
    column: str | None = None
    explanation: str | None = None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class KnownDefect:
    """One defect: from release `first` on, until a release in `fixed` (one per branch); without any, to the last one.

    Its traces are failed `checks`, `findings` codes and `rows`; `harms` is false where nothing is lost or stuck.
    """

    jira: str
    title: str
    effect: str
    first: str
    fixed: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    rows: tuple[RowTrace, ...] = ()
    harms: bool = True


_LOADED = ("lost_write", "load_loss", "lag")
_3_5 = ("3.5.0",)
_3_7 = ("3.6.2", "3.7.0")
_NAMES = ("3.6.2", "3.7.1", "3.8.0")
_SUFFIX = ("3.7.2", "3.8.1", "3.9.0")

DEFECTS: tuple[KnownDefect, ...] = (
    KnownDefect(
        "KAFKA-14801",
        "encrypted configurations are copied undecoded",
        "Brokers in KRaft mode take the ciphertext for the password.",
        "3.4.0",
        _3_5,
        checks=("SEC-04",),
    ),
    KnownDefect(
        "KAFKA-14840",
        "no handling of checkpoints and failovers in dual write",
        "Writes around a failover are lost, or the load runs a second time (with KAFKA-15010).",
        "3.4.0",
        _3_5,
        checks=("DUR-08",),
    ),
    KnownDefect(
        "KAFKA-14859",
        "SCRAM credentials are not mirrored",
        "Users are locked out after a rollback (with KAFKA-15017 for quotas).",
        "3.4.0",
        _3_5,
        rows=(RowTrace("scram_credentials", _LOADED), RowTrace("client_quotas", _LOADED)),
    ),
    KnownDefect(
        "KAFKA-14796",
        "ACLs are not migrated",
        "Access changes with the migration (with KAFKA-15009).",
        "3.4.0",
        _3_5,
        rows=(RowTrace("acls", ("load_loss",)),),
    ),
    KnownDefect(
        "KAFKA-15003",
        "assignments are not mirrored",
        "ZooKeeper keeps the replicas from before a reassignment.",
        "3.4.0",
        _3_5,
        rows=(RowTrace("partitions", column="replicas"),),
    ),
    KnownDefect(
        "KAFKA-15004",
        "topic configurations are mirrored wrongly",
        "ZooKeeper has other topic configurations than KRaft.",
        "3.4.0",
        _3_5,
        rows=(RowTrace("configs"),),
    ),
    KnownDefect(
        "KAFKA-14805",
        "writes are accepted before the load",
        "What was made before the load can collide with it (with KAFKA-14909).",
        "3.4.0",
        _3_5,
    ),
    KnownDefect("KAFKA-15098", "the authorizer is refused", "Brokers do not start.", "3.4.0", ("3.5.1",)),
    KnownDefect(
        "KAFKA-15149",
        "new partitions are not announced to ZooKeeper brokers",
        "Brokers in ZooKeeper mode do not serve them until the next full update.",
        "3.5.0",
        ("3.5.1", "3.6.0"),
    ),
    KnownDefect(
        "KAFKA-15263",
        "events run in the wrong driver state",
        "Dual write can continue under a stale leader.",
        "3.5.0",
        ("3.5.2", "3.6.0"),
        checks=("DUR-03",),
    ),
    KnownDefect(
        "KAFKA-15374",
        "a cluster-wide broker default stops the migration",
        "The load fails on /config/brokers/<default>.",
        "3.5.0",
        ("3.5.2", "3.6.0"),
    ),
    KnownDefect(
        "KAFKA-15552",
        "the first producer id after the load was handed out before",
        "Two producers get one id: transactions are fenced or duplicates appear.",
        "3.4.0",
        ("3.5.2", "3.6.1", "3.7.0"),
        checks=("DUR-15",),
    ),
    KnownDefect(
        "KAFKA-15605",
        "topics pending deletion are migrated",
        "Deleted topics live on in KRaft (with KAFKA-15799).",
        "3.4.0",
        ("3.6.1", "3.7.0"),
        rows=(RowTrace("topics", ("pending_delete",)),),
    ),
    KnownDefect(
        "KAFKA-15825",
        "the full sync after the load can copy an empty state",
        "Topics, configurations, quotas and ACLs are deleted from ZooKeeper while brokers still run in ZooKeeper mode.",
        "3.5.0",
        ("3.6.1", "3.7.0"),
        # Without transaction logs, nobody can tell who deleted them.
        rows=(RowTrace("topics", ("lost_write", "foreign_write"), kind="kraft_only"),),
    ),
    KnownDefect(
        "KAFKA-15689", "a state change is logged too late", "Only a log line.", "3.4.0", ("3.7.0",), harms=False
    ),
    KnownDefect(
        "KAFKA-15704",
        "controllers do not register as ready to migrate",
        "The migration never starts.",
        "3.4.0",
        ("3.7.0",),
        checks=("START-05",),
    ),
    KnownDefect(
        "KAFKA-16007",
        "the load writes slow or oversized batches",
        "The load takes long or fails (with KAFKA-16216).",
        "3.4.0",
        _3_7,
    ),
    KnownDefect(
        "KAFKA-16120",
        "replicas stay behind after a reassignment in hybrid mode",
        "Partition folders nobody owns stay on brokers (with KAFKA-16121); the metadata do not show it.",
        "3.4.0",
        _3_7,
    ),
    KnownDefect(
        "KAFKA-16171",
        "a stale leader wins /migration",
        "The new leader's writes of ZooKeeper all fail.",
        "3.4.0",
        _3_7,
        checks=("DUR-03",),
    ),
    KnownDefect(
        "KAFKA-16180",
        "a broker in ZooKeeper mode can fail a full update of its metadata",
        "It keeps an old view of the topics; the metadata do not show it.",
        "3.6.1",
        _3_7,
    ),
    KnownDefect(
        "PR 15327",
        "deleting one ACL leaves only one of the others in ZooKeeper",
        "ZooKeeper has fewer ACLs than KRaft, and so has the cluster after a rollback.",
        "3.5.0",
        _3_7,
        rows=(RowTrace("acls", kind="kraft_only"),),
    ),
    KnownDefect(
        "KAFKA-16222",
        "quota and SCRAM names stay percent-encoded in KRaft",
        "The quota or credential does not apply to the user or client it was made for.",
        "3.4.0",
        _NAMES,
        rows=(
            RowTrace("client_quotas", ("load_extra",), explanation="KAFKA-16222"),
            RowTrace("scram_credentials", ("load_extra",), explanation="KAFKA-16222"),
        ),
    ),
    KnownDefect(
        "KAFKA-16411",
        "default quotas are stored under an empty name",
        "Defaults do not apply; a default made in KRaft stops the mirroring of its change.",
        "3.4.0",
        _NAMES,
        rows=(RowTrace("client_quotas", ("load_extra",), explanation="KAFKA-16411"),),
    ),
    KnownDefect(
        "KAFKA-16428",
        "changed configurations are not announced to ZooKeeper brokers",
        "Brokers in ZooKeeper mode keep the old configuration until they restart.",
        "3.4.0",
        _NAMES,
    ),
    KnownDefect(
        "KAFKA-16003",
        "topics born in KRaft have no configuration znode",
        "Equal to an empty one.",
        "3.4.0",
        ("3.7.1", "3.8.0"),
        harms=False,
    ),
    KnownDefect(
        "KAFKA-16206", "configuration znodes are deleted needlessly", "None.", "3.4.0", ("3.8.0",), harms=False
    ),
    KnownDefect(
        "KAFKA-16539",
        "ZooKeeper brokers write configurations after the takeover",
        "Such a change is in ZooKeeper only, until KRaft overwrites it.",
        "3.4.0",
        ("3.7.1", "3.8.0"),
        rows=(RowTrace("configs", ("foreign_write",)),),
    ),
    KnownDefect(
        "KAFKA-16563",
        "a retriable error ends the migration's polling",
        "The migration or dual write stands still.",
        "3.4.0",
        ("3.7.1", "3.8.0"),
        checks=("DUR-04",),
    ),
    KnownDefect(
        "KAFKA-16463",
        "brokers keep the metadata log of a migration that was rolled back",
        "In the next migration they do not follow the new controllers until the folder is deleted.",
        "3.4.0",
        ("3.7.1", "3.8.0"),
    ),
    KnownDefect(
        "KAFKA-16667",
        "a new leader reads a stale /migration",
        "Its writes of ZooKeeper fail.",
        "3.4.0",
        ("3.9.0",),
        checks=("DUR-03",),
    ),
    KnownDefect(
        "KAFKA-17457",
        "the load can run without a transaction",
        "A load that dies stays half done.",
        "3.4.0",
        _SUFFIX,
        checks=("START-06", "DUR-07"),
    ),
    KnownDefect(
        "KAFKA-17506",
        "the migration driver can miss its start",
        "The migration never begins; a controller failover helps.",
        "3.4.0",
        _SUFFIX,
    ),
    KnownDefect(
        "KAFKA-17146",
        "the documented rollback leaves /migration behind",
        "The next quorum skips the load and empties ZooKeeper.",
        "3.9.0",
        checks=("START-07", "RB-05"),
    ),
    KnownDefect(
        "KAFKA-16468",
        "a migrating broker may lack the listener between brokers",
        "Controllers cannot reach it.",
        "3.4.0",
        ("3.9.0",),
    ),
    KnownDefect(
        "KAFKA-17788",
        "control.plane.listener.name collides with the migration",
        "Brokers do not start (with KAFKA-17790); the metadata do not show it.",
        "3.9.0",
    ),
    KnownDefect(
        "KAFKA-19480",
        "a /migration with null data stops the migration",
        "The controllers' migration driver fails on it forever.",
        "3.4.0",
        findings=("MIGRATION-NULL",),
    ),
    KnownDefect(
        "KAFKA-20488",
        "a rollback meets controller epochs from the future",
        "The ZooKeeper controller refuses to elect leaders for the partitions concerned.",
        "3.4.0",
        checks=("RB-03",),
    ),
    KnownDefect(
        "KAFKA-20960",
        "finalising is not held back by brokers in ZooKeeper mode",
        "Brokers that still run in ZooKeeper mode are cut off.",
        "3.4.0",
        checks=("POST-03", "FIN-07"),
    ),
    KnownDefect(
        "latent A",
        "removing a quota of a client id, an address or a user's client is not mirrored",
        "A NullPointerException skips the rest of that change too: producer ids, ACLs and tokens.",
        "3.5.0",
        checks=("DUR-17",),
        rows=(RowTrace("client_quotas", kind="zk_only", parts=("client-id", "ip")),),
    ),
    KnownDefect(
        "latent B",
        "a client metrics subscription stops every full sync",
        "After the next controller failover nothing is mirrored.",
        "3.7.0",
        checks=("DUR-06", "START-19"),
    ),
    KnownDefect(
        "latent C",
        "a partition without a state znode stops the full sync",
        "Dual write stands still or loses the change.",
        "3.5.0",
        findings=("START-04",),
    ),
    KnownDefect(
        "latent D",
        "a partition that only ZooKeeper has can't be deleted",
        "The full sync fails on it.",
        "3.5.0",
        rows=(RowTrace("partitions", kind="zk_only"),),
    ),
    KnownDefect(
        "latent E",
        "mirrored user and broker configurations are readable by everybody",
        "In a secured ZooKeeper anyone reads SCRAM credentials made since the migration began.",
        "3.5.0",
        checks=("SEC-02",),
    ),
    KnownDefect(
        "latent F",
        "checkpoints drop records that metadata.version does not support",
        "SCRAM credentials or delegation tokens are gone after a restart from a checkpoint.",
        "3.6.0",
        checks=("DUR-09",),
    ),
    KnownDefect(
        "latent G",
        "a change that fails midway is not finished",
        "What comes after the failure is never mirrored, and /migration moves on.",
        "3.5.0",
        checks=("DUR-18",),
    ),
    KnownDefect(
        "latent H",
        "refused writes of ACLs and producer ids pass for done",
        "ZooKeeper keeps the old ACLs or producer ids.",
        "3.5.0",
        rows=(RowTrace("producer_ids"),),
    ),
    KnownDefect(
        "latent I",
        "removing a SCRAM credential can hide others from a node that starts",
        "Their users cannot log in there, and a controller that lacks them deletes them from ZooKeeper.",
        "3.5.0",
        checks=("SEC-12",),
    ),
)
