"""Suppressions: what an entry may say, what it matches, and what is said of those that are over or match nothing."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from jobs.exit import UsageError
from jobs.sources.suppressions import read_suppressions
from schemas.report import Suppression
from transforms.reconcile.compare.suppressions import (
    MARK,
    SuppressionRule,
    counted_matches,
    in_force,
    marked,
    notes,
)

GOOD = "{fingerprint: 61d791b5a7e274f4, who: Ann, why: known, until: 2026-12-31}"
WORD = Suppression("Ann", "known", "2026-12-31")
QUOTA = '{"entity": {"client-id": "app-9"}, "quota": "producer_byte_rate"}'
TODAY = date(2026, 11, 21)


def read(tmp_path: Path, text: str) -> tuple[SuppressionRule, ...]:
    path = tmp_path / "known.yml"
    path.write_text(text)
    return read_suppressions(path)


def test_an_entry_is_a_fingerprint_or_an_entity_and_a_class(tmp_path: Path) -> None:
    assert read(tmp_path, f"- {GOOD}") == (SuppressionRule(1, WORD, fingerprint="61d791b5a7e274f4"),)
    text = """
- {entity: partitions, key: orders/3, column: isr, class: lag, who: Ann, why: known, until: "2026-12-31"}
- entity: client_quotas
  key: {quota: producer_byte_rate, entity: {client-id: app-9}}
  class: lost_write
  who: Ann
  why: known
  until: 2026-12-31
- {entity: topics, class: lag, who: Ann, why: known, until: 2026-12-31}
"""
    assert read(tmp_path, text) == (
        SuppressionRule(1, WORD, None, "partitions", '{"topic": "orders", "partition": 3}', "isr", "lag"),
        SuppressionRule(2, WORD, None, "client_quotas", QUOTA, None, "lost_write"),
        SuppressionRule(3, WORD, None, "topics", None, None, "lag"),
    )
    assert read(tmp_path, "") == ()
    assert read_suppressions(None) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "must be a list of entries"),
        ("- [", "is not valid YAML at line"),
        ("- 1", "entry 1: "),
        (f"- {GOOD[:-1]}, who: b}}", "`who` is there twice, again at line 1"),
        (
            f"- {GOOD}\n- {{klass: lag, entity: topics, who: a, why: b, until: 2026-01-01}}",
            "entry 2: unknown key `klass`",
        ),
        ("- {klass: lag, entity: topics, who: a, why: b, until: 2026-01-01}", "did you mean `class`?"),
        ("- {entity: topics, class: lag, who: a, why: b}", "`until`: Field required"),
        ("- {entity: topics, class: lag, who: a, why: b, until: soon}", "`until`: "),
        ("- {entity: topics, class: lag, who: '', why: b, until: 2026-01-01}", "`who` is empty"),
        ("- {entity: topics, who: a, why: b, until: 2026-01-01}", "give fingerprint, or entity and class"),
        (
            GOOD.replace("{", "- {entity: topics, "),
            "give fingerprint alone, or entity and class; not `entity` beside it",
        ),
        (GOOD.replace("{", "- {class: lag, "), "not `class` beside it"),
        ("- {fingerprint: xyz, who: a, why: b, until: 2026-01-01}", "`fingerprint`: "),
        ("- {entity: topic, class: lag, who: a, why: b, until: 2026-01-01}", "no `topic`; did you mean `topics`?"),
        ("- {entity: topics, class: lags, who: a, why: b, until: 2026-01-01}", "no `lags`; did you mean `lag`?"),
        (
            "- {entity: partitions, column: isrs, class: lag, who: a, why: b, until: 2026-01-01}",
            "no `isrs`; did you mean `isr`?",
        ),
        ("- {entity: partitions, key: orders, class: lag, who: a, why: b, until: 2026-01-01}", "TOPIC/PARTITION"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)
    assert str(tmp_path / "known.yml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_last_day_is_inclusive() -> None:
    rules = [
        SuppressionRule(1, Suppression("a", "b", day), entity="topics")
        for day in ("2026-11-20", "2026-11-21", "2026-11-22")
    ]
    assert in_force(rules, TODAY) == rules[1:]


ROWS = [
    ("f1", "partitions", '{"topic": "orders", "partition": 3}', "isr", "lag"),
    ("f2", "partitions", '{"topic": "orders", "partition": 3}', "leader", "lag"),
    ("f3", "partitions", '{"topic": "orders", "partition": 4}', "isr", "lag"),
    ("f4", "partitions", '{"topic": "orders", "partition": 3}', None, "lost_write"),
    ("f5", "topics", '{"topic": "orders"}', None, "lag"),
]
KEY = '{"topic": "orders", "partition": 3}'


COLUMNS = ("fingerprint", "entity", "key", "column", "class")
Matched = tuple[dict[str, int | None], set[int], dict[str, int]]


def matched(*rules: SuppressionRule) -> Matched:
    """Marks by fingerprint, positions of the rules that match a row, and suppressed rows by class."""
    rows = marked(pl.DataFrame(ROWS, schema=dict.fromkeys(COLUMNS, pl.String()), orient="row"), rules)
    counts = counted_matches(rows, rules)
    assert json.loads(json.dumps(counts)) == counts
    return (
        dict(rows.select("fingerprint", MARK).iter_rows()),
        {position for row in counts for position in row["matched"]},
        {row["class"]: row["suppressed"] for row in counts},
    )


@pytest.mark.parametrize(
    ("rule", "hit"),
    [
        (SuppressionRule(1, WORD, fingerprint="f2"), {"f2"}),
        (SuppressionRule(1, WORD, None, "partitions", None, None, "lag"), {"f1", "f2", "f3"}),
        (SuppressionRule(1, WORD, None, "partitions", KEY, None, "lag"), {"f1", "f2"}),
        (SuppressionRule(1, WORD, None, "partitions", KEY, "isr", "lag"), {"f1"}),
        (SuppressionRule(1, WORD, None, "partitions", KEY, "isr", "lost_write"), set()),
        (SuppressionRule(1, WORD, None, "topics", KEY, None, "lag"), set()),
    ],
)
def test_a_rule_matches_what_it_says_and_no_more(rule: SuppressionRule, hit: set[str]) -> None:
    marks, each, by_class = matched(rule)
    assert {name for name, mark in marks.items() if mark is not None} == hit
    assert each == ({0} if hit else set())
    assert sum(by_class.values()) == len(hit)


def test_the_first_rule_speaks_and_every_rule_is_counted() -> None:
    wide = SuppressionRule(1, WORD, None, "partitions", None, None, "lag")
    marks, each, by_class = matched(
        wide, SuppressionRule(2, WORD, fingerprint="f1"), SuppressionRule(3, WORD, fingerprint="none")
    )
    assert marks == {"f1": 0, "f2": 0, "f3": 0, "f4": None, "f5": None}
    assert each == {0, 1}
    assert by_class == {"lag": 3}


def test_rules_count_by_class_and_a_narrow_one_before_a_wide_one_speaks() -> None:
    wide, lost = (
        SuppressionRule(1, WORD, None, "partitions", None, None, "lag"),
        SuppressionRule(2, WORD, fingerprint="f4"),
    )
    narrow = SuppressionRule(1, WORD, fingerprint="f1")
    both = {"lag": 3, "lost_write": 1}
    assert matched(wide, lost) == ({"f1": 0, "f2": 0, "f3": 0, "f4": 1, "f5": None}, {0, 1}, both)
    assert matched(narrow, wide) == ({"f1": 0, "f2": 1, "f3": 1, "f4": None, "f5": None}, {0, 1}, {"lag": 3})


def test_what_is_over_and_what_matches_nothing_is_said() -> None:
    over = SuppressionRule(1, Suppression("Bob", "x", "2026-11-20"), fingerprint="f1")
    idle = SuppressionRule(2, WORD, None, "topics", None, None, "lag")
    used = SuppressionRule(3, WORD, fingerprint="f3")
    told = notes([over, idle, used], TODAY, {1})
    assert told == [
        "suppression 1 (f1) of Bob expired on 2026-11-20: its rows are shown like all others",
        "suppression 2 (topics lag) of Ann matches nothing: remove it",
    ]
    assert notes([over, idle, used], TODAY, None) == told[:1], "nothing was compared, so nothing can be said of matches"
