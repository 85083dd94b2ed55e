"""RUN checks: is this the cluster and the log that the last run audited, and has the log grown since (S§7.1)."""

from __future__ import annotations

from schemas.checks.check import EVERY_PHASE, KRAFT_ONLY, Check, Phase, check
from schemas.gates import GATES

# Before there is a log, and after a rollback, when the controllers are stopped, a log need not grow.
_LEADING = frozenset({Phase.WAITING, Phase.DUAL_WRITE, Phase.FINALIZED, Phase.KRAFT})

CHECKS: tuple[Check, ...] = (
    check(
        "RUN-01",
        "The cluster is the one that the last run audited under this name",
        GATES,
        EVERY_PHASE,
        "Give every cluster its own name in `cluster`: this log or tree belongs to another cluster. If the cluster "
        "was created again, give it a new name too.",
        "MetaProperties, cluster.id; S§7.1",
        needs=frozenset(),
    ),
    check(
        "RUN-02",
        "The log reaches at least the committed end that the last run saw",
        GATES,
        _LEADING,
        "Stop the migration or upgrade here. Check the copy first: if nothing updates it any more, copy the log folders "
        "again. If the copy is fresh, committed metadata is lost: someone restored a backup, or too few disks "
        "survived. Find out which. Then audit under a new name in `cluster`.",
        "A committed offset never falls (KIP-595); S§2.9, S§7.1",
        needs=KRAFT_ONLY,
    ),
    check(
        "RUN-03",
        "The log has the same history that the last run read",
        GATES,
        _LEADING,
        "Stop the migration or upgrade here. A committed record never changes its epoch: someone restored a backup or "
        "formatted the controllers, or metadata was lost and written again. Compare the runs with `kraft-audit "
        "compare --run A --run B` to see what is lost. Then audit under a new name in `cluster`.",
        "Log matching by leader epochs (KIP-595); S§2.10, S§7.1",
        needs=KRAFT_ONLY,
    ),
    check(
        "RUN-04",
        "The log has grown since earlier runs",
        GATES,
        _LEADING,
        "Check that the copy is still being updated. Then check that a controller leads: `kafka-metadata-quorum.sh "
        "--bootstrap-controller HOST:PORT describe --status` (Kafka 3.7 and later). A leader appends twice a second. If the copies are old "
        "on purpose, set `as_of: data`.",
        "KIP-835, metadata.max.idle.interval.ms; S§2.9",
        needs=KRAFT_ONLY,
    ),
    check(
        "RUN-05",
        "A log that should be current has new records",
        GATES,
        _LEADING,
        "Check that a controller leads, that the copy is still being updated (`kraft.current`), and that this "
        "machine's clock is right.",
        "KIP-835, metadata.max.idle.interval.ms; S§2.9",
        needs=KRAFT_ONLY,
    ),
)
