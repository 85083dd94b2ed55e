"""The words a report uses: what each state, gate, verdict and mode means to the people who read it (S§4.4, S§7)."""

from __future__ import annotations

from dataclasses import dataclass

SEVERITY_ORDER = ("critical", "error", "warning", "warn", "info")
CHECK_ORDER = ("fail", "warn", "unknown", "pass", "not_applicable")

GATE_TITLES = {
    "start": "Start the migration",
    "dual_write": "Stay in dual write",
    "finalize": "Finalise",
    "rollback": "Roll back",
    "upgrade": "Upgrade Kafka",
}
GATE_QUESTIONS = {
    "start": "May the load of ZooKeeper's metadata begin?",
    "dual_write": "Is dual write doing its job?",
    "finalize": "May I leave ZooKeeper for good?",
    "rollback": "Can I still return to ZooKeeper?",
    "upgrade": "May this cluster be upgraded to the next release?",
}
# What a closed gate forbids; dual write is a state, not a step.
GATE_VERBS = {
    "start": "start the migration",
    "finalize": "finalise yet",
    "rollback": "roll back",
    "upgrade": "upgrade Kafka",
}
VERDICT_WORDS = {
    "go": "GO",
    "no_go": "NO-GO",
    "unknown": "UNKNOWN",
    "not_applicable": "n/a",
    "pass": "pass",
    "warn": "warn",
    "fail": "FAIL",
}
# What a reader is shown for a state of dual write whose name in report.json reads otherwise.
LAG_STATES = {"stopped in order": "stopped cleanly"}
# How the two sides were compared, in a few words; a mode of a later release is shown as it is.
MODE_NAMES = {
    "barrier": "at one transaction (barrier)",
    "bracket": "between two walks (bracket)",
    "single": "one walk (single)",
    "kraft_only": "KRaft only",
    "zookeeper_only": "ZooKeeper only",
}
MODE_MEANINGS = {
    "barrier": "ZooKeeper rebuilt from its snapshot and transaction log at a /migration write: exact.",
    "bracket": "two live walks around the copy of the log: a difference counts only if both walks show it.",
    "single": "one walk: rows changed during a live walk may show as differences for one run.",
    "kraft_only": "only the KRaft log was given: nothing could be compared.",
    "zookeeper_only": "only ZooKeeper was given: nothing could be compared.",
}


@dataclass(frozen=True)
class StateWords:
    """How a phase of the migration reads: `title` for the banner of a clean run, `meaning` for the sentence under it."""

    title: str
    meaning: str


# By `schemas.checks.Phase`.
PHASES = {
    "zookeeper": StateWords(
        "No migration is in progress", "The cluster runs on ZooKeeper; nothing has been copied yet."
    ),
    "waiting": StateWords(
        "Waiting for the migration to start",
        "The cluster still runs on ZooKeeper: the controllers are up and wait for the brokers, and nothing is copied yet.",
    ),
    "dual_write": StateWords(
        "Dual write is healthy", "KRaft is in charge and writes every change to ZooKeeper as well."
    ),
    "finalized": StateWords(
        "The migration is finalised", "KRaft alone is in charge; ZooKeeper is no longer used and there is no way back."
    ),
    "rolled_back": StateWords(
        "The cluster was rolled back to ZooKeeper",
        "A ZooKeeper broker is the controller again, so the two sides are not compared.",
    ),
    "kraft": StateWords("The cluster runs on KRaft", "Its log records no migration from ZooKeeper."),
}
# For a cluster that is reported as a KRaft cluster.
HEALTHY_KRAFT = StateWords(
    "The KRaft cluster is healthy",
    "Its metadata log is intact, and every partition has a leader and all its replicas are in sync.",
)
UNJUDGED = StateWords(
    "Nothing wrong was found, but dual write was not judged",
    "The cluster is in dual write, but too little was given to judge whether it works.",
)
UNKNOWN_PHASE = StateWords("The audit found nothing wrong", "The state of the migration is unknown.")
# The state a log records, for reports that name no phase.
PHASE_OF_STATE = {
    "NONE": "zookeeper",
    "PRE_MIGRATION": "waiting",
    "MIGRATION": "dual_write",
    "POST_MIGRATION": "finalized",
}
