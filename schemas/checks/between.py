"""RUN checks: is this the cluster, and the log, that the last run audited, and has it gone on since (S§7.1)."""

from __future__ import annotations

from schemas.checks.check import EVERY_PHASE, KRAFT_ONLY, Check, Phase, check
from schemas.gates import GATES

# Before there is a log, and after a rollback, when the controllers are stopped, nothing of it has to go on.
_LEADING = frozenset({Phase.WAITING, Phase.DUAL_WRITE, Phase.FINALIZED, Phase.KRAFT})

CHECKS: tuple[Check, ...] = (
    check(
        "RUN-01",
        "The cluster is the one that the last run audited under this name",
        GATES,
        EVERY_PHASE,
        "Give every cluster a name of its own in `cluster`: a copy of another cluster's log or tree came under this one. A "
        "cluster that was made anew needs a new name too.",
        "MetaProperties, cluster.id; S§7.1",
        needs=frozenset(),
    ),
    check(
        "RUN-02",
        "The log reaches as far as the last run saw it committed",
        GATES,
        _LEADING,
        "Look at the copy first: one that is no longer renewed is stale, copy the log folders again. If the copy is new, "
        "committed metadata is lost: a backup was restored, or too few disks survived. Do not go on before you know which; "
        "once that is settled, audit under a new name in `cluster`.",
        "A committed offset never falls (KIP-595); S§2.9, S§7.1",
        needs=KRAFT_ONLY,
    ),
    check(
        "RUN-03",
        "The log has the history that the last run read",
        GATES,
        _LEADING,
        "Committed records never change their epoch: a backup was restored, controllers were formatted, or metadata was lost "
        "and written anew. Compare the runs (`kraft-audit compare --run A --run B`); once what is lost is settled, audit under "
        "a new name in `cluster`.",
        "Log matching by leader epochs (KIP-595); S§2.10, S§7.1",
        needs=KRAFT_ONLY,
    ),
    check(
        "RUN-04",
        "The log has moved since earlier runs",
        GATES,
        _LEADING,
        "Look whether the copy is still renewed, then whether a controller leads (kafka-metadata-quorum describe): a leader "
        "appends twice a second. For copies that are meant to be old say `as_of: data`.",
        "KIP-835, metadata.max.idle.interval.ms; S§2.7",
        needs=KRAFT_ONLY,
    ),
    check(
        "RUN-05",
        "A log that claims to be of now has new records",
        GATES,
        _LEADING,
        "Look whether a controller leads, whether the copy is still renewed (`kraft.current`), and at this machine's clock.",
        "KIP-835, metadata.max.idle.interval.ms; S§2.7",
        needs=KRAFT_ONLY,
    ),
)
