"""Which part of a log is told by which run: nothing twice, gaps named, another log told apart."""

from __future__ import annotations

from dataclasses import replace

from jobs.commands.changes import heading
from jobs.evidence.all_runs import RunExtent, logs_of

T = 1_000


def test_each_run_adds_what_is_new() -> None:
    [log] = logs_of([RunExtent("a", 0, T, 100), RunExtent("b", 0, T, 150), RunExtent("c", 120, T + 9, 180)])
    assert log.parts == {"a": (0, 100), "b": (100, 150), "c": (150, 180)}
    assert (log.first, log.end, log.gaps) == (0, 180, [])


def test_a_run_that_adds_nothing_is_left_out() -> None:
    [log] = logs_of([RunExtent("a", 0, T, 100), RunExtent("an older copy", 0, T, 90), RunExtent("again", 0, T, 100)])
    assert log.parts == {"a": (0, 100)}


def test_what_kafka_pruned_between_two_runs_is_a_gap() -> None:
    [log] = logs_of([RunExtent("a", 0, T, 100), RunExtent("b", 140, T + 9, 200)])
    assert (log.parts, log.gaps) == ({"a": (0, 100), "b": (140, 200)}, [(100, 140)])


def test_controllers_that_were_formatted_anew_have_another_log() -> None:
    first, second = logs_of([RunExtent("a", 0, T, 100), RunExtent("b", 0, T + 9, 40), RunExtent("c", 30, T + 20, 60)])
    assert first.parts == {"a": (0, 100)}
    assert second.parts == {"b": (0, 40), "c": (40, 60)}


def test_a_log_whose_beginning_nobody_saw_goes_on_until_another_one_begins() -> None:
    first, second = logs_of([RunExtent("a", 50, T, 100), RunExtent("b", 60, T, 120), RunExtent("c", 0, T + 9, 10)])
    assert first.parts == {"a": (50, 100), "b": (100, 120)}
    assert second.parts == {"c": (0, 10)}


def test_a_new_log_whose_beginning_was_pruned_is_not_the_old_one() -> None:
    """Formatted, grown and pruned between two runs: its changes were told as a sequel of the old log's, without a word."""
    old = RunExtent("a", 0, T, 100, newest=T + 50, epoch=3)
    within, beyond = RunExtent("b", 60, T + 90_000, 300, epoch=2), RunExtent("b", 140, T + 90_000, 300, epoch=2)
    for new in (within, beyond):
        first, second = logs_of([old, new, RunExtent("c", 200, T + 99_000, 400, epoch=2)])
        assert first.parts == {"a": (0, 100)}
        assert second.parts == {"b": (new.first, 300), "c": (300, 400)}


def test_a_part_of_the_same_log_is_no_new_one() -> None:
    """What Kafka has pruned, clocks of two leaders, an older copy, a run of a release that did not say."""
    old = RunExtent("a", 0, T, 100, newest=T + 50, epoch=3)
    for later in (
        RunExtent("pruned", 60, T + 40, 300, epoch=4),
        RunExtent("a clock behind", 60, T + 50_000, 300, epoch=3),
        RunExtent("an older copy", 60, T + 40, 90, epoch=2),
        RunExtent("did not say", 140, T + 90_000, 300),
    ):
        assert len(logs_of([old, later])) == 1, later
    assert len(logs_of([replace(old, newest=None, epoch=None), RunExtent("b", 60, T + 90_000, 300, epoch=2)])) == 1


def test_a_log_that_was_copied_live_begins_at_offset_1() -> None:
    """Once there is a snapshot a leader does not give the record at offset 0 (`jobs.sources.kraft.live.copy`)."""
    first, second = logs_of([RunExtent("a", 1, T, 5_000), RunExtent("b", 1, T + 9, 300), RunExtent("c", 1, T + 9, 320)])
    assert first.parts == {"a": (1, 5_000)}
    assert second.parts == {"b": (1, 300), "c": (300, 320)}
    [same] = logs_of([RunExtent("a", 0, T, 100), RunExtent("live", 1, T, 150), RunExtent("b", 0, T, 180)])
    assert same.parts == {"a": (0, 100), "live": (100, 150), "b": (150, 180)}


def test_another_clusters_log_is_a_log_of_its_own() -> None:
    """A folder of another cluster, given once: RUN-01 reports it, and the cluster's own log goes on after it."""
    own, other = logs_of(
        [
            RunExtent("a", 60, T, 100, "own"),
            RunExtent("wrong folder", 50, T, 900, "other"),
            RunExtent("b", 80, T, 180, "own"),
            RunExtent("unknown", 90, T, 950, None),
        ]
    )
    assert own.parts == {"a": (60, 100), "b": (100, 180)}
    assert other.parts == {"wrong folder": (50, 900), "unknown": (900, 950)}
    assert "The log of another cluster, other. " in heading(other, own)
    assert "formatted" not in heading(other, own)
