"""The choice among copies and the committed end (S§2.9, S§2.10), on made-up copies and on the captures."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.commands import quorum
from jobs.exit import OK
from jobs.sources.kraft.folder import ScannedCopy
from jobs.sources.kraft.proof import SILENT_MS, Proof, ReplicaState
from jobs.steps.ingest_kraft import find_copies
from tests.captures import capture
from transforms.kraft.quorum import (
    Checkpoint,
    LogCopy,
    NoUsableLogError,
    Slice,
    committed_end,
    common_end,
    elected_leader,
    ends_of_voters,
    known_voters,
    plan_read,
)


def copy(
    node: int | None,
    start: int,
    end: int,
    epochs: tuple[tuple[int, int], ...],
    checkpoints: tuple[Checkpoint, ...] = (),
    voters: tuple[int, ...] = (1, 2, 3),
) -> LogCopy:
    return LogCopy(
        controller_id=node,
        location=f"/logs/{node}",
        cluster_id="c",
        log_start=start,
        log_end=end,
        last_epoch=epochs[-1][0],
        last_append_time=1000 + end,
        epoch_starts=epochs,
        checkpoints=checkpoints,
        voters=voters,
        leader_id=1,
        leader_epoch=epochs[-1][0],
        problem=None,
    )


def test_of_two_copies_that_end_alike_the_one_without_damage_is_read() -> None:
    """A bit flipped in one controller's log, with the records of the others at hand, is a fault of that log and not of the state."""
    flipped, whole = replace(copy(1, 0, 120, ((1, 0),)), damaged=True), copy(2, 60, 120, ((1, 60),))
    [only] = plan_read([flipped, replace(whole, log_start=0)]).slices
    assert only.location == "/logs/2"
    plan = plan_read([flipped, replace(whole, checkpoints=(Checkpoint("c", 60, 1, True),))])
    assert [piece.location for piece in plan.slices] == ["/logs/2"], (
        "what is before its checkpoint is not read from the damaged one"
    )


def test_what_a_copy_without_damage_has_is_read_from_it_though_another_one_is_longer() -> None:
    flipped, behind = replace(copy(1, 0, 120, ((1, 0), (2, 90))), damaged=True), copy(2, 0, 110, ((1, 0), (2, 90)))
    plan = plan_read([flipped, copy(3, 0, 100, ((1, 0), (2, 90))), behind])
    assert plan.leading is flipped
    assert plan.slices == (Slice("/logs/2", 0, 110), Slice("/logs/1", 110, 120))
    assert "records before offset 110 come from controller 2, whose log has no damage" in plan.explanation
    later = replace(behind, log_start=60, epoch_starts=((1, 60), (2, 90)))
    assert plan_read([flipped, later]).slices == (Slice("/logs/1", 0, 120),), "nothing else has what is before"
    older = copy(3, 0, 80, ((1, 0),))
    assert plan_read([flipped, later, older]).slices == (Slice("/logs/3", 0, 80), Slice("/logs/1", 80, 120))
    fork = copy(2, 0, 100, ((1, 0),))
    assert plan_read([flipped, fork]).slices == (Slice("/logs/1", 0, 120),), (
        "its records from 90 on are another leader's"
    )


def test_the_leader_tells_which_voters_do_not_fetch() -> None:
    """As a real leader of 4.2.0 does: its own time is now, a voter that was down at its election has none. 3.3 tells no times."""
    voters = (
        ReplicaState(1, 120, 60_000, 60_000),
        ReplicaState(2, 120, 59_600, 59_600),
        ReplicaState(3, None, None, None),
        ReplicaState(4, 90, 60_000 - SILENT_MS - 1, 40_000),
    )
    proof = Proof("c", 1, 2, 120, 0, 0, 120, 1, 2, voters, (), ())
    assert proof.silent_voters == (3, 4)
    timeless = tuple(replace(voter, last_fetch_ms=None) for voter in voters)
    assert replace(proof, voters=timeless).silent_voters == ()
    assert replace(proof, voters=None).silent_voters == ()


def test_the_leaders_high_watermark_proves_a_copy_that_was_fetched_from_it() -> None:
    fetched = replace(copy(1, 0, 120, ((1, 0),)), high_watermark=120, fetched_at=1)
    committed = committed_end([fetched], plan_read([fetched]), None, None)
    assert (committed.end_exclusive, committed.proof) == (120, "high_watermark")


def test_a_high_watermark_proves_nothing_that_the_copy_does_not_hold() -> None:
    fetched = replace(copy(1, 0, 100, ((1, 0),)), high_watermark=120, fetched_at=1)
    assert committed_end([fetched], plan_read([fetched]), None, None).end_exclusive == 100
    longer = copy(2, 0, 130, ((1, 0), (2, 90)))
    both = [fetched, longer]
    assert committed_end(both, plan_read(both), None, None).end_exclusive <= 100


def test_the_highest_epoch_leads_though_another_copy_is_longer() -> None:
    old_leader = copy(1, 0, 120, ((1, 0),))
    new_leader = copy(2, 0, 110, ((1, 0), (2, 100)))
    plan = plan_read([old_leader, new_leader])
    assert plan.leading.controller_id == 2
    assert [(fork.controller_id, fork.offset, fork.losing_epoch, fork.winning_epoch) for fork in plan.forks] == [
        (1, 100, 1, 2)
    ]


def test_a_copy_that_is_only_behind_is_no_fork() -> None:
    plan = plan_read([copy(1, 0, 90, ((1, 0),)), copy(2, 0, 110, ((1, 0), (2, 100)))])
    assert plan.forks == ()
    assert "1 ends at 90" in plan.explanation


def test_history_before_the_leading_copy_comes_from_an_older_one() -> None:
    leading = copy(1, 50, 120, ((2, 50),), (Checkpoint("c", 50, 2, True),))
    older = copy(2, 0, 110, ((1, 0), (2, 40)))
    plan = plan_read([leading, older])
    assert plan.slices == (Slice("/logs/2", 0, 50), Slice("/logs/1", 50, 120))
    assert plan.base_checkpoint is None


def test_a_log_that_starts_late_needs_its_complete_checkpoint() -> None:
    complete, torn = Checkpoint("good", 60, 2, True), Checkpoint("torn", 55, 2, False)
    plan = plan_read([copy(1, 50, 120, ((2, 50),), (complete, torn))])
    assert plan.base_checkpoint == ("/logs/1", complete)
    assert plan.slices == (Slice("/logs/1", 60, 120),)
    with pytest.raises(NoUsableLogError, match="starts at offset 50"):
        plan_read([copy(1, 50, 120, ((2, 50),), (torn,))])


def test_no_copy_at_all_says_what_was_tried() -> None:
    with pytest.raises(NoUsableLogError, match="none was given"):
        plan_read([])


def test_common_end_is_where_the_epochs_part() -> None:
    assert common_end(copy(1, 0, 120, ((1, 0), (3, 80))), copy(2, 0, 110, ((1, 0), (2, 70), (4, 90)))) == 70
    assert common_end(copy(1, 0, 120, ((1, 0),)), copy(2, 130, 150, ((5, 130),))) is None


@pytest.mark.parametrize(
    ("ends", "offset", "proof"),
    [
        ((120, 115, 90), 115, "majority"),
        ((120, 120, 120), 120, "majority"),
        # A majority below the newest epoch's first record commits nothing of that epoch, nor proves what is before.
        ((120, 95, 90), 0, "log_start"),
    ],
)
def test_a_majority_of_copies_commits(ends: tuple[int, int, int], offset: int, proof: str) -> None:
    copies = [copy(node, 0, end, ((1, 0), (2, 100)) if end > 100 else ((1, 0),)) for node, end in enumerate(ends, 1)]
    end = committed_end(copies, plan_read(copies), None, None)
    assert (end.end_exclusive, end.proof) == (offset, proof)


def test_missing_voters_count_as_empty() -> None:
    alone = [copy(1, 0, 120, ((1, 0),))]
    assert committed_end(alone, plan_read(alone), None, None).end_exclusive == 0
    assert committed_end(alone, plan_read(alone), 80, 1).end_exclusive == 81
    # The epoch of /migration is of another quorum: it proves nothing.
    assert committed_end(alone, plan_read(alone), 80, 7).end_exclusive == 0


def test_a_single_voter_is_its_own_majority() -> None:
    alone = [copy(1, 0, 120, ((1, 0),), voters=(1,))]
    end = committed_end(alone, plan_read(alone), 80, 1)
    assert (end.end_exclusive, end.proof) == (120, "majority")


def test_a_checkpoint_is_committed() -> None:
    alone = [copy(1, 0, 120, ((1, 0),), (Checkpoint("x", 100, 1, True), Checkpoint("y", 110, 1, False)))]
    assert committed_end(alone, plan_read(alone), None, None).end_exclusive == 100


def test_after_the_failover_the_stopped_controller_is_passed_over() -> None:
    found = find_copies([str(capture("3.9.1", "7") / "kraft")])
    assert found.plan is not None
    facts = [LogCopy.from_row(c.row()) for c in found.copies]
    assert found.plan.leading.controller_id in (3001, 3002)
    assert found.plan.leading.end == 490
    assert "3000 ends at 475" in found.plan.explanation
    end = committed_end(facts, found.plan, 489, 2)
    assert (end.end_exclusive, end.proof) in ((490, "majority"), (490, "migration"))


def test_a_rejoined_controller_starts_at_a_checkpoint_and_history_comes_from_another() -> None:
    found = find_copies([str(capture("3.9.1", "8") / "kraft")])
    assert found.plan is not None
    assert {c.controller_id: c.log_start_offset for c in found.copies} == {3000: 488, 3001: 0, 3002: 0}
    assert found.plan.start == 0
    assert found.plan.base_checkpoint is None


def test_the_rejoined_controller_alone_is_replayed_from_its_checkpoint() -> None:
    found = find_copies([str(capture("3.9.1", "8") / "kraft" / "3000")])
    assert found.plan is not None
    assert found.plan.base_checkpoint is not None
    assert found.plan.base_checkpoint[1].offset == 488
    assert found.plan.slices[0].from_offset_inclusive == 488


def test_a_controller_that_stopped_in_order_left_a_producer_snapshot_at_its_end() -> None:
    stopped = {copy.controller_id: _facts(copy) for copy in find_copies([folder_of("3.9.1", "7")]).copies}
    assert {node: facts.stopped_cleanly for node, facts in stopped.items()} == {3000: True, 3001: False, 3002: False}
    rolled_back = find_copies([folder_of("3.9.1", "rolled-back")]).copies
    assert all(_facts(copy).stopped_cleanly for copy in rolled_back)
    # Cut when the log was rolled, not when it ended.
    running = find_copies([folder_of("3.9.1", "11")]).copies
    assert any(copy.producer_snapshot_offset is not None for copy in running)
    assert not any(_facts(copy).stopped_cleanly for copy in running)


def _facts(copy: ScannedCopy) -> LogCopy:
    return LogCopy.from_row(copy.row())


def folder_of(version: str, stage: str) -> str:
    return str(capture(version, stage) / "kraft")


def test_unknown_voters_are_no_majority() -> None:
    """One copy whose files name no voters proves what a checkpoint or /migration proves, no more."""
    alone = [copy(1, 0, 120, ((1, 0),), voters=())]
    end = committed_end(alone, plan_read(alone), None, None)
    assert (end.end_exclusive, end.proof) == (0, "log_start")
    assert committed_end(alone, plan_read(alone), 80, 1).end_exclusive == 81
    three = [copy(node, 0, 120, ((1, 0),), voters=()) for node in (1, 2, 3)]
    assert committed_end(three, plan_read(three), None, None).proof == "log_start"


def test_voters_that_one_copy_names_are_known() -> None:
    copies = [copy(1, 0, 120, ((1, 0),), voters=()), copy(2, 0, 110, ((1, 0),))]
    assert known_voters(copies, plan_read(copies)) == (1, 2, 3)
    end = committed_end(copies, plan_read(copies), None, None)
    assert (end.end_exclusive, end.explanation) == (110, "2 of 3 voters' copies hold every record below 110")


def test_two_copies_of_one_controller_are_one_voter() -> None:
    twice = [copy(1, 0, 120, ((1, 0),)), replace(copy(1, 0, 110, ((1, 0),)), location="/backup/1")]
    assert committed_end(twice, plan_read(twice), None, None).proof == "log_start"


def in_epoch(node: int, epoch: int, end: int = 50, last: int = 2) -> LogCopy:
    """A copy whose newest records are of one epoch, while its quorum-state names another one."""
    return replace(copy(node, 0, end, ((1, 0), (last, 10))), leader_epoch=epoch)


def stopped(copy: LogCopy) -> LogCopy:
    """The copy of a controller that has shut down cleanly."""
    return replace(copy, producer_snapshot=copy.log_end)


@pytest.mark.parametrize(
    ("copies", "proof"),
    [
        # Controller 3 may have been elected in epoch 3 and have other records from offset 10 on. Controller 2 got its own ones
        # from the leader of epoch 4, and controller 3 can still be elected, by controller 2's vote (figure 8 of Raft's paper).
        ([in_epoch(1, 2), in_epoch(2, 4)], "log_start"),
        ([in_epoch(1, 4), in_epoch(2, 4)], "log_start"),
        ([in_epoch(1, 2), in_epoch(2, 2)], "majority"),
        # Just after an election: between the two epochs there is none in which others can have been written.
        ([in_epoch(1, 3), in_epoch(2, 3)], "majority"),
        ([in_epoch(1, 2), in_epoch(2, 3)], "majority"),
        # Stopped one after the other: the last ones were candidates again and again. With all logs nobody has other records.
        ([stopped(in_epoch(1, 1, end=10, last=2)), stopped(in_epoch(2, 2)), stopped(in_epoch(3, 90))], "majority"),
        ([stopped(in_epoch(1, 7)), stopped(in_epoch(2, 8)), stopped(in_epoch(3, 9))], "majority"),
        # Copied one after the other while they ran: controller 3 was elected in epoch 3 after its log was copied.
        ([in_epoch(1, 2), in_epoch(2, 4), copy(3, 0, 10, ((1, 0),))], "log_start"),
        # Of the third voter's log there is only one that it no longer has.
        (
            [stopped(in_epoch(1, 2)), stopped(in_epoch(2, 4)), replace(stopped(in_epoch(3, 2)), problem="torn")],
            "log_start",
        ),
    ],
)
def test_records_that_a_later_leader_may_have_sent_are_no_majority_while_a_voters_log_is_missing(
    copies: list[LogCopy], proof: str
) -> None:
    assert committed_end(copies, plan_read(copies), None, None).proof == proof


def test_what_the_majority_had_before_a_later_leader_counts() -> None:
    """Of five voters three have the records of epoch 2 by its own leader, and a fourth one that was elected since."""
    voters = (1, 2, 3, 4, 5)
    copies = [replace(in_epoch(node, epoch), voters=voters) for node, epoch in ((1, 2), (2, 2), (3, 3), (4, 9))]
    end = committed_end(copies, plan_read(copies), None, None)
    assert (end.end_exclusive, end.explanation) == (50, "3 of 5 voters' copies hold every record below 50")


def stopped_one_after_the_other() -> list[LogCopy]:
    """As Kafka 3.7.2 left them: each stop elected another leader, and the last of them had nobody to send its records to."""
    epochs = ((2, 823), (3, 1741), (4, 1935), (5, 1936))
    ends = ((3000, 1935, 4, 2), (3001, 1936, 5, 3), (3002, 1937, 5, 4))
    voters = (3000, 3001, 3002)
    return [
        stopped(replace(copy(node, 0, end, epochs[:count], voters=voters), leader_epoch=epoch))
        for node, end, epoch, count in ends
    ]


def test_what_every_stopped_voter_has_is_committed_though_the_last_leader_was_alone() -> None:
    copies = stopped_one_after_the_other()
    end = committed_end(copies, plan_read(copies), 1740, 2)
    assert (end.end_exclusive, end.proof) == (1935, "majority")
    assert end.explanation == "3 of 3 voters' copies hold every record below 1935"


@pytest.mark.parametrize("node", [3000, 3001, 3002])
def test_a_voter_that_is_missing_or_runs_may_have_other_records_than_the_last_leaders(node: int) -> None:
    copies = stopped_one_after_the_other()
    running = [replace(each, producer_snapshot=None) if each.controller_id == node else each for each in copies]
    missing = [each for each in copies if each.controller_id != node]
    for some in (running, missing):
        assert committed_end(some, plan_read(copies), 1740, 2).end_exclusive == 1741


def test_without_quorum_state_a_copy_counts() -> None:
    copies = [replace(in_epoch(node, 2), leader_epoch=None) for node in (1, 2)]
    assert committed_end(copies, plan_read(copies), None, None).proof == "majority"


VOTERS_DISKS = ((1, "disk-1"), (2, "disk-2"), (3, "disk-3"))


@pytest.mark.parametrize(
    ("disk", "recorded", "proof"),
    [
        ("disk-1", VOTERS_DISKS, "majority"),
        # Formatted again: the replica has the voter's id, but is an observer until it is made a voter (KIP-853).
        ("another", VOTERS_DISKS, "log_start"),
        (None, VOTERS_DISKS, "majority"),
        ("another", (), "majority"),
        ("another", ((2, "disk-2"), (3, "disk-3")), "majority"),
    ],
)
def test_a_replica_with_another_directory_than_the_voters_is_no_voter(
    disk: str | None, recorded: tuple[tuple[int, str], ...], proof: str
) -> None:
    first = replace(copy(1, 0, 120, ((1, 0),)), directory_id=disk, voter_directories=recorded)
    second = replace(copy(2, 0, 120, ((1, 0),)), directory_id="disk-2", voter_directories=recorded)
    plan = plan_read([first, second])
    assert committed_end([first, second], plan, None, None).proof == proof
    assert ends_of_voters([first, second], plan) == ({1: 120, 2: 120} if proof == "majority" else {2: 120})


def test_a_voters_own_disk_counts_beside_its_copy_of_another_one() -> None:
    mine = [
        replace(copy(1, 0, 120, ((1, 0),)), directory_id=disk, location=f"/{disk}") for disk in ("another", "disk-1")
    ]
    three = [replace(each, voter_directories=VOTERS_DISKS) for each in [*mine, copy(2, 0, 110, ((1, 0),))]]
    assert committed_end(three, plan_read(three), None, None).explanation == (
        "2 of 3 voters' copies hold every record below 110"
    )


def test_of_two_copies_of_one_controller_the_longer_one_is_its_log() -> None:
    old, new = replace(copy(1, 0, 40, ((1, 0),)), location="/z/old"), copy(1, 0, 120, ((1, 0),))
    copies = [new, copy(2, 0, 110, ((1, 0),)), old]
    plan = plan_read(copies)
    assert committed_end(copies, plan, None, None).end_exclusive == 110
    assert ends_of_voters(copies, plan) == {1: 120, 2: 110}


def test_copies_that_no_file_names_are_used_and_told_by_their_folders() -> None:
    leading, other = copy(None, 0, 120, ((1, 0), (3, 100))), replace(copy(None, 0, 130, ((1, 0),)), location="/logs/b")
    other = replace(other, checkpoints=(Checkpoint("x", 90, 1, True),))
    plan = plan_read([leading, other])
    assert plan.leading is leading
    assert plan.explanation.startswith("the /logs/None copy is the most advanced of 2")
    assert [(fork.controller_id, fork.location) for fork in plan.forks] == [(None, "/logs/b")]
    assert committed_end([leading, other], plan, None, None).explanation == (
        "controller of /logs/b has a complete checkpoint at 90"
    )


def test_quorum_state_names_the_leader_of_its_epoch_only() -> None:
    copies = [replace(copy(1, 0, 120, ((1, 0),)), leader_id=-1, leader_epoch=4), copy(2, 0, 120, ((1, 0),))]
    assert elected_leader(copies, 1) == 1
    assert elected_leader(copies, 4) is None


def test_the_log_folder_alone_is_enough_to_look_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Copied without the meta.properties beside it, and without quorum-state."""
    for node in ("3000", "3001"):
        folder = tmp_path / node / "__cluster_metadata-0"
        shutil.copytree(capture("3.9.1", "7") / "kraft" / node / "__cluster_metadata-0", folder)
        folder.chmod(0o755)
        (folder / "quorum-state").unlink(missing_ok=True)
    assert quorum.execute(argparse.Namespace(path=[str(tmp_path)], controllers=None)) == OK
    assert "committed  below" in capsys.readouterr().out


def test_damage_in_a_copy_is_told_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The copy stood there like the others."""
    for node in ("3001", "3002"):
        shutil.copytree(capture("3.9.1", "8") / "kraft" / node, tmp_path / node)
    log = tmp_path / "3002" / "__cluster_metadata-0" / "00000000000000000000.log"
    log.chmod(0o644)
    content = bytearray(log.read_bytes())
    content[9_000] ^= 0xFF
    log.write_bytes(content)
    assert quorum.execute(argparse.Namespace(path=[str(tmp_path)], controllers=None)) == OK
    told = {line.split()[0]: line for line in capsys.readouterr().out.split("\n\n")[0].splitlines()[1:]}
    assert told["3002"].endswith("  [a batch is damaged, missing or out of order]")
    assert not told["3001"].endswith("]")


def test_the_copies_stand_in_columns_however_many_checkpoints_they_have(capsys: pytest.CaptureFixture[str]) -> None:
    folders = capture("4.3.1-kraft", "11-ghosts") / "kraft"
    assert quorum.execute(argparse.Namespace(path=[str(folders)], controllers=None)) == OK
    head, *rows = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert len(rows) == 4
    assert {line.index(str(folders)) for line in rows} == {head.index("location")}
