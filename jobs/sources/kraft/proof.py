"""The proof of a fetched copy: the offset up to which its records are committed, as reported by the leader.

The file is next to the segments. Copies of a controller's own files have none: no controller stores its high watermark.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

PROOF_FILE = "fetched.json"
_FORMAT = 1
# A follower's fetch waits for half a second at most, and after controller.quorum.fetch.timeout.ms, two seconds, it looks for a leader.
SILENT_MS = 10_000


@dataclass(frozen=True)
class ReplicaState:
    """A voter or observer as the leader saw it; `log_end` is exclusive, times are the leader's clock in milliseconds."""

    replica_id: int
    log_end: int | None
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(frozen=True)
class FetchedSegment:
    """A segment of the copy: its size, one past its last offset, where its last batch lies, and the CRC-32 of all its bytes, which
    copies of earlier releases lack."""

    file: str
    bytes: int
    next_offset: int
    last_batch: int
    last_epoch: int
    crc: int | None = None


@dataclass(frozen=True)
class Proof:
    """Everything below `high_watermark` (exclusive) is committed, as reported by the leader of `leader_epoch`.

    Offsets: `log_start` is the leader's log start, `begins_at` what it was when the copy was begun, `log_end` one past the
    copy's last record, never above the high watermark. `started_ms` and `finished_ms` are this client's clock. `voters`
    and `observers` are None when the leader refused to list them. `gap` are offsets [from, to) that are gone between the
    copy before and this one.
    """

    cluster_id: str | None
    leader_id: int
    leader_epoch: int
    high_watermark: int
    log_start: int
    begins_at: int
    log_end: int
    started_ms: int
    finished_ms: int
    voters: tuple[ReplicaState, ...] | None
    observers: tuple[ReplicaState, ...] | None
    segments: tuple[FetchedSegment, ...]
    notes: tuple[str, ...] = ()
    gap: tuple[int, int] | None = None

    @property
    def voter_ids(self) -> tuple[int, ...]:
        """Ids of the voters; empty if they were not reported."""
        return tuple(sorted(voter.replica_id for voter in self.voters or ()))

    @property
    def silent_voters(self) -> tuple[int, ...]:
        """Voters that have not fetched for a while by the leader's clock, or never since its election; none below 3.4, without times."""
        voters = self.voters or ()
        now = next((voter.last_fetch_ms for voter in voters if voter.replica_id == self.leader_id), None)
        if now is None:
            return ()
        return tuple(sorted(voter.replica_id for voter in voters if now - (voter.last_fetch_ms or 0) > SILENT_MS))


def write_proof(folder: Path, proof: Proof) -> None:
    """Write the proof into a log folder, under its name only once it is whole."""
    draft = folder / f"{PROOF_FILE}.part"
    with draft.open("w", encoding="utf-8") as file:
        json.dump({"format": _FORMAT, **asdict(proof)}, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / PROOF_FILE)


def read_proof(folder: Path) -> Proof | None:
    """Read a log folder's proof; None when there is none. Raises ValueError when it makes no sense, OSError."""
    try:
        content = json.loads((folder / PROOF_FILE).read_text("utf-8"))
    except FileNotFoundError:
        return None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(f"{PROOF_FILE} has another format")
    # Spark's workers read logs as well, and few logs have a proof.
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    try:
        return TypeAdapter(Proof).validate_python(content)
    except ValidationError:
        raise ValueError(f"{PROOF_FILE} makes no sense") from None
