"""Registrations of brokers and their changes (`ClusterControlManager.replay`, S§3.1).

They are few, and a change is checked with all earlier registrations: all events are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from schemas.checks.codes import BROKER_REPLACED
from schemas.entities.brokers import BROKERS
from transforms.clusters import CLUSTER
from transforms.kernel.cold import provenance
from transforms.kernel.silver import silver_schema
from transforms.kernel.topics import At, Finding
from transforms.kraft.replay.entities import DELETE, PATCH, UPSERT

SILVER: pa.Schema = silver_schema(BROKERS)
KEPT = pa.schema(
    [
        ("broker", pa.int32()),
        ("op", pa.string()),
        ("row", pa.string()),
        ("asked", pa.int64()),
        ("offset", pa.int64()),
        ("epoch", pa.int32()),
        ("append_time", pa.int64()),
    ]
)
_PATCHED = ("fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")


@dataclass(frozen=True)
class BrokerEvent:
    """One event on a broker. `row` has the columns of an upsert or a patch; `asked` is the epoch that a removal names."""

    broker: int
    op: str
    row: Mapping[str, Any] | None
    asked: int | None
    at: At


class Brokers:
    """All events on brokers, in the order of the log."""

    def __init__(self, events: Sequence[BrokerEvent] = ()) -> None:
        self.events = [*events]

    def registered(self) -> list[dict[str, Any]]:
        """Brokers that are registered, with the changes of their own epoch: columns of silver without `cluster`.

        A change of another epoch than the registration's is not applied: Kafka throws on it.
        """
        return [row for mine in self._by_broker().values() if (row := _registered(mine)) is not None]

    def table(self, cluster: str) -> pa.Table:
        """`registered` as rows of SILVER."""
        return pa.Table.from_pylist([{CLUSTER: cluster, **row} for row in self.registered()], SILVER)

    def findings(self) -> Iterator[Finding]:
        """What breaks a rule."""
        for broker, mine in self._by_broker().items():
            yield from _stray_changes(broker, mine)
            yield from _unknown_unregistrations(broker, mine)
            yield from _shared_ids(broker, mine)

    def _by_broker(self) -> dict[int, list[BrokerEvent]]:
        found: dict[int, list[BrokerEvent]] = {}
        for event in self.events:
            found.setdefault(event.broker, []).append(event)
        return found

    def kept(self) -> pa.Table:
        """All events: columns KEPT."""
        rows = [
            {
                "broker": event.broker,
                "op": event.op,
                "row": None if event.row is None else json.dumps(event.row),
                "asked": event.asked,
                **event.at._asdict(),
            }
            for event in self.events
        ]
        return pa.Table.from_pylist(rows, KEPT)

    @staticmethod
    def restored(rows: pa.Table) -> Brokers:
        """What `kept` gave."""
        return Brokers(
            [
                BrokerEvent(
                    row["broker"],
                    row["op"],
                    None if row["row"] is None else json.loads(row["row"]),
                    row["asked"],
                    At(row["offset"], row["epoch"], row["append_time"]),
                )
                for row in rows.to_pylist()
            ]
        )


def _registered(events: Sequence[BrokerEvent]) -> dict[str, Any] | None:
    whole = [place for place, event in enumerate(events) if event.op != PATCH]
    if not whole or events[whole[-1]].op == DELETE:
        return None
    registration = events[whole[-1]]
    row, at = dict(registration.row or {}), registration.at
    for change in events[whole[-1] + 1 :]:
        if change.row is not None and change.row["broker_epoch"] == row["broker_epoch"]:
            row |= {name: change.row[name] for name in _PATCHED if name in change.row}
            at = change.at
    created = next(event.at.offset for event in events if event.op == UPSERT)
    return {**row, **provenance(at, created)}


def _stray_changes(broker: int, events: Sequence[BrokerEvent]) -> Iterator[Finding]:
    """Changes of a broker that is not registered then, or with another epoch (`ClusterControlManager.replay` throws)."""
    for event, epoch in _with_epochs(events):
        if event.op == PATCH and event.row is not None and event.row["broker_epoch"] != epoch:
            what = "a broker that is not registered" if epoch is None else f"a broker registered with {epoch}"
            detail = f"a change of epoch {event.row['broker_epoch']} of {what}"
            yield Finding.at(event.at.offset, "BROKER-CHANGE", f"broker {broker}", detail)


def _with_epochs(events: Sequence[BrokerEvent]) -> Iterator[tuple[BrokerEvent, int | None]]:
    """Each event with the epoch that the broker is registered with before it; None while it is not."""
    epoch: int | None = None
    for event in events:
        yield event, epoch
        if event.op == UPSERT and event.row is not None:
            epoch = event.row["broker_epoch"]
        elif event.op == DELETE:
            epoch = None


def _unknown_unregistrations(broker: int, events: Sequence[BrokerEvent]) -> Iterator[Finding]:
    """Removals of an id that is not registered, or is with another epoch (`ClusterControlManager.replay` throws)."""
    for event, epoch in _with_epochs(events):
        if event.op != DELETE or (epoch is not None and epoch == event.asked):
            continue
        if epoch is None:
            detail = "an unregistration of a broker that is not registered"
        else:
            detail = f"an unregistration with epoch {event.asked} of a broker registered with {epoch}"
        yield Finding.at(event.at.offset, "REMOVAL-UNKNOWN", f"broker {broker}", detail)


def _shared_ids(broker: int, events: Sequence[BrokerEvent]) -> Iterator[Finding]:
    """A registration that shows two processes under one broker id; only what still stands: the newest, running.

    An incarnation is one start of a process. One that registers again after another did was alive all the time
    (DUR-12). One that takes the place of a registration neither fenced, nor shutting down, nor removed came while the
    controller took the other for alive (BROKER_REPLACED; `ClusterControlManager.registerBroker` allows it when the
    other's session has just run out).
    """
    place = max((place for place, event in enumerate(events) if event.op != PATCH), default=-1)
    newest = events[place] if place >= 0 else None
    if newest is None or newest.row is None or _last(events, "fenced") is not False:
        return
    before, mine = events[:place], newest.row["incarnation_id"]
    other = _last(before, "incarnation_id")
    if other is None or other == mine:
        return
    subject = f"broker {broker}"
    if any(event.row is not None and event.row.get("incarnation_id") == mine for event in before):
        detail = f"incarnation {mine} is back, after {other} took its place"
        yield Finding.at(newest.at.offset, "DUR-12", subject, detail)
    elif before[-1].op != DELETE and not (_last(before, "fenced") or _last(before, "in_controlled_shutdown")):
        detail = f"incarnation {mine} took the place of {other}, which was not fenced"
        yield Finding.at(newest.at.offset, BROKER_REPLACED, subject, detail)


def _last(events: Sequence[BrokerEvent], name: str) -> Any:
    """The last value that an event gave a column."""
    values = (event.row.get(name) for event in reversed(events) if event.row is not None)
    return next((value for value in values if value is not None), None)
