"""What a check is: an entry of the catalogue, and the words its verdict is given in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from schemas.references import spelled_out


class Phase(StrEnum):
    """Where a cluster stands; a check applies in some phases only."""

    ZOOKEEPER = "zookeeper"
    """No KRaft log, or one without a migration state: nothing has begun."""
    WAITING = "waiting"
    """PRE_MIGRATION: the controllers wait for the brokers, or the load runs."""
    DUAL_WRITE = "dual_write"
    """MIGRATION: loaded, every change is mirrored to ZooKeeper."""
    FINALIZED = "finalized"
    """POST_MIGRATION: ZooKeeper is history."""
    ROLLED_BACK = "rolled_back"
    """The log says MIGRATION, but a ZooKeeper broker is the controller again."""
    KRAFT = "kraft"
    """A cluster that never was in ZooKeeper mode, or Kafka 4: no migration state."""


ZOOKEEPER, KRAFT = "zookeeper", "kraft"
BOTH = frozenset({ZOOKEEPER, KRAFT})
KRAFT_ONLY = frozenset({KRAFT})
ZOOKEEPER_ONLY = frozenset({ZOOKEEPER})
START_PHASES = frozenset({Phase.ZOOKEEPER, Phase.WAITING})
# A ZooKeeper controller decides.
BY_ZOOKEEPER = START_PHASES | {Phase.ROLLED_BACK}
WAITING = frozenset({Phase.WAITING})
DURING = frozenset({Phase.DUAL_WRITE})
MIGRATED = frozenset({Phase.DUAL_WRITE, Phase.FINALIZED})
FINALIZED = frozenset({Phase.FINALIZED})
EVERY_PHASE = frozenset(Phase)
IN_KRAFT = frozenset({Phase.FINALIZED, Phase.KRAFT})
WITH_KRAFT = frozenset({Phase.DUAL_WRITE, Phase.FINALIZED, Phase.KRAFT})


@dataclass(frozen=True)
class Check:
    """One check. `needs` are the sides that must have been collected, else its verdict is unknown.

    A check of severity `warning` never fails and so never closes a gate; one that names no gate is not about a step of the
    migration. An `optional` one needs more than the two sides: without that input it is unknown, names it and leaves its gates
    as they are, unless the input was given and cannot be read.
    """

    id: str
    title: str
    gates: tuple[str, ...]
    phases: frozenset[Phase]
    needs: frozenset[str]
    severity: str
    remedy: str
    reference: str
    optional: bool = False


def check(
    check_id: str,
    title: str,
    gates: tuple[str, ...],
    phases: frozenset[Phase],
    remedy: str,
    reference: str,
    *,
    needs: frozenset[str] = BOTH,
    severity: str = "error",
) -> Check:
    """Make an entry; by default both sides are needed and a violation is an error. `reference` may cite `S§n`."""
    return Check(check_id, title, gates, phases, needs, severity, remedy, spelled_out(reference))


def optional(entry: Check) -> Check:
    """Make an entry of a check that needs more than the two sides and closes no gate without that input."""
    return replace(entry, optional=True)
