"""The command: `python -m tests.live.fire --release R[,R…]|all --seed N --requests K`."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.live.fire import audit, shrink
from tests.live.fire.servers import RELEASES, controller
from tests.live.fire.session import Disagreement, Session

_COUNTS = ("requests", "AlterPartition", "UpdateFeatures", "reassign", "cancel", "elect", "raced", "disagreements")
_SHOWN = 12


def main(arguments: Sequence[str] | None = None) -> int:
    """Fire at each release in turn and print a table; 1 when there is a disagreement or a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.fire", description=__doc__)
    parser.add_argument("--release", default="all", help=f"some of {', '.join(RELEASES)}, or all")
    parser.add_argument("--seed", type=int, default=1, help="the first one, with --sessions")
    parser.add_argument("--requests", type=int, default=20_000, help="of each session")
    parser.add_argument("--sessions", type=int, default=1, help="of each release, each with the next seed")
    parser.add_argument("--shrink", action="store_true", help="look for the shortest sequence of each disagreement")
    parser.add_argument(
        "--keep", type=Path, help="a folder for the logs, to be audited: kraft-audit check --kraft FOLDER"
    )
    asked = parser.parse_args(arguments)
    total: dict[str, Counter[str]] = {}
    for release in RELEASES if asked.release == "all" else asked.release.split(","):
        total[release] = Counter()
        for seed in range(asked.seed, asked.seed + asked.sessions):
            total[release] += _session(release, seed, asked.requests, asked.shrink, asked.keep)
    _table(total)
    return int(any(counts["disagreements"] or counts["findings"] for counts in total.values()))


def _session(release: str, seed: int, requests: int, shorten: bool, keep: Path | None) -> Counter[str]:
    with controller(release, seed) as running:
        begun = time.monotonic()
        session = Session.of(running, seed)
        session.run(range(requests))
        seconds = time.monotonic() - begun
        session.take(session.follower.new())
        found = audit.beside_snapshots(session.rows, running.log, running.release)
        found += audit.findings(session.world)
        session.counts["snapshots"] = audit.snapshots(running.log)
        if keep is not None:
            shutil.copytree(running.log.parent, keep / f"{release}-{seed}")
    session.counts["findings"] = len(found)
    print(f"{release} seed {seed}: {requests / seconds:.0f} requests/s; {dict(session.counts)}", flush=True)
    for text in session.renounced[:_SHOWN]:
        print(f"  gave up its leadership, {text}")
    for text in found[:_SHOWN]:
        print(f"  found in the log: {text}")
    _tell(release, seed, session.disagreements, shorten)
    return session.counts


def _tell(release: str, seed: int, found: Sequence[Disagreement], shorten: bool) -> None:
    times = Counter(each.signature for each in found)
    for signature, number in times.most_common(_SHOWN):
        first = next(each for each in found if each.signature == signature)
        print(f"  {number} times {first.kind}, {first.about}\n    first at step {first.step} of seed {seed}")
        print(f"    predicted {first.predicted}\n    real      {first.real}")
        if shorten:
            print(f"    shortest sequence: steps {shrink.of_release(release, seed, first)}", flush=True)


def _table(total: dict[str, Counter[str]]) -> None:
    print("release   " + "".join(f"{name:>16}" for name in (*_COUNTS, "findings")))
    for release, counts in total.items():
        print(f"{release:<10}" + "".join(f"{counts[name]:>16,}" for name in (*_COUNTS, "findings")))


if __name__ == "__main__":
    sys.exit(main())
