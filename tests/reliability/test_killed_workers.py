"""A cluster that needs more memory than there is: the system kills its worker each time, and no other cluster minds."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import jobs.run.cluster_pass
from jobs import out_of_memory
from jobs.run.run import Failure
from tests.captures import capture
from tests.pipeline.audits import Audit, audit_all
from transforms.examination.examine import examine
from transforms.examination.made import Made
from transforms.examination.task import ClusterTask
from transforms.units import Feed

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]
LARGE, SMALL = "large", "small"


def test_its_failure_names_memory_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def killed(task: ClusterTask, feed: Feed) -> Iterator[Made]:
        if task.given.name == "large":
            os.kill(os.getpid(), signal.SIGKILL)
        yield from examine(task, feed)

    kraft = {"folders": [str(capture("4.3.1-kraft", "1-healthy") / "kraft")]}
    same = {"warehouse": str(tmp_path / "tables"), "spark": {"profile": "small"}, "kraft": kraft}
    contents = [{"cluster": name, "report": {"folder": str(tmp_path)}, **same} for name in (LARGE, SMALL)]
    with monkeypatch.context() as patch:
        patch.setattr(jobs.run.cluster_pass, "examine", killed)
        found = audit_all(contents)
    failure, other = found[LARGE], found[SMALL]
    assert isinstance(failure, Failure)
    assert failure.reason == out_of_memory.WORKER
    assert isinstance(other, Audit)
    assert other.report.verdict != "failed"
    after = audit_all(contents)[LARGE]
    assert isinstance(after, Audit)
    mine, theirs = ({check.id: check.verdict for check in each.report.checks} for each in (after, other))
    assert mine == theirs
