"""The description of a run's kept state in its row of gold `runs`, and how to read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.sinks.conditions import PRESENT
from jobs.sinks.reader import Reader
from schemas.gold import RUNS
from transforms.chain.chain import Chain, chain_of
from transforms.clusters import CLUSTER
from transforms.kraft.side import LogKept

FOLD, MEMORY, STATE = "fold", "memory", "state"


@dataclass(frozen=True)
class Bytes:
    """Bytes in silver `examined`: the run that wrote them, and the SHA-256 of each piece, in order."""

    run_id: str
    digests: tuple[str, ...]


@dataclass(frozen=True)
class Kept:
    """What a run kept of a cluster.

    `memory` is what it remembers of rows that differ, of epochs and of partitions' changes. `fold` is the state of the
    log below `offset`, None where the log must be read from its start; the record before `offset` has `last_epoch` and
    `last_append_time`. `milestones` are the records below it that decide how others are read. `base_run` is the run
    whose fold that one continued from. `chain` is its state in the tables, empty where a release before left none that
    can be followed, and `layout` that of its rows.
    """

    run_id: str
    memory: Bytes
    fold: Bytes | None = None
    offset: int = 0
    last_epoch: int | None = None
    last_append_time: int | None = None
    milestones: tuple[Mapping[str, Any], ...] = ()
    base_run: str | None = None
    chain: Chain = field(default_factory=Chain)
    layout: str | None = None

    @property
    def without_fold(self) -> Kept:
        """The same for a run that reads the log from its start."""
        return Kept(self.run_id, self.memory, chain=self.chain, layout=self.layout)

    @property
    def of_log(self) -> LogKept | None:
        """The state of the log, as the plan of it takes it; None without any."""
        if self.fold is None or self.last_epoch is None or self.last_append_time is None:
            return None
        return LogKept(
            self.fold.run_id, self.offset, self.last_epoch, self.last_append_time, self.milestones, self.base_run
        )

    @property
    def bytes_of(self) -> dict[str, Bytes]:
        """What there is, by kind."""
        found = {MEMORY: self.memory}
        return found if self.fold is None else {**found, FOLD: self.fold}


def read(run_id: str, text: str) -> Kept:
    """Read the output of `said`."""
    document = json.loads(text)
    found = {
        kind: Bytes(document[kind]["run_id"], tuple(document[kind]["digests"]))
        for kind in (FOLD, MEMORY)
        if kind in document
    }
    return Kept(
        run_id,
        found[MEMORY],
        found.get(FOLD),
        document["offset"],
        document["last_epoch"],
        document["last_append_time"],
        tuple(document["milestones"]),
        document["base_run"],
        chain_of(document.get(STATE, {}).get("chain", ())),
        document.get(STATE, {}).get("layout"),
    )


def kept_by(warehouse: Reader, cluster: str, run_id: str | None) -> LogKept | None:
    """The state of the log that a finished run's next one could continue from; None where it kept none."""
    if run_id is None:
        return None
    found = warehouse.rows(RUNS, ["kept"], {CLUSTER: cluster, "run_id": run_id, "kept": PRESENT}, most=1)
    return None if found.is_empty() else read(run_id, found["kept"][0]).of_log
