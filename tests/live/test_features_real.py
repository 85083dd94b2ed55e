"""Answers to UpdateFeatures, held to each release's own FeatureControlManager in a process without a server: code and words.

Java compiles a source file here, which takes a JDK.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from jobs.commands.demo.kafka_servers import kafka_jars
from jobs.runtime.java import java_home
from tests.live.amount import cases, chance
from tests.live.fire.predict import REQUEST_PREFIX, FeatureUpdate, feature_answers
from tests.live.fire.servers import PINS, RELEASES
from tests.live.fire.world import METADATA_VERSION, Broker, World
from transforms.features.levels import release_tuple
from transforms.features.matrix import KRAFT_VERSION
from transforms.isr.validate import Registration

pytestmark = pytest.mark.live

CASES = cases(8_000)
_NUMBER = re.compile(r"-?\d+")
_LOCAL = 0
_UNKNOWN = "no.such.feature"
# It is no finalised level, and whether it can be raised is for the quorum to say.
_NOT_ASKED = (KRAFT_VERSION,)
Ranges = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Case:
    """What is finalised, what each broker supports, and the request."""

    finalised: Mapping[str, int]
    brokers: Mapping[int, Ranges]
    asked: FeatureUpdate

    def line(self) -> str:
        brokers = (f"{number}={_ranges(ranges)}" for number, ranges in self.brokers.items())
        updates = (f"{name}:{level}:{kind}" for name, level, kind in self.asked.updates)
        finalised = (f"{name}:{level}" for name, level in self.finalised.items())
        return ";".join([",".join(finalised), "/".join(brokers), ",".join(updates)])

    def world(self, release: tuple[int, int], own: Ranges) -> World:
        known = {number: Broker(Registration(number), "", (), ranges) for number, ranges in self.brokers.items()}
        return World(release, brokers=known, controllers={_LOCAL: own}, features=dict(self.finalised))


def _ranges(ranges: Ranges) -> str:
    return ",".join(f"{name}:{low}:{high}" for name, (low, high) in ranges.items())


def a_case(drawn: Random, own: Ranges) -> Case:
    """Mostly what could be: levels that the controller supports, brokers of its release or of one before."""
    names = [name for name in own if name not in (METADATA_VERSION, *_NOT_ASKED)]
    low, high = own[METADATA_VERSION]
    finalised = {METADATA_VERSION: drawn.randint(max(low, 4), high)}
    finalised |= {name: drawn.randint(1, own[name][1]) for name in names if drawn.random() < 0.4 and own[name][1]}
    brokers = {
        number: {
            name: (lowest, highest if drawn.random() < 0.93 else max(lowest, highest - 1))
            for name, (lowest, highest) in own.items()
            if drawn.random() < 0.97
        }
        or own
        for number in range(1, drawn.randint(1, 5))
    }
    chosen = [METADATA_VERSION] if drawn.random() < 0.5 else [drawn.choice([*names, METADATA_VERSION, _UNKNOWN])]
    if drawn.random() < 0.15:
        chosen = list(dict.fromkeys([*chosen, drawn.choice([*names, METADATA_VERSION])]))
    updates = []
    for name in chosen:
        now = finalised.get(name, 0)
        levels = [now, now + 1, now - 1, now + 2, now - 2, 0, 1, drawn.randint(-1, high + 3)]
        updates.append((name, max(drawn.choice(levels), -1), drawn.choice((1, 1, 2, 2, 3))))
    return Case(finalised, brokers, FeatureUpdate(tuple(updates), validate_only=True))


def asked_of(release: str, folder: Path, lines: Sequence[str]) -> list[str]:
    """What the release's class prints for these lines."""
    jars, tools = f"{kafka_jars(PINS[release])}/*", java_home() / "bin"
    source = Path(__file__).with_name("FeatureAnswers.java")
    subprocess.run([str(tools / "javac"), "-nowarn", "-cp", jars, "-d", str(folder), str(source)], check=True)
    quiet = folder / "log4j.properties"
    quiet.write_text("log4j.rootLogger=OFF\n")
    command = [str(tools / "java"), "-Xmx256m", f"-Dlog4j.configuration={quiet.as_uri()}"]
    command += ["-cp", f"{folder}:{jars}", "FeatureAnswers"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def own_ranges(text: str) -> Ranges:
    """The first line: what the controller supports."""
    return {name: (int(low), int(high)) for name, low, high in (each.split(":") for each in text.split(","))}


def _real(text: str) -> list[tuple[str, int, str]]:
    fields = text.split("\t")
    return [(name, int(code), words) for name, code, words in zip(fields[::3], fields[1::3], fields[2::3], strict=True)]


@pytest.mark.parametrize("release", RELEASES)
def test_each_answer_is_the_release_s_own(release: str, tmp_path: Path) -> None:
    short = release_tuple(release)
    own = own_ranges(asked_of(release, tmp_path, [])[0])
    drawn = chance(release)
    made = [a_case(drawn, own) for _ in range(CASES)]
    # By the words, whatever the numbers are: each way to differ once.
    wrong: Counter[tuple[str, str]] = Counter()
    example: dict[tuple[str, str], str] = {}
    known = 0
    for case, text in zip(made, asked_of(release, tmp_path, [case.line() for case in made])[1:], strict=True):
        predicted = feature_answers(case.asked, case.world(short, own), _LOCAL)
        if predicted is None:
            continue
        known += 1
        bare = [[(name, code, words.removeprefix(REQUEST_PREFIX)) for name, code, words in one] for one in predicted]
        real = _real(text)
        if sorted(real) not in [sorted(one) for one in bare]:
            way = (_NUMBER.sub("N", repr(bare[0])), _NUMBER.sub("N", repr(real)))
            wrong[way] += 1
            example.setdefault(way, f"{case.line()}\n    predicted {bare[0]}\n    real {real}")
    told = "\n".join(f"{times} times, as {example[way]}" for way, times in wrong.most_common(8))
    assert not wrong, f"{wrong.total()} of {known} differ:\n{told}"
    assert known > CASES / 2
