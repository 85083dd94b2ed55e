"""`isr`, `features` and `downgrade` on a finished audit of a cluster in dual write."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobs.cli import main
from tests.pipeline.audits import Audit

pytestmark = pytest.mark.slow


@pytest.fixture
def say(audit_of: Callable[[str, str], Audit], capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    audit = audit_of("3.9.1", "5")
    place = ["--warehouse", audit.warehouse.root, "--cluster", audit.cluster]

    def run(*argv: str, code: int = 0) -> str:
        capsys.readouterr()
        assert main([*argv, *place]) == code
        said = capsys.readouterr()
        return said.out if code == 0 else said.err

    return run


def test_the_history_of_a_partition_is_that_of_the_dump(say: Callable[..., str]) -> None:
    lines = say("isr", "orders/0").splitlines()
    assert lines[0].startswith("Partition 0 of topic id ")
    assert lines[1].endswith("created")
    assert "there never was a topic" in say("isr", "nonsense", code=2)


def test_a_request_is_judged_by_both_controllers(say: Callable[..., str]) -> None:
    request = (
        "--topic",
        "orders",
        "--partition",
        "0",
        "--leader-epoch",
        "999",
        "--partition-epoch",
        "0",
        "--isr",
        "0,1",
    )
    assert "NOT_CONTROLLER (41), rule 3" in say("isr", "validate", *request)
    assert "zk controller" in say("isr", "validate", *request, "--mode", "zk")
    assert "--isr is needed" in say("isr", "validate", *request[:-2], code=2)


def test_features_are_told_and_their_change_refused_while_migrating(say: Callable[..., str]) -> None:
    assert "\tFinalizedVersionLevel: 3.9-IV0\t" in say("features", "describe")
    assert "GAP" not in say("features", "matrix")
    refused = say("features", "upgrade", "--feature", "metadata.version=3.9")
    assert "Unable to modify metadata.version while a ZK migration is in progress." in refused
    assert refused.endswith("The exit code of kafka-features would be 1.\n")
    assert "Nobody needs" in say("features", "needs", "--feature", "metadata.version=21")


def test_the_way_back_is_blocked_while_migrating(say: Callable[..., str]) -> None:
    lines = say("downgrade", "--to", "3.6").splitlines()
    assert lines[1] == "Downgrade to 3.6: blocked; the lowest release that reads everything is 3.9"
    assert any("[broker 0's registration]" in line for line in lines)
    assert "--to" in say("downgrade", "--to", "yesterday", code=2)
