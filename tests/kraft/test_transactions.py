"""Metadata transactions: what takes effect and what does not (S§2.7)."""

from __future__ import annotations

from transforms.kraft.replay.transactions import ABORT, BEGIN, END, Marker, read_transactions


def marker(offset: int, kind: str, name: str | None = None) -> Marker:
    return Marker(offset, kind, name, 1000 + offset)


def test_an_ended_transaction_takes_effect() -> None:
    log = read_transactions([marker(1, BEGIN, "Bootstrap records"), marker(4, END)])
    assert [(t.begin_inclusive, t.end_inclusive, t.outcome, t.name) for t in log.transactions] == [
        (1, 4, "end", "Bootstrap records")
    ]
    assert log.discarded == ()
    assert log.open is None


def test_an_aborted_one_is_discarded_with_its_markers() -> None:
    log = read_transactions([marker(5, BEGIN, "ZK Migration"), marker(9, ABORT), marker(12, BEGIN), marker(20, END)])
    assert log.discarded == ((5, 9),)


def test_an_open_one_is_pending_to_the_end_of_the_log() -> None:
    log = read_transactions([marker(26, BEGIN, "ZK Migration")])
    assert log.discarded == ((26, None),)
    assert log.open is not None
    assert log.open.name == "ZK Migration"


def test_markers_without_partners_are_told() -> None:
    log = read_transactions([marker(1, END), marker(5, BEGIN), marker(6, BEGIN), marker(9, END)])
    assert [m.offset for m in log.unmatched] == [1, 6]
    assert [(t.begin_inclusive, t.end_inclusive) for t in log.transactions] == [(5, 9)]


def test_order_of_arrival_does_not_matter() -> None:
    markers = [marker(9, ABORT), marker(5, BEGIN), marker(20, END), marker(12, BEGIN)]
    assert read_transactions(markers) == read_transactions(sorted(markers, key=lambda m: m.offset))


def test_a_transaction_is_in_force_from_its_end_marker_on() -> None:
    log = read_transactions(
        [Marker(10, BEGIN, "load", None), Marker(20, END, None, None), Marker(30, BEGIN, None, None)]
    )
    assert log.discarded_at(9) == ()
    assert log.discarded_at(10) == ((10, 20),)
    assert log.discarded_at(19) == ((10, 20),)
    assert log.discarded_at(20) == ()
    assert log.discarded_at(30) == ((30, None),)


def test_an_aborted_transaction_is_never_in_force() -> None:
    log = read_transactions([Marker(10, BEGIN, None, None), Marker(20, ABORT, None, None)])
    assert [log.discarded_at(offset) for offset in (5, 15, 25)] == [(), ((10, 20),), ((10, 20),)]
